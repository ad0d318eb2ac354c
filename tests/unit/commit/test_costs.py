"""What operations cost, counted: each table is opened once, and age costs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.support.countproxy import CountingProxy
from tests.support.doorgraph import (
    ACTOR,
    age,
    branch,
    commit,
    head,
    new_graph,
    propose,
    rows,
    write,
)
from tests.support.s3 import S3Server

import omnigraph
from omnigraph.commit.branches import delete_branch
from omnigraph.history.branchlist import describe_branches
from omnigraph.history.log import BranchLog, filtered, find_by_prefix, walk
from omnigraph.history.manifestrows import TAIL_COMMITS
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.commit import TableUnchanged
from omnigraph.model.principal import Principal
from omnigraph.operations.context import Context
from omnigraph.operations.lifecycle import open_graph
from omnigraph.operations.requests import Diff, Merge, PreviewMerge
from omnigraph.operations.verbs import run
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import forget_tables

TABLES = {"A": {"x": 1}, "B": {"y": 1}, "Link": {"l": 1}}


@contextmanager
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each dataset is opened in a block."""
    found: Counter[str] = Counter()
    original = lance.dataset

    def counting(uri: Any, *args: Any, **kwargs: Any) -> Any:
        found[str(uri).rsplit("/g/", 1)[-1]] += 1
        return original(uri, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(lance, "dataset", counting)
        yield found


# ledger: C12
def test_a_write_opens_each_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = new_graph(str(tmp_path / "g"))
    write(root, TABLES)
    paths = {version.path for version in head(root).tables.values()}
    rows(root)  # the first reader of a branch opens its manifest once, to see that it is the same
    forget_tables()
    with opened(monkeypatch) as found:
        base = head(root)
        unchanged = tuple(TableUnchanged(v.table_id, v.logical) for v in base.tables.values())
        commit(root, propose(root, TABLES, base=base, requires=unchanged))
    assert found == dict.fromkeys(paths, 1)


# ledger: C12
def test_a_write_opens_each_table_once_on_a_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = new_graph(str(tmp_path / "g"))
    write(root, TABLES)
    branch(root, "f")
    write(root, TABLES, branch="f")
    paths = {f"{v.path}/tree/{v.fork}" for v in head(root, "f").tables.values()}
    rows(root, "f")
    forget_tables()
    with opened(monkeypatch) as found:
        write(root, TABLES, branch="f")
    assert found == dict.fromkeys(paths, 1)


# ledger: C12
def test_a_write_asks_for_the_schema_once(tmp_path: Path) -> None:
    new_graph(str(tmp_path / "g"))
    root = GraphRoot.at(str(tmp_path / "g"))
    reads: list[str] = []
    original = root.objects.get

    def counting(path: str) -> Any:
        reads.append(path.split("/")[0])
        return original(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(root.objects, "get", counting)
        write(root, TABLES)
        write(root, TABLES)
    assert Counter(reads)["__schema"] == 1


SCHEMA = "node A { name: String @key n: I64? }\nnode B { name: String @key }\nedge Link: A -> B\n"


# ledger: C12
def test_a_keyed_insert_opens_each_table_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA, actor=ACTOR)
    graph.ingest([{"name": "x", "n": 1}], type="A")
    graph.ingest([{"name": "y"}], type="B")
    graph.ingest([{"from": "x", "to": "y"}], type="Link")
    paths = [version.path for version in graph.snapshot().tables.values()]
    forget_tables()
    with opened(monkeypatch) as found:
        graph.mutate('query q() { insert A { name: "z" n: 2 } }')
    assert all(found[path] <= 1 for path in paths), found
    forget_tables()
    with opened(monkeypatch) as found:
        graph.ingest([{"from": "z", "to": "y"}], type="Link")
    assert all(found[path] <= 1 for path in paths), found


# Flat in history. The same operations on a young graph, an old one and an older one, at the same
# place between two seals, through a proxy that counts requests.

YOUNG, OLD, OLDER = 10, 10 + 3 * TAIL_COMMITS, 10 + 19 * TAIL_COMMITS
FORKS = {YOUNG: 1, OLD: 2, OLDER: 5}


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[CountingProxy]:
    proxy = CountingProxy(s3_server.endpoint)
    yield proxy
    proxy.close()


@pytest.fixture(scope="module")
def aged(
    s3_server: S3Server, proxy: CountingProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, str]]:
    """Three graphs that differ in nothing but the number of their commits, and of the branches
    that once wrote to a table of theirs."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environ().items():
            patch.setenv(name, value)
        place = f"s3://graphs/{tmp_path_factory.mktemp('aged').name}"
        uris = {count: f"{place}/{count}" for count in (YOUNG, OLD, OLDER)}
        for count, uri in uris.items():
            root = new_graph(uri)
            write(root, TABLES, idempotency_key="first")
            branch(root, "early")
            for number in range(FORKS[count]):
                branch(root, f"other-{number}")
                write(root, {"A": {"x": 9}}, branch=f"other-{number}")
                delete_branch(root, f"other-{number}", ACTOR)
            age(root, count - 2)
            assert BranchLog(root, "main").state.head.sequence == count
        patch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        # The first lease of a process also asks whether the store keeps its promises.
        write(new_graph(f"{place}/first"))
        forget_tables()
        yield uris


def old_id(root: GraphRoot, sequence: int) -> str:
    found = BranchLog(root, "main").commit(sequence)
    assert found is not None
    return found.id


def context(root: GraphRoot) -> Context:
    return Context(root, Principal.named(ACTOR))


def merged(root: GraphRoot, source: str, into: str, outcome: str) -> None:
    assert run(context(root), Merge(source, into)).outcome == outcome


OPERATIONS: dict[str, Callable[[GraphRoot], object]] = {
    "open": lambda root: open_graph(root.uri, actor=ACTOR),
    "resolve the head in a new process": lambda root: head(GraphRoot.at(root.uri)),
    "resolve the head again": lambda root: head(root),
    "the newest five commits": lambda root: [
        commit for _, commit in zip(range(5), walk(root, "main"), strict=False)
    ],
    "publish": lambda root: write(root),
    "write one table": lambda root: write(root, {"A": {"x": 2}}),
    "write three tables": lambda root: write(root, TABLES),
    "write with a new key": lambda root: write(root, idempotency_key=f"key {root.uri}"),
    "create a branch": lambda root: branch(root, "f"),
    "write on it": lambda root: write(root, {"A": {"x": 3}}, branch="f"),
    "diff": lambda root: list(run(context(root), Diff(Target(), Target("f")))),
    "fast-forward": lambda root: merged(root, "f", "main", "fast_forward"),
    "write on both": lambda root: [
        write(root, {"A": {name: 4}}, branch=name) for name in ("main", "f")
    ],
    "preview a merge": lambda root: run(context(root), PreviewMerge("f")),
    "merge": lambda root: merged(root, "f", "main", "merged"),
    "merge back": lambda root: merged(root, "main", "f", "merged"),
    "delete a branch": lambda root: delete_branch(root, "f", ACTOR),
}
# On a young graph these find everything in the tail; after that they read a few segments.
TRAVELS: dict[str, Callable[[GraphRoot], object]] = {
    "a state by version": lambda root: resolve(root, Target(version=60)),
    "a state by time": lambda root: resolve(
        root, Target(timestamp_us=BranchLog(root, "main").state.recent[0].created_at_us - 70)
    ),
    "a commit by id": lambda root: find_by_prefix(BranchLog(root, "main"), old_id(root, 60)),
    "a write with an old key": lambda root: write(root, idempotency_key="first"),
    "branches and their distances": lambda root: describe_branches(root),
    "a rare commit": lambda root: next(filtered(root, "main", kind="init"), None),
}


@pytest.mark.slow
def test_no_operation_costs_more_on_an_older_graph(
    aged: dict[int, str], proxy: CountingProxy
) -> None:
    roots = {count: GraphRoot.at(uri) for count, uri in aged.items()}
    for root in roots.values():
        head(root)
    for name, operation in OPERATIONS.items():
        start = len(proxy.seen)
        counted = {count: requests(proxy, operation, root) for count, root in roots.items()}
        assert counted[YOUNG] == counted[OLD] == counted[OLDER], (name, proxy.since(start))
        if name in ON_THE_PAGE:
            fewest, most = told(ON_THE_PAGE[name])
            assert fewest <= sum(counted[YOUNG].values()) <= most, (name, proxy.since(start))


# What the page for people calls the same operations.
ON_THE_PAGE = {
    "open": "open a graph read-write",
    "resolve the head in a new process": "resolve a branch's head, new process",
    "resolve the head again": "resolve it again",
    "publish": "commit without rows",
    "write one table": "commit, one table",
    "write three tables": "commit, three tables",
    "create a branch": "create a branch",
    "write on it": "first commit on it, one table (forks the table)",
}


def told(operation: str) -> tuple[int, int]:
    """The fewest and the most requests that the page says."""
    page = (Path(__file__).parents[3] / "docs/reference/costs.md").read_text()
    counted, _, _ = page.partition("## Age")
    (row,) = (line for line in counted.splitlines() if line.startswith(f"| {operation} |"))
    numbers = [int(word) for word in row.rstrip("| ").rpartition("|")[2].split(" to ")]
    return numbers[0], numbers[-1]


# Segments have one of three sizes; a larger one has more pages to read.
MOST_FOR_A_TRAVEL = 20


@pytest.mark.slow
def test_time_travel_costs_the_same_however_far(aged: dict[int, str], proxy: CountingProxy) -> None:
    old, older = (GraphRoot.at(aged[count]) for count in (OLD, OLDER))
    for name, operation in TRAVELS.items():
        counted = [requests(proxy, operation, root) for root in (old, older)]
        assert all(sum(each.values()) <= MOST_FOR_A_TRAVEL for each in counted), (name, counted)


def requests(
    proxy: CountingProxy, operation: Callable[[GraphRoot], object], root: GraphRoot
) -> dict[str, int]:
    with proxy.counting() as counted:
        operation(root)
    return dict(sorted(counted.items()))
