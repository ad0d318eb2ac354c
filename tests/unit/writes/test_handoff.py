"""Processes that write to one branch: the holder of its lock writes for those who wait, once.

A process is played by a `BranchWriter` in a thread of its own where nobody has to die: OS locks
exclude threads like processes, and the queue that threads share is passed by.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import lance
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.writegraphs import another, ids, new_graph

from omnigraph import faults
from omnigraph.commit import door
from omnigraph.engines.embedded import stagedelta
from omnigraph.engines.embedded.view import View
from omnigraph.errors import (
    CommitOutcomeUnknownError,
    InvalidDataError,
    LockTimeoutError,
    OmniGraphError,
    RecoveryRequiredError,
    StorageTransientError,
)
from omnigraph.graph import Graph
from omnigraph.history.manifestrows import commit_to_json
from omnigraph.history.refs import MAIN
from omnigraph.model.commit import CommitKind
from omnigraph.model.principal import Principal
from omnigraph.model.ulid import new_ulid
from omnigraph.operations.mutate import MutationRequest
from omnigraph.rows.deltas import Delta
from omnigraph.storage.locks import letters_to, writer_lock
from omnigraph.storage.mailbox import Letters
from omnigraph.storage.root import GraphRoot
from omnigraph.writes import attempt, handoff, rowgroup
from omnigraph.writes.request import Conditions, Ticket

INSERT = """query i($n: String, $a: I32?, $e: String?) {
    insert Person { name: $n, age: $a, email: $e }
}"""
COUNT = "query c() { insert Counter { number: 2 } }"
UPDATE = "query u($n: String, $a: I32) { update Person set { age: $a } where name = $n }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = new_graph(tmp_path)
    graph.mutate(INSERT, params={"n": "Eve", "e": "eve@example.org"})
    return graph


CROWD = Principal.named("act-crowd")


def conditions_of(principal: Principal = CROWD, message: str = "", **more: Any) -> Conditions:
    return Conditions(principal.id, message, principal=principal.digest, **more)


def contend(graph: Graph) -> None:
    """Writers meet: so they take the lock before they prepare."""
    attempt._note_contention(GraphRoot.at(graph.uri), MAIN)


class Process:
    """One insert, as another process would send it."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        age: Any = None,
        email: str | None = None,
        allowed: tuple[str, ...] = (),
        text: str = INSERT,
        principal: Principal = CROWD,
    ) -> None:
        params = {"n": name, "a": age, "e": email} if text is INSERT else {}
        conditions = conditions_of(principal)
        request = MutationRequest(text, conditions, None, params, inserts_only=True)
        root = GraphRoot.at(graph.uri, allowed)
        self.ticket = Ticket(request)
        contend(graph)
        self.thread = threading.Thread(
            target=attempt.BranchWriter(root, MAIN).write, args=([self.ticket],)
        )
        self.thread.start()

    def outcome(self) -> Any:
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.ticket.outcome()


def folder(graph: Graph) -> Path:
    (found,) = Path(graph.uri).glob("__locks/*.letters")
    return found


def box(graph: Graph) -> Letters:
    found = letters_to(GraphRoot.at(graph.uri).objects, MAIN)
    assert found is not None
    return found


@contextmanager
def held(graph: Graph) -> Iterator[None]:
    """The branch's lock is another's."""
    with writer_lock(GraphRoot.at(graph.uri).objects, MAIN, owner="act-other"):
        yield


def await_letters(graph: Graph, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(list(Path(graph.uri).glob("__locks/*.letters/*.posted"))) < count:
        assert time.monotonic() < deadline, "nobody posts a letter"
        time.sleep(0.002)


def group_sizes(graph: Graph) -> list[int]:
    """How many commits each publish had, in order."""
    groups = [commit.details.get("group", {"place": 0, "size": 1}) for commit in graph.commits()]
    return [group["size"] for group in reversed(groups) if group["place"] == 0]


def left(graph: Graph) -> list[str]:
    return sorted(os.listdir(folder(graph)))


def test_those_who_wait_share_one_publish_and_keep_their_commits(graph: Graph) -> None:
    """ledger: C17"""
    with held(graph):
        crowd = [Process(graph, f"p{n}", n) for n in range(5)]
        await_letters(graph, 5)
    outcomes = [process.outcome() for process in crowd]
    assert ids(graph, "Person") == ["Eve", "p0", "p1", "p2", "p3", "p4"]
    commits = {commit.id: commit for commit in graph.commits()}
    for outcome in outcomes:
        assert commits[outcome.commit_id].actor == "act-crowd"
        assert outcome.affected["Person"].inserted == 1
        assert not outcome.repeated
        assert outcome.commit == commits[outcome.commit_id]
    assert group_sizes(graph)[-1] == 5
    assert left(graph) == []


def test_20_01_a_letter_names_no_actor(graph: Graph) -> None:
    with held(graph):
        process = Process(graph, "Ada")
        await_letters(graph, 1)
        (letter,) = folder(graph).glob("*.posted")
        written = orjson.loads(letter.read_bytes())
    process.outcome()
    assert written["principal"] == CROWD.digest
    assert CROWD.id not in repr(written)


def test_20_01_letters_of_another_principal_are_not_served(graph: Graph) -> None:
    """Everybody writes as itself: the id alone does not make two principals equal."""
    others = [
        Principal("act-crowd", frozenset({"admins"})),
        Principal("act-crowd", attributes={"region": "eu"}),
        Principal.named("act-other"),
    ]
    with held(graph):
        crowd = [Process(graph, f"p{n}", principal=each) for n, each in enumerate(others)]
        await_letters(graph, 3)
    for process, principal in zip(crowd, others, strict=True):
        assert process.outcome().commit.actor == principal.id
    assert group_sizes(graph)[-3:] == [1, 1, 1]


def test_20_01_requests_of_one_principal_share_a_publish(graph: Graph) -> None:
    """A request id is not part of the identity."""
    principals = [Principal("act-crowd", request_id=f"request-{n}") for n in range(3)]
    with held(graph):
        crowd = [Process(graph, f"p{n}", principal=each) for n, each in enumerate(principals)]
        await_letters(graph, 3)
    for process in crowd:
        process.outcome()
    assert group_sizes(graph)[-1] == 3


def test_20_01_a_forged_actor_is_not_believed(graph: Graph) -> None:
    with held(graph):
        process = Process(graph, "Ada")
        await_letters(graph, 1)
        (letter,) = folder(graph).glob("*.posted")
        written = orjson.loads(letter.read_bytes())
        written["actor"] = written["request"]["actor"] = "act-root"
        with letter.open("r+b") as file:  # in place: its writer holds a lock on it
            file.write(orjson.dumps(written))
        other = Process(graph, "Bob")
        await_letters(graph, 2)
    assert process.outcome().commit.actor == other.outcome().commit.actor == "act-crowd"


def test_who_cannot_be_served_meets_its_error_itself(graph: Graph) -> None:
    with held(graph):
        good = [Process(graph, "Ada"), Process(graph, "Bob")]
        taken = Process(graph, "Thief", email="eve@example.org")
        wrong = Process(graph, "Old", 999)
        await_letters(graph, 4)
    for process in good:
        assert process.outcome().affected["Person"].inserted == 1
    with pytest.raises(InvalidDataError, match="email"):
        taken.outcome()
    with pytest.raises(InvalidDataError, match="age"):
        wrong.outcome()
    assert ids(graph, "Person") == ["Ada", "Bob", "Eve"]
    assert left(graph) == []


def test_two_who_write_the_same_row_go_one_after_another(graph: Graph) -> None:
    with held(graph):
        crowd = [Process(graph, "Ada", 1), Process(graph, "Ada", 2), Process(graph, "Bob", 3)]
        await_letters(graph, 3)
    found = [process.outcome().affected["Person"] for process in crowd]
    assert sorted((one.inserted, one.updated) for one in found[:2]) == [(0, 1), (1, 0)]
    assert (found[2].inserted, found[2].updated) == (1, 0)
    assert ids(graph, "Person") == ["Ada", "Bob", "Eve"]


def test_what_may_refer_elsewhere_is_not_carried_out_by_who_may_not(graph: Graph) -> None:
    with held(graph):
        crowd = [
            Process(graph, "Ada"),
            Process(graph, "Bob", allowed=("s3://assets/",)),
        ]
        await_letters(graph, 2)
    for process in crowd:
        assert process.outcome().affected["Person"].inserted == 1
    assert group_sizes(graph)[-2:] == [1, 1]


def stamp(graph: Graph) -> str:
    return GraphRoot.at(graph.uri).manifest(MAIN).read().stamp


def wrong_kinds(graph: Graph) -> Iterator[bytes]:
    """Letters in which one thing is of another kind than it should be."""
    told = orjson.loads(request(n="Zoe").to_text() or b"")
    for name in told:
        wrong = {**told, name: 7}
        head = {"version": 1, "allowed": [], "graph": stamp(graph), "seen": None}
        yield orjson.dumps({**head, "request": wrong})


@pytest.mark.parametrize(
    ("changed", "served"),
    [
        ({}, True),
        ({"graph": "0" * 32}, False),
        ({"seen": [1, "01ARZ3NDEKTSV4RRFFQ69G5FAV"]}, False),
        ({"seen": [999, "01ARZ3NDEKTSV4RRFFQ69G5FAV"]}, False),
    ],
    ids=["this graph", "another graph", "another past", "a lost future"],
)
def test_18_07_a_letter_to_another_graph_is_not_carried_out(
    graph: Graph, changed: dict[str, Any], served: bool
) -> None:
    with held(graph):
        ada = Process(graph, "Ada")
        await_letters(graph, 1)
        (posted,) = folder(graph).glob("*.posted")
        letter = orjson.loads(posted.read_bytes())
        assert letter["graph"] == stamp(graph)
        letter["request"] = orjson.loads(request(n="Zoe").to_text() or b"")
        ours = box(graph).post(new_ulid(), orjson.dumps({**letter, **changed}))
    ada.outcome()
    assert ours is not None
    assert (ours.answer() != b"{}") is served
    ours.close()
    assert ("Zoe" in ids(graph, "Person")) is served


def test_letters_that_make_no_sense_are_sent_back(graph: Graph) -> None:
    with held(graph):
        ada = Process(graph, "Ada")
        await_letters(graph, 1)
        ours = [
            box(graph).post("01ARZ3NDEKTSV4RRFFQ69G5FAV", b"not json"),
            box(graph).post("01ARZ3NDEKTSV4RRFFQ69G5FAW", b'{"version": 99}'),
            box(graph).post("01ARZ3NDEKTSV4RRFFQ69G5FAX", b'{"version": 1, "allowed": []}'),
            *(box(graph).post(new_ulid(), wrong) for wrong in wrong_kinds(graph)),
        ]
    ada.outcome()
    for letter in ours:
        assert letter is not None
        assert letter.answer() == b"{}"
        letter.close()
    assert ids(graph, "Person") == ["Ada", "Eve"]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long."""
    brief = partial(door.commit, lock_timeout_ms=300)
    monkeypatch.setattr(door, "commit", brief)


@pytest.mark.usefixtures("hurried")
def test_a_wait_that_is_too_long_takes_the_letter_back(graph: Graph) -> None:
    with held(graph):
        ada = Process(graph, "Ada")
        with pytest.raises(LockTimeoutError):
            ada.outcome()
        assert left(graph) == []
    assert ids(graph, "Person") == ["Eve"]


@pytest.mark.usefixtures("hurried")
def test_a_wait_that_is_too_long_for_somebody_who_took_the_letter_is_no_failure(
    graph: Graph,
) -> None:
    with held(graph):
        ada = Process(graph, "Ada")
        await_letters(graph, 1)
        ((commit_id, _),) = box(graph).take(graph.snapshot().sequence, 9)
        with pytest.raises(CommitOutcomeUnknownError) as error:
            ada.outcome()
    assert error.value.commit_id == commit_id
    assert isinstance(error.value.__cause__, LockTimeoutError)


def test_a_letter_that_was_taken_and_forgotten_is_carried_out_by_its_writer(graph: Graph) -> None:
    with held(graph):
        ada = Process(graph, "Ada")
        await_letters(graph, 1)
        assert len(box(graph).take(graph.snapshot().sequence, 9)) == 1
    assert ada.outcome().affected["Person"].inserted == 1
    assert ids(graph, "Person") == ["Ada", "Eve"]
    assert left(graph) == []


def test_an_answer_that_makes_no_sense_is_no_answer(graph: Graph) -> None:
    with held(graph):
        ada = Process(graph, "Ada")
        await_letters(graph, 1)
        ((id, _),) = box(graph).take(graph.snapshot().sequence, 9)
        for answer in (b"?", b"[]", b'{"id": 1}'):
            box(graph).answer(id, answer)
            time.sleep(0.02)
    assert ada.outcome().affected["Person"].inserted == 1
    assert ids(graph, "Person") == ["Ada", "Eve"]
    assert left(graph) == []


@pytest.mark.usefixtures("hurried")
def test_an_answer_counts_also_when_the_wait_is_over(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes between the last look and the end of the wait."""
    asking = handoff.Waiting._ask

    def ask_once(waiting: handoff.Waiting) -> None:
        if not waiting._posted:
            asking(waiting)

    monkeypatch.setattr(handoff.Waiting, "look", ask_once)
    with held(graph):
        ada = Process(graph, "Ada")
        await_letters(graph, 1)
        ((id, _),) = box(graph).take(graph.snapshot().sequence, 9)
        (done,) = (commit for commit in graph.commits() if commit.kind is CommitKind.MUTATE)
        box(graph).answer(id, orjson.dumps(commit_to_json(done)))
        assert ada.outcome().commit == done


def in_line(graph: Graph, *crowd: Callable[[], Process]) -> list[Process]:
    """Processes of which the first is the next holder."""
    found = []
    for number, begin in enumerate(crowd, 1):
        found.append(begin())
        await_letters(graph, number)
    return found


def test_guests_bring_no_troubles_of_other_tables(graph: Graph) -> None:
    """A table that must be repaired stops those who write to it, and nobody else."""
    graph.mutate("query c() { insert Counter { number: 1 } }")
    snapshot = graph.snapshot()
    counter = snapshot.catalog.node("Counter")
    assert counter is not None
    version = snapshot.table(counter.id)
    assert version is not None
    lance.dataset(f"{graph.uri}/{version.path}").delete("true")  # past the door
    with held(graph):
        ada, count = in_line(
            graph, lambda: Process(graph, "Ada"), lambda: Process(graph, "Bob", text=COUNT)
        )
    assert ada.outcome().affected["Person"].inserted == 1
    with pytest.raises(RecoveryRequiredError):
        count.outcome()
    assert left(graph) == []


def test_a_write_to_one_table_stays_one(graph: Graph) -> None:
    with held(graph):
        crowd = in_line(
            graph, lambda: Process(graph, "Ada"), lambda: Process(graph, "Bob", text=COUNT)
        )
    for process in crowd:
        assert process.outcome().changed
    assert group_sizes(graph)[-2:] == [1, 1]


def test_who_fails_tells_its_guests_that_nothing_was_done(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[bytes] = []
    answer = Letters.answer

    def noted(letters: Letters, id: str, data: bytes) -> None:
        answers.append(data)
        answer(letters, id, data)

    monkeypatch.setattr(Letters, "answer", noted)
    with faults.armed("commit.before_sidecar", faults.Raise(StorageTransientError, nth=1)):
        with held(graph):
            ada, bob = in_line(graph, lambda: Process(graph, "Ada"), lambda: Process(graph, "Bob"))
        assert bob.outcome().changed
    with pytest.raises(StorageTransientError):
        ada.outcome()
    assert answers == [b"{}"]
    assert ids(graph, "Person") == ["Bob", "Eve"]


def test_guests_that_make_preparing_fail_are_sent_away(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = stagedelta.stage

    def choosy(view: View, branch_id: str, over: Delta) -> Any:
        if sum(change.rows.num_rows for change in over.values()) > 1:
            raise ArithmeticError("too many")
        return stage(view, branch_id, over)

    monkeypatch.setattr(rowgroup, "stage", choosy)
    with held(graph):
        crowd = in_line(graph, lambda: Process(graph, "Ada"), lambda: Process(graph, "Bob"))
    for process in crowd:
        assert process.outcome().changed
    assert group_sizes(graph)[-2:] == [1, 1]


def test_a_letter_that_vanished_concerns_its_ticket_alone(graph: Graph) -> None:
    """Two threads of one process wait; somebody deletes the letter of one of them."""
    requests = [
        MutationRequest(INSERT, conditions_of(), None, {"n": name}, inserts_only=True)
        for name in ("Ada", "Bob")
    ]
    tickets = [Ticket(request) for request in requests]
    writer = attempt.BranchWriter(GraphRoot.at(graph.uri), MAIN)
    contend(graph)
    with held(graph):
        thread = threading.Thread(target=writer.write, args=(tickets,))
        thread.start()
        await_letters(graph, 2)
        min(folder(graph).glob("*.posted")).unlink()
    thread.join()
    with pytest.raises(CommitOutcomeUnknownError):
        tickets[0].outcome()
    assert tickets[1].outcome().changed
    assert ids(graph, "Person") == ["Bob", "Eve"]


def test_letters_that_were_not_all_posted_are_taken_back(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = Letters.post
    posted: list[Any] = []

    def interrupted(letters: Letters, id: str, data: bytes) -> Any:
        if posted:
            raise KeyboardInterrupt
        posted.append(post(letters, id, data))
        return posted[0]

    monkeypatch.setattr(Letters, "post", interrupted)
    tickets = [Ticket(request(n=name)) for name in ("Ada", "Bob")]
    contend(graph)
    with held(graph):
        with pytest.raises(KeyboardInterrupt):
            attempt.BranchWriter(GraphRoot.at(graph.uri), MAIN).write(tickets)
        assert left(graph) == []
    assert posted


# Somebody dies.

LEADER = """
import sys
from omnigraph import faults
from omnigraph.model.ulid import new_ulid
from omnigraph.writes import handoff, attempt
from omnigraph.storage.root import GraphRoot
import omnigraph
graph = omnigraph.open(sys.argv[1], actor="act-crowd")
attempt._note_contention(GraphRoot.at(graph.uri), "main")
print("ready", flush=True)
graph.mutate(sys.argv[2], params={"n": "Leader", "a": 1})
print("done", flush=True)
"""
INSTANTS = [
    "commit.after_lock",
    "commit.before_sidecar",
    "commit.after_sidecar",
    "commit.before_table",
    "commit.after_table",
    "commit.before_publish",
    "commit.after_publish",
    "commit.after_disarm",
]
EVERY_DAY = ("commit.before_sidecar", "commit.after_publish")


def leader(graph: Graph, instant: str | None = None) -> subprocess.Popen[str]:
    """A process that is next in line, and dies at an instant of its commit."""
    process = subprocess.Popen(
        [sys.executable, "-c", LEADER, graph.uri, INSERT],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMNIGRAPH_FAULTS": f"{instant}=kill" if instant else ""},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    "instant",
    [one if one in EVERY_DAY else pytest.param(one, marks=pytest.mark.slow) for one in INSTANTS],
)
def test_each_request_is_carried_out_once_wherever_the_holder_dies(
    graph: Graph, instant: str
) -> None:
    with held(graph):
        dying = leader(graph, instant)
        await_letters(graph, 1)  # the leader's: it stands in the door
        crowd = [Process(graph, f"p{n}") for n in range(3)]
        await_letters(graph, 4)
    assert dying.communicate()[0] == ""
    assert dying.returncode == -signal.SIGKILL
    outcomes = [process.outcome() for process in crowd]
    survived = instant in INSTANTS[INSTANTS.index("commit.after_table") :]
    assert ids(graph, "Person") == ["Eve", *(["Leader"] if survived else []), "p0", "p1", "p2"]
    history = [commit.id for commit in graph.commits() if commit.kind is CommitKind.MUTATE]
    assert len(history) == len(set(history))
    assert {outcome.commit_id for outcome in outcomes} <= set(history)
    assert len(history) == 1 + 3 + survived
    if survived:  # they were carried out by the one that died, and not again
        assert group_sizes(graph)[-1] == 4
    assert another(graph).mutate(INSERT, params={"n": "Zoe", "a": 1}).changed
    assert left(graph) == []


def test_a_request_whose_sender_died_is_not_carried_out(graph: Graph) -> None:
    with held(graph):
        dying = leader(graph)
        await_letters(graph, 1)
        dying.kill()
        dying.communicate()
        ada = Process(graph, "Ada")
        await_letters(graph, 2)
    ada.outcome()
    assert ids(graph, "Person") == ["Ada", "Eve"]
    assert left(graph) == []


# What can be told.


def request(**params: Any) -> MutationRequest:
    return MutationRequest(INSERT, conditions_of(), "i", params, inserts_only=True)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), VALUES))
def test_what_is_told_is_what_was_meant(params: dict[str, Any]) -> None:
    meant = MutationRequest(INSERT, conditions_of(message="why", details={"x": [1]}), "i", params)
    told = meant.to_text()
    if told is not None:
        found = MutationRequest.from_text(orjson.loads(told), conditions_of())
        assert found == meant
        assert repr(found.params) == repr(params)  # -0.0 and 0.0, True and 1 are equal otherwise


def test_plain_values_can_be_told() -> None:
    assert request(n="Ada", a=[1, 2.5, None, True]).to_text() is not None


@pytest.mark.parametrize(
    "value", [b"bytes", math.nan, math.inf, 2**70, "\ud800", (1, 2), {1: 2}, Path("x")]
)
def test_what_text_would_change_stays(value: Any) -> None:
    assert request(n=value).to_text() is None


@pytest.mark.parametrize(
    "conditions", [conditions_of(if_commit="x"), conditions_of(idempotency_key="k")]
)
def test_what_has_conditions_stays(conditions: Conditions) -> None:
    assert MutationRequest(INSERT, conditions).to_text() is None


def test_what_changes_rows_stays_and_goes_its_own_way(graph: Graph) -> None:
    assert MutationRequest(UPDATE, conditions_of(), is_strict=True).to_text() is None
    with held(graph):
        waiting = Process(graph, "Ada")
        await_letters(graph, 1)
    waiting.outcome()
    assert graph.mutate(UPDATE, params={"n": "Ada", "a": 7}).changed


def test_errors_are_ours(graph: Graph) -> None:
    with held(graph):
        crowd = [Process(graph, name, "no number") for name in ("Ada", "Bob")]
        await_letters(graph, 2)
    for process in crowd:
        with pytest.raises(OmniGraphError):
            process.outcome()
    assert ids(graph, "Person") == ["Eve"]
