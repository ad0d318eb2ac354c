"""More that a person may do, as scenes: what the other scenes lack for every kind of operation.

They share the schema of `verbs`, so that whatever can be checked of those can be checked of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.crash.verbs import SCHEMA, ahead, envelopes, filled, opened
from tests.support.doorgraph import ACTOR

import omnigraph
from omnigraph.operations import (  # noqa: F401  # imported before the nursery forks
    export,
    migrate,
    transfer,
)
from omnigraph.operations.transfer import import_graph

# A new type, a new property with a value for every row, and one that costs nothing.
EVOLVED = (
    "node A { n: I64?\n m: I64 @default(7) }\nnode B { n: I64?\n note: String? }\n"
    "node C { n: I64? }\nedge Link: A -> B { n: I64? }\n"
)
# Both sides give types columns, and one widens a type besides: their merge writes A anew, gives B
# columns, and changes rows of Link.
NARROW = SCHEMA.replace("node A { n: I64? }", "node A { n: I32? }")
OURS = NARROW.replace("{ n: I32? }", "{ n: I32?\n left: I64? }").replace(
    "node B { n: I64? }", "node B { n: I64?\n left: I64 @default(3) }"
)
THEIRS = NARROW.replace("{ n: I32? }", "{ n: I64?\n right: I64 @default(7) }").replace(
    "node B { n: I64? }", "node B { n: I64?\n right: I64 @default(5) }"
)
# Types without rows, which can be dropped for good without losing any.
SPARE = SCHEMA + "node Spare { n: I64? }\n"


def _exported(uri: str) -> None:
    """An export beside the address at which there is no graph yet."""
    source = filled(f"{uri}.source")
    source.ingest(envelopes(2))
    source.export(f"{uri}.export")


def _import(uri: str) -> None:
    import_graph(uri, f"{uri}.export", SCHEMA, actor=ACTOR)


def _two_sides(uri: str) -> None:
    ahead(uri)
    opened(uri).ingest(envelopes(5))


def _reshaped_sides(uri: str) -> None:
    graph = omnigraph.init(uri, NARROW, actor=ACTOR)
    graph.ingest([*envelopes(1), *envelopes(2)])
    other = graph.create_branch("f")
    for side, schema, changed, new in ((graph, OURS, "x1", 5), (other, THEIRS, "x2", 7)):
        side.apply_schema(schema)
        update = {"type": "A", "data": {"id": changed, "n": new}}
        side.ingest([*envelopes(new), update], "merge")


def _tagged(uri: str) -> None:
    filled(uri).create_tag("v1")


DEEDS: dict[str, tuple[Callable[[str], object], Callable[[str], object]]] = {
    "deed schema apply": (filled, lambda uri: opened(uri).apply_schema(EVOLVED)),
    "deed schema apply on a branch": (ahead, lambda uri: opened(uri, "f").apply_schema(EVOLVED)),
    "deed schema apply: a name only": (filled, lambda uri: opened(uri).apply_schema(SPARE)),
    "deed merge": (_two_sides, lambda uri: opened(uri).merge("f")),
    "deed merge, delete the source": (
        _two_sides,
        lambda uri: opened(uri).merge("f", delete_branch=True),
    ),
    "deed merge that writes tables anew": (
        _reshaped_sides,
        lambda uri: opened(uri).merge("f"),
    ),
    "deed revert": (_two_sides, lambda uri: opened(uri).revert(_head(uri))),
    "deed import": (_exported, _import),
    "deed delete a tag": (_tagged, lambda uri: opened(uri).delete_tag("v1")),
    "deed keyed mutation": (
        filled,
        lambda uri: opened(uri).mutate(
            "query q() { update A set { n: 2 } where n = 1 }", idempotency_key="once"
        ),
    ),
}

# What a reader may see between two commits of one deed, which are documented as two.
BETWEEN: Mapping[str, Callable[[str], object]] = {
    "deed import": lambda uri: _empty(uri),
    "deed merge, delete the source": lambda uri: _merged(uri),
}


def _empty(uri: str) -> None:
    omnigraph.init(uri, SCHEMA, actor=ACTOR)


def _merged(uri: str) -> None:
    _two_sides(uri)
    opened(uri).merge("f")


def _head(uri: str) -> str:
    return opened(uri).snapshot().commit_id


def litter(uri: str) -> list[Path]:
    """What scenes keep beside a graph."""
    place = Path(uri)
    return [place.with_name(f"{place.name}.{end}") for end in ("jsonl", "export", "source")]
