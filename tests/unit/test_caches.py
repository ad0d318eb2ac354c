"""Caches: limits of one, the budget of all, containers, and forks."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph import caches, headroom
from omnigraph.caches import Cache, MemoryBudget

SOURCE = Path(omnigraph.__file__).parent


def test_20_07_caches_share_one_budget() -> None:
    budget = MemoryBudget(100)
    first: Cache[str, str] = Cache(budget=budget)
    second: Cache[str, str] = Cache(budget=budget)
    first.put("a", "a", 40)
    second.put("b", "b", 40)
    assert first.peek("a") == "a"  # now the entry of the other cache is the oldest
    first.put("c", "c", 40)
    assert (len(first), len(second)) == (2, 0)
    assert budget.held_bytes == 80
    second.put("huge", "x", 101)
    assert second.peek("huge") is None
    assert budget.held_bytes == 80


def test_20_07_a_cache_has_limits_of_its_own() -> None:
    few: Cache[int, int] = Cache(entries=2, nominal_bytes=10, budget=MemoryBudget(1000))
    for key in (1, 2, 3):
        few.put(key, key)
    assert few.items() == [(2, 2), (3, 3)]
    assert few.held_bytes == 20
    few.drop(2)
    assert (few.held_bytes, few.peek(2)) == (10, None)
    few.put(3, 4)
    assert few.items() == [(3, 4)]
    assert few.held_bytes == 10


def test_20_07_a_cache_that_is_gone_gives_its_bytes_back() -> None:
    budget = MemoryBudget(100)
    gone: Cache[int, int] = Cache(budget=budget)
    gone.put(1, 1, 60)
    del gone
    assert budget.held_bytes == 0


def test_20_07_values_may_use_the_cache_when_they_are_destroyed() -> None:
    cache: Cache[int, object] = Cache(entries=1, budget=MemoryBudget(1000))

    class Nested:
        def __del__(self) -> None:
            cache.peek(1)

    for key in range(3):
        cache.put(key, Nested(), 1)
    cache.drop(2)
    cache.put(3, Nested(), 1)
    done = threading.Thread(target=cache.clear, daemon=True)
    done.start()
    done.join(20)
    assert not done.is_alive()


@pytest.mark.parametrize("version", [0, 1])
def test_20_07_the_budget_honours_the_container(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "limit"
    groups = [(tmp_path / "none", tmp_path / "none")] * 2
    groups[version] = (limit, tmp_path / "none")
    monkeypatch.setattr(headroom, "_CGROUPS", tuple(groups))
    limit.write_text("max\n")
    machine = headroom.total_bytes()
    limit.write_text(f"{400 << 20}\n")
    assert headroom.total_bytes() == 400 << 20 < machine
    assert caches.process_budget() == 100 << 20


FORK = """
import os, sys
from omnigraph.caches import Cache, MemoryBudget
budget = MemoryBudget(100)
cache = Cache(budget=budget)
cache.put(1, "kept", 10)
if sys.argv[1] == "held":
    budget.lock.acquire()  # as another thread may, at the instant of the fork
child = os.fork()
if child == 0:
    found = cache.peek(1)
    cache.put(2, "new", 10)
    right = (None, 10) if sys.argv[1] == "held" else ("kept", 20)
    os._exit(0 if (found, budget.held_bytes) == right and cache.peek(2) == "new" else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.parametrize("lock", ["free", "held"])
def test_20_07_caches_work_after_a_fork(lock: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, lock]
    subprocess.run(command, check=True, timeout=60)


def test_20_07_no_other_cache_is_written_by_hand() -> None:
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name | ast.Attribute | ast.alias)
        and "OrderedDict" in (getattr(node, "id", ""), getattr(node, "name", ""))
    ]
    assert set(found) == {"caches.py"}
