"""Playing a program on a real graph, held against the model after every operation.

Two handles in this process that share nothing but the files, and children of a nursery as other
processes, some of which are killed in the middle. After each operation the branch must show what
the model says; what was refused must have left nothing; what was killed must be there wholly or
not at all. At the end everything is looked at by somebody who comes new.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.crash.nursery import Nursery
from tests.support.branchgraphs import content
from tests.support.rowmerge import State
from tests.universe.acts import DONE, carry_out
from tests.universe.model import (
    CLASH,
    CONFLICT,
    MISSING,
    RECLAIMED,
    SCHEMA,
    Branch,
    Model,
    No,
    Node,
    Op,
    Verdict,
    empty,
)

import omnigraph
from omnigraph import faults
from omnigraph.errors import HistoryReclaimedError
from omnigraph.graph import Graph
from omnigraph.model.commit import Commit
from omnigraph.model.principal import Principal
from omnigraph.operations.context import Context
from omnigraph.storage.root import GraphRoot

CONTENT = frozenset(
    {"put", "append", "replace", "set", "grow", "remove", "unlink", "merge", "revert", "pick"}
    | {"evolve"}
)
KILLED = "killed"
# Commits of these kinds leave every row as it was.
QUIET = ("recovery", "maintenance", "schema")


class Universe:
    """One graph and its model, from the first operation to the last look."""

    def __init__(self, folder: Path, nursery: Nursery) -> None:
        self.nursery = nursery
        self.folder = folder
        folder.mkdir(parents=True)
        self.uri = str(folder / "graph")
        first = omnigraph.init(self.uri, SCHEMA, actor="act-anna")
        # Another address of the same graph: no cache and no queue is shared with the first.
        (folder / "alias").symlink_to(folder / "graph")
        self.addresses = (self.uri, str(folder / "alias"))
        self.handles = [first, omnigraph.open(self.addresses[1], actor="act-ben")]
        self.model = Model()
        self.done: Counter[str] = Counter()
        root = next(iter(first.commits()))
        self.model.branches["main"] = Branch(0, -1, root.id)
        self.model.nodes[root.id] = Node(empty(), (), "init", 0, frozenset())

    # Operations

    def step(self, op: Op) -> None:
        match op["do"]:
            case "race":
                self._race(op["first"], op["second"])
            case "kill":
                self._elsewhere(op["op"], op["nth"], op["when"])
            case "child":
                self._elsewhere(op["op"], 0, "")
            case "reopen":
                self._reopen(op["by"])
            case "past":
                self._look_back(op)
            case _:
                self._here(op)

    def _here(self, op: Op) -> None:
        ready = self._resolved(op)
        if ready is not None:
            self._judge(ready, carry_out(self.handles[op["by"]], ready))

    def _elsewhere(self, op: Op, nth: int, when: str) -> None:
        """By a process of its own, which may be killed around one of its durable steps."""
        ready = self._resolved(op)
        if ready is None:
            return
        ending = self.nursery.run("act_in_universe", self.addresses[op["by"]], ready, nth, when)
        if ending.killed:
            self._reopen(op["by"])
            self._judge(ready, KILLED)
        else:
            self._judge(ready, ending.result())

    def _race(self, first: Op, second: Op) -> None:
        """The first is stopped when it is ready to commit, until the second is done."""
        ready = self._resolved(first)
        if ready is None:
            return
        go = threading.Event()
        thread = _Racer(self.handles[first["by"]], ready)
        pause = faults.arm("commit.before_lock", faults.Pause(go, nth=1, limit_s=60))
        thread.start()
        while thread.is_alive() and not pause.reached.wait(0.002):
            pass
        faults.disarm(pause)  # who waits there waits on; nobody else is to join it
        if not pause.reached.is_set():
            self._judge(ready, thread.outcome())
            self._here(second)
            return
        before = self._refusals(ready)
        with _released(go, thread):
            self._here(second)
        self._judge(ready, thread.outcome(), also={CONFLICT, *before})

    def _reopen(self, number: int) -> None:
        actor = self.handles[number].actor
        self.handles[number] = omnigraph.open(self.addresses[number], actor=actor)

    def _resolved(self, op: Op) -> Op | None:
        """The operation with its commit by id and its schema whole; None if it means nothing."""
        try:
            if op["do"] in ("revert", "pick"):
                commit = self.model.back(str(op.get("source", op["on"])), op["back"])
                if op["do"] == "pick" and self._evolves(commit, op["on"]):
                    return None  # a schema that comes along with a pick is another matter
                return {**op, "commit": commit}
            if op["do"] == "evolve":
                known = self.model.head(op["on"]).schema
                return {**op, "schema": sorted(known | {op["extra"]})}
        except No:
            return None
        return op

    def _evolves(self, commit: str, branch: str) -> bool:
        """Whether a commit changes the schema, or was made under one that the branch lacks."""
        node = self.model.nodes[commit]
        parents = [self.model.nodes[parent].schema for parent in node.parents]
        known = self.model.head(branch).schema
        return any(schema != node.schema for schema in parents) or not node.schema <= known

    def _refusals(self, op: Op) -> set[str]:
        try:
            self.model.predict(op)
        except No as no:
            return no.reasons
        return set()

    # Judging

    def _judge(self, op: Op, outcome: str, also: set[str] | frozenset[str] = frozenset()) -> None:
        self.done[f"{op['do']} {outcome}"] += 1
        if op["do"] in CONTENT:
            self._judge_content(op, outcome, also)
        elif op["do"] in ("optimize", "cleanup"):
            self._judge_upkeep(op, outcome)
        else:
            self._judge_names(op, outcome)

    def _judge_content(self, op: Op, outcome: str, also: set[str] | frozenset[str]) -> None:
        try:
            verdict, reasons = self.model.predict(op), set(also)
        except No as no:
            verdict, reasons = None, no.reasons | also
        if verdict is not None and self.model.cleaned and op["do"] in ("revert", "pick", "merge"):
            reasons.add(RECLAIMED)
        if op["do"] == "merge" and self._schemas_differ(op):
            reasons.add(CLASH)  # columns that cannot be put together are told, row by row or not
        if outcome == DONE:
            assert verdict is not None, f"{op} was done; it had to be refused: {reasons}"
        elif outcome != KILLED:
            assert outcome in reasons, f"{op} was refused ({outcome}); allowed: {reasons or DONE}"
        if op["on"] in self.model.branches:
            self._absorb(op, verdict, outcome)

    def _schemas_differ(self, op: Op) -> bool:
        known = [self.model.branches.get(name) for name in (op["on"], op["source"])]
        return len({self.model.nodes[each.head].schema for each in known if each}) > 1

    def _absorb(self, op: Op, verdict: Verdict | None, outcome: str) -> None:
        """Take the branch's new commits into the model, and hold what it shows against it."""
        name = op["on"]
        before = self.model.state(name)
        shown = self._content(name, 1 - op["by"])
        allowed: list[State] = []
        if outcome != DONE:
            allowed.append(before)
        if verdict is not None and outcome in (DONE, KILLED):
            allowed.append(verdict.after)
        assert shown in allowed, f"{op} ({outcome}) shows {shown}; allowed: {allowed}"
        for commit in reversed(self._new_commits(name)):
            self._add(name, commit, verdict)
        assert self.model.state(name) == shown, f"{op} ({outcome}): the commits do not tell it"

    def _add(self, branch: str, commit: Commit, verdict: Verdict | None) -> None:
        model = self.model
        head = model.branches[branch].head
        if commit.id in model.nodes:  # taken over from another branch
            model.branches[branch].head = commit.id
            return
        previous = model.nodes[head]
        assert commit.parents[0] == head, "a commit does not stand on the one before it"
        state, schema = previous.state, previous.schema
        if str(commit.kind) not in QUIET:
            assert verdict is not None, f"{commit} was made by nobody"
            state = verdict.after
            merged = (verdict.merged,) if verdict.merged else ()
            assert commit.parents[1:] == merged, "a merge has other parents"
        if str(commit.kind) in ("schema", "merge") and verdict is not None:
            schema = verdict.schema
        model.made += 1
        model.add(
            branch, commit.id, Node(state, commit.parents, str(commit.kind), model.made, schema)
        )

    def _new_commits(self, branch: str) -> list[Commit]:
        """Newest first."""
        known = self.model.branches[branch].head
        found: list[Commit] = []
        for commit in self.handles[0].on(branch).commits():
            if commit.id == known:
                return found
            found.append(commit)
        raise AssertionError(f"the head of {branch} is no longer in its history")

    def _judge_upkeep(self, op: Op, outcome: str) -> None:
        assert outcome in (DONE, KILLED, MISSING), f"{op} was refused: {outcome}"
        assert (outcome == MISSING) == (
            op["on"] not in self.model.branches and op["do"] != "cleanup"
        )
        self.model.cleaned |= op["do"] == "cleanup"
        for name in self.model.branches:
            self._absorb({**op, "on": name}, None, CONFLICT)

    def _judge_names(self, op: Op, outcome: str) -> None:
        """Branches and tags: their names before, or after."""
        after: Model | None = None
        reasons: set[str] = set()
        before = self._names_of(self.model)
        try:
            after = self.model.renamed(op)
        except No as no:
            reasons = no.reasons
        shown = self._shown_names()
        if outcome == DONE:
            assert after is not None, f"{op} was done; it had to be refused: {reasons}"
            assert shown == self._names_of(after), f"{op}: {shown}"
        elif outcome == KILLED:
            assert shown == before or (after and shown == self._names_of(after)), f"{op}: {shown}"
        else:
            assert outcome in reasons, f"{op} was refused ({outcome}); allowed: {reasons or DONE}"
            assert shown == before, f"{op}: {shown}"
        if after is not None and shown == self._names_of(after):
            self.model = after

    @staticmethod
    def _names_of(model: Model) -> tuple[dict[str, str], dict[str, str]]:
        return {name: branch.head for name, branch in model.branches.items()}, model.tags

    def _shown_names(self) -> tuple[dict[str, str], dict[str, str]]:
        graph = self.handles[1]
        heads = {each.name: self._head(graph.on(each.name)) for each in graph.branches()}
        return heads, {tag.name: tag.commit_id for tag in graph.tags()}

    @staticmethod
    def _head(graph: Graph) -> str:
        return graph.snapshot().commit_id

    # Looking

    def _content(self, branch: str, number: int) -> State:
        return whole(content(_reader(self.addresses[number]), branch))

    def _look_back(self, op: Op) -> None:
        """An older state is what it was."""
        try:
            commit = self.model.back(op["on"], op["back"])
        except No:
            return
        try:
            snapshot = self.handles[op["by"]].on(op["on"]).snapshot(commit=commit)
            shown = whole(content(_reader(self.uri), snapshot))
        except HistoryReclaimedError:
            assert self.model.cleaned, f"{op}: the past is gone, and nobody cleaned up"
            return
        assert shown == self.model.nodes[commit].state, f"{op} shows {shown}"

    def finish(self) -> None:
        """The last look, by somebody who comes new."""
        graph = omnigraph.open(self.uri, actor="act-zoe")
        assert graph.recoveries().pending == ()
        assert self._shown_names() == self._names_of(self.model)
        context = _reader(self.uri)
        for name, branch in self.model.branches.items():
            assert whole(content(context, name)) == self.model.state(name), f"branch {name}"
            log = [commit.id for commit in graph.on(name).commits()]
            assert log == list(self.model.chain(branch.head)), f"the history of {name}"
        for tag, commit in self.model.tags.items():
            shown = whole(content(context, graph.snapshot(tag=tag)))
            assert shown == self.model.nodes[commit].state, f"tag {tag}"
        findings = graph.verify().findings
        assert findings == [], findings


class _Racer(threading.Thread):
    """An operation in a thread of its own."""

    def __init__(self, graph: Graph, op: Op) -> None:
        super().__init__()
        self._graph, self._op = graph, op
        self._said = ""
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            self._said = carry_out(self._graph, self._op)
        except Exception as error:  # noqa: BLE001  # raised again where it is waited for
            self._error = error

    def outcome(self) -> str:
        self.join()
        if self._error is not None:
            raise self._error
        return self._said


@contextlib.contextmanager
def _released(go: threading.Event, thread: threading.Thread) -> Iterator[None]:
    try:
        yield
    finally:
        go.set()
        thread.join()


def _reader(uri: str) -> Context:
    return Context(GraphRoot.at(uri), Principal.named("reader"))


def whole(shown: State) -> State:
    """All types, also those without rows."""
    return {name: shown.get(name, {}) for name in empty()}


def play(ops: list[Op], folder: Path, nursery: Nursery) -> Counter[str]:
    """Play a program on a graph of its own; returns how often each outcome occurred."""
    universe = Universe(folder, nursery)
    try:
        for op in ops:
            universe.step(op)
        universe.finish()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return universe.done
