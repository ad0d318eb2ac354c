"""A writer that commits in a loop and is killed after a while, wherever it is then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CODE = "import sys; from tests.crash.scenes import loop; loop(sys.argv[1], sys.argv[2], 1000)"


def kill_somewhere(uri: str, said: Path, seed: int) -> int:
    """Start the writer, kill it some milliseconds after its first commit; returns the last number
    that it acknowledged, -1 if none."""
    writer = subprocess.Popen([sys.executable, "-c", _CODE, uri, str(said)], cwd=ROOT)
    deadline = time.monotonic() + 60
    while not (said.exists() and said.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(random.Random(seed).uniform(0, 0.06))
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    lines = said.read_text().split() if said.exists() else []
    return int(lines[-1]) if lines else -1
