"""A pseudo-terminal with the real program in it."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from bisect import bisect_left
from pathlib import Path
from types import TracebackType

PROGRAM = str(Path(sys.executable).parent / "omnigraph")
CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"

# Ctrl-C becomes a signal only on a controlling terminal, which a process must take by itself.
_LAUNCH = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Terminal:
    """Runs the program with these arguments; `seen` is everything that it has written."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        env: dict[str, str] | None = None,
        program: str = PROGRAM,
    ) -> None:
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        base = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCH, program, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=base | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"} | (env or {}),
        )
        os.close(slave)
        self._master = master
        self._heard = 0  # how much of it was waited for
        self.seen = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def read_until(self, text: str, seconds: float = 60.0) -> str:
        """Wait until a text has been written; returns what came up to it since the last wait."""
        end = time.monotonic() + seconds
        while text not in _spoken(self.seen[self._heard :]):
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{text!r} did not come; seen: {self.seen[self._heard :]!r}")
        rest = self.seen[self._heard :]
        # The end of the text: more may have come in the same breath.
        size = bisect_left(range(len(rest)), True, key=lambda n: text in _spoken(rest[:n]))
        self._heard += size
        return rest[:size]

    def read_to_end(self, seconds: float = 60.0) -> str:
        """Wait until the program has ended; returns what came since the last wait."""
        end = time.monotonic() + seconds
        while self._read(end - time.monotonic()):
            pass
        rest, self._heard = self.seen[self._heard :], len(self.seen)
        return rest

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def exit_code(self) -> int:
        self.read_to_end()
        return self._process.wait()

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(seconds, 0))
        if not ready:
            return False
        try:
            found = os.read(self._master, 65536)
        except OSError:  # the program has closed its end
            return False
        self.seen += found.decode("utf-8", "replace")
        return bool(found)


def _spoken(text: str) -> str:
    """Text without colours and movements."""
    return _CONTROL.sub("", text)


def plain(text: str) -> str:
    """Text without colours and movements, its lines as a terminal shows them."""
    lines = _spoken(text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rsplit("\r", 1)[-1] for line in lines)
