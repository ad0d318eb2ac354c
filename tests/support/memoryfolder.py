"""Where tests keep their files: in memory, on a machine that has some to spare.

The tests make and remove hundreds of thousands of small files, most of them synced, and on a disk
they wait for that longer than for anything else. A killed process leaves the same behind in both:
what it had handed to the kernel. PYTEST_DEBUG_TEMPROOT=/tmp (or --basetemp) puts them on a disk.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

VARIABLE = "PYTEST_DEBUG_TEMPROOT"
_SHARED = Path("/dev/shm")
_ROOM_BYTES = 4 << 30
_MEMORY_BYTES = 8 << 30


def choose_folder() -> None:
    """Tell pytest where to make its folders, unless somebody has."""
    if VARIABLE not in os.environ and _roomy():
        os.environ[VARIABLE] = str(_SHARED)


def _roomy() -> bool:
    try:
        free = shutil.disk_usage(_SHARED).free
        lines = Path("/proc/meminfo").read_text().splitlines()
        memory = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
        available = int(memory["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return False
    return os.access(_SHARED, os.W_OK) and free >= _ROOM_BYTES and available >= _MEMORY_BYTES
