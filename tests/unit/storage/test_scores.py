"""Canonical distances, rank fusion, and sets of row ids."""

from __future__ import annotations

import sys

import lance  # noqa: F401  # loads lance.dataset, whose encoder is compared with ours
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidArgumentError
from omnigraph.storage.rowsets import encode, row_ids
from omnigraph.storage.scores import cosine_distances, rrf


def test_distance_is_one_minus_the_cosine() -> None:
    rows = np.array([[1, 0], [0, 2], [-3, 0], [1, 1]], dtype=np.float32)
    found = cosine_distances(rows, np.array([5, 0], dtype=np.float32))
    assert found.tolist() == pytest.approx([0.0, 1.0, 2.0, 1 - 2**-0.5], abs=1e-6)


def test_scaled_copies_of_a_vector_are_equally_far() -> None:
    base = np.random.default_rng(3).standard_normal(384).astype(np.float32)
    copies = np.stack([base * scale for scale in (0.001, 1, 7, 1234)])
    query = np.random.default_rng(4).standard_normal(384).astype(np.float32)
    assert len(set(cosine_distances(copies, query).tolist())) == 1
    assert cosine_distances(copies, base).tolist() == [0.0] * 4


def test_the_distance_of_a_row_does_not_depend_on_its_neighbours() -> None:
    rows = np.random.default_rng(5).standard_normal((257, 96)).astype(np.float32)
    query = np.random.default_rng(6).standard_normal(96).astype(np.float32)
    together = cosine_distances(rows, query)
    alone = [cosine_distances(row[None, :], query)[0] for row in rows]
    assert together.tolist() == [float(value) for value in alone]


def test_a_vector_without_direction_has_no_distance() -> None:
    rows = np.array([[0, 0], [np.nan, 1], [np.inf, 0]], dtype=np.float32)
    assert np.isnan(cosine_distances(rows, np.array([1, 0], dtype=np.float32))).all()


def test_fusion_adds_reciprocal_ranks() -> None:
    ids, scores = rrf([["a", "b"], ["b", "c"]])
    assert ids.tolist() == ["b", "a", "c"]
    assert scores.tolist() == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


def test_fusion_breaks_ties_by_id() -> None:
    assert rrf([["b", "a", "c"], ["c", "a", "b"], ["a", "b", "c"]])[0].tolist() == ["a", "b", "c"]
    orders = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    ids, scores = rrf(orders)
    assert ids.tolist() == ["a", "b", "c"]
    assert len(set(scores.tolist())) == 1


def test_fusion_takes_one_ranking_or_none() -> None:
    assert rrf([["x", "y"]])[0].tolist() == ["x", "y"]
    assert rrf([])[0].tolist() == []
    ids, scores = rrf([[], ["y"]])
    assert ids.tolist() == ["y"]
    assert scores.dtype == np.float64


def test_the_first_place_of_an_id_counts() -> None:
    _, scores = rrf([["a", "a", "b"]])
    assert scores.tolist() == pytest.approx([1 / 61, 1 / 63])


def test_fusion_takes_arrow_and_numbers() -> None:
    ids, _ = rrf([pa.array([3, 1], pa.uint64()), np.array([1, 2], dtype=np.uint64)])
    assert ids.tolist() == [1, 3, 2]
    ids, _ = rrf([pa.chunked_array([["ö", "a\0"], ["z"]]), ["a\0"]])
    assert ids.tolist() == ["a\0", "ö", "z"]


@pytest.mark.parametrize("k", [-1, float("nan")])
def test_fusion_refuses_a_k_that_makes_no_sense(k: float) -> None:
    with pytest.raises(InvalidArgumentError, match="at least 0"):
        rrf([["a"]], k=k)


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True), max_size=4),
    st.integers(0, 100),
)
def test_fusion_against_its_definition(rankings: list[list[str]], k: int) -> None:
    expected = {name: 0.0 for ranking in rankings for name in ranking}
    for ranking in rankings:
        for place, name in enumerate(ranking):
            expected[name] += 1 / (k + place + 1)
    ids, scores = rrf(rankings, k=k)
    assert dict(zip(ids.tolist(), scores.tolist(), strict=True)) == pytest.approx(expected)
    ranked = list(zip((-scores).tolist(), ids.tolist(), strict=True))
    assert ranked == sorted(ranked)


@given(st.lists(st.one_of(st.integers(0, 9000), st.integers(0, 2**40)), max_size=300))
def test_row_sets_are_encoded_as_lance_does(values: list[int]) -> None:
    lances = sys.modules["lance.dataset"].serialize_row_addrs
    ids = row_ids(np.array(values, dtype=np.uint64))
    assert ids.tolist() == sorted(set(values))
    assert encode(ids) == lances(ids.tolist())


@pytest.mark.parametrize("count", [4095, 4096, 4097, 70_000, 200_000])
def test_large_row_sets_are_encoded_as_lance_does(count: int) -> None:
    lances = sys.modules["lance.dataset"].serialize_row_addrs
    ids = np.arange(0, 3 * count, 3, dtype=np.uint64)
    assert encode(ids) == lances(ids.tolist())
