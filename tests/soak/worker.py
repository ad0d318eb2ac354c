"""One process of a long run: several threads on one handle, until a time or a signal.

python -m tests.soak.worker <uri> <name> <seed> <seconds> <folder>
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.soak.activities import Thread

import omnigraph

THREADS = 3


def live(uri: str, name: str, seed: int, seconds: float, folder: Path) -> int:
    graph = omnigraph.open(uri, actor=name)
    end = time.monotonic() + seconds
    counts: Counter[str] = Counter()
    failures: list[str] = []

    def run(number: int) -> None:
        each = f"{name}.{number}"
        with (folder / f"{each}.log").open("w") as log:
            thread = Thread(graph, each, random.Random(f"{seed} {number}"), log)
            try:
                while time.monotonic() < end and not failures:
                    counts[thread.step()] += 1
            except BaseException:  # noqa: BLE001 - whatever it is, the run has failed
                failures.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = {"counts": counts, "failures": failures}
    (folder / f"{name}.json").write_text(json.dumps(said))
    return 1 if failures else 0


if __name__ == "__main__":
    uri, name, seed, seconds, folder = sys.argv[1:]
    sys.exit(live(uri, name, int(seed), float(seconds), Path(folder)))
