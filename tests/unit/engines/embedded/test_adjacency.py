"""Neighbour lists, walks and what is carried over between versions, on plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engines.base import Limits
from omnigraph.engines.embedded.adjacency import (
    Neighbours,
    are_neighbours,
    build_by_edge,
    build_distinct,
)
from omnigraph.engines.embedded.adjacency_delta import carry_neighbours, widened
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.rownumbers import NOBODY, Numbering, Placing, number_rows, pick

BOUNDS = Bounds(Limits(seconds=None))
SIZE = 6
PAIRS = st.lists(st.tuples(st.integers(-1, SIZE - 1), st.integers(-1, SIZE - 1)), max_size=20)


def ends(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    near = np.array([a for a, _ in pairs], np.int32)
    far = np.array([b for _, b in pairs], np.int32)
    return near, far


def listed(lists: Neighbours) -> list[list[int]]:
    return [
        lists.targets[lists.offsets[i] : lists.offsets[i + 1]].tolist() for i in range(lists.size)
    ]


@given(PAIRS)
def test_distinct_lists_name_each_neighbour_once(pairs: list[tuple[int, int]]) -> None:
    lists = build_distinct(*ends(pairs), SIZE, BOUNDS)
    expected = [sorted({b for a, b in pairs if a == i and b >= 0}) for i in range(SIZE)]
    assert listed(lists) == expected
    assert lists.degrees.tolist() == [len(found) for found in expected]


@given(PAIRS)
def test_lists_by_edge_name_each_edge(pairs: list[tuple[int, int]]) -> None:
    lists = build_by_edge(*ends(pairs), SIZE, BOUNDS)
    assert lists.edges is not None
    for node in range(SIZE):
        span = slice(lists.offsets[node], lists.offsets[node + 1])
        expected = [n for n, (a, b) in enumerate(pairs) if a == node and b >= 0]
        assert lists.edges[span].tolist() == expected
        assert lists.targets[span].tolist() == [pairs[n][1] for n in expected]


@given(PAIRS, st.lists(st.integers(0, SIZE - 1), max_size=5))
def test_entries_of_some_nodes(pairs: list[tuple[int, int]], wanted: list[int]) -> None:
    lists = build_distinct(*ends(pairs), SIZE, BOUNDS)
    numbers = np.array(wanted, np.int64)
    found = lists.targets.take(lists.places(numbers, lists.counts(numbers)))
    assert found.tolist() == [target for node in wanted for target in listed(lists)[node]]


@given(PAIRS)
def test_membership(pairs: list[tuple[int, int]]) -> None:
    lists = build_distinct(*ends(pairs), SIZE, BOUNDS)
    here, there = (grid.ravel() for grid in np.meshgrid(np.arange(SIZE), np.arange(SIZE)))
    expected = [(a, b) in set(pairs) for a, b in zip(here.tolist(), there.tolist(), strict=True)]
    assert are_neighbours(lists, here, there).tolist() == expected


@given(PAIRS, st.lists(st.integers(0, 19), max_size=6), PAIRS)
def test_lists_carried_over_equal_lists_built_anew(
    pairs: list[tuple[int, int]], changed: list[int], added: list[tuple[int, int]]
) -> None:
    later = [(NOBODY, NOBODY) if n in changed else pair for n, pair in enumerate(pairs)] + added
    older = build_distinct(*ends(pairs), SIZE, BOUNDS)
    carried = carry_neighbours(older, ends(pairs), ends(later), SIZE + 2)
    assert carried is not None
    assert listed(carried) == listed(build_distinct(*ends(later), SIZE + 2, BOUNDS))
    assert listed(older) == listed(build_distinct(*ends(pairs), SIZE, BOUNDS))


def test_widened_lists_have_empty_ones_at_the_end() -> None:
    lists = build_distinct(*ends([(0, 1)]), 2, BOUNDS)
    assert listed(widened(lists, 4)) == [[1], [], [], []]
    assert widened(lists, 2) is lists


@pytest.mark.parametrize("row_ids", [[], [0, 1, 2], [2, 0, 1], [7, 3, 9]])
def test_numbers_follow_row_ids(row_ids: list[int]) -> None:
    found = number_rows(np.array(row_ids, np.uint64))
    numbers = found.to_numbers(np.array(row_ids, np.uint64))
    assert sorted(numbers.tolist()) == list(range(len(row_ids)))
    assert found.to_row_ids(numbers).tolist() == row_ids
    assert found.everything().tolist() == list(range(len(row_ids)))


def test_values_go_to_their_numbers() -> None:
    found = Numbering(3, np.array([5, 9, 7], np.uint64), np.array([True, False, True]))
    assert _places(found, [7, 5]) == [1, NOBODY, 0]
    assert _places(found, [7], [5]) == [1, NOBODY, 0]
    assert _places(found, [5], [], [7]) == [0, NOBODY, 1]
    assert found.everything().tolist() == [0, 2]
    assert found.rows == 2


def test_values_that_come_in_place_stay_there() -> None:
    plain, sparse = Numbering(4), number_rows(np.array([3, 8, 9], np.uint64))
    assert _places(plain, [0, 1], [2, 3]) is None
    assert _places(sparse, [3], [8, 9]) is None
    assert _places(sparse, [3], [9, 8]) == [0, 2, 1]
    assert _places(plain, [0, 1], [2]) == [0, 1, 2, NOBODY]
    assert _places(Numbering(0)) is None


def _places(numbering: Numbering, *parts: list[int]) -> list[int] | None:
    placing = Placing(numbering)
    for part in parts:
        placing.add(np.array(part, np.uint64))
    places = placing.places()
    return None if places is None else [int(place) for place in places]


def test_picking_by_number() -> None:
    values = np.array([10, 20, 30])
    assert pick(values, np.array([2, NOBODY, 0]), -7).tolist() == [30, -7, 10]
    assert pick(np.empty(0, np.int64), np.array([NOBODY]), 0).tolist() == [0]
