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

from tests.lineage.playing import play, template
from tests.lineage.programs import Op, program
from tests.universe.shrinking import shrink


def try_seed(seed: int, folder: Path, empty: Path, *, tries: int = 80) -> Counter[str]:
    """Play one universe; a failure is reported with its seed and a small program."""

    def attempt(ops: list[Op]) -> Counter[str]:
        return play(ops, folder / uuid4().hex, empty)

    def fails(ops: list[Op]) -> bool:
        try:
            attempt(ops)
        except Exception as again:  # noqa: BLE001  # it may be what we look for
            return _signature(again) == wanted
        return False

    ops = program(seed)
    try:
        return attempt(ops)
    except Exception as error:
        wanted = _signature(error)
        small = shrink(ops, fails, tries)
        listed = "\n".join(f"    {op}," for op in small)
        raise AssertionError(
            f"history {seed} failed: {type(error).__name__}: {error}\n"
            f"a program of {len(small)} operations that fails:\n{listed}"
        ) from error


def _signature(error: Exception) -> str:
    """What a failure is about, without names and values."""
    text = f"{type(error).__name__} {error}"
    return re.sub(r"[0-9A-Z]{26}|\{.*|b?\d+", "", text)[:60]


def main(arguments: list[str]) -> None:
    first = int(arguments[0])
    last = int(arguments[1]) if len(arguments) > 1 else first + 1
    with tempfile.TemporaryDirectory(dir=arguments[2] if len(arguments) > 2 else None) as place:
        folder = Path(place)
        empty = template(folder)
        total: Counter[str] = Counter()
        for seed in range(first, last):
            total += try_seed(seed, folder, empty)
        for outcome, count in sorted(total.items()):
            print(f"{count:6} {outcome}")


if __name__ == "__main__":
    main(sys.argv[1:])
