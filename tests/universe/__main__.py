"""Play universes by hand:

python -m tests.universe 17          one seed
python -m tests.universe 100 200     a range
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from uuid import uuid4

from tests.crash.nursery import Nursery, open_nursery
from tests.support.shrinker import play_or_shrink, seed_range
from tests.universe.model import Op
from tests.universe.player import play
from tests.universe.programs import LENGTH, program


def try_seed(
    seed: int, folder: Path, nursery: Nursery, *, length: int = LENGTH, tries: int = 60
) -> Counter[str]:
    """Play one universe; a failure is told with its seed and a small program. A shorter one is the
    beginning of a longer one, so what fails there fails again when the whole is played."""

    def attempt(ops: list[Op]) -> Counter[str]:
        return play(ops, folder / uuid4().hex, nursery)

    return play_or_shrink(f"universe {seed}", program(seed, length), attempt, _signature, tries)


def _signature(error: Exception) -> str:
    """What a failure is about, without the ids that are new each time."""
    text = re.sub(r"[0-9A-Za-z]{26}", "", f"{type(error).__name__} {error}")
    return re.sub(r"'(by|back|rows|key|value|nth)': [^,}]*", "", text)[:160]


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, open_nursery() as nursery:
        for seed in seed_range(arguments):
            outcomes = try_seed(seed, Path(folder), nursery)
            print(f"universe {seed}: {sum(outcomes.values())} operations, as they should be")


if __name__ == "__main__":
    main(sys.argv[1:])
