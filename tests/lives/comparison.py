"""Answers of the program beside those of the evaluator: values, types of values, and order."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

from tests.lives.evaluator import Answer
from tests.lives.scalars import Bag, Near, Unsigned
from tests.lives.state import Dictionary, Ref, State


def same(expected: Any, actual: Any, state: State, names: Dictionary) -> bool:
    if isinstance(expected, Ref):
        return _same_node(expected, actual, state, names)
    if isinstance(expected, Near):
        room = 1e-9 * max(1.0, expected.scale)
        return isinstance(actual, float) and abs(expected.value - actual) <= room
    if isinstance(expected, Bag):
        return isinstance(actual, list) and _same_bag(list(expected), list(actual), state, names)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(expected) != len(actual):
            return False
        return all(same(e, a, state, names) for e, a in zip(expected, actual, strict=True))
    return _same_scalar(expected, actual)


def _same_bag(expected: list[Any], actual: list[Any], state: State, names: Dictionary) -> bool:
    for value in expected:
        fits = [n for n, other in enumerate(actual) if same(value, other, state, names)]
        if not fits:
            return False
        actual.pop(fits[0])
    return not actual


def _same_scalar(expected: Any, actual: Any) -> bool:
    expected = int(expected) if isinstance(expected, Unsigned) else expected
    if isinstance(expected, float):
        return isinstance(actual, float) and math.isclose(
            expected, actual, rel_tol=1e-9, abs_tol=1e-12
        )
    if isinstance(expected, datetime) or isinstance(actual, datetime):
        both = isinstance(expected, datetime) and isinstance(actual, datetime)
        return both and expected == actual
    if isinstance(expected, date):
        return isinstance(actual, date) and expected == actual
    return type(expected) is type(actual) and bool(expected == actual)


def _same_node(expected: Ref, actual: Any, state: State, names: Dictionary) -> bool:
    """A node of several possible types has `__type`, and null where its type lacks something."""
    if not isinstance(actual, dict) or actual.get("id") != expected.id:
        return False
    now = next(n for n, first in names.types.items() if first == expected.type)
    if actual.get("__type", now) != now:
        return False
    row = state.row(expected)
    wanted = {n: row[first] for n, first in names.props[expected.type].items()}
    rest = {n: v for n, v in actual.items() if n not in ("id", "__type")}
    for name, value in wanted.items():
        column = f"{now}.{name}" if f"{now}.{name}" in rest else name
        if column not in rest or not same(value, rest.pop(column), state, names):
            return False
    return all(value is None for value in rest.values()) and ("__type" in actual or not rest)


def differ(
    answer: Answer, actual: list[dict[str, Any]], state: State, names: Dictionary
) -> str | None:
    """What is different, or None. Rows with equal keys may come in any order."""
    total = len(answer.rows)
    stop = total if answer.stop is None else min(total, answer.stop)
    start = min(answer.start, total)
    wanted = max(0, stop - start)
    if len(actual) != wanted:
        return f"{len(actual)} rows instead of {wanted}"
    if any(list(row) != answer.columns for row in actual):
        return f"columns {list(actual[0])} instead of {answer.columns}"
    at = 0
    while at < total:
        end = at + 1
        while end < total and answer.keys[end] == answer.keys[at]:
            end += 1
        run = list(answer.rows[at:end])
        for place in range(max(at, start), min(end, stop)):
            row = list(actual[place - start].values())
            fits = [n for n, wanted_row in enumerate(run) if same(wanted_row, row, state, names)]
            if not fits:
                return f"row {place - start} is {row}, not {run}"
            run.pop(fits[0])
        at = end
    return None
