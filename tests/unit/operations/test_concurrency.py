"""Writers that meet: conflicts, fences, conditions, keys, and groups of threads."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
from tests.support.doorgraph import commit
from tests.support.writegraphs import another, heads, ids, new_graph, rows, values

from omnigraph import faults
from omnigraph.commit import door
from omnigraph.engines.embedded.view import View
from omnigraph.errors import (
    ConflictError,
    InvalidArgumentError,
    InvalidDataError,
    KeyConflictError,
    LockTimeoutError,
    OmniGraphError,
    PreconditionFailedError,
    StorageTransientError,
    VersionConflictError,
)
from omnigraph.graph import Graph
from omnigraph.history.refs import MAIN
from omnigraph.model.commit import CommitKind, Proposal
from omnigraph.model.write import Affected, WriteResult
from omnigraph.operations.mutate import MutationRequest
from omnigraph.operations.requests import Optimize
from omnigraph.operations.verbs import run
from omnigraph.storage.blobpolicy import NOWHERE
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.stagedwrites import Stager
from omnigraph.writes import attempt as writing
from omnigraph.writes import groupcommit
from omnigraph.writes.request import Conditions, Ticket


@pytest.fixture
def graph(tmp_path) -> Graph:
    return new_graph(tmp_path)


INSERT = "query i($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"
AGE = "query u($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
GROW = "query g($n: String) { update Person set { age: age + 1 } where name = $n }"
DELETE = "query d($n: String) { delete Person where name = $n }"
LINK = "query l($a: String, $b: String) { insert Knows { from: $a, to: $b } }"


def insert(graph: Graph, name: str, age: int | None = None, **options) -> WriteResult:
    return graph.mutate(INSERT, params={"n": name, "a": age}, **options)


@contextmanager
def meanwhile(action: Callable[[], object]) -> Iterator[None]:
    """Do something once, when the first writer has prepared and not yet taken the lock."""
    done: list[BaseException | None] = []

    class _Meanwhile(faults.Action):
        def perform(self, point: str) -> None:
            if not done:
                done.append(None)
                # In a thread of its own: our own queue is taken by the writer that we interrupt.
                worker = threading.Thread(target=attempt)
                worker.start()
                worker.join()

    def attempt() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            done[0] = error

    with faults.armed("commit.before_lock", _Meanwhile()):
        yield
    assert done == [None]


def elsewhere(graph: Graph, text: str, **params: object) -> Callable[[], object]:
    """A mutation as another process would send it: past this process's queue."""

    def act() -> WriteResult:
        other = another(graph)
        saved, groupcommit._queues = groupcommit._queues, type(groupcommit._queues)()
        try:
            return other.mutate(text, params=params)
        finally:
            groupcommit._queues = saved

    return act


def compact(graph: Graph) -> None:
    """A maintenance commit on Person: new files, the same content."""
    run(another(graph)._context, Optimize())


def touch(graph: Graph) -> None:
    """The same without `optimize`: a staged write that counts as maintenance."""
    root = GraphRoot.at(graph.uri)
    snapshot = graph.snapshot()
    table = snapshot.catalog.node("Person")
    assert table is not None
    stager = Stager(root, MAIN)
    base = snapshot.table(table.id)
    assert base is not None
    every = View(root, snapshot).select(table)
    staged = replace(stager.upsert(table, base, every), logical=False)
    commit(root, Proposal(snapshot, (staged,), "keeper", CommitKind.MAINTENANCE))


# Two writers, one table.


def test_inserts_that_meet_are_both_there(graph):
    insert(graph, "Ada")
    with meanwhile(elsewhere(graph, INSERT, n="Bob", a=1)):
        result = insert(graph, "Cy", 2)
    assert ids(graph, "Person") == ["Ada", "Bob", "Cy"]
    assert result.commit is not None
    assert result.commit.id == graph.snapshot().commit_id


def test_an_update_that_was_overtaken_is_told(graph):
    """ledger: C10"""
    insert(graph, "Ada", 1)
    insert(graph, "Bob", 1)
    expected = graph.snapshot()
    with (
        meanwhile(elsewhere(graph, AGE, n="Bob", a=2)),
        pytest.raises(VersionConflictError) as error,
    ):
        graph.mutate(AGE, params={"n": "Ada", "a": 3})
    assert error.value.table == "Person"
    assert error.value.retryable
    person = expected.catalog.node("Person")
    assert person is not None
    before, after = expected.table(person.id), graph.snapshot().table(person.id)
    assert before is not None
    assert after is not None
    assert (error.value.expected, error.value.actual) == (before.version, after.version)
    assert values(graph, "Person", "age") == {"Ada": 1, "Bob": 2}


@pytest.mark.parametrize("maintain", [touch, compact])
@pytest.mark.parametrize("text", [AGE, DELETE])
def test_maintenance_is_no_conflict(graph, text, maintain):
    """ledger: C15"""
    insert(graph, "Ada", 1)
    insert(graph, "Bob", 1)
    params = {"n": "Ada", "a": 3} if text is AGE else {"n": "Ada"}
    with meanwhile(lambda: maintain(graph)):
        result = graph.mutate(text, params=params)
    assert result.changed
    assert values(graph, "Person", "age") == ({"Ada": 3, "Bob": 1} if text is AGE else {"Bob": 1})


def test_a_write_to_another_table_is_no_conflict(graph):
    insert(graph, "Ada", 1)
    with meanwhile(elsewhere(graph, 'query q() { insert Note { text: "x" } }')):
        assert graph.mutate(AGE, params={"n": "Ada", "a": 3}).changed
    assert values(graph, "Person", "age") == {"Ada": 3}


def test_a_strict_insert_stays_strict_when_it_is_prepared_again(graph):
    """ledger: C14"""
    insert(graph, "Ada")
    with meanwhile(elsewhere(graph, INSERT, n="Bob", a=1)), pytest.raises(KeyConflictError):
        graph.ingest([{"name": "Bob", "age": 9}], type="Person")
    assert values(graph, "Person", "age")["Bob"] == 1


# What validation read is fenced.


def test_an_edge_does_not_slip_past_the_delete_of_its_node(graph):
    """ledger: C14"""
    insert(graph, "Ada")
    insert(graph, "Bob")
    with meanwhile(elsewhere(graph, DELETE, n="Bob")), pytest.raises(InvalidDataError) as error:
        graph.mutate(LINK, params={"a": "Ada", "b": "Bob"})
    assert error.value.violations[0].rule == "endpoint"
    assert rows(graph, "Knows") == []


def test_a_delete_does_not_slip_past_a_new_edge(graph):
    """ledger: C14"""
    insert(graph, "Ada")
    insert(graph, "Bob")
    with meanwhile(elsewhere(graph, LINK, a="Ada", b="Bob")), pytest.raises(ConflictError) as error:
        graph.mutate(DELETE, params={"n": "Bob"})
    assert error.value.details["table"] == "Knows"
    assert graph.mutate(DELETE, params={"n": "Bob"}).affected == {
        "Person": Affected(deleted=1),
        "Knows": Affected(deleted=1, is_edge=True),
    }


def test_a_unique_value_is_taken_once(graph):
    """ledger: C14, T04"""
    text = "query q($n: String) { insert Person { name: $n, email: 'e' } }".replace("'", '"')
    with meanwhile(elsewhere(graph, text, n="Ada")), pytest.raises(InvalidDataError) as error:
        graph.mutate(text, params={"n": "Bob"})
    assert error.value.violations[0].rule == "unique"
    assert ids(graph, "Person") == ["Ada"]


def test_a_stale_handle_cannot_exceed_a_maximum(graph):
    """ledger: C13"""
    stale = another(graph)
    stale.snapshot()
    note = "query q($p: String) { insert Note { text: $p } }"
    insert(graph, "Ada")
    graph.mutate(note, params={"p": "x"})
    (target,) = ids(graph, "Note")
    wrote = "query w($t: String) { insert Wrote { from: 'Ada', to: $t } }".replace("'", '"')
    graph.mutate(wrote, params={"t": target})
    with (
        meanwhile(elsewhere(graph, wrote, t=target)),
        pytest.raises(InvalidDataError) as error,
    ):
        stale.mutate(wrote, params={"t": target})
    assert error.value.violations[0].rule == "cardinality"
    assert len(rows(graph, "Wrote")) == 2


def test_every_attempt_may_lose_and_then_it_is_said(graph, monkeypatch):
    """ledger: C10"""
    insert(graph, "Ada")
    tries: list[int] = []

    def lose(*_: object, **__: object) -> None:
        tries.append(1)
        raise ConflictError("Somebody was faster.")

    monkeypatch.setattr(door, "commit", lose)
    monkeypatch.setattr(writing, "_contended", {})
    with pytest.raises(ConflictError, match="faster"):
        insert(graph, "Bob")
    assert len(tries) == writing.SMALL.total == 5


# Conditions and keys.


def test_a_condition_on_the_head(graph):
    """ledger: C16"""
    first = insert(graph, "Ada", 1).commit_id
    second = graph.mutate(AGE, params={"n": "Ada", "a": 2}, if_commit=first)
    with pytest.raises(PreconditionFailedError) as error:
        graph.mutate(AGE, params={"n": "Ada", "a": 3}, if_commit=first)
    assert (error.value.expected, error.value.actual) == (first, second.commit_id)
    with pytest.raises(PreconditionFailedError):
        graph.ingest([{"name": "Bob"}], type="Person", if_commit=first)
    assert values(graph, "Person", "age") == {"Ada": 2}


def test_a_condition_is_checked_when_nothing_would_change_too(graph):
    """ledger: C16"""
    insert(graph, "Ada")
    with pytest.raises(PreconditionFailedError):
        graph.mutate(DELETE, params={"n": "Zoe"}, if_commit="01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_a_condition_that_is_overtaken_fails(graph):
    """ledger: C16"""
    head = insert(graph, "Ada").commit_id
    with (
        meanwhile(elsewhere(graph, INSERT, n="Bob", a=1)),
        pytest.raises(PreconditionFailedError),
    ):
        insert(graph, "Cy", if_commit=head)
    assert ids(graph, "Person") == ["Ada", "Bob"]


def test_a_repeated_request_gets_the_first_outcome(graph):
    """ledger: C16"""
    first = insert(graph, "Ada", 1, idempotency_key="k1")
    graph.mutate(AGE, params={"n": "Ada", "a": 2})
    again = insert(another(graph), "Ada", 1, idempotency_key="k1")
    assert again.commit == first.commit
    assert again.repeated
    assert not first.repeated
    assert again.affected == first.affected == {"Person": Affected(inserted=1)}
    assert values(graph, "Person", "age") == {"Ada": 2}
    with pytest.raises(InvalidArgumentError, match="another"):
        insert(graph, "Bob", 1, idempotency_key="k1")


def test_a_repeated_ingest_gets_the_first_outcome(graph):
    """ledger: C16"""
    data = b'{"type":"Person","data":{"name":"Ada"}}'
    first = graph.ingest(data, idempotency_key="load-1")
    again = graph.ingest(data, idempotency_key="load-1")
    assert (again.commit, again.repeated) == (first.commit, True)
    with pytest.raises(InvalidArgumentError):
        graph.ingest(data + b"\n" + data.replace(b"Ada", b"Bob"), idempotency_key="load-1")


def test_a_key_that_two_writers_use_at_once_counts_once(graph):
    """ledger: C16"""
    insert(graph, "Zoe")
    other = elsewhere(graph, "query q() { insert Note { text: 'x' } }".replace("'", '"'))

    def same() -> None:
        saved, groupcommit._queues = groupcommit._queues, type(groupcommit._queues)()
        try:
            insert(another(graph), "Ada", 1, idempotency_key="k")
        finally:
            groupcommit._queues = saved

    with meanwhile(same):
        result = insert(graph, "Ada", 1, idempotency_key="k")
    assert result.repeated
    assert ids(graph, "Person") == ["Ada", "Zoe"]
    assert [c.idempotency_key for c in graph.commits()].count("k") == 1
    other()


# Groups.


def queue_of(graph: Graph) -> groupcommit._Queue:
    """The queue of main's writers; it is there once somebody has written."""
    return groupcommit._queues[graph.uri, MAIN, NOWHERE, graph._context.root.durability]


def at_once(graph: Graph, actions: list[Callable[[], object]]) -> list[object]:
    """Run actions in threads, so that all but the first come while the first is writing."""
    outcomes: list[object] = [None] * len(actions)
    leader_in = threading.Event()
    others_in = threading.Event()

    class _Hold(faults.Action):
        def perform(self, point: str) -> None:
            if not leader_in.is_set():
                leader_in.set()
                others_in.wait(20)

    def attempt(place: int) -> None:
        try:
            outcomes[place] = actions[place]()
        except OmniGraphError as error:
            outcomes[place] = error

    threads = [threading.Thread(target=attempt, args=(place,)) for place in range(len(actions))]
    with faults.armed("commit.before_lock", _Hold()):
        threads[0].start()
        assert leader_in.wait(20)
        queue = queue_of(graph)
        for number, thread in enumerate(threads[1:], 1):
            thread.start()
            while len(queue._line) < number and thread.is_alive():
                time.sleep(0.001)
        others_in.set()
        for thread in threads:
            thread.join()
    return outcomes


def test_threads_share_a_publish_and_keep_their_commits(graph):
    insert(graph, "Zoe")
    version = heads(graph)["Person"][0]
    outcomes = at_once(
        graph, [partial(insert, graph, f"p{n}", n, message=f"m{n}") for n in range(6)]
    )
    commits = [o.commit for o in outcomes if isinstance(o, WriteResult) and o.commit]
    assert len({c.id for c in commits}) == 6
    assert [c.message for c in sorted(commits, key=lambda c: c.sequence)] == [
        f"m{n}" for n in range(6)
    ]
    assert heads(graph)["Person"] == (version + 2, 7)  # the leader's own, and one for the five
    assert all(c.parents for c in commits)
    second = commits[1]
    assert [t.table_id for t in second.changes] == [graph.snapshot().catalog.nodes[0].id]
    assert second.details["group"]["size"] == 5
    assert commits[3].details["group"]["rows"] == {str(second.changes[0].table_id): ["p3"]}
    for number, commit_ in enumerate(commits):
        if number:
            snapshot = graph.snapshot(commit=commit_.id)
            assert snapshot.sequence == commit_.sequence


def test_a_queue_remembers_its_crowd_between_writes(graph):
    at_once(graph, [partial(insert, graph, f"p{n}") for n in range(4)])
    queue = queue_of(graph)
    assert queue._company == 3, "those who waited for the first"


def test_a_graph_made_anew_in_the_same_place_has_nothing_of_the_old(tmp_path):
    old = new_graph(tmp_path)
    for n in range(3):
        insert(old, f"old{n}")
    shutil.rmtree(old.uri)
    again = new_graph(tmp_path)
    for n in range(3):
        insert(again, f"new{n}")
        assert ids(again, "Person") == [f"new{i}" for i in range(n + 1)]


def test_members_see_those_before_them_and_fail_alone(graph):
    def link(src: str, dst: str) -> Callable[[], object]:
        return lambda: graph.mutate(LINK, params={"a": src, "b": dst})

    outcomes = at_once(
        graph,
        [
            lambda: insert(graph, "Zoe"),
            lambda: insert(graph, "Ada"),
            link("Ada", "Nobody"),
            link("Ada", "Zoe"),
            lambda: insert(graph, "Bob", 999),
            lambda: graph.mutate(DELETE, params={"n": "Nobody"}),
            lambda: insert(graph, "Cy"),
        ],
    )
    kinds = [o.changed if isinstance(o, WriteResult) else type(o) for o in outcomes]
    assert kinds == [True, True, InvalidDataError, True, InvalidDataError, False, True]
    assert ids(graph, "Person") == ["Ada", "Cy", "Zoe"]
    assert len(rows(graph, "Knows")) == 1


def test_members_that_touch_one_row_go_one_after_another(graph):
    insert(graph, "Ada", 0)
    outcomes = at_once(graph, [lambda: graph.mutate(GROW, params={"n": "Ada"})] * 5)
    assert all(isinstance(o, WriteResult) and o.changed for o in outcomes), outcomes
    assert values(graph, "Person", "age") == {"Ada": 5}


def test_a_condition_holds_for_one_member_only(graph):
    """ledger: C16"""
    head = insert(graph, "Ada", 0).commit_id

    def claim(age: int) -> Callable[[], object]:
        return lambda: graph.mutate(AGE, params={"n": "Ada", "a": age}, if_commit=head)

    outcomes = at_once(graph, [claim(1), claim(2), claim(3)])
    won = [n for n, o in enumerate(outcomes, 1) if isinstance(o, WriteResult)]
    assert won == [1]
    assert all(isinstance(o, PreconditionFailedError) for o in outcomes[1:])
    assert values(graph, "Person", "age") == {"Ada": 1}


def test_a_condition_that_is_overtaken_fails_for_one_member_alone(graph):
    """ledger: C16"""
    insert(graph, "Zoe")

    class _Overtake(faults.Action):
        """Let another process in before the second group takes the lock."""

        def perform(self, point: str) -> None:
            worker = threading.Thread(target=elsewhere(graph, INSERT, n="Sly", a=1))
            worker.start()
            worker.join()

    head = graph.snapshot().commit_id
    tickets = [
        Ticket(MutationRequest(INSERT, Conditions("a", if_commit=condition), None, params))
        for condition, params in (
            (head, {"n": "Ada", "a": None}),
            (None, {"n": "Bob", "a": None}),
            (None, {"n": "Cy", "a": None}),
        )
    ]
    with faults.armed("commit.before_lock", _Overtake(nth=1)):
        writing.BranchWriter(GraphRoot.at(graph.uri), MAIN).write(tickets)
    assert isinstance(tickets[0].error, PreconditionFailedError)
    assert [t.outcome().changed for t in tickets[1:]] == [True, True]
    assert ids(graph, "Person") == ["Bob", "Cy", "Sly", "Zoe"]


def test_a_key_within_one_group_counts_once(graph):
    """ledger: C16"""
    insert(graph, "Zoe")

    def same() -> WriteResult:
        return insert(graph, "Ada", 1, idempotency_key="k")

    outcomes = at_once(graph, [lambda: insert(graph, "Bob"), same, same])
    assert isinstance(outcomes[1], WriteResult)
    assert isinstance(outcomes[2], WriteResult)
    assert outcomes[1].commit == outcomes[2].commit
    assert outcomes[2].repeated


def test_a_storage_failure_reaches_every_member(graph):
    insert(graph, "Zoe")
    with faults.armed("commit.before_sidecar", faults.Raise(StorageTransientError, nth=2)):
        outcomes = at_once(graph, [partial(insert, graph, f"p{n}") for n in range(4)])
    assert isinstance(outcomes[0], WriteResult)
    assert all(isinstance(o, StorageTransientError) for o in outcomes[1:])
    assert len({id(o) for o in outcomes[1:]}) == 3
    assert ids(graph, "Person") == ["Zoe", "p0"]
    insert(graph, "after")


def test_a_leader_that_is_interrupted_leaves_the_queue_usable(graph):
    insert(graph, "Zoe")
    with (
        faults.armed("commit.before_lock", faults.Raise(KeyboardInterrupt, nth=1)),
        pytest.raises(KeyboardInterrupt),
    ):
        insert(graph, "Ada")
    insert(graph, "Bob")
    assert ids(graph, "Person") == ["Bob", "Zoe"]


@pytest.mark.parametrize("in_group", [False, True])
def test_a_thread_that_is_interrupted_in_line_leaves_the_queue_usable(graph, monkeypatch, in_group):
    """Whoever waits may be gone when it would lead: before its group begins, or after that was
    written without it."""
    insert(graph, "Zoe")
    queue = groupcommit._queue(graph._context.root, MAIN)
    proceed, write = threading.Event(), writing.BranchWriter.write

    def slow(self, tickets, **options):
        proceed.wait(30)
        write(self, tickets[:1], **options)

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            while queue._line and in_group:  # until the second group has taken us along
                time.sleep(0.001)
            raise KeyboardInterrupt

    monkeypatch.setattr(writing.BranchWriter, "write", slow)
    first = threading.Thread(target=insert, args=(graph, "Ada"))
    first.start()
    while not queue._led or queue._line:
        time.sleep(0.001)
    if in_group:
        second = threading.Thread(target=insert, args=(graph, "Cy"))
        second.start()
        while not queue._line:
            time.sleep(0.001)
        threading.Timer(0.05, proceed.set).start()
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Event", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            insert(graph, "Bob")
    proceed.set()
    first.join(30)
    if in_group:
        second.join(30)
    last = threading.Thread(target=insert, args=(graph, "Dan"), daemon=True)
    last.start()
    last.join(30)
    assert not last.is_alive(), "nobody leads any more"
    assert {"Ada", "Dan", "Zoe"} <= set(ids(graph, "Person"))


@pytest.mark.parametrize("message", [5, None, b"text"])
def test_a_message_that_is_no_text_is_refused(graph, message):
    head = graph.snapshot().commit_id
    with pytest.raises(InvalidArgumentError, match="message"):
        insert(graph, "Ada", message=message)
    assert graph.snapshot().commit_id == head


def test_branches_do_not_wait_for_each_other(graph):
    insert(graph, "Ada")
    side = graph.create_branch("side")
    entered, leave = threading.Event(), threading.Event()

    class _Hold(faults.Action):
        def perform(self, point: str) -> None:
            if not entered.is_set():
                entered.set()
                leave.wait(20)

    with faults.armed("commit.after_lock", _Hold()):
        held = threading.Thread(target=lambda: insert(graph, "Bob"))
        held.start()
        assert entered.wait(20)
        insert(side, "Cy")
        assert ids(side, "Person") == ["Ada", "Cy"]
        leave.set()
        held.join()
    assert ids(graph, "Person") == ["Ada", "Bob"]


def test_a_lock_that_stays_taken_is_said(graph, monkeypatch):
    monkeypatch.setattr(
        door, "commit", lambda *a, **k: (_ for _ in ()).throw(LockTimeoutError("taken"))
    )
    with pytest.raises(LockTimeoutError):
        insert(graph, "Ada")


def test_threads_fork_and_read_one_table_at_once(graph: Graph) -> None:
    """Lance forks a table with an exclusive borrow of its dataset, so each fork needs a handle of
    its own: threads that read through a shared one failed with "Already borrowed"."""
    insert(graph, "Ada")
    errors: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                graph.mutate(AGE, params={"n": "nobody", "a": 1})
            except BaseException as error:  # noqa: BLE001 - asserted below
                errors.append(error)

    def fork(number: int) -> None:
        for n in range(8):
            try:
                branch = graph.create_branch(f"f{number}-{n}")
                insert(branch, f"{number}-{n}")
            except BaseException as error:  # noqa: BLE001 - asserted below
                errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    forkers = [threading.Thread(target=fork, args=(number,)) for number in range(3)]
    for thread in (*readers, *forkers):
        thread.start()
    for thread in forkers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert errors == []
