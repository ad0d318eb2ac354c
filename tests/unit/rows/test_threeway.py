"""Three-way merge of one type: by examples, and against its definition on random rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import NodeType
from omnigraph.model.conflict import ConflictKind, Side
from omnigraph.model.equality import same, same_columns, same_row
from omnigraph.rows.checks import logical_schema
from omnigraph.rows.threeway import ChangedRows, Granularity, MergedTable, Resolution, merge_table

NAN = float("nan")
Rows = dict[str, dict[str, Any]]


def _table() -> NodeType:
    found = compile_schema("node T { a: I64? \n b: F64? \n c: [F64]? \n v: Vector(2)? }").node("T")
    assert found is not None
    return found


TABLE = _table()
COLUMNS = ("id", "a", "b", "c", "v")


def as_table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": key, **row} for key, row in sorted(rows.items())], schema=logical_schema(TABLE)
    )


def changes(base: Rows, side: Rows) -> ChangedRows:
    # Also rows that were written anew without a difference, as storage may do.
    touched = [k for k in base.keys() | side.keys() if base.get(k) is not side.get(k)]
    return ChangedRows(
        as_table({k: base[k] for k in touched if k in base}),
        as_table({k: side[k] for k in touched if k in side}),
    )


def run(base: Rows, ours: Rows, theirs: Rows, **choices: Any) -> MergedTable:
    return merge_table(TABLE, changes(base, ours), changes(base, theirs), **choices)


def applied(ground: Rows, merged: MergedTable) -> Rows:
    rows = {key: full(row) for key, row in ground.items() if key not in merged.deletes}
    for row in merged.upserts.to_pylist():
        rows[row.pop("id")] = row
    return dict(sorted(rows.items()))


def full(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in COLUMNS if name != "id"}


values = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(0, 2),
        "b": st.sampled_from([None, 0.0, NAN]),
        "c": st.sampled_from([None, [], [1.0], [NAN]]),
        "v": st.sampled_from([None, [0.0, 1.0], [NAN, 1.0]]),
    }
)
states = st.dictionaries(st.sampled_from("wxyz"), values, max_size=4)
exact = settings(max_examples=300, deadline=None, derandomize=True)


@exact
@given(base=states, ours=states, theirs=states)
def test_merging_is_symmetric_and_builds_on_either_side(
    base: Rows, ours: Rows, theirs: Rows
) -> None:
    one, two = run(base, ours, theirs), run(base, theirs, ours)
    assert [(c.kind, c.entity_id, c.properties) for c in one.conflicts] == [
        (c.kind, c.entity_id, c.properties) for c in two.conflicts
    ]
    assert repr([(c.ours, c.theirs) for c in one.conflicts]) == repr(
        [(c.theirs, c.ours) for c in two.conflicts]
    )
    if one.conflicts:
        return
    result = repr(applied(ours, one))
    assert repr(applied(theirs, two)) == result
    onto = run(base, ours, theirs, onto=Side.THEIRS)
    assert repr(applied(theirs, onto)) == result


@exact
@given(base=states, ours=states, theirs=states, granularity=st.sampled_from(Granularity))
def test_the_result_is_the_definition(
    base: Rows, ours: Rows, theirs: Rows, granularity: Granularity
) -> None:
    merged = run(base, ours, theirs, granularity=granularity)
    clashing = {conflict.entity_id for conflict in merged.conflicts}
    result = applied(ours, merged)
    for key in base.keys() | ours.keys() | theirs.keys():
        was, mine, other = (
            None if side.get(key) is None else full(side[key]) for side in (base, ours, theirs)
        )
        row, clash = define(was, mine, other, granularity)
        assert (key in clashing) == clash
        if not clash:
            assert repr(result.get(key)) == repr(row)
        else:
            assert repr(result.get(key)) == repr(mine)  # conflicts leave ours as it is


def define(
    was: dict[str, Any] | None,
    mine: dict[str, Any] | None,
    other: dict[str, Any] | None,
    granularity: Granularity,
) -> tuple[dict[str, Any] | None, bool]:
    if repr(mine) == repr(other) or repr(was) == repr(other):
        return mine, False
    if repr(was) == repr(mine):
        return other, False
    if was is None or mine is None or other is None or granularity is Granularity.ENTITY:
        return None, True
    row = {}
    for name in was:
        three = [repr(side[name]) for side in (was, mine, other)]
        if len(set(three)) == 3:
            return None, True
        row[name] = other[name] if three[0] == three[1] else mine[name]
    return row, False


@exact
@given(base=states, ours=states, theirs=states, side=st.sampled_from(Side))
def test_a_strategy_leaves_no_conflict(base: Rows, ours: Rows, theirs: Rows, side: Side) -> None:
    merged = run(base, ours, theirs, strategy=side)
    assert merged.conflicts == ()
    result = applied(ours, merged)
    preferred = ours if side is Side.OURS else theirs
    for key in base.keys() | ours.keys() | theirs.keys():
        was, row = base.get(key), preferred.get(key)
        if was is not None and row is not None and key in result:
            for name, value in full(row).items():  # what the winner set stands
                if not same(value, full(was)[name]):
                    assert repr(result[key][name]) == repr(value)
        elif was is None and row is not None:
            assert repr(result[key]) == repr(full(row))


def test_kinds_and_images_of_conflicts() -> None:
    base = {"u": {"a": 1}, "d": {"a": 1}}
    found = run(
        base, {"u": {"a": 2}, "n": {"a": 1}}, {"u": {"a": 3}, "d": {"a": 2}, "n": {"a": 2}}
    ).conflicts
    kinds = {conflict.entity_id: conflict.kind for conflict in found}
    assert kinds == {
        "d": ConflictKind.DELETE_VS_UPDATE,
        "n": ConflictKind.DIVERGENT_INSERT,
        "u": ConflictKind.DIVERGENT_UPDATE,
    }
    by_id = {conflict.entity_id: conflict for conflict in found}
    assert by_id["d"].ours is None
    assert by_id["u"].properties == ("a",)
    assert (by_id["u"].base or {})["a"] == 1


@pytest.mark.parametrize(
    ("resolution", "expected"),
    [
        (Resolution(side=Side.OURS), {"a": 2, "b": None}),
        (Resolution(side=Side.THEIRS), {"a": 3, "b": None}),
        (Resolution(row={"a": 9, "b": 0.5}), {"a": 9, "b": 0.5}),
        (Resolution(), None),
    ],
)
def test_resolutions(resolution: Resolution, expected: dict[str, Any] | None) -> None:
    ours = {"u": {"a": 2}}
    merged = run({"u": {"a": 1}}, ours, {"u": {"a": 3}}, resolutions={"u": resolution})
    found = applied(ours, merged).get("u")
    assert merged.conflicts == ()
    assert (found and {name: found[name] for name in ("a", "b")}) == expected


def test_values_that_are_not_numbers_are_the_same() -> None:
    assert same(NAN, NAN)
    assert same([1.0, NAN], [1.0, NAN])
    assert not same([1.0], [1.0, 2.0])
    assert not same(None, 0)
    assert same_row({"a": NAN}, {"a": NAN})
    assert not same_row(None, {"a": NAN})
    for kind in (pa.float64(), pa.list_(pa.float64()), pa.list_(pa.float32(), 1)):
        wrap = (lambda v: v) if kind == pa.float64() else (lambda v: None if v is None else [v])
        one = pa.chunked_array([pa.array([wrap(v) for v in (NAN, 1.0, None, None)], kind)])
        two = pa.chunked_array([pa.array([wrap(v) for v in (NAN, 2.0, None, 1.0)], kind)])
        assert same_columns(one, two).tolist() == [True, False, True, False]
    nothing = pa.chunked_array([], pa.string())
    assert same_columns(nothing, nothing).tolist() == []
