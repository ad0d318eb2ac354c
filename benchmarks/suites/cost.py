"""How many requests to an object store each operation takes, counted before an S3 server.

The server is the one that the tests use. Requests are exact numbers, not samples.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.countproxy import CountingProxy
from tests.support.doorgraph import ACTOR, branch, head, new_graph, write
from tests.support.s3 import BUCKET, S3Server

import omnigraph
from benchmarks.measure import OURS, Findings, Measure
from benchmarks.suites import Setting
from omnigraph.commit.branches import delete_branch
from omnigraph.operations.lifecycle import open_graph
from omnigraph.storage.root import GraphRoot

ONE = {"A": {"x": 1}}
THREE = {"A": {"x": 1}, "B": {"y": 1}, "Link": {"l": 1}}
KEY = 'query q() { match { $a: A $a.id = "x" } return { $a.n } }'
HOP = "query q() { match { $a: A $a link $b } return { count(*) as n } }"


def run(setting: Setting) -> Findings:
    folder = setting.folder / "cost"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        with _store(folder) as proxy:
            return Findings(list(_counts(proxy)))
    except (ImportError, FileNotFoundError) as reason:
        return Findings([], {"the S3 server": str(reason)})


@contextmanager
def _store(folder: Path) -> Iterator[CountingProxy]:
    before = dict(os.environ)
    server = S3Server(folder)
    server.start()
    proxy = CountingProxy(server.endpoint)
    os.environ.update(server.environ())
    os.environ["AWS_ENDPOINT_URL"] = proxy.endpoint
    try:
        yield proxy
    finally:
        proxy.close()
        server.stop()
        os.environ.clear()
        os.environ.update(before)


def _counts(proxy: CountingProxy) -> Iterator[Measure]:
    write(new_graph(f"s3://{BUCKET}/first"))  # the first lease of a process asks more
    root = new_graph(f"s3://{BUCKET}/requests")
    write(root, THREE)
    write(root, THREE)
    for name, operation in _operations(root).items():
        with proxy.counting() as counted:
            operation()
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(counted.items()))
        total = float(sum(counted.values()))
        yield Measure(name, "requests", {OURS: [total]}, note=kinds)


def _operations(root: GraphRoot) -> dict[str, Callable[[], object]]:
    graph = omnigraph.open(root.uri)
    return {
        "open": lambda: open_graph(root.uri, actor=ACTOR),
        "resolve the head, new process": lambda: head(GraphRoot.at(root.uri)),
        "resolve the head again": lambda: head(root),
        "query by key, first": lambda: graph.query(KEY).to_arrow(),
        "query by key, again": lambda: graph.query(KEY).to_arrow(),
        "query over an edge, first": lambda: graph.query(HOP).to_arrow(),
        "query over an edge, again": lambda: graph.query(HOP).to_arrow(),
        "commit without tables": lambda: write(root),
        "commit, one table": lambda: write(root, ONE),
        "commit, three tables": lambda: write(root, THREE),
        "create a branch": lambda: branch(root, "f"),
        "first commit on it, one table": lambda: write(root, ONE, branch="f"),
        "later commit on it, one table": lambda: write(root, ONE, branch="f"),
        "delete a branch": lambda: delete_branch(root, "f", ACTOR),
    }
