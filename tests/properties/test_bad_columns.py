"""Columns that nobody would hand over on purpose: refused by an error of ours, or good for ever.

Arrow tables with wrong buffers, dates anywhere in their 32 or 64 bits, lists of any length and
types that no property has, by every way in that takes columns. Whatever is accepted must be
readable by every reader, pass every check, and come back from an export. `hunt` returns what went
wrong, so that planted bugs show that it would find them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.operations.transfer import import_graph

SCHEMA = """
node Thing {
    name: String @key
    text: String?
    n: I32?
    u: U64?
    x: F32?
    day: Date?
    at: DateTime?
    tags: [String]?
    days: [Date]?
    vec: Vector(2)?
    raw: Blob?
}
"""
READ = (
    "query q() { match { $t: Thing } return { $t.name, $t.text, $t.n, $t.u, $t.x, $t.day, $t.at,"
    " $t.tags, $t.days, $t.vec } }"
)
Chance = random.Random
ROWS = 4
BYTES = [b"a", b"caf\xc3\xa9", b"caf\xe9", b"\xff", b"\xed\xa0\x80", b"", b"x" * 30, b"\x00"]
DAYS = [0, 19_753, -719_162, -719_163, 2_932_896, 2_932_897, -(2**31), 2**31 - 1]
WIDE = [0, 1, -1, 2**31, -(2**63), 2**63 - 1, 1_706_659_200_000, 253_402_300_799_999]


def texts(chance: Chance, rows: int = ROWS) -> pa.Array:
    raw = pa.array([chance.choice([*BYTES[:2], chance.choice(BYTES), None]) for _ in range(rows)])
    raw = raw.cast(pa.binary())
    plain = pa.Array.from_buffers(pa.string(), rows, raw.buffers())
    kind = chance.randrange(5)
    if kind == 3:
        return pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int8()), plain)
    return plain.cast([pa.string(), pa.large_string(), pa.string_view()][kind % 3])


def broken_offsets(chance: Chance) -> pa.Array:
    offsets = [0, 1, 2, 3, 4]
    offsets[chance.randrange(1, 4)] = chance.choice([-1, 0, 99, 2**31 - 1])
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"abcd")]
    return pa.Array.from_buffers(pa.string(), ROWS, buffers)


def broken_dictionary(chance: Chance) -> pa.Array:
    indices = pa.array([chance.randrange(-1, 3) for _ in range(ROWS)], pa.int8())
    return pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)


def dates(chance: Chance, rows: int = ROWS) -> pa.Array:
    days = [chance.choice([*DAYS[:3], DAYS[4], chance.choice(DAYS)]) for _ in range(rows)]
    return pa.array(days, pa.int32()).view(pa.date32())


def times(chance: Chance) -> pa.Array:
    moments = pa.array([chance.choice([0, chance.choice(WIDE)]) for _ in range(ROWS)], pa.int64())
    zone = chance.choice([None, "UTC", "Asia/Tokyo"])
    return moments.view(pa.timestamp(chance.choice(["s", "ms", "us", "ns"]), tz=zone))


def integers(chance: Chance) -> pa.Array:
    kind = chance.choice([pa.int8(), pa.int64(), pa.uint64(), pa.float64()])
    values = [chance.choice([0, 1, 7, None, chance.choice(WIDE)]) for _ in range(ROWS)]
    return pa.array(values, pa.int64()).cast(kind, safe=False)


def lists(chance: Chance) -> pa.Array:
    items = chance.choice([texts, dates])(chance, 2 * ROWS)
    if pa.types.is_dictionary(items.type):
        items = items.dictionary_decode()
    if chance.random() < 0.3:
        return pa.FixedSizeListArray.from_arrays(items, 2)
    ends = pa.array([0, *sorted(chance.randrange(2 * ROWS + 1) for _ in range(ROWS))], pa.int32())
    return pa.ListArray.from_arrays(ends, items)


def vectors(chance: Chance) -> pa.Array:
    width = chance.choice([1, 2, 2, 3])
    items = [chance.choice([0.0, 1.5, float("nan"), 1e300]) for _ in range(width * ROWS)]
    made = pa.FixedSizeListArray.from_arrays(pa.array(items, pa.float64()), width)
    return made if chance.random() < 0.5 else made.cast(pa.list_(pa.float64()))


def strangers(chance: Chance) -> pa.Array:
    return chance.choice(
        [
            pa.array([Decimal(1)] * ROWS),
            pa.array([{"a": 1}] * ROWS),
            pa.nulls(ROWS),
            pa.array([True] * ROWS),
            pa.array([b"\xff"] * ROWS),
            pa.array([1] * ROWS, pa.duration("s")),
            pa.array([[("k", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
            pa.array([1] * ROWS, pa.time64("ns")),
        ]
    )


COLUMNS: dict[str, list[Callable[[Chance], pa.Array]]] = {
    "text": [texts, texts, broken_offsets, broken_dictionary, dates, strangers],
    "n": [integers, strangers],
    "u": [integers, strangers],
    "x": [integers, vectors],
    "day": [dates, dates, times, integers, texts],
    "at": [times, times, dates, integers],
    "tags": [lists, texts],
    "days": [lists, dates],
    "vec": [vectors, lists],
    "raw": [texts, strangers],
}


def table(chance: Chance, number: int) -> pa.Table:
    names = pa.array([f"t{number}-{row}" for row in range(ROWS)])
    columns: dict[str, pa.Array] = {"name": names}
    for name in chance.sample(list(COLUMNS), chance.choice([1, 1, 2])):
        columns[name] = chance.choice(COLUMNS[name])(chance)
    return pa.table(columns)


def is_damaged(rows: pa.Table) -> bool:
    """Whether more than texts is wrong: what writes files would read beyond the buffers."""
    for column in rows.columns:
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            if "UTF8" not in str(error):
                return True
    return False


def give(graph: Graph, rows: pa.Table, way: str, folder: Path) -> None:
    if way == "ingest" or is_damaged(rows):
        graph.ingest(rows, "merge", type="Thing")
        return
    file = str(folder / f"Thing.{way}")
    try:
        if way == "parquet":
            pq.write_table(rows, file)
        else:
            with pa.ipc.new_file(file, rows.schema) as out:
                out.write_table(rows)
    except (pa.ArrowException, OverflowError):
        return  # the format does not hold such a column
    graph.load(file, "merge", engine="embedded")


def hunt(folder: Path, seed: int, count: int) -> list[str]:
    """What went wrong: foreign errors, and rows that were accepted and cannot be used."""
    chance = random.Random(seed)
    graph = omnigraph.init(str(folder / "g"), SCHEMA)
    wrong: list[str] = []
    accepted = 0
    for number in range(count):
        rows = table(chance, number)
        way = chance.choice(["ingest", "ingest", "parquet", "arrow"])
        before = graph.snapshot().commit_id
        try:
            give(graph, rows, way, folder)
            accepted += graph.snapshot().commit_id != before
        except OmniGraphError:
            if graph.snapshot().commit_id != before:
                wrong.append(f"{number}: refused, and committed")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not ours
            wrong.append(f"{number} {way} {rows.schema.types}: {type(error).__name__}: {error}")
    if not accepted:
        wrong.append("nothing was accepted")
    return [*wrong, *unusable(graph, folder)]


def unusable(graph: Graph, folder: Path) -> list[str]:
    """Every reader over everything that was accepted."""

    def same_after_export() -> None:
        graph.export(str(folder / "out"))
        place = str(folder / "copy")
        import_graph(place, str(folder / "out"), SCHEMA)
        assert content(omnigraph.open(place)) == content(graph), "an export comes back different"

    def clean() -> None:
        found = graph.verify().findings
        assert not found, f"fsck: {found}"

    first = list(graph.commits())[-1].id
    acts: dict[str, Callable[[], Any]] = {
        "rows": lambda: content(graph),
        "json": lambda: graph.query(READ).to_json(),
        "diff": lambda: list(graph.diff(first, graph.snapshot().commit_id)),
        "fsck": clean,
        "export": same_after_export,
        "write": lambda: graph.mutate("query q() { update Thing set { n: 1 } where n = 0 }"),
    }
    wrong = []
    for name, act in acts.items():
        try:
            act()
        except Exception as error:  # noqa: BLE001 - any failure of a reader is the finding
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    return wrong


def content(graph: Graph) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in graph.query(READ))


@pytest.mark.parametrize("seed", range(4))
def test_18_09_what_is_accepted_can_be_used(tmp_path: Path, seed: int) -> None:
    assert hunt(tmp_path, seed, 40) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_18_09_what_is_accepted_can_be_used_at_length(tmp_path: Path, seed: int) -> None:
    assert hunt(tmp_path, seed, 150) == []


PLANTED: dict[str, tuple[str, Any]] = {
    "texts are believed": ("omnigraph.intake.buffers._undecodable", lambda chunk, first: {}),
    "any date": ("omnigraph.rows.columns.has_outside", lambda column: False),
}


@pytest.mark.parametrize("name", PLANTED)
def test_18_10_planted_bugs_of_the_intake_are_found(tmp_path: Path, name: str) -> None:
    target, instead = PLANTED[name]
    with patch(target, instead), patch("omnigraph.rows.checks._Checker._check_calendar"):
        found = hunt(tmp_path, 1, 40)
    assert found
