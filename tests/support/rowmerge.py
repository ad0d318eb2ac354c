"""The three-way merge of plain rows by its definition: property by property."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
State = dict[str, dict[str, Row]]


def alike(one: Any, two: Any) -> bool:
    return repr(one) == repr(two)  # what is not a number is alike


def combine_rows(base: Row | None, ours: Row | None, theirs: Row | None) -> tuple[Row | None, bool]:
    """The merged row, None if there is none, and whether the sides clash."""
    if alike(ours, theirs) or alike(base, theirs):
        return ours, False
    if alike(base, ours):
        return theirs, False
    if base is None or ours is None or theirs is None:
        return None, True
    row: Row = {}
    for key in base.keys() | ours.keys() | theirs.keys():
        was, mine, their = (side.get(key) for side in (base, ours, theirs))
        if not (alike(was, mine) or alike(was, their) or alike(mine, their)):
            return None, True
        value = their if alike(was, mine) else mine
        if value is not None:
            row[key] = value
    return row, False


def combine_states(base: State, ours: State, theirs: State) -> tuple[State, bool]:
    """All rows of all types, and whether any two clash. Rules of the schema are not looked at."""
    merged: State = {name: {} for name in base}
    clash = False
    for name in base:
        for key in base[name].keys() | ours[name].keys() | theirs[name].keys():
            row, bad = combine_rows(*(side[name].get(key) for side in (base, ours, theirs)))
            clash |= bad
            if row is not None:
                merged[name][key] = row
    return merged, clash
