"""How much memory this process can still take, and refusing work that needs more.

    require(size_bytes, "query")     raises LimitExceededError if that and a reserve are not free

Linux grants memory that it does not have and ends a process that uses it; native libraries end the
process themselves when an allocation fails. So work that takes much memory asks first.

Guarantees: the smallest of what the machine, the container (cgroup) and the limits of the process
leave; reads a few small files, and nothing more than once within `_FRESH_S`. Memory is not
reserved: two operations may get the same free memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from omnigraph.errors import LimitExceededError

# Threads, stacks and buffers of native code, which ends the process if it does not get them.
RESERVE_BYTES = 48 << 20
_FRESH_S = 0.02
_UNLIMITED = 1 << 62
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# The limit and the use of a container: version 2 of cgroups, and version 1.
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)
_CGROUP_STAT = ("memory.stat", ("inactive_file", "total_inactive_file"))

_seen: tuple[float, int] = (0.0, _UNLIMITED)


def require(size_bytes: int, what: str) -> None:
    """Refuse work for which there is not enough memory."""
    free = _recently_free()
    if size_bytes + RESERVE_BYTES > free:
        raise LimitExceededError(
            f"The {what} needs {_mib(size_bytes)} more memory, and {_mib(free)} are free, of which "
            f"{_mib(RESERVE_BYTES)} are kept in reserve.",
            resource="memory",
            limit=float(max(0, free - RESERVE_BYTES)),
            actual=float(size_bytes),
            hint="Request less data at once, or give the process more memory.",
        )


def free_bytes() -> int:
    """What this process can still take, as far as that is known."""
    return min([_UNLIMITED, *_machine(), *_container(), *_process()])


def total_bytes() -> int:
    """The memory that this process may use at all: the machine's, or its container's."""
    limits = [os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES]
    for limit, _ in _CGROUPS:
        try:
            limits.append(int(limit.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)


def _recently_free() -> int:
    global _seen  # one measurement for all threads; a race measures twice
    now = time.monotonic()
    measured, free = _seen
    if now - measured > _FRESH_S:
        free = free_bytes()
        _seen = (now, free)
    return free


def _machine() -> Iterator[int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
        yield (found["MemAvailable"] + found.get("SwapFree", 0)) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return


def _container() -> Iterator[int]:
    for limit, used in _CGROUPS:
        try:
            yield int(limit.read_text()) - int(used.read_text()) + _reclaimable(limit.parent)
        except (OSError, ValueError):  # no such file, or "max"
            continue


def _reclaimable(folder: Path) -> int:
    """Cached files count as used, and are given back when memory is needed."""
    name, keys = _CGROUP_STAT
    try:
        pairs = dict(line.split() for line in (folder / name).read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return max(int(pairs.get(key, 0)) for key in keys)


def _process() -> Iterator[int]:
    try:
        import resource
    except ImportError:  # not on this system
        return
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    if all(limit == resource.RLIM_INFINITY for limit in limits):
        return
    try:
        sizes = Path("/proc/self/statm").read_text().split()
    except OSError:
        return
    for limit, pages in zip(limits, (sizes[0], sizes[5]), strict=True):
        if limit != resource.RLIM_INFINITY:
            yield limit - int(pages) * _PAGE_BYTES


def _mib(size_bytes: int) -> str:
    return f"{max(0, size_bytes) / 2**20:.0f} MiB"
