"""Schema changes of every kind, each from the same graph with real rows.

A change is a list of replacements in `BASE`. `content` shows all that a graph holds, so that two
ways to the same end can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import omnigraph
from omnigraph.graph import Graph
from omnigraph.storage.table import open_table

BASE = """
interface Named { name: String }
interface Aged { age: I32? }
node Person implements Named, Aged {
    name: String @key
    nick: String?
    mood: enum(glad, sad)
    score: F32?
    small: U32? @default(7)
    vec: Vector(4)?
    photo: Blob?
    email: String? @unique
    level: I64 @range(0..100)
    zip: String @check("^[0-9]+$")
}
node City { title: String @index
    size: I64? }
node Spare { code: String @key }
node Empty { code: String? }
edge Knows: Person -> Person @card(0..3) { since: Date?
    weight: I32? @index
    @unique(src, dst) }
edge Lives: Person -> City
edge Extra: Person -> Spare
"""


@dataclass(frozen=True)
class Change:
    """How `BASE` is changed, and which codes its plan has."""

    replaced: tuple[tuple[str, str], ...]
    codes: tuple[str, ...]
    allow_data_loss: bool = False

    @property
    def schema(self) -> str:
        text = BASE
        for old, new in self.replaced:
            assert old in text, old
            text = text.replace(old, new)
        return text


def _one(old: str, new: str, *codes: str, **more: Any) -> Change:
    return Change(((old, new),), codes, **more)


_SPARE = "node Spare { code: String @key }\n"
_EXTRA = "edge Extra: Person -> Spare\n"
_DROPPED = ((_SPARE, ""), (_EXTRA, ""))
_HUMAN = (
    ("node Person implements", 'node Human @rename_from("Person") implements'),
    ("Person ->", "Human ->"),
    ("-> Person", "-> Human"),
)

CHANGES: dict[str, Change] = {
    "add a type": _one(_SPARE, _SPARE + "node Pet { name: String @key }\n", "OG-AD-101"),
    "add an optional property": _one("    nick", "    motto: String?\n    nick", "OG-AD-102"),
    "add an optional blob": _one("    nick", "    scan: Blob?\n    nick", "OG-AD-102"),
    "add an index": _one("    nick: String?", "    nick: String? @index", "OG-AD-103"),
    "widen an enum": _one("enum(glad, sad)", "enum(glad, sad, calm)", "OG-AD-104"),
    "widen a whole number": _one("weight: I32?", "weight: I64?", "OG-AD-105"),
    "widen a float": _one("score: F32?", "score: F64?", "OG-AD-105"),
    "widen an unsigned number": _one("small: U32?", "small: I64?", "OG-AD-105"),
    "make optional": _one("level: I64 @", "level: I64? @", "OG-AD-106"),
    "describe": _one("node City {", 'node City @description("a town") {', "OG-AD-107"),
    "describe a property": _one("size: I64?", 'size: I64? @description("heads")', "OG-AD-107"),
    "change a default": _one("@default(7)", "@default(8)", "OG-AD-108"),
    "implement less": _one(
        "implements Named, Aged {", "implements Named {\n    age: I32?", "OG-AD-109"
    ),
    "change an interface": _one(
        "interface Named {", 'interface Named @description("x") {', "OG-AD-110"
    ),
    "add a constraint on a new property": Change(
        (("    nick", "    tag: String? @unique\n    nick"),), ("OG-AD-102", "OG-AD-111")
    ),
    "rename a type": Change(_HUMAN, ("OG-BC-101",)),
    "rename an edge type": _one(
        "edge Lives: Person -> City",
        'edge Dwells: Person -> City @rename_from("Lives")',
        "OG-BC-101",
    ),
    "rename a property": _one(
        "    nick: String?", '    alias: String? @rename_from("nick")', "OG-BC-102"
    ),
    "rename an interface": Change(
        (
            ("interface Aged {", 'interface Old @rename_from("Aged") {'),
            ("Named, Aged", "Named, Old"),
        ),
        ("OG-BC-103",),
    ),
    "remove a uniqueness": _one("    @unique(src, dst) }", "    }", "OG-CD-101"),
    "remove an index": _one("title: String @index", "title: String", "OG-CD-102"),
    "loosen a range": _one("@range(0..100)", "@range(0..200)", "OG-CD-103"),
    "remove a check": _one(' @check("^[0-9]+$")', "", "OG-CD-104"),
    "loosen a cardinality": _one("@card(0..3)", "@card(0..5)", "OG-CD-105"),
    "remove a key": _one(
        "node Spare { code: String @key", "node Spare { code: String", "OG-CD-107"
    ),
    "remove an interface": Change(
        (
            ("interface Aged { age: I32? }\n", ""),
            ("implements Named, Aged {", "implements Named {\n    age: I32?"),
        ),
        ("OG-CD-106", "OG-AD-109"),
    ),
    "drop a type": Change(_DROPPED, ("OG-DS-103", "OG-DS-102")),
    "drop a type for good": Change(_DROPPED, ("OG-DS-103", "OG-DS-102"), allow_data_loss=True),
    "drop a property": _one("    nick: String?\n", "", "OG-DS-104"),
    "drop a property for good": _one("    nick: String?\n", "", "OG-DS-104", allow_data_loss=True),
    "drop a vector": _one("    vec: Vector(4)?\n", "", "OG-DS-105"),
    "tighten a cardinality": _one("@card(0..3)", "@card(0..2)", "OG-ED-101"),
    "add a uniqueness": _one("    nick: String?", "    nick: String? @unique", "OG-MF-101"),
    "tighten a range": _one("@range(0..100)", "@range(0..50)", "OG-MF-102"),
    "add a required property to no rows": _one(
        "node Empty { code", "node Empty { must: I64\n code", "OG-MF-103"
    ),
    "make required": _one("    nick: String?", "    nick: String", "OG-MF-104"),
    "change a check": _one('"^[0-9]+$"', '"^[0-9]{5}$"', "OG-MF-105"),
    "add a key": _one(
        "node Empty { code: String?", "node Empty { code: String @key", "OG-MF-104", "OG-MF-107"
    ),
    "add a required property with a default": _one(
        "    nick", '    kind: String @default("human")\n    nick', "OG-MF-108"
    ),
    "several at once": Change(
        (
            *_DROPPED,
            *_HUMAN,
            ("    nick: String?", '    alias: String? @rename_from("nick")\n    born: Date?'),
            ("score: F32?", "score: F64?"),
            ("size: I64?", 'size: I64?\n    country: String @default("DE")'),
        ),
        ("OG-DS-103", "OG-DS-102", "OG-BC-101", "OG-BC-102", "OG-AD-102", "OG-AD-105", "OG-MF-108"),
    ),
}


def people(count: int = 12) -> list[dict[str, Any]]:
    return [
        {
            "name": f"p{n:02d}",
            "age": n if n % 3 else None,
            "nick": f"nick {n}",
            "mood": "glad" if n % 2 else "sad",
            "score": n / 2,
            "small": n,
            "vec": [float(n), 0.0, 1.0, 2.0],
            "photo": [None, b"", b"x" * n][n % 3],
            "email": f"p{n}@x.org" if n % 4 else None,
            "level": n,
            "zip": f"{10_000 + n}",
        }
        for n in range(count)
    ]


def new_graph(uri: str, schema: str = BASE) -> Graph:
    """A graph with rows of every type but `Empty`."""
    graph = omnigraph.init(uri, schema, actor="act-anna")
    names = [person["name"] for person in people()]
    lines: list[dict[str, Any]] = [
        *({"type": "Person", "data": _plain(person)} for person in people()),
        *(
            {"type": "City", "data": {"id": f"c{n}", "title": f"city {n}", "size": n}}
            for n in range(3)
        ),
        *({"type": "Spare", "data": {"code": f"s{n}"}} for n in range(2)),
    ]
    for n, name in enumerate(names):
        friend = names[(n + 1) % len(names)]
        lines.append(_edge("Knows", f"k{n}", name, friend, since="2026-01-02", weight=n))
        lines.append(_edge("Lives", f"l{n}", name, f"c{n % 3}"))
    lines.append(_edge("Extra", "e0", names[0], "s1"))
    graph.ingest(lines, "append")
    return graph


def _plain(person: dict[str, Any]) -> dict[str, Any]:
    import base64

    photo = person["photo"]
    text = None if photo is None else "base64:" + base64.b64encode(photo).decode()
    return {**person, "photo": text}


def _edge(name: str, id: str, src: str, dst: str, **data: Any) -> dict[str, Any]:
    return {"edge": name, "from": src, "to": dst, "data": {"id": id, **data}}


def content(graph: Graph, **at: Any) -> dict[str, list[dict[str, Any]]]:
    """All rows of all types by property name, ordered by id, blobs as bytes."""
    snapshot = graph.snapshot(**at)
    shown: dict[str, list[dict[str, Any]]] = {}
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is None:
            shown[table.name] = []
            continue
        opened = open_table(snapshot.location, version)
        ends = [name for name in ("id", "src", "dst") if name in opened.schema.names]
        names = {item.column: item.name for item in table.properties}
        rows = opened.read([*ends, *names], whole_blobs=True).to_pylist()
        found = [{names.get(key, key): value for key, value in row.items()} for row in rows]
        shown[table.name] = sorted(found, key=lambda row: str(row["id"]))
    return shown


def apply(uri: str, name: str) -> Graph:
    """Open a graph read-write, which recovers it, and make a change."""
    graph = omnigraph.open(uri, actor="act-anna")
    change = CHANGES[name]
    graph.apply_schema(change.schema, allow_data_loss=change.allow_data_loss)
    return graph
