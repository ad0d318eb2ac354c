"""What a tree of processes uses: CPU seconds, and the most memory each kind of it held.

Reads /proc, so it is for Linux.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_EVERY_S = 0.1


def tree(root: int) -> list[int]:
    """A process and all that came from it and still live."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """CPU time of a tree, with that of children that have ended and were waited for; 0 where there
    is no /proc."""
    if not Path("/proc").is_dir():
        return 0.0
    found = [_stat(pid) for pid in tree(root)]
    return sum(sum(map(int, fields[11:15])) for fields in found if fields) / _TICKS


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


class PeakMemory:
    """The most memory (private and shared, in MB) of single processes, by what they are."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peaks: dict[str, float] = {}

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            for pid in tree(self._root):
                kind = self._kind(pid)
                size = _resident_mb(pid)
                self.peaks[kind] = max(size, self.peaks.get(kind, 0.0))

    def _kind(self, pid: int) -> str:
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return "gone"
        if pid == self._root:
            return "driver (Python)"
        if "CoarseGrainedExecutorBackend" in line:
            return "executor (Java)"
        if "java" in line.split("\0")[0]:
            return "driver (Java)"
        return "worker (Python)"


def _resident_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    line = next((line for line in text.splitlines() if line.startswith("VmRSS")), "VmRSS: 0 kB")
    return int(line.split()[1]) / 1024
