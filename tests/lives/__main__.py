"""Play lives by hand:

python -m tests.lives 17          one seed
python -m tests.lives 100 200     a range
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from uuid import uuid4

from tests.lives.player import DifferenceError, Player
from tests.lives.story import Op, Story, story
from tests.support.shrinker import shrink


def play(told: Story, ops: list[Op], folder: Path) -> Player:
    """Play some operations of a story to their end; raises DifferenceError."""
    place = folder / uuid4().hex
    place.mkdir(parents=True)
    player = Player(told.blueprint, place)
    try:
        for op in ops:
            player.play(op)
        player.finish()
    except DifferenceError as error:
        error.script = player.script  # type: ignore[attr-defined]
        raise
    return player


def live(seed: int, folder: Path, tries: int = 60) -> Counter[str]:
    """Play one life; a failure has its seed, the shortest program that fails, and a script."""
    told = story(seed)
    try:
        return play(told, told.ops, folder).outcomes
    except DifferenceError as error:
        wanted, last = error.kind, error

    def fails(ops: list[Op]) -> bool:
        nonlocal last
        try:
            play(told, ops, folder)
        except DifferenceError as error:
            if error.kind == wanted:
                last = error
                return True
        return False

    small = shrink(told.ops, fails, tries)
    if not fails(small):
        small = told.ops
    script = "\n".join(last.script)  # type: ignore[attr-defined]
    raise AssertionError(f"life {seed}: {last}\n\n{len(small)} operations that fail:\n{script}")


def main(arguments: list[str]) -> int:
    first = int(arguments[0])
    last = int(arguments[1]) if len(arguments) > 1 else first + 1
    failed = 0
    total: Counter[str] = Counter()
    for seed in range(first, last):
        with tempfile.TemporaryDirectory() as folder:
            try:
                total += live(seed, Path(folder))
            except AssertionError as error:
                failed += 1
                print(f"{error}\n{'=' * 80}", flush=True)
    for name, count in sorted(total.items()):
        print(f"{count:6} {name}")
    print(f"{last - first} lives, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
