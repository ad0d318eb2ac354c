"""`~/.omnigraph/config.yaml` as values.

    operator: {actor: anna}
    stores:   {shop: {uri: s3://acme/shop, storage_options: {access_key_id: $SHOP_KEY}}}
    servers:  {prod: {url: https://graph.example.com}}
    clusters: {brain: {root: s3://acme/brain}}
    profiles: {dev: {store: shop}}
    aliases:  {top: {store: shop, file: ~/queries.gq, query: top_customers, args: [n]}}
    defaults: {store: shop, output: table, durability: power}

Guarantees: pure but for reading that one file; a file that cannot be understood is refused, with
its path and the key that is wrong.
Deliberately absent: secrets. A token in this file is an unknown key; a secret storage option
names an environment variable, as in `$SHOP_SECRET`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from omnigraph.errors import InvalidArgumentError

HOME_VARIABLE = "OMNIGRAPH_HOME"
FILE = "config.yaml"
_NO_SECTIONS = frozenset({"actor", "path", "warnings", "store_options"})

T = TypeVar("T")


@dataclass(frozen=True)
class Profile:
    """A named scope: exactly one of the first three, which is checked when it is used."""

    server: str | None = None
    cluster: str | None = None
    store: str | None = None
    default_graph: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Alias:
    """A name for asking one query. With `store` or `profile`, `file` says where the query is."""

    query: str | None = None
    server: str | None = None
    graph: str | None = None
    store: str | None = None
    profile: str | None = None
    file: str | None = None
    branch: str | None = None
    args: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None


@dataclass(frozen=True)
class Defaults:
    """What holds when nothing else is said."""

    output: str | None = None
    server: str | None = None
    store: str | None = None
    default_graph: str | None = None
    durability: str | None = None
    table_max_column_width: int | None = None
    table_cell_layout: str | None = None


@dataclass(frozen=True)
class OperatorConfig:
    """The whole file. `warnings` name the keys that were ignored."""

    actor: str | None = None
    stores: Mapping[str, str] = field(default_factory=dict)
    # By the name of a store; values as they are written in the file.
    store_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    defaults: Defaults = Defaults()
    path: Path | None = None
    warnings: tuple[str, ...] = ()


def home() -> Path:
    """The folder of the operator's files."""
    return Path(os.environ.get(HOME_VARIABLE) or "~/.omnigraph").expanduser()


def read_config(path: Path | None = None) -> OperatorConfig:
    """The operator's configuration; an empty one if there is no file."""
    place = path or home() / FILE
    try:
        text = place.read_text(encoding="utf-8")
    except FileNotFoundError:
        return OperatorConfig(path=place)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"The configuration {place} cannot be read: {error}.") from error
    return parse_config(text, place)


def parse_config(text: str, path: Path) -> OperatorConfig:
    """A configuration from its text."""
    import yaml  # only when there is a file

    try:
        found = yaml.safe_load(text) or {}
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # dates that are none, too
        raise InvalidArgumentError(f"The configuration {path} is not YAML: {error}.") from error
    return _Reader(path).read(found)


class _Reader:
    """Takes the file apart, and remembers what it did not know."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._warnings: list[str] = []

    def read(self, found: Any) -> OperatorConfig:
        top = self._mapping(found, "the file")
        known = {item.name for item in fields(OperatorConfig)} - _NO_SECTIONS
        self._note_unknown(top, known | {"operator"}, "")
        operator = self._mapping(top.get("operator"), "operator")
        self._note_unknown(operator, {"actor"}, "operator.")
        defaults = self._record(Defaults, top.get("defaults"), "defaults")
        self._check_defaults(defaults)
        return OperatorConfig(
            actor=self._text(operator.get("actor"), "operator.actor"),
            stores=self._addresses(top, "stores", "uri", "storage_options"),
            store_options=self._store_options(top),
            servers=self._addresses(top, "servers", "url"),
            clusters=self._addresses(top, "clusters", "root"),
            profiles=self._records(Profile, top, "profiles"),
            aliases=self._records(Alias, top, "aliases"),
            defaults=defaults,
            path=self._path,
            warnings=tuple(self._warnings),
        )

    def _records(self, kind: type[T], top: Mapping[str, Any], section: str) -> dict[str, T]:
        entries = self._mapping(top.get(section), section)
        return {n: self._record(kind, entry, f"{section}.{n}") for n, entry in entries.items()}

    def _record(self, kind: type[T], found: Any, where: str) -> T:
        entry = self._mapping(found, where)
        known = {item.name: str(item.type) for item in fields(kind)}  # type: ignore[arg-type]
        self._note_unknown(entry, set(known), f"{where}.")
        values = {
            name: self._value(entry[name], kind_, f"{where}.{name}")
            for name, kind_ in known.items()
            if entry.get(name) is not None
        }
        return kind(**values)

    def _value(self, value: Any, kind: str, where: str) -> Any:
        if kind.startswith("tuple"):
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise self._wrong(where, "a list of names")
            return tuple(value)
        if kind.startswith("Mapping"):
            return self._mapping(value, where)
        if kind.startswith("int"):
            if not isinstance(value, int) or value < 1:
                raise self._wrong(where, "a number above 0")
            return value
        return self._text(value, where)

    def _store_options(self, top: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        found = {}
        for name, entry in self._mapping(top.get("stores"), "stores").items():
            where = f"stores.{name}.storage_options"
            found[name] = self._mapping((entry or {}).get("storage_options"), where)
        return found

    def _addresses(
        self, top: Mapping[str, Any], section: str, key: str, *others: str
    ) -> dict[str, str]:
        found = {}
        for name, entry in self._mapping(top.get(section), section).items():
            where = f"{section}.{name}"
            self._note_unknown(self._mapping(entry, where), {key, *others}, f"{where}.")
            address = self._text(entry.get(key) if entry else None, f"{where}.{key}")
            if not address:
                raise self._wrong(f"{where}.{key}", "an address")
            found[name] = address
        return found

    def _mapping(self, value: Any, where: str) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(where, "a mapping")
        return {str(name): item for name, item in value.items()}

    def _text(self, value: Any, where: str) -> str | None:
        if value is not None and not isinstance(value, str):
            raise self._wrong(where, "text")
        return value

    def _note_unknown(self, entry: Mapping[str, Any], known: set[str], prefix: str) -> None:
        self._warnings += [
            f"{self._path}: the key {prefix}{name} is not known to this version and is ignored"
            for name in entry
            if name not in known
        ]

    def _check_defaults(self, defaults: Defaults) -> None:
        if defaults.store and (defaults.server or defaults.default_graph):
            other = "server" if defaults.server else "default_graph"
            raise InvalidArgumentError(
                f"In {self._path}, defaults.store and defaults.{other} exclude each other.",
                hint="A store is one graph by itself; keep one of the two, or use profiles.",
            )

    def _wrong(self, where: str, wanted: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"In the configuration {self._path}, {where} must be {wanted}.")
