"""Dates and times: what may come in by which way, and what is read of a graph that holds others."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import InvalidArgumentError, InvalidDataError, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.model import temporal
from omnigraph.model.temporal import FIRST_DAY, FIRST_MS, LAST_DAY, LAST_MS
from omnigraph.operations.transfer import import_graph

SCHEMA = """
node Event {
    name: String @key
    day: Date?
    at: DateTime?
    days: [Date]?
}
edge After: Event -> Event { since: Date? }
"""
ENDS = {
    "first": (date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC), FIRST_DAY, FIRST_MS),
    "last": (
        date(9999, 12, 31),
        datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
        LAST_DAY,
        LAST_MS,
    ),
    "1970": (date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), 0, 0),
    "2024": (date(2024, 1, 31), datetime(2024, 1, 31, tzinfo=UTC), 19_753, 1_706_659_200_000),
}


@pytest.fixture
def graph(tmp_path) -> Graph:
    return omnigraph.init(str(tmp_path / "g"), SCHEMA)


def read(graph: Graph) -> dict[str, tuple]:
    text = "query q() { match { $e: Event } return { $e.name, $e.day, $e.at, $e.days } }"
    return {r["e.name"]: (r["e.day"], r["e.at"], r["e.days"]) for r in graph.query(text)}


def envelope(name: str, **data: object) -> str:
    return json.dumps({"type": "Event", "data": {"name": name, **data}})


def numbers(column: list[int], type_: pa.DataType) -> pa.Array:
    plain = pa.int32() if type_ == pa.date32() else pa.int64()
    return pa.array(column, plain).view(type_)


# Ways in. Each takes days and milliseconds as numbers.


def by_jsonl(graph: Graph, tmp_path, days: list[int], ms: list[int]) -> None:
    lines = [envelope(f"e{n}", day=d, at=m, days=[d]) for n, (d, m) in enumerate(zip(days, ms))]  # noqa: B905
    graph.ingest("\n".join(lines))


def by_records(graph: Graph, tmp_path, days: list[int], ms: list[int]) -> None:
    pairs = enumerate(zip(days, ms, strict=True))
    graph.ingest([{"name": f"e{n}", "day": d, "at": m, "days": [d]} for n, (d, m) in pairs],
                 type="Event")  # fmt: skip


def by_csv(graph: Graph, tmp_path, days: list[int], ms: list[int]) -> None:
    rows = (f'e{n},{d},{m},"[{d}]"' for n, (d, m) in enumerate(zip(days, ms, strict=True)))
    (tmp_path / "Event.csv").write_text("\n".join(["name,day,at,days", *rows]))
    graph.load(str(tmp_path / "Event.csv"), engine="embedded")


def arrow_table(days: list[int], ms: list[int]) -> pa.Table:
    listed = numbers(days, pa.date32())
    offsets = pa.array(range(len(days) + 1), pa.int32())
    return pa.table(
        {
            "name": [f"e{n}" for n in range(len(days))],
            "day": numbers(days, pa.date32()),
            "at": numbers(ms, pa.timestamp("ms")),
            "days": pa.ListArray.from_arrays(offsets, listed),
        }
    )


def by_arrow(graph: Graph, tmp_path, days: list[int], ms: list[int]) -> None:
    graph.ingest(arrow_table(days, ms), type="Event")


def by_integers_of_arrow(graph: Graph, tmp_path, days: list[int], ms: list[int]) -> None:
    table = arrow_table(days, ms)
    table = table.set_column(1, "day", pa.array(days)).set_column(2, "at", pa.array(ms))
    graph.ingest(table, type="Event")


def by_parquet(graph: Graph, tmp_path, days: list[int], ms: list[int]) -> None:
    pq.write_table(arrow_table(days, ms), tmp_path / "Event.parquet")
    graph.load(str(tmp_path / "Event.parquet"), engine="embedded")


def by_parameters(graph: Graph, tmp_path, days: list[int], ms: list[int]) -> None:
    text = (
        "query q($n: String, $d: Date, $m: DateTime, $l: [Date])"
        " { insert Event { name: $n, day: $d, at: $m, days: $l } }"
    )
    for n, (d, m) in enumerate(zip(days, ms, strict=True)):
        graph.mutate(text, params={"n": f"e{n}", "d": d, "m": m, "l": [d]})


WAYS = [
    by_jsonl,
    by_records,
    by_csv,
    by_arrow,
    by_integers_of_arrow,
    by_parquet,
    by_parameters,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_18_25_days_and_milliseconds_are_dates_and_times(graph, tmp_path, way):
    ends = list(ENDS.values())
    way(graph, tmp_path, [end[2] for end in ends], [end[3] for end in ends])
    assert read(graph) == {f"e{n}": (e[0], e[1], [e[0]]) for n, e in enumerate(ends)}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    ("day", "ms"),
    [
        (FIRST_DAY - 1, 0),
        (LAST_DAY + 1, 0),
        (-(2**31), 0),
        (2**31 - 1, 0),
        (0, FIRST_MS - 1),
        (0, LAST_MS + 1),
        (0, 2**62),
        (0, -(2**62)),
    ],
)
def test_18_10_what_is_outside_the_calendar_is_refused_by_every_way(graph, tmp_path, way, day, ms):
    before = graph.snapshot()
    with pytest.raises((InvalidDataError, InvalidArgumentError), match="0001-01-01 to 9999-12-31"):
        way(graph, tmp_path, [day], [ms])
    assert graph.snapshot() == before


@pytest.mark.parametrize(
    "data",
    [
        {"day": "0000-01-01"},
        {"day": "+10000-01-01"},
        {"at": "0000-12-31T00:00:00Z"},
        {"at": "0001-01-01T00:00:00+05:00"},
        {"at": "9999-12-31T23:59:59-05:00"},
        {"days": ["2024-01-01", "0000-01-01"]},
        {"day": 19_753.0},
        {"day": True},
        {"at": 1e300},
    ],
)
def test_18_10_texts_outside_the_calendar_are_refused(graph, data):
    with pytest.raises(InvalidDataError):
        graph.ingest(envelope("x", **data))
    with pytest.raises(InvalidDataError):  # and when another line makes Arrow's reader give up
        graph.ingest(envelope("x", **data) + "\n" + envelope("y", day=1) + "\n" + '{"type": 3}')


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("place", ["day", "at"])
def test_18_10_every_unit_of_time_has_the_same_range(graph, unit, place):
    column = pa.array([2**62, -(2**62), 0]).view(pa.timestamp(unit))
    rows = pa.table({"name": ["a", "b", "c"], place: column})
    if unit == "ns" and place == "at":
        graph.ingest(rows, type="Event")  # these are 2116 and 1823
        return
    with pytest.raises(InvalidDataError) as caught:
        graph.ingest(rows, type="Event")
    assert {v.record for v in caught.value.violations} == {0, 1}


@pytest.mark.parametrize(
    "literal",
    ['datetime("0001-01-01T00:00:00+05:00")', 'datetime("9999-12-31T23:59:59-05:00")',
     'date("0000-01-01")', 'date("10000-01-01")'],
)  # fmt: skip
def test_18_10_literals_outside_the_calendar_are_refused(graph, literal):
    name = "at" if literal.startswith("datetime") else "day"
    with pytest.raises(OmniGraphError):
        graph.query(
            f"query q() {{ match {{ $e: Event  $e.{name} < {literal} }} return {{ $e.name }} }}"
        )
    with pytest.raises(OmniGraphError):
        graph.mutate(f'query q() {{ insert Event {{ name: "x", {name}: {literal} }} }}')


# A graph that holds such dates nevertheless.


@pytest.fixture
def old(graph, tmp_path, monkeypatch) -> Graph:
    """Made by a release that took any date."""
    graph.ingest(envelope("good", day="2024-01-31", at="2024-01-31T00:00:00Z"))
    with monkeypatch.context() as patched:
        patched.setattr("omnigraph.rows.columns.has_outside", lambda column: False)
        patched.setattr(
            "omnigraph.rows.checks.outside", lambda column: pa.array([False] * len(column))
        )
        patched.setattr("omnigraph.rows.checks.has_outside", lambda column: False)
        by_arrow(graph, tmp_path, [FIRST_DAY - 1, LAST_DAY + 1], [FIRST_MS - 1, LAST_MS + 1])
        graph.ingest(
            pa.table({"from": ["e0"], "to": ["e1"], "since": numbers([2**31 - 1], pa.date32())}),
            type="After",
        )
    return omnigraph.open(graph.uri)


FAR = {
    "e0": ("0000-12-31", "0000-12-31T23:59:59.999Z", ["0000-12-31"]),
    "e1": ("+10000-01-01", "+10000-01-01T00:00:00.000Z", ["+10000-01-01"]),
}


def test_18_10_rows_outside_the_calendar_can_be_read(old):
    found = read(old)
    assert {name: found[name] for name in FAR} == FAR
    assert found["good"][0] == date(2024, 1, 31)
    everything = old.query("query q() { match { $e: Event } return { $e } }")
    assert "+10000-01-01" in everything.to_json()
    assert "+10000-01-01" in everything._repr_html_()
    assert len(everything.to_pandas()) == 3
    days = old.query("query q() { match { $e: Event } return { $e.day, $e.at } }")
    assert len(days.to_pandas()) == 3
    assert days.to_polars().height == 3


def test_18_10_changes_outside_the_calendar_can_be_read(old, tmp_path):
    commits = list(old.commits())
    changes = list(old.diff(commits[-1].id, commits[0].id))
    assert any(change.after and change.after.get("day") == "+10000-01-01" for change in changes)
    old.install_baseline(tmp_path / "base.jsonl")
    assert "+10000-01-01" in (tmp_path / "base.jsonl").read_text()
    (commit, *_) = commits
    assert list(old.commit_changes(commit.id))


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "arrow"])
def test_18_10_exports_outside_the_calendar_are_written(old, tmp_path, form):
    old.export(str(tmp_path / form), format=form)
    files = [path for path in (tmp_path / form).rglob("*") if path.is_file()]
    assert files
    if form == "jsonl":
        assert b"+10000-01-01" in b"".join(path.read_bytes() for path in files)


def test_18_10_fsck_names_rows_outside_the_calendar(old):
    messages = [finding.message for finding in old.verify().findings]
    for name in ("e0", "e1"):
        for place in ("day", "at", "days"):
            assert any(f"'{name}'" in m and f"Event.{place}" in m for m in messages), messages
    assert any("After.since" in m for m in messages)


def test_18_10_a_row_outside_the_calendar_can_be_mended(old):
    old.mutate(
        'query q() { update Event set { day: null, at: null, days: null } where name = "e0" }'
    )
    old.mutate('query q() { delete Event where name = "e1" }')
    assert old.verify().findings == []


def test_18_10_merges_and_branches_read_them(old):
    old.create_branch("side")
    old.on("side").ingest(envelope("more", day=1))
    old.ingest(envelope("ours", day=2))
    old.merge("side")
    assert {"more", "ours", *FAR} <= set(read(old))


@pytest.mark.parametrize("name", ENDS)
def test_18_10_the_ends_of_the_calendar_make_the_whole_journey(graph, tmp_path, name):
    day, at, _, _ = ENDS[name]
    graph.ingest([{"name": "x", "day": day, "at": at, "days": [day]}], type="Event")
    for form in ("jsonl", "csv", "parquet"):
        folder = tmp_path / form
        graph.export(str(folder), format=form)
        place = str(tmp_path / f"copy-{form}")
        import_graph(place, str(folder), SCHEMA)
        assert read(omnigraph.open(place)) == {"x": (day, at, [day])}


def test_18_10_spelled_days_follow_the_calendar():
    spelled = [temporal.spell_day(n) for n in (-719_162, 0, 2_932_896, 19_782)]
    assert spelled == ["0001-01-01", "1970-01-01", "9999-12-31", "2024-02-29"]
    chance = np.random.default_rng(7)
    for number in chance.integers(FIRST_DAY, LAST_DAY, 500).tolist():
        assert temporal.spell_day(number) == temporal.day(number).isoformat()
    assert temporal.spell_day(FIRST_DAY - 367) == "-0001-12-31"
    assert temporal.spell_moment(-1) == "1969-12-31T23:59:59.999Z"
