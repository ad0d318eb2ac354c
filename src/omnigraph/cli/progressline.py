"""The progress line on standard error, for operations that take longer than a second.

    write  ━━━━━━━━━───────────  45 %  1,204,000 rows  312,000 rows/s  48.1 MB  0:12  0:15 to go

Guarantees: only on a terminal and without `--quiet`; nothing in the first second; never wider
than the terminal; gone before anything else is printed.
Deliberately absent: what the work is. It reports through `omnigraph.progress`.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.cli import interrupt
from omnigraph.progress import Progress, listening

_PATIENCE_S = 1.0
_EVERY_S = 0.1
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_BAR_WIDTH = 20

_shown: Line | None = None  # the one line of this process


class Line:
    """The line, redrawn by a thread of its own so that time passes on it."""

    def __init__(self, stage: str) -> None:
        self._began = self._stage_began = time.monotonic()
        self._newest = Progress(stage)
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._drawn = False
        self._paused = False
        self._turn = 0
        self._thread = threading.Thread(target=self._run, name="omnigraph-progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def hear(self, event: Progress) -> None:
        interrupt.check()
        with self._guard:
            if event.stage != self._newest.stage:
                self._stage_began = time.monotonic()
            self._newest = event

    def clear(self) -> None:
        """Take the line away; it comes back when something lasts another second."""
        with self._guard:
            self._erase()
            self._began = time.monotonic()

    def pause(self, paused: bool) -> None:
        self.clear()
        self._paused = paused

    def stop(self) -> None:
        self._over.set()
        with self._guard:
            self._erase()

    def _run(self) -> None:
        while not self._over.wait(_EVERY_S):
            with self._guard:
                if self._is_due():
                    self._draw()

    def _is_due(self) -> bool:
        if self._over.is_set() or self._paused:
            return False
        return time.monotonic() - self._began > _PATIENCE_S

    def _draw(self) -> None:
        self._turn += 1
        elapsed = time.monotonic() - self._stage_began
        mark = _SPINNER[self._turn % len(_SPINNER)]
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\033[K{mark} {describe(self._newest, elapsed)}"[: width + 4])
        sys.stderr.flush()
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._drawn = False


def describe(event: Progress, elapsed_s: float) -> str:
    """A moment in words: stage, share, rows, rate, bytes, time and time to go."""
    parts = [event.stage]
    share = min(event.done / event.total, 1.0) if event.total else None
    if share is not None:
        full = round(share * _BAR_WIDTH)
        parts.append(f"{'━' * full}{'─' * (_BAR_WIDTH - full)}  {share:4.0%}")
    if event.rows:
        rate = f"  {event.rows / elapsed_s:,.0f} rows/s" if elapsed_s > 0 else ""
        parts.append(f"{event.rows:,} rows{rate}")
    if event.bytes:
        parts.append(sized(event.bytes))
    parts.append(clock(elapsed_s))
    if share:
        parts.append(f"{clock(elapsed_s * (1 - share) / share)} to go")
    return "  ".join(parts)


def sized(size: int) -> str:
    """Bytes as a person reads them."""
    for unit, step in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 1000)):
        if size >= step:
            return f"{size / step:.1f} {unit}"
    return f"{size} B"


def clock(seconds: float) -> str:
    """A length of time as 0:07 or 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def shown(stage: str, *, quiet: bool) -> Iterator[None]:
    """Show the progress of what is done in the block, if there is anybody to see it. `stage` is
    what it is called until it reports something better."""
    global _shown
    if quiet or _shown is not None or not sys.stderr.isatty():
        with listening(lambda _: interrupt.check()):
            yield
        return
    _shown = line = Line(stage)
    line.start()
    try:
        with listening(line.hear):
            yield
    finally:
        _shown = None
        line.stop()


def clear() -> None:
    """Make room for other words."""
    if _shown is not None:
        _shown.clear()


@contextmanager
def paused() -> Iterator[None]:
    """Hide the progress line during a prompt."""
    line = _shown
    if line is not None:
        line.pause(True)
    try:
        yield
    finally:
        if line is not None:
            line.pause(False)


def hear(event: Progress) -> None:
    """Take a moment from work that reports in a way of its own."""
    if _shown is not None:
        _shown.hear(event)
