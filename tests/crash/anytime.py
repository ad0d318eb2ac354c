"""A writer that commits in a loop and is killed after a while, wherever it is then."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from tests.crash.nursery import Nursery


def kill_somewhere(nursery: Nursery, uri: str, said: Path, seed: int) -> int:
    """Start the writer, kill it some milliseconds after its first commit; returns the last number
    that it acknowledged, -1 if none."""
    writer = nursery.start("loop", uri, str(said), 1000)
    deadline = time.monotonic() + 60
    while not (said.exists() and said.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(random.Random(seed).uniform(0, 0.06))
    os.kill(writer, signal.SIGKILL)
    assert nursery.bury(writer).killed
    lines = said.read_text().split() if said.exists() else []
    return int(lines[-1]) if lines else -1
