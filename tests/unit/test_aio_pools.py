"""Thread pools: one each for reads, writes and long work; made on first use and after a fork."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import omnigraph as og
from omnigraph import aio
from omnigraph.history.refs import MAIN
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot

SCHEMA = "node Person { name: String @key }\n"
ADD = "query add($n: String) { insert Person { name: $n } }"
COUNT = "query q() { match { $p: Person } return { count($p) as n } }"
WRITERS = 16


def test_20_07_blocked_writers_do_not_stop_reads(tmp_path: Path) -> None:
    graph = og.init(str(tmp_path / "g"), SCHEMA)

    async def ask() -> tuple[list[int], int, int]:
        opened = aio.AsyncGraph(graph)
        with writer_lock(GraphRoot.at(graph.uri).objects, MAIN, owner="act-other"):
            writers = [
                asyncio.create_task(opened.mutate(ADD, params={"n": f"p{i}"}))
                for i in range(WRITERS)
            ]
            while sum(t.name.startswith("omnigraph-aio-write") for t in threading.enumerate()) < 16:
                await asyncio.sleep(0.01)
            seen = [(await opened.query(COUNT)).rows()[0]["n"] for _ in range(5)]
            head = [commit async for commit in opened.commits()]
            waiting = sum(not writer.done() for writer in writers)
        await asyncio.gather(*writers)
        assert len(head) == 1
        return seen, waiting, (await opened.query(COUNT)).rows()[0]["n"]

    seen, waiting, after = asyncio.run(ask())
    assert seen == [0] * 5
    assert waiting == WRITERS
    assert after == WRITERS


def test_20_07_pools_are_made_on_first_use() -> None:
    code = """
import threading
import omnigraph.aio, omnigraph.engines.embedded.bounds as bounds
pools = [bounds._workers, omnigraph.aio._reads, omnigraph.aio._writes, omnigraph.aio._long]
assert all(pool._executor is None for pool in pools)
assert threading.active_count() == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


FORK = """
import os
from omnigraph.threadpools import ThreadPool
pool = ThreadPool("omnigraph-test", threads=2)
assert pool.submit(os.getpid).result() == os.getpid()
pool._guard.acquire()  # as another thread may, at the instant of the fork
child = os.fork()
if child == 0:
    try:
        os._exit(0 if pool.submit(os.getpid).result(timeout=20) == os.getpid() else 1)
    except BaseException:
        os._exit(2)
pool._guard.release()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert pool.submit(os.getpid).result() == os.getpid()
"""


def test_20_07_a_pool_works_after_a_fork() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, timeout=60)
