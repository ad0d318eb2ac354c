"""`python -m tests.soak --minutes 60 [--folder DIR] [--seed N]`: exit 1 if anything is wrong."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.run import show, soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, help="where the graph is made; kept afterwards")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-soak-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = soak(folder, options.minutes * 60, options.seed)
    print("\n".join(show(report)))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
