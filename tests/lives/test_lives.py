"""Random lives of a graph, with queries that a second evaluator answers from their text.

One life is one seed. A failure has its seed, the shortest program that still fails, and a script
that shows it without these tests:

    python -m tests.lives 17        plays one life again

`make test` asks 2,000 queries, `make crash` 20,000.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.crash.sizes import FULL, note
from tests.lives import printer
from tests.lives.__main__ import live, play
from tests.lives.author import Author
from tests.lives.blueprint import blueprint
from tests.lives.edits import Edits
from tests.lives.parser import parse
from tests.lives.player import DifferenceError
from tests.lives.sizes import LIVES, LOT
from tests.lives.story import QUERIES, story
from tests.lives.translation import translate

LOTS = [range(start, min(start + LOT, LIVES)) for start in range(0, LIVES, LOT)]


@pytest.mark.slow
@pytest.mark.timeout(1800 if FULL else 600)
@pytest.mark.parametrize("seeds", LOTS, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_lives(tmp_path: Path, seeds: range) -> None:
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        outcomes += live(seed, tmp_path)
    asked = sum(n for name, n in outcomes.items() if name.startswith(("query ", "rank ")))
    assert asked == QUERIES * len(seeds)
    note(
        "lives",
        lives=len(seeds),
        first=seeds.start,
        last=seeds.stop - 1,
        queries=asked,
        operations=sum(outcomes.values()) - asked,
        refused=sum(n for name, n in outcomes.items() if name.endswith("refused")),
    )


def test_a_few_lives_do_everything(tmp_path: Path) -> None:
    """Every kind of operation is done in a few lives, and most queries find something."""
    outcomes: Counter[str] = Counter()
    for seed in range(2):
        outcomes += live(seed, tmp_path)
    assert outcomes["query full"] > 10
    assert outcomes["query old"] > 0
    kinds = Counter(op.kind for seed in range(40) for op in story(seed).ops)
    assert set(kinds) == {
        "branch", "cleanup", "drop", "indices", "ingest", "merge", "mutate", "offer", "optimize",
        "query", "rank", "rename", "reopen",
    }  # fmt: skip


def test_text_is_read_back_as_it_was_meant() -> None:
    for seed in range(300):
        random = Random(seed)
        shape = blueprint(random)
        query = translate(Author(random, shape).query()[0], {})
        assert parse(printer.query(query)) == query
        write = translate(Edits(random, shape).mutation()[0], {})
        assert parse(printer.write(write)) == write


def test_a_wrong_answer_is_noticed_and_made_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A life over a program that forgets a row: found, with a short program and a script."""
    import omnigraph

    query = omnigraph.Graph.query

    def forgetful(self, *args, **kwargs):
        result = query(self, *args, **kwargs)
        rows = result.rows()[:-1]
        return type("Short", (), {"rows": lambda self: rows})()

    monkeypatch.setattr(omnigraph.Graph, "query", forgetful)
    with pytest.raises(AssertionError, match="operations that fail") as raised:
        live(1, tmp_path, tries=30)
    told = str(raised.value)
    assert "life 1: answer" in told
    assert "omnigraph.init(" in told
    assert int(told.split(" operations that fail")[0].rsplit("\n", 1)[-1]) < 10


def test_lost_writes_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import omnigraph

    monkeypatch.setattr(omnigraph.Graph, "mutate", lambda *args, **kwargs: None)
    found = set()
    for seed in range(4):
        told = story(seed)
        try:
            play(told, told.ops, tmp_path)
        except DifferenceError as error:
            found.add(error.kind)
    assert found & {"lost write", "accepted", "insert"}
