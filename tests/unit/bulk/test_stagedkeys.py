from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.bulk.stagedkeys import KeyFile, KeyRange, RowSet, shares
from omnigraph.storage.distributed import StagedFile


@given(st.integers(1, 60), st.sets(st.integers(0, 59)), st.integers(1, 20), st.integers(0, 5))
def test_a_row_keeps_its_place_when_others_are_dropped(
    rows: int, dropped: set[int], size: int, part: int
) -> None:
    gone = np.array(sorted(d for d in dropped if d < rows), np.int64)
    kept = np.setdiff1d(np.arange(rows), gone)
    found: list[int] = []
    for first in range(0, len(kept), size):
        count = min(size, len(kept) - first)
        file = KeyFile(part, first, RowSet.of(gone), StagedFile("{}", count))
        found += file.places().tolist()
    assert found == [(part << 32) | int(row) for row in kept]


@given(st.sets(st.integers(0, 99)), st.sets(st.integers(0, 99), min_size=1))
def test_a_set_of_rows_takes_a_bit_for_each_row(some: set[int], more: set[int]) -> None:
    found = RowSet.of(np.array(sorted(some), np.int64)).joined(np.array(list(more), np.int64))
    assert found.numbers().tolist() == sorted(some | more)
    assert len(found.bits) == max(some | more) // 8 + 1


def test_ranges_hold_their_lower_end_and_no_null() -> None:
    keys = pa.array(["a", "b", "c", None])
    assert KeyRange("b", "c").mask(keys).to_pylist() == [False, True, False, False]
    assert KeyRange().mask(keys).to_pylist() == [True, True, True, False]


def test_shares_are_neighbours_and_about_equal() -> None:
    found = shares([3, 3, 3, 3, 3, 3], lambda rows: rows, 2)
    assert found == [[3, 3, 3], [3, 3, 3]]
    assert shares([], lambda rows: rows, 2) == []
