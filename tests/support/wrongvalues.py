"""Wrong arguments for public functions: 40 kinds of values, and which an annotation allows.

A value is *allowed* when its type fits the parameter's annotation; the call may then succeed or
fail with any error of ours. Every other value must be refused with `InvalidArgumentError`.
This judges annotations on its own, from their text and a table, without the code under test.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any


class Unprintable:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


class Anything:
    """A class that can be called with anything, as a function."""

    def __init__(self, *_: object) -> None: ...


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


# Made anew for every call: a generator can be used once.
VALUES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "true": lambda: True,
    "zero": lambda: 0,
    "negative": lambda: -1,
    "largest": lambda: 2**63 - 1,
    "too large": lambda: 2**63,
    "huge": lambda: 10**400,
    "fraction": lambda: 1.5,
    "nan": lambda: math.nan,
    "infinite": lambda: -math.inf,
    "decimal": lambda: Decimal("1.5"),
    "complex": lambda: 1j,
    "bytes": lambda: b"\xff\x00",
    "bytearray": lambda: bytearray(b"x"),
    "empty text": lambda: "",
    "word": lambda: "x",
    "line break": lambda: "a\nb",
    "nul": lambda: "a\0b",
    "long": lambda: "x" * 70_000,
    "surrogate": lambda: "caf\udce9",
    "mixed list": lambda: [1, "a", None],
    "empty list": list,
    "words": lambda: ["x", "y"],
    "bad words": lambda: ["x", "\ud800"],
    "set": lambda: {"x", 2},
    "nested": lambda: nested(5_000),
    "mapping": lambda: {"a": 1},
    "texts by text": lambda: {"a": "b"},
    "bad key": lambda: {"\ud800": "b"},
    "numbered": lambda: {1: 2},
    "object": object,
    "unprintable": Unprintable,
    "class": lambda: Anything,
    "function": lambda: lambda *_: None,
    "generator": lambda: (each for each in ["x", "y"]),
    "path": lambda: Path("x"),
    "date": lambda: date(2020, 1, 1),
    "first moment": lambda: datetime(1, 1, 1),  # noqa: DTZ001  without a zone
    "last moment": lambda: datetime.max.replace(tzinfo=UTC),
    "longest time": lambda: timedelta.max,
    "negative time": lambda: timedelta.min,
}
_TEXTS = {"empty text", "word", "line break", "nul", "long"}
_WORDS = {"empty list", "words", "generator"}
ALLOWED: dict[str, set[str]] = {
    "None": {"none"},
    "str": _TEXTS,
    "int": {"zero", "negative", "largest"},
    "bool": {"true"},
    "float": {"zero", "negative", "largest", "too large", "fraction"},
    "datetime": {"first moment", "last moment"},
    "date": {"first moment", "last moment", "date"},
    "timedelta": {"longest time", "negative time"},
    "Path": {"path"},
    "Iterable[str]": _WORDS,
    "Collection[str]": _WORDS,
    "Sequence[str]": _WORDS,
    "tuple[str, ...]": _WORDS,
    "frozenset[str]": _WORDS,
    "frozenset[TableKind]": {"empty list"},
    "frozenset[ChangeOp]": {"empty list"},
    "tuple[int, int]": set(),
    "Mapping[str, Any]": {"mapping", "texts by text"},
    "Mapping[str, str]": {"texts by text"},
    "Mapping[str, Attribute]": {"mapping", "texts by text"},
    "dict[str, Value]": {"mapping", "texts by text"},
    "Callable": {"class", "function"},
    "EdgeDirection": set(),
    "tuple[int, int | None]": set(),
    "Iterable[Mapping[str, Any]]": {"empty list"},
    "Sequence[tuple[str, str] | tuple[str, str, str]]": {"empty list"},
}
# Parameters whose values the annotation leaves open: any value may be refused or accepted.
OPEN = {"Any", "Value", "object"}
# Classes of arguments; only their instances are allowed, and no value of the list is one.
CLASSES = {
    "AlgorithmOptions", "Bounds", "Cancellation", "ChangeFilter", "Clause", "CommitFilter",
    "CommitKind", "Expr", "Key", "Limits", "Options", "Principal", "ReadDraft", "Rows",
    "SparkSession", "SparkSettings", "Target", "Var", "WriteDraft",
}  # fmt: skip
# Those of queries built from values, and a function with a name of its own.
BUILT = {"Clause", "Expr", "Key", "ReadDraft", "Rows", "Var", "WriteDraft"}  # fmt: skip


def alternatives(annotation: str) -> Iterator[str]:
    """The parts of a union; brackets keep theirs together."""
    depth, part = 0, ""
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()


def allowed(annotation: str) -> set[str]:
    """The names of the values that fit. An annotation that nobody taught this table fails."""
    found: set[str] = set()
    for part in alternatives(annotation):
        name = "Callable" if part.startswith("Callable") or part == "Embedder" else part
        name = name.rpartition(".")[2] if "[" not in name else name
        if name in OPEN:
            return set(VALUES)
        if name == "Part":  # of a pattern: clauses and expressions
            continue
        if name not in CLASSES:
            assert name in ALLOWED, f"{__name__} does not know the annotation {name!r}"
            found |= ALLOWED[name]
    return found


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that a caller gives."""
    found = inspect.signature(function).parameters.values()
    return [each for each in found if each.name != "self"]
