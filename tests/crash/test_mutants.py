"""Planted bugs: each must be caught by the harness within fifty seeds.

`make test` begins with the seed at which a bug was caught in the last full run.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.crash.figures import KEPT
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL, note
from tests.mutants.catalogue import MUTANTS
from tests.mutants.hunt import MOST_SEEDS, hunt

pytestmark = pytest.mark.crash


def known_seed(name: str) -> int:
    """Where it was caught when everything was run; 1 for a new one."""
    caught = json.loads(KEPT.read_text())["planted bugs"]
    return next((int(bug["seed"]) for bug in caught if bug["name"] == name), 1)


def catch(name: str, folder: Path, nursery: Nursery) -> None:
    caught = hunt(name, folder, nursery, 1 if FULL else known_seed(name))
    assert caught is not None, f"{name!r} lived through {MOST_SEEDS} seeds"
    mutant = MUTANTS[name]
    note(
        "planted bugs",
        name=name,
        room=mutant.room,
        what=mutant.what,
        check=caught.check,
        seed=caught.seed,
        said=caught.said,
    )


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", MUTANTS)
def test_every_planted_bug_is_caught(nursery: Nursery, tmp_path: Path, name: str) -> None:
    catch(name, tmp_path, nursery)


def test_there_are_enough_of_every_kind() -> None:
    rooms = {mutant.room for mutant in MUTANTS.values()}
    assert len(MUTANTS) >= 20
    assert {"commit", "recovery", "merge", "validation"} <= rooms
