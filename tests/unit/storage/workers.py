"""What the storage tests run in processes of their own: `python -m tests.unit.storage.workers`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from omnigraph.errors import StoragePreconditionError
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.objects import open_store

ROOT = Path(__file__).resolve().parents[3]


def start(*arguments: object, **options: object) -> subprocess.Popen[str]:
    """Start a worker; its output is a pipe."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.unit.storage.workers", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def finish(worker: subprocess.Popen[str]) -> str:
    """Wait for a worker and return what it printed; its failure fails the test."""
    output, _ = worker.communicate(timeout=120)
    assert worker.returncode == 0, f"worker ended with {worker.returncode}: {output}"
    return output.strip()


def create(uri: str, path: str, content: str) -> None:
    """Try to create an object; say who won."""
    try:
        open_store(uri).create(path, content.encode())
    except StoragePreconditionError:
        print("lost")
    else:
        print("won")


def line_up(uri: str, racers: int) -> None:
    """Wait until so many racers stand at the line, and let them go."""
    store = open_store(uri)
    deadline = time.monotonic() + 60
    while len(list(store.list("ready"))) < racers:
        assert time.monotonic() < deadline, "not all racers came"
        time.sleep(0.005)
    store.put("go", b"")


def increment(uri: str, path: str, times: str) -> None:
    """Add to a number by compare-and-set; say how often that was lost. Begins with all others, or
    a fast one would be through before the next is there."""
    store = open_store(uri)
    store.put(f"ready/{os.getpid()}", b"")
    while store.get_or_none("go") is None:
        time.sleep(0.001)
    lost = 0
    for _ in range(int(times)):
        while True:
            seen = store.get(path)
            try:
                store.replace(path, str(int(seen.data) + 1).encode(), seen.etag)
            except StoragePreconditionError:
                lost += 1
            else:
                break
    print(lost)


def locked_increment(uri: str, path: str, times: str) -> None:
    """Add to a number by a plain read and write under the writer lock."""
    store = open_store(uri)
    for _ in range(int(times)):
        with writer_lock(store, "main", owner="worker") as lock:
            value = int(store.get(path).data)
            lock.check()
            store.put(path, str(value + 1).encode())


def hold(uri: str, name: str, operation: str = "hold") -> None:
    """Take the lock, say so, and never give it back."""
    with writer_lock(open_store(uri), name, owner="holder", operation=operation) as lock:
        print(lock.token, flush=True)
        time.sleep(600)


def forked_holder(uri: str, name: str) -> None:
    """Take the lock, fork a child that outlives this process, and die without release."""
    with writer_lock(open_store(uri), name, owner="parent"):
        child = os.fork()
        if child == 0:
            print(os.getpid(), flush=True)
            time.sleep(600)
        time.sleep(0.2)
        os._exit(0)


def overwrite(uri: str, path: str, seconds: str) -> None:
    """Write whole blocks of one letter until the time is over."""
    store = open_store(uri)
    deadline = time.monotonic() + float(seconds)
    turn = 0
    while time.monotonic() < deadline:
        turn += 1
        store.put(path, bytes([65 + turn % 26]) * (1000 + turn % 7 * 50_000))
    print(turn)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
