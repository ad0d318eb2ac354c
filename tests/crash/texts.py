"""Texts that no store can hold, at random places of a write; whatever happens, the graph answers.

play(seed, folder)
"""

from __future__ import annotations

import random
from pathlib import Path

import omnigraph
from omnigraph.errors import OmniGraphError

SCHEMA = "node P { name: String @key }\n"
READ = "query q() { match { $p: P } return { $p.name } }"
PIECES = ("a", "é", "𝄞", "\ud800", "\udce9", "\0", "\n", '"', "\\ud800", "\U0010ffff")
LENGTH = 12


def play(seed: int, folder: Path) -> None:
    chance = random.Random(seed)
    graph = omnigraph.init(str(folder), SCHEMA)
    expected: list[str] = []
    for number in range(LENGTH):
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 5)))
        how = {chance.choice(["message", "idempotency_key"]): text}
        name = f"n{number}"
        try:
            if chance.random() < 0.2:
                graph.create_tag(f"t{number}", message=text)
                continue
            query = f'query w() {{ insert P {{ name: "{name}" }} }}'
            result = graph.mutate(query, **how)  # type: ignore[arg-type]
        except OmniGraphError:
            continue
        if not result.repeated:
            expected.append(name)
    fresh = omnigraph.open(str(folder))
    assert sorted(row["p.name"] for row in fresh.query(READ).rows()) == sorted(expected)
    checked = fresh.verify()
    assert checked.is_clean, checked.findings
    messages = [commit.message for commit in fresh.commits()]
    messages += [tag.message for tag in fresh.tags()]
    assert all(message.encode() is not None for message in messages)
