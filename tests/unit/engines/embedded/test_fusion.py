"""`rrf` gives a row the same score and place whatever the `limit` is; its depth is an option."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engines.base import Options
from omnigraph.errors import InvalidArgumentError

SCHEMA = """
node Doc {
    slug: String @key
    body: String
    place: Vector(2)
}
"""
DOCS = 400
FUSED = "rrf(nearest($d.place, $at), bm25($d.body, $words))"
QUERY = """
query q($at: Vector(2), $words: String) {{
    match {{ $d: Doc }}
    return {{ $d.slug as slug, {fused} as score }}
    {rest}
}}
"""
PARAMS = {"at": [1.0, 0.0], "words": "red blue"}


def documents(count: int = DOCS, seed: int = 14) -> list[dict[str, Any]]:
    """The near documents have few of the words, so that what wins has a deep rank somewhere."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        angle = math.pi * (number + rng.random()) / count
        red = round(60 * number / count) + rng.randint(0, 3)
        rows.append(
            {
                "slug": f"d{rng.randint(0, 999):03d}-{number}",
                "body": " ".join(["red"] * red + ["grey"] * (64 - red)),
                "place": [math.cos(angle), math.sin(angle)],
            }
        )
    return [{"type": "Doc", "data": row} for row in rows]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(str(tmp_path_factory.mktemp("fusion") / "g"), SCHEMA)
    made.ingest(documents())
    return made


def ask(graph: og.Graph, rest: str, depth: int | None = 1000, fused: str = FUSED) -> list[Any]:
    text = QUERY.format(fused=fused, rest=rest)
    found = graph.query(text, params=PARAMS, options=Options(rank_depth=depth))
    return [(row["slug"], row["score"]) for row in found]


@pytest.mark.parametrize("depth", [3, 50, 1000, None])
def test_18_14_scores_do_not_depend_on_the_limit(graph: og.Graph, depth: int | None) -> None:
    whole = ask(graph, "order { score desc } limit 100000", depth)
    for limit in (1, 2, 5, 10, 39, 100, 399):
        found = ask(graph, f"order {{ {FUSED} }} limit {limit}", depth)
        assert found == whole[:limit]
    for offset, limit in ((1, 1), (7, 3), (50, 200)):
        found = ask(graph, f"order {{ {FUSED} }} offset {offset} limit {limit}", depth)
        assert found == whole[offset : offset + limit]
    unordered = dict(ask(graph, "", depth))
    assert {slug: unordered[slug] for slug, _ in whole} == dict(whole)


def test_18_14_the_winner_is_that_of_the_formula(graph: og.Graph) -> None:
    def places(ranking: str, rest: str) -> dict[str, int]:
        rows = ask(graph, f"order {{ score {rest} }} limit 1000", fused=f"score({ranking})")
        return {slug: at for at, (slug, score) in enumerate(rows, 1) if score is not None}

    near = places("nearest($d.place, $at)", "asc")
    words = places("bm25($d.body, $words)", "desc")
    scores = {
        slug: sum(1 / (60 + ranks[slug]) for ranks in (near, words) if slug in ranks)
        for slug in {*near, *words}
    }
    best = sorted(scores, key=lambda slug: (-round(scores[slug], 15), slug))
    found = ask(graph, f"order {{ {FUSED} }} limit 400")
    assert [slug for slug, _ in found] == best
    assert ask(graph, f"order {{ {FUSED} }} limit 1") == found[:1]


def test_18_14_the_depth_bounds_each_part(graph: og.Graph) -> None:
    assert len(ask(graph, f"order {{ {FUSED} }} limit 400", 3)) <= 6
    assert len(ask(graph, f"order {{ {FUSED} }} limit 400", None)) == DOCS
    with pytest.raises(InvalidArgumentError, match="rank depth is 0"):
        ask(graph, f"order {{ {FUSED} }} limit 400", 0)


@pytest.mark.parametrize(
    "ranking",
    [FUSED, "nearest($d.place, $at)", "bm25($d.body, $words)", "rank(bm25($d.body, $words))"],
)
@pytest.mark.parametrize(
    "cut",
    [
        "offset 1 limit 9223372036854775807",
        "limit 9223372036854775807",
        "offset 9223372036854775807 limit 9223372036854775807",
        "offset 9223372036854775807 limit 1",
    ],
)
def test_18_23_the_largest_limits_with_a_ranking(graph: og.Graph, ranking: str, cut: str) -> None:
    rest = f"order {{ {ranking} }}"
    whole = ask(graph, f"{rest} limit 100000", fused=ranking)
    found = ask(graph, f"{rest} {cut}", fused=ranking)
    if cut.startswith("limit"):
        assert found == whole
    elif cut.startswith("offset 1 "):
        assert found == whole[1:]
    else:
        assert found == []
