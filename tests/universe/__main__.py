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
from tests.universe.model import Op
from tests.universe.playing import play
from tests.universe.programs import LENGTH, program
from tests.universe.shrinking import shrink


def try_seed(
    seed: int, folder: Path, nursery: Nursery, *, length: int = LENGTH, tries: int = 60
) -> Counter[str]:
    """Play one universe; a failure is told with its seed and a small program. A shorter one is the
    beginning of a longer one, so what fails there fails again when the whole is played."""

    def attempt(ops: list[Op]) -> Counter[str]:
        return play(ops, folder / uuid4().hex, nursery)

    def fails(ops: list[Op]) -> bool:
        try:
            attempt(ops)
        except Exception as again:  # noqa: BLE001  # it may be what we look for
            return _signature(again) == wanted
        return False

    ops = program(seed, length)
    try:
        return attempt(ops)
    except Exception as error:
        wanted = _signature(error)
        small = shrink(ops, fails, tries)
        told = "\n".join(f"    {op}" for op in small)
        raise AssertionError(
            f"universe {seed} failed: {type(error).__name__}: {error}\n"
            f"a program of {len(small)} operations that fails:\n{told}"
        ) from error


def _signature(error: Exception) -> str:
    """What a failure is about, without the ids that are new each time."""
    text = re.sub(r"[0-9A-Za-z]{26}", "", f"{type(error).__name__} {error}")
    return re.sub(r"'(by|back|rows|key|value|nth)': [^,}]*", "", text)[:160]


def main(arguments: list[str]) -> None:
    first = int(arguments[0])
    last = int(arguments[1]) if len(arguments) > 1 else first + 1
    with tempfile.TemporaryDirectory() as folder, open_nursery() as nursery:
        for seed in range(first, last):
            outcomes = try_seed(seed, Path(folder), nursery)
            print(f"universe {seed}: {sum(outcomes.values())} operations, as they should be")


if __name__ == "__main__":
    main(sys.argv[1:])
