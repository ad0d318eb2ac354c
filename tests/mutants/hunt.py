"""Hunting a mutant: the checks of the harness, one seed after the other, until one notices.

A seed is a universe, a history, a lot of the model's histories, a cycle of kills, or the next
window of a sweep. What a check says is kept, so that a table can tell which check caught which
mutant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.crash import restores, texts
from tests.crash.crowds import CrowdLoop
from tests.crash.killloop import KillLoop
from tests.crash.listtrial import judge
from tests.crash.nursery import Nursery
from tests.crash.sweep import AFTER, Stage, sweep_once, sweep_twice
from tests.lineage import player as lineage
from tests.lineage import programs as histories
from tests.lives.__main__ import play as live_through
from tests.lives.story import story
from tests.mutants.catalogue import (
    CROWDS,
    DECAY,
    ISOLATION,
    KILLS,
    LINEAGE,
    LIVES,
    MUTANTS,
    PRESSURE,
    REFERENCES,
    RESTORES,
    SEARCHES,
    SWEEP,
    TEXTS,
    TWICE,
    UNIVERSE,
    VISIBILITY,
    Mutant,
    applied,
)
from tests.support import blobreferences
from tests.support.decay import Decay
from tests.support.memorypressure import Pressure
from tests.support.searchlives import Life
from tests.support.visiblegraphs import check_visibility
from tests.universe.player import play
from tests.universe.programs import program

MOST_SEEDS = 50
SEARCHED_STEPS = 14
DECAY_STEPS = 8
PRESSURE_STEPS = 12
# So many histories of the model are one seed.
HISTORIES = 20


@dataclass(frozen=True)
class Caught:
    """Which check noticed, at which seed, and what it said."""

    check: str
    seed: int
    said: str


Check = Callable[[int], None]


def hunt(name: str, folder: Path, healthy: Nursery, first: int = 1) -> Caught | None:
    """A seed at which the mutant's check fails, None if there is none. Universes and histories may
    be played in any order, beginning with `first`."""
    mutant, nursery = MUTANTS[name], healthy.planted(name)
    with _here(mutant, name):
        # A nursery that fails catches nothing.
        nursery.run("look", str(folder / "nowhere")).result()
        check: Check | None = None
        ordered = (UNIVERSE, LINEAGE, ISOLATION, SEARCHES, DECAY, LIVES, PRESSURE, VISIBILITY)
        for seed in _seeds(first if mutant.check in ordered else 1):
            try:
                check = check or _CHECKS[mutant.check](mutant, nursery, folder / uuid4().hex)
                check(seed)
            except StopIteration:
                return None
            except Exception as error:  # noqa: BLE001  # whatever it is, somebody noticed
                return Caught(mutant.check, seed, _first_words(error))
    return None


def _seeds(first: int) -> list[int]:
    return [first, *(seed for seed in range(1, MOST_SEEDS + 1) if seed != first)]


@contextmanager
def _here(mutant: Mutant, name: str) -> Iterator[None]:
    """In checks without children this process works, too; in the others it only looks."""
    in_children = (SWEEP, TWICE, ISOLATION, KILLS, CROWDS)
    with applied("" if mutant.check in in_children else name):
        yield


def _universe(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    return lambda seed: void(play(program(seed), folder / str(seed), nursery))


def _lineage(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    folder.mkdir(parents=True)
    empty = lineage.template(folder)

    def check(seed: int) -> None:
        for number in range(seed * HISTORIES, (seed + 1) * HISTORIES):
            lineage.play(histories.program(number), folder / str(number), empty)

    return check


def _sweep(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    stage = Stage(nursery, mutant.scene, folder)
    waiting = iter(stage.windows)
    return lambda seed: sweep_once(stage, next(waiting))


def _twice(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    stage = Stage(nursery, mutant.scene, folder)
    waiting = iter([w for w in stage.windows if w.when == AFTER])
    return lambda seed: void(sweep_twice(stage, next(waiting)))


def _isolation(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    def check(seed: int) -> None:
        _, found = judge(nursery, folder / str(seed), seed)
        assert found == [], found[0]

    return check


def _kills(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    loop = KillLoop(folder, nursery)
    return loop.cycle


def _crowds(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    loop = CrowdLoop(folder, nursery)
    return loop.cycle


def _restores(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    return lambda seed: restores.play(seed, folder / str(seed))


def _searches(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    return lambda seed: Life(seed, str(folder / str(seed))).play(SEARCHED_STEPS)


def _texts(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    return lambda seed: texts.play(seed, folder / str(seed))


def _decay(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    return lambda seed: Decay(seed, folder / str(seed)).play(DECAY_STEPS)


def _lives(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    def check(seed: int) -> None:
        told = story(seed)
        live_through(told, told.ops, folder / str(seed))

    return check


def _pressure(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    return lambda seed: Pressure(seed, folder / str(seed)).play(PRESSURE_STEPS)


def _visibility(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    return lambda seed: check_visibility(seed, folder)


def _references(mutant: Mutant, nursery: Nursery, folder: Path) -> Check:
    return lambda seed: blobreferences.play(seed, folder / str(seed))


_CHECKS: dict[str, Callable[[Mutant, Nursery, Path], Check]] = {
    UNIVERSE: _universe,
    LINEAGE: _lineage,
    SWEEP: _sweep,
    TWICE: _twice,
    ISOLATION: _isolation,
    KILLS: _kills,
    CROWDS: _crowds,
    RESTORES: _restores,
    SEARCHES: _searches,
    LIVES: _lives,
    TEXTS: _texts,
    DECAY: _decay,
    PRESSURE: _pressure,
    VISIBILITY: _visibility,
    REFERENCES: _references,
}


def void(value: object) -> None:
    """A check has nothing to say but its failure."""


def _first_words(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    return text if len(text) <= 120 else text[:117] + "..."
