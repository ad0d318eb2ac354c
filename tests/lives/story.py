"""A random life of a graph: writes, branches, merges, maintenance, renames and restarts, with
queries after each of them.

An operation says everything by first names and fixed values, so that any part of a story can be
played by itself: what does not fit the state that it meets is skipped, or refused as it should be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.lives.author import Author
from tests.lives.blueprint import Blueprint, blueprint
from tests.lives.edits import Edits, Record
from tests.lives.parser import lit
from tests.lives.rankings import ranking
from tests.lives.syntax import Delete, Write

EVENTS, QUERIES_EACH = 9, 5
QUERIES = EVENTS * QUERIES_EACH
BRANCHES = ("main", "left", "left", "right")


@dataclass(frozen=True)
class Op:
    kind: str
    branch: str = "main"
    given: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Story:
    seed: int
    blueprint: Blueprint
    ops: list[Op]


def story(seed: int) -> Story:
    random = Random(seed)
    shape = blueprint(random)
    ops = [
        Op(
            "ingest",
            given={"records": Edits(random, shape).whole(), "mode": "append", "door": "dicts"},
        )
    ]
    # Two lives of five are about searches: rows change and indexes with them, on two branches.
    searched = random.random() < 0.4
    ops += _questions(random, shape, searched)
    ops += [Op("branch", given={"name": "left"})] if searched or random.random() < 0.7 else []
    for n in range(EVENTS - 1):
        parted = _parted(random, shape, ops[0].given["records"]) if searched and n == 0 else []
        if not parted:
            ops += [_event(random, shape, n, searched) for _ in range(random.randint(1, 3))]
        ops += parted
        asked = sum(op.kind == "rank" for op in parted)
        ops += _questions(random, shape, searched)[asked:]
    return Story(seed, shape, ops)


def _parted(random: Random, shape: Blueprint, records: list[Record]) -> list[Op]:
    """Two branches that lose one row each, another one, with the same search on both of them."""
    asked = ranking(random, shape)
    if asked is None or asked["text"] is None:
        return []
    edits = Edits(random, shape)
    ids = [edits.identity(record) for record in records if record[0] == asked["type"]]
    if len(ids) < 2:
        return []
    asked["kind"] = "bm25"
    ops = []
    for branch, id_ in zip(("main", "left"), random.sample(ids, 2), strict=True):
        gone = Delete(asked["type"], ("bin", "=", ("prop", None, "id"), lit(id_)))
        ops.append(Op("mutate", branch, {"write": Write((gone,)), "params": {}}))
    return [*ops, *(Op("rank", branch, asked) for branch in ("main", "left"))]


def _questions(random: Random, shape: Blueprint, searched: bool) -> list[Op]:
    return [_question(random, shape, 0.6 if searched else 0.12) for _ in range(QUERIES_EACH)]


def _question(random: Random, shape: Blueprint, ranked: float) -> Op:
    branch, back = random.choice(BRANCHES), random.randint(1, 4) if random.random() < 0.15 else 0
    if random.random() < ranked and (asked := ranking(random, shape)):
        return Op("rank", branch, asked)
    query, params = Author(random, shape).query()
    return Op("query", branch, {"query": query, "params": params, "back": back})


def _event(random: Random, shape: Blueprint, n: int, searched: bool) -> Op:
    if searched and random.random() < 0.8:
        kind = random.choice(("mutate", "mutate", "mutate", "mutate", "optimize"))
    else:
        kind = random.choices(list(_EVENTS), [weight for weight, _ in _EVENTS.values()])[0]
    return _EVENTS[kind][1](random, shape, n)


def _mutate(random: Random, shape: Blueprint, n: int) -> Op:
    write, params = Edits(random, shape).mutation()
    return Op("mutate", random.choice(BRANCHES), {"write": write, "params": params})


def _ingest(random: Random, shape: Blueprint, n: int) -> Op:
    records = Edits(random, shape).records(random.randint(1, 4))
    mode = random.choice(("merge", "merge", "merge", "append", "overwrite"))
    if mode == "overwrite":
        names = {edge.name for edge in shape.edges}
        records = [r for r in records if r[0] in names] or records
    door = random.choice(("dicts", "bytes", "load"))
    return Op("ingest", random.choice(BRANCHES), {"records": records, "mode": mode, "door": door})


def _branch(random: Random, shape: Blueprint, n: int) -> Op:
    return Op(
        "branch", random.choice(BRANCHES), {"name": random.choice(("left", "right", "right"))}
    )


def _merge(random: Random, shape: Blueprint, n: int) -> Op:
    source, target = random.choice(
        (("left", "main"), ("main", "left"), ("right", "main"), ("left", "right"))
    )
    return Op(
        "merge", target, {"source": source, "winner": random.choice((None, "ours", "theirs"))}
    )


def _drop(random: Random, shape: Blueprint, n: int) -> Op:
    return Op("drop", given={"name": random.choice(("left", "right"))})


def _rename(random: Random, shape: Blueprint, n: int) -> Op:
    return Op(
        "rename", random.choice(BRANCHES), {"what": random.choice(shape.renameable()), "turn": n}
    )


def _cleanup(random: Random, shape: Blueprint, n: int) -> Op:
    return Op("cleanup", given={"keep": random.randint(1, 3)})


def _offer(random: Random, shape: Blueprint, n: int) -> Op:
    return Op("offer", random.choice(BRANCHES), {"seed": random.randint(0, 10**6)})


def _plain(kind: str) -> Any:
    return lambda random, shape, n: Op(kind, random.choice(BRANCHES))


_EVENTS: dict[str, tuple[int, Any]] = {
    "mutate": (30, _mutate),
    "ingest": (14, _ingest),
    "branch": (14, _branch),
    "merge": (14, _merge),
    "drop": (3, _drop),
    "optimize": (10, _plain("optimize")),
    "indices": (3, _plain("indices")),
    "cleanup": (5, _cleanup),
    "rename": (6, _rename),
    "reopen": (5, _plain("reopen")),
    "offer": (9, _offer),
}
