"""Planted bugs: each must be caught by the harness within fifty seeds.

`make test` hunts every fourth of them, `make crash` all.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.sizes import FULL, note
from tests.mutants.catalogue import MUTANTS
from tests.mutants.hunting import MOST_SEEDS, hunt

pytestmark = pytest.mark.crash

HUNTED = list(MUTANTS) if FULL else list(MUTANTS)[::4]


def catch(name: str, folder: Path) -> None:
    caught = hunt(name, folder)
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
@pytest.mark.parametrize("name", HUNTED)
def test_every_planted_bug_is_caught(tmp_path: Path, name: str) -> None:
    catch(name, tmp_path)


def test_there_are_enough_of_every_kind() -> None:
    rooms = {mutant.room for mutant in MUTANTS.values()}
    assert len(MUTANTS) >= 20
    assert {"commit", "recovery", "merge", "validation"} <= rooms
