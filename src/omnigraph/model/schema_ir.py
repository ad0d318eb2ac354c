"""The schema IR: a catalog as canonical JSON, and back.

Guarantees: equal catalogs have equal text, byte for byte, and `from_json(to_json(c)) == c`; the
hash is that of the text. The text names its own format, and a format that is not known is refused.
Deliberately absent: the hash inside the text, and anything about data.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

from omnigraph.errors import FormatError
from omnigraph.model.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    Embed,
    Interface,
    NodeType,
    Property,
    Range,
    TableType,
)
from omnigraph.model.types import Kind, ValueType

FORMAT = 1


def to_json(catalog: Catalog) -> str:
    """The canonical text of a catalog: ASCII, sorted names, no blanks."""
    document = {
        "format": FORMAT,
        "next_id": catalog.next_id,
        "interfaces": [_interface(i) for i in catalog.interfaces],
        "nodes": [_node(n) for n in catalog.nodes],
        "edges": [_edge(e) for e in catalog.edges],
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Catalog:
    """The catalog of a text that `to_json` wrote."""
    try:
        document = json.loads(text)
        found = document["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f"The schema IR cannot be read: {error!r}.") from error
    if found != FORMAT:
        raise FormatError(f"The schema IR has format {found!r}; this release reads {FORMAT}.")
    try:
        catalog = Catalog(
            nodes=tuple(_read_node(n) for n in document["nodes"]),
            edges=tuple(_read_edge(e) for e in document["edges"]),
            interfaces=tuple(_read_interface(i) for i in document["interfaces"]),
            next_id=int(document["next_id"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"The schema IR is damaged: {error!r}.") from error
    return with_hash(catalog)


def catalog_hash(catalog: Catalog) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    return sha256(to_json(catalog).encode()).hexdigest()


def with_hash(catalog: Catalog) -> Catalog:
    """The same catalog with its hash filled in."""
    return replace(catalog, hash=catalog_hash(catalog))


# Writing. What has its usual value is left out, so that later additions change no old hash.


def _type(type_: ValueType) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": str(type_.kind)}
    if type_.nullable:
        out["nullable"] = True
    if type_.item is not None:
        out["item"] = str(type_.item)
    if type_.dim is not None:
        out["dim"] = type_.dim
    if type_.enum:
        out["enum"] = list(type_.enum)
    return out


def _annotations(annotations: tuple[Annotation, ...]) -> dict[str, Any]:
    if not annotations:
        return {}
    return {"annotations": [_annotation(a) for a in annotations]}


def _annotation(annotation: Annotation) -> dict[str, Any]:
    out: dict[str, Any] = {"name": annotation.name}
    if annotation.args:
        out["args"] = list(annotation.args)
    if annotation.kwargs:
        out["kwargs"] = dict(annotation.kwargs)
    return out


def _property(prop: Property) -> dict[str, Any]:
    out: dict[str, Any] = {"id": prop.id, "name": prop.name, "type": _type(prop.type)}
    if prop.column != prop.name:
        out["column"] = prop.column
    if prop.has_default:
        out["default"] = prop.default
    if prop.embed is not None:
        out["embed"] = {"source": prop.embed.source}
        if prop.embed.model is not None:
            out["embed"]["model"] = prop.embed.model
    return out | _annotations(prop.annotations)


def _interface(interface: Interface) -> dict[str, Any]:
    out: dict[str, Any] = {"id": interface.id, "name": interface.name}
    out["properties"] = [_property(p) for p in interface.properties]
    return out | _annotations(interface.annotations)


def _table(table: TableType) -> dict[str, Any]:
    out: dict[str, Any] = {"id": table.id, "name": table.name}
    out["properties"] = [_property(p) for p in table.properties]
    for name in ("uniques", "indexes"):
        if groups := getattr(table, name):
            out[name] = [list(group) for group in groups]
    if table.retired_columns:
        out["retired_columns"] = list(table.retired_columns)
    return out | _annotations(table.annotations)


def _node(node: NodeType) -> dict[str, Any]:
    out = _table(node)
    if node.key:
        out["key"] = list(node.key)
    if node.ranges:
        out["ranges"] = [
            {"property": r.property, "min": r.minimum, "max": r.maximum} for r in node.ranges
        ]
    if node.checks:
        out["checks"] = [{"property": c.property, "pattern": c.pattern} for c in node.checks]
    if node.implements:
        out["implements"] = list(node.implements)
    return out


def _edge(edge: EdgeType) -> dict[str, Any]:
    out = _table(edge) | {"src": edge.src_type, "dst": edge.dst_type}
    if not edge.cardinality.is_default:
        out["card"] = {"min": edge.cardinality.minimum, "max": edge.cardinality.maximum}
    return out


# Reading.


def _read_type(raw: dict[str, Any]) -> ValueType:
    item = raw.get("item")
    return ValueType(
        Kind(raw["kind"]),
        bool(raw.get("nullable", False)),
        None if item is None else Kind(item),
        raw.get("dim"),
        tuple(raw.get("enum", ())),
    )


def _read_annotations(raw: dict[str, Any]) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(a["name"], tuple(a.get("args", ())), tuple(sorted(a.get("kwargs", {}).items())))
        for a in raw.get("annotations", ())
    )


def _read_properties(raw: dict[str, Any]) -> tuple[Property, ...]:
    return tuple(_read_property(p) for p in raw["properties"])


def _read_property(raw: dict[str, Any]) -> Property:
    embed = raw.get("embed")
    return Property(
        id=raw["id"],
        name=raw["name"],
        type=_read_type(raw["type"]),
        column=raw.get("column", raw["name"]),
        default=raw.get("default"),
        has_default="default" in raw,
        embed=None if embed is None else Embed(embed["source"], embed.get("model")),
        annotations=_read_annotations(raw),
    )


def _read_interface(raw: dict[str, Any]) -> Interface:
    return Interface(raw["id"], raw["name"], _read_properties(raw), _read_annotations(raw))


def _read_table(raw: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": raw["id"],
        "name": raw["name"],
        "properties": _read_properties(raw),
        "uniques": tuple(tuple(group) for group in raw.get("uniques", ())),
        "indexes": tuple(tuple(group) for group in raw.get("indexes", ())),
        "annotations": _read_annotations(raw),
        "retired_columns": tuple(raw.get("retired_columns", ())),
    }


def _read_node(raw: dict[str, Any]) -> NodeType:
    return NodeType(
        **_read_table(raw),
        key=tuple(raw.get("key", ())),
        ranges=tuple(Range(r["property"], r["min"], r["max"]) for r in raw.get("ranges", ())),
        checks=tuple(Check(c["property"], c["pattern"]) for c in raw.get("checks", ())),
        implements=tuple(raw.get("implements", ())),
    )


def _read_edge(raw: dict[str, Any]) -> EdgeType:
    card = raw.get("card")
    return EdgeType(
        **_read_table(raw),
        src_type=raw["src"],
        dst_type=raw["dst"],
        cardinality=Cardinality() if card is None else Cardinality(card["min"], card["max"]),
    )
