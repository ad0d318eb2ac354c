"""Running set checks: a delta against what a view shows.

Guarantees: every violation is reported with record, type, property, value and rule; the cost
follows the delta, through lookups for few rows and one pass over a column for many.
Deliberately absent: the checks themselves (`rows.setchecks`), and rows by themselves
(`rows.checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engines.embedded.lookupcache import spelled
from omnigraph.engines.embedded.view import Numbers, View
from omnigraph.errors import Violation
from omnigraph.model.catalog import ID_COLUMN, SRC_COLUMN, EdgeType
from omnigraph.model.temporal import python_values
from omnigraph.rows import breaches
from omnigraph.rows.columns import combined
from omnigraph.rows.deltas import Delta, TableDelta, no_rows
from omnigraph.rows.findings import MOST, Findings
from omnigraph.rows.setchecks import (
    Attached,
    Count,
    Endpoint,
    FreeId,
    SetCheck,
    Unique,
    repeats,
)


def run_checks(view: View, delta: Delta, checks: tuple[SetCheck, ...]) -> Findings:
    """What the delta would break if it were laid over the view."""
    findings = Findings()
    for check in checks:
        _RUNNERS[type(check)](check, view, delta, findings)
    return findings


def _free_id(check: FreeId, view: View, delta: Delta, findings: Findings) -> None:
    change = delta[check.table.id]
    taken = change.ids.filter(pa.array(view.existing(check.table, change.ids)))
    if len(taken):
        raise breaches.taken_ids(check.table, taken[:MOST].to_pylist(), len(taken))


def _unique(check: Unique, view: View, delta: Delta, findings: Findings) -> None:
    change = delta[check.table.id]
    keys = spelled(change.rows, check.columns)
    _report_pairs(check, change, findings, *repeats(keys))
    distinct = _first_rows(keys)
    asked = change.rows.select(_columns(check)).take(pa.array(distinct))
    places, holders = _remaining(view, check, change, asked)
    if not len(places):
        return
    rows = distinct[places]
    holder_of = dict(zip(rows.tolist(), holders.to_pylist(), strict=True))
    findings.add_rows(
        np.unique(rows),
        change.origin,
        lambda row: _taken(check, change, row, f"{check.table.name} {holder_of[row]!r}"),
    )


def _first_rows(keys: pa.Array) -> Numbers:
    """The first row of every distinct key."""
    there = np.flatnonzero(pc.is_valid(keys).to_numpy(zero_copy_only=False))
    later, _ = repeats(keys)
    return np.setdiff1d(there, later) if len(later) else there


def _remaining(
    view: View, check: Unique, change: TableDelta, asked: pa.Table
) -> tuple[Numbers, pa.Array]:
    """Rows that hold one of the keys and will still be there."""
    if change.replaces:
        return np.empty(0, np.int64), pa.array([], pa.string())
    places, holders = view.holders(check.table, check.columns, asked)
    if not len(holders):
        return places, holders
    leaves = pc.is_in(holders, value_set=pa.concat_arrays([change.ids, change.removed]))
    stays = ~leaves.to_numpy(zero_copy_only=False)
    return places[stays], holders.filter(pa.array(stays))


def _columns(check: Unique) -> list[str]:
    return list(dict.fromkeys((ID_COLUMN, *check.columns)))


def _report_pairs(
    check: Unique, change: TableDelta, findings: Findings, rows: Numbers, firsts: Numbers
) -> None:
    first_of = dict(zip(rows.tolist(), firsts.tolist(), strict=True))
    findings.add_rows(
        rows,
        change.origin,
        lambda row: _taken(check, change, row, _name_of(check, change, first_of[row])),
    )


def _name_of(check: Unique, change: TableDelta, row: int) -> str:
    if change.origin.is_input:
        return f"record {change.origin.record(row)}"
    return f"{check.table.name} {change.rows.column(ID_COLUMN)[row].as_py()!r}"


def _taken(check: Unique, change: TableDelta, row: int, holder: str) -> Violation:
    values = [python_values(change.rows.column(name).slice(row, 1))[0] for name in check.columns]
    return breaches.not_unique(check, values, holder)


def _endpoint(check: Endpoint, view: View, delta: Delta, findings: Findings) -> None:
    change = delta[check.edge.id]
    ends = combined(change.rows.column(check.column))
    distinct = ends.unique()
    absent = distinct.filter(pa.array(~_nodes_after(check.node.id, distinct, view, delta, check)))
    if not len(absent):
        return
    rows = np.flatnonzero(pc.is_in(ends, value_set=absent).to_numpy(zero_copy_only=False))
    findings.add_rows(
        rows, change.origin, lambda row: breaches.no_such_node(check, ends[row].as_py())
    )


def _nodes_after(node_id: int, ids: pa.Array, view: View, delta: Delta, check: Endpoint) -> Numbers:
    """For each distinct id, whether the node is there once the delta stands."""
    change = delta.get(node_id)
    there = np.zeros(len(ids), bool)
    if change is not None and change.rows.num_rows:
        there |= pc.is_in(ids, value_set=change.ids).to_numpy(zero_copy_only=False)
    if there.all() or (change is not None and change.replaces):
        return there
    unknown = np.flatnonzero(~there)
    asked = ids.take(pa.array(unknown))
    found = view.existing(check.node, asked)
    if change is not None and len(change.removed):
        found &= ~pc.is_in(asked, value_set=change.removed).to_numpy(zero_copy_only=False)
    there[unknown] = found
    return there


def _attached(check: Attached, view: View, delta: Delta, findings: Findings) -> None:
    """Edges that stay while the node they point to goes."""
    gone = _gone_nodes(check, view, delta[check.node.id])
    if not len(gone):
        return
    edge_change = delta.get(check.edge.id)
    if edge_change is not None and edge_change.replaces:
        return  # what is put in place of the edges has its own check
    places, edges = view.holders(check.edge, (check.column,), pa.table({check.column: gone}))
    if edge_change is not None and len(edges):
        leaves = pa.concat_arrays([edge_change.ids, edge_change.removed])
        stays = ~pc.is_in(edges, value_set=leaves).to_numpy(zero_copy_only=False)
        places, edges = places[stays], edges.filter(pa.array(stays))
    findings.add_apart(
        len(places),
        lambda at: breaches.left_pointing(check, edges[at].as_py(), gone[int(places[at])].as_py()),
    )


def _gone_nodes(check: Attached, view: View, change: TableDelta) -> pa.Array:
    if not change.replaces:
        return change.removed
    before = combined(view.select(check.node, columns=[ID_COLUMN]).column(ID_COLUMN))
    return before.filter(pc.invert(pc.is_in(before, value_set=change.ids)))


def _count(check: Count, view: View, delta: Delta, findings: Findings) -> None:
    change = delta[check.edge.id]
    before = _edges_before(check.edge, view, change)
    sources = _affected(check, change, before, delta)
    if not len(sources):
        return
    after = _edges_after(check.edge, view, change, sources)
    counts = pc.index_in(after, value_set=sources).to_numpy(zero_copy_only=False)
    per_source = np.bincount(counts[~np.isnan(counts)].astype(np.int64), minlength=len(sources))
    rule = check.edge.cardinality
    high = np.inf if rule.maximum is None else rule.maximum
    wrong = np.flatnonzero((per_source < rule.minimum) | (per_source > high))
    _report_counts(check, change, findings, sources, per_source, wrong)


def _edges_before(edge: EdgeType, view: View, change: TableDelta) -> pa.Table:
    """Edges that the delta replaces or removes, as they are now."""
    if change.replaces:
        return view.select(edge, columns=[ID_COLUMN, SRC_COLUMN])
    touched = change.removed if change.fresh else pa.concat_arrays([change.ids, change.removed])
    there = touched.filter(pa.array(view.existing(edge, touched)))
    return view.rows(edge, there.to_pylist()) if len(there) else no_rows(edge)


def _affected(check: Count, change: TableDelta, before: pa.Table, delta: Delta) -> pa.Array:
    """Nodes some of whose edges come or go, without nodes that go themselves."""
    both = [combined(t.column(SRC_COLUMN)) for t in (change.rows, before)]
    sources = pa.concat_arrays(both).unique()
    nodes = delta.get(check.node.id)
    if nodes is None:
        return sources
    if nodes.replaces:
        return sources.filter(pc.is_in(sources, value_set=nodes.ids))
    return sources.filter(pc.invert(pc.is_in(sources, value_set=nodes.removed)))


def _edges_after(edge: EdgeType, view: View, change: TableDelta, sources: pa.Array) -> pa.Array:
    """The source of each edge that leaves one of these nodes once the delta stands."""
    new = combined(change.rows.column(SRC_COLUMN))
    if change.replaces:
        return new
    places, edges = view.holders(edge, (SRC_COLUMN,), pa.table({SRC_COLUMN: sources}))
    touched = pa.concat_arrays([change.ids, change.removed])
    stays = ~pc.is_in(edges, value_set=touched).to_numpy(zero_copy_only=False)
    return pa.concat_arrays([sources.take(pa.array(places[stays])), new])


def _report_counts(
    check: Count,
    change: TableDelta,
    findings: Findings,
    sources: pa.Array,
    counts: Numbers,
    wrong: Numbers,
) -> None:
    if not len(wrong):
        return
    new = combined(change.rows.column(SRC_COLUMN))
    first_row = pc.index_in(sources.take(pa.array(wrong)), value_set=new).to_pylist()
    for place, row in zip(wrong.tolist(), first_row, strict=True):
        violation = breaches.miscounted(check, sources[place].as_py(), int(counts[place]))
        if row is None:
            findings.add(violation)
        else:
            findings.add_each([row], change.origin, violation)


_RUNNERS: dict[type[Any], Callable[[Any, View, Delta, Findings], None]] = {
    FreeId: _free_id,
    Unique: _unique,
    Endpoint: _endpoint,
    Attached: _attached,
    Count: _count,
}
