"""Play universes by hand:

python -m tests.lineage 17          one seed
python -m tests.lineage 100 200     a range
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from uuid import uuid4

from tests.lineage.player import play, template
from tests.lineage.programs import Op, program
from tests.support.shrinker import play_or_shrink, seed_range


def try_seed(seed: int, folder: Path, empty: Path, *, tries: int = 80) -> Counter[str]:
    """Play one universe; a failure is reported with its seed and a small program."""

    def attempt(ops: list[Op]) -> Counter[str]:
        return play(ops, folder / uuid4().hex, empty)

    return play_or_shrink(f"history {seed}", program(seed), attempt, _signature, tries)


def _signature(error: Exception) -> str:
    """What a failure is about, without names and values."""
    text = f"{type(error).__name__} {error}"
    return re.sub(r"[0-9A-Z]{26}|\{.*|b?\d+", "", text)[:60]


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir=arguments[2] if len(arguments) > 2 else None) as place:
        folder = Path(place)
        empty = template(folder)
        total: Counter[str] = Counter()
        for seed in seed_range(arguments):
            total += try_seed(seed, folder, empty)
        for outcome, count in sorted(total.items()):
            print(f"{count:6} {outcome}")


if __name__ == "__main__":
    main(sys.argv[1:])
