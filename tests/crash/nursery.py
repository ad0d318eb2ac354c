"""A nursery: a process that has imported everything, used nothing, and forks one child per case.

    python -m tests.crash.nursery          reads lists of requests from stdin, one per line

Importing Lance takes a second and a fork a few milliseconds, so a child per kill is affordable.
Lance must not have been used before a fork, hence a process of its own: it imports and waits.
A child that does not end within four minutes is ended by SIGALRM, which the answer then names.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import itertools
import json
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 240


@dataclass(frozen=True)
class Ending:
    """How a child ended: by a signal, or with an answer, or with a traceback."""

    signal: int
    answer: Any
    error: str

    @property
    def killed(self) -> bool:
        assert self.signal in (0, signal.SIGKILL), f"ended by signal {self.signal}"
        return self.signal == signal.SIGKILL

    def result(self) -> Any:
        assert not self.signal, f"ended by signal {self.signal}"
        assert not self.error, self.error
        return self.answer


Call = dict[str, Any]


def call(what: str, *arguments: Any, faults: str = "") -> Call:
    return {"what": what, "arguments": arguments, "faults": faults}


class Nursery:
    """The parent's end of a nursery."""

    def __init__(self, environ: dict[str, str] | None = None) -> None:
        self._mutant = ""
        self._numbers = itertools.count()
        self._guard = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMNIGRAPH_FAULTS": "", **(environ or {})},
        )

    def planted(self, mutant: str) -> Nursery:
        """The same nursery, in whose children this planted bug is switched on."""
        other = copy.copy(self)
        other._mutant = mutant
        return other

    def run(self, what: str, *arguments: Any, faults: str = "") -> Ending:
        """Let a child call `tests.crash.calls.<what>(*arguments)` with these faults armed."""
        return self.run_all([call(what, *arguments, faults=faults)])[0]

    def run_all(self, calls: Sequence[Call]) -> list[Ending]:
        """The same for several children side by side."""
        return [Ending(**said) for said in self._ask([self._marked(each) for each in calls])]

    def start(self, what: str, *arguments: Any, faults: str = "") -> int:
        """Let a child begin, and do not wait for it; returns its process id."""
        return int(self._ask({"start": self._marked(call(what, *arguments, faults=faults))}))

    def bury(self, child: int) -> Ending:
        """Wait for a child that was started."""
        return Ending(**self._ask({"bury": child}))

    def _marked(self, each: Call) -> Call:
        return {**each, "mutant": self._mutant}

    def _ask(self, request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._guard:
            number = next(self._numbers)
            self._process.stdin.write(json.dumps([number, request]) + "\n")
            self._process.stdin.flush()
            while line := self._process.stdout.readline():
                answered, said = json.loads(line)
                if answered == number:  # else the question of a test that was given up
                    return said
        raise AssertionError("the nursery died")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=LIMIT_S)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextlib.contextmanager
def open_nursery(**environ: str) -> Iterator[Nursery]:
    nursery = Nursery(environ)
    try:
        yield nursery
    finally:
        nursery.close()


def import_everything() -> None:
    """What a child would import for itself, again and again, after every fork."""
    import omnigraph

    for module in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."):
        if not module.name.startswith(("omnigraph.spark", "omnigraph.cli")):
            importlib.import_module(module.name)


def serve() -> None:
    from tests.crash import calls  # imports Lance, uses nothing
    from tests.mutants import catalogue  # noqa: F401  # children switch them on

    import_everything()
    # Lance warns of any fork; one that comes before its first use is harmless.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    started: dict[int, int] = {}
    for line in sys.stdin:
        number, request = json.loads(line)
        print(json.dumps([number, answer(calls, request, started)]), flush=True)


def answer(calls: Any, request: Any, started: dict[int, int]) -> Any:
    """Do what was asked: run children to their end, start one, or see one out."""
    if isinstance(request, list):
        children = [bear(calls, each) for each in request]
        return [bury(*child) for child in children]
    if "start" in request:
        child, reader = bear(calls, request["start"])
        started[child] = reader
        return child
    return bury(request["bury"], started.pop(request["bury"]))


def bear(calls: Any, request: Call) -> tuple[int, int]:
    """Fork a child; returns its id and the pipe that it answers through."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        live(calls, request, writer)
    os.close(writer)
    return child, reader


def bury(child: int, reader: int) -> dict[str, Any]:
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    said: dict[str, Any] = json.loads(text) if text else {"answer": None, "error": ""}
    return {"signal": ended_by, **said}


def live(calls: Any, request: Call, writer: int) -> None:
    """What a child does; never returns."""
    signal.alarm(LIMIT_S)
    said: dict[str, Any] = {"answer": None, "error": ""}
    try:
        from tests.mutants.catalogue import applied

        with applied(request["mutant"]), calls.armed(request["faults"]):
            said["answer"] = getattr(calls, request["what"])(*request["arguments"])
    except BaseException:  # noqa: BLE001  # whatever it was, the test must see it
        said["error"] = traceback.format_exc()
    os.write(writer, json.dumps(said).encode())
    os._exit(0)


if __name__ == "__main__":
    serve()
