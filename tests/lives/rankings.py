"""Ranked searches, and what must hold of their answers whatever the scores are.

Scores of texts depend on what an index covers, so they are not computed here. Which rows are found
is known exactly for words, and distances of vectors are.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

from tests.lives import words
from tests.lives.blueprint import DIMENSION, Blueprint
from tests.lives.state import State
from tests.lives.values import WORDS

Rows = list[dict[str, Any]]


def ranking(random: Random, shape: Blueprint) -> dict[str, Any] | None:
    """What to ask: a type, properties by first name, a text, a vector, a limit."""
    node = random.choice(shape.nodes)
    texts = [p.name for p in node.props if p.kind == "text"]
    vectors = [p.name for p in node.props if p.kind == "vector"]
    kinds = ["bm25", "fuzzy"] if texts else []
    kinds += ["nearest"] if vectors else []
    kinds += ["rrf"] if texts and vectors else []
    if not kinds:
        return None
    return {
        "kind": random.choice(kinds),
        "type": node.name,
        "text": random.choice(texts) if texts else None,
        "vector": random.choice(vectors) if vectors else None,
        "asked": " ".join(random.choice(WORDS) for _ in range(random.randint(1, 2))),
        "spot": [float(random.randint(-2, 2)) for _ in range(DIMENSION - 1)] + [1.0],
        "limit": random.randint(1, 6),
        "edits": random.randint(1, 2),
    }


def render(asked: dict[str, Any], names: dict[str, str], limit: int) -> str:
    type_ = asked["type"]

    def prop(name: str) -> str:
        return "$x." + names.get(f"{type_}.{asked[name]}", str(asked[name]))

    spot = "[" + ", ".join(str(n) for n in asked["spot"]) + "]"
    score = {
        "bm25": lambda: f'bm25({prop("text")}, "{asked["asked"]}")',
        "fuzzy": lambda: f'fuzzy({prop("text")}, "{asked["asked"]}", {asked["edits"]})',
        "nearest": lambda: f"nearest({prop('vector')}, {spot})",
        "rrf": lambda: (
            f'rrf(nearest({prop("vector")}, {spot}), bm25({prop("text")}, "{asked["asked"]}"))'
        ),
    }[asked["kind"]]()
    return (
        f"query q() {{ match {{ $x: {names.get(type_, type_)} }} "
        f"return {{ $x.id as id, {score} as score }} order {{ {score} }} limit {limit} }}"
    )


def judge(asked: dict[str, Any], state: State, few: Rows, many: Rows) -> str | None:
    """What is wrong with an answer, beside the answer with a limit that cuts nothing."""
    ids = [row["id"] for row in many]
    held = state.rows[asked["type"]]
    if len(set(ids)) != len(ids) or not set(ids) <= set(held):
        return f"rows that are not there, or twice: {ids}"
    if few != many[: asked["limit"]]:
        return f"another order with limit {asked['limit']}: {few}"
    scores = [row["score"] for row in many]
    if None in scores:
        return f"a row that was not found is ranked: {many}"
    ordered = sorted(
        many, key=lambda r: (r["score"] if asked["kind"] == "nearest" else -r["score"], r["id"])
    )
    if ordered != many:
        return f"not best first, then by id: {many}"
    if asked["kind"] == "nearest":
        return _judge_vectors(asked, state, many)
    return None if asked["kind"] == "rrf" else _judge_words(asked, state, ids)


def _judge_words(asked: dict[str, Any], state: State, ids: list[str]) -> str | None:
    held = state.rows[asked["type"]]
    texts = {id_: row[asked["text"]] for id_, row in held.items()}
    must = {id_ for id_, text in texts.items() if words.finds_any(text, asked["asked"])}
    may = must
    if asked["kind"] == "fuzzy":
        may = {
            i for i, t in texts.items() if words.may_find_fuzzily(t, asked["asked"], asked["edits"])
        }
    if not must <= set(ids):
        return f"not found: {sorted(must - set(ids))}"
    return None if set(ids) <= may else f"found, and should not be: {sorted(set(ids) - may)}"


def _judge_vectors(asked: dict[str, Any], state: State, many: Rows) -> str | None:
    expected = {}
    for id_, row in state.rows[asked["type"]].items():
        vector = row[asked["vector"]]
        if vector is not None and any(vector):
            dot = sum(a * b for a, b in zip(vector, asked["spot"], strict=True))
            expected[id_] = 1 - dot / (math.hypot(*vector) * math.hypot(*asked["spot"]))
    if set(expected) != {row["id"] for row in many}:
        return f"found {[row['id'] for row in many]} instead of {sorted(expected)}"
    wrong = [row for row in many if abs(row["score"] - expected[row["id"]]) > 1e-5]
    return f"wrong distances: {wrong}" if wrong else None
