"""Plays a program on a graph and on the model, and compares them after every operation.

What is compared: the content of the branch that changed; whether a merge, rebase, pick or revert is
refused, and about which entities; what a preview says beside what the merge then does; and in the
end the content of every branch and the preview of every merge between any two of them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

from tests.lineage.model import MAIN, Merged, State, World
from tests.lineage.programs import MOST_BRANCHES, Op
from tests.support.branchgraphs import content, put

from omnigraph.commit.retention import Policy
from omnigraph.errors import HistoryReclaimedError, InvalidArgumentError, MergeConflictError
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.conflict import MergeConflict
from omnigraph.operations.context import Context
from omnigraph.operations.lifecycle import init_graph, open_graph
from omnigraph.operations.merge import MergePreview, options
from omnigraph.operations.requests import (
    ApplySchema,
    CherryPick,
    CleanUp,
    CreateBranch,
    DeleteBranch,
    Merge,
    PreviewMerge,
    Rebase,
    Revert,
)
from omnigraph.operations.verbs import run

TYPES = ("A", "B")
DEFAULT = 7
_EVERYTHING = Policy(keep=1, grace_s=0, litter_s=0)


def schema(properties: dict[str, tuple[int, Any]]) -> str:
    texts = [
        f"{name}: I64?" if default is None else f"{name}: I64 @default({default})"
        for name, (_, default) in properties.items()
    ]
    lines = "\n  ".join(["key: String @key", *texts])
    return "".join(f"node {name} {{\n  {lines}\n}}\n" for name in TYPES)


START = State({}, {"a": (0, None), "b": (0, None)})


def template(folder: Path) -> Path:
    """An empty graph, to be copied for each universe."""
    place = folder / "template"
    init_graph(str(place), schema(START.properties), actor="act-model")
    return place


def play(ops: list[Op], folder: Path, empty: Path) -> Counter[str]:
    shutil.copytree(empty, folder)
    try:
        universe = Universe(open_graph(str(folder), actor="act-model"))
        for op in ops:
            universe.do(op)
        universe.compare_all()
        return universe.outcomes
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Universe:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.world = World()
        self.world.branches[MAIN] = self.world.commit((), START)
        self.outcomes: Counter[str] = Counter()
        # The program's ids of the model's commits.
        self.ids = {0: resolve(context.root, Target(MAIN)).commit_id}
        self._names = 0

    def do(self, op: Op) -> None:
        kind, *arguments = op
        outcome = getattr(self, f"_{kind}")(*arguments)
        self.outcomes[f"{kind} {outcome or 'done'}"] += 1

    # Writes

    def _put(self, branch: int, key: str, values: dict[str, Any]) -> None:
        name = self._named(branch)
        head = self.world.head(name).state
        row = {item: _or(values.get(item), value) for item, (_, value) in head.properties.items()}
        type_name, entity_id = key.split(":")
        given = {item: value for item, value in row.items() if value is not None}
        put(self.context, {type_name: [{"id": entity_id, "key": entity_id, **given}]}, name)
        self._commit(name, replace(head, rows={**head.rows, key: row}))

    def _set(self, branch: int, key: str, item: str, value: int) -> str | None:
        head = self.world.head(self._named(branch)).state
        if item not in head.properties:
            return "nothing"
        self._put(branch, key, {**head.rows.get(key, {}), item: value})
        return None

    def _delete(self, branch: int, key: str) -> str | None:
        name = self._named(branch)
        head = self.world.head(name).state
        if key not in head.rows:
            return "nothing"
        type_name, entity_id = key.split(":")
        put(self.context, {}, name, removed={type_name: [entity_id]})
        rows = {other: row for other, row in head.rows.items() if other != key}
        self._commit(name, replace(head, rows=rows))
        return None

    def _drop(self, branch: int) -> str | None:
        """Drop the last property but one, so that rows have something left."""
        name = self._named(branch)
        head = self.world.head(name).state
        if len(head.properties) < 2:
            return "nothing"
        gone = list(head.properties)[-1]
        kept = {item: identity for item, identity in head.properties.items() if item != gone}
        rows = {key: {i: row[i] for i in kept} for key, row in head.rows.items()}
        self._apply(name, State(rows, kept, head.next))
        return None

    def _add(self, branch: int) -> str | None:
        name = self._named(branch)
        head = self.world.head(name).state
        if "c" in head.properties:
            return "nothing"
        properties = {**head.properties, "c": (head.next, DEFAULT)}
        rows = {key: {**row, "c": DEFAULT} for key, row in head.rows.items()}
        self._apply(name, State(rows, properties, head.next + 1))
        return None

    def _apply(self, name: str, state: State) -> None:
        before = self.world.head(name).state
        run(self.context, ApplySchema(schema(state.properties), name, allow_data_loss=True))
        if len(state.properties) < len(before.properties):  # what is dropped is erased at once
            self.world.cleaned = len(self.world.commits)
        self._commit(name, state, schema_=True)

    # Branches

    def _named(self, number: int) -> str:
        names = list(self.world.branches)
        return names[number % len(names)]

    def _other(self, number: int, than: str) -> str:
        names = [name for name in self.world.branches if name != than]
        return names[number % len(names)] if names else than

    def _create(self, start: str) -> str:
        self._names += 1
        name = f"b{self._names}"
        run(self.context, CreateBranch(name, Target(start)))
        self.world.branches[name] = self.world.branches[start]
        return name

    def _branch(self, start: int) -> str | None:
        if len(self.world.branches) >= MOST_BRANCHES:
            return "nothing"
        self._create(self._named(start))
        return None

    def _unbranch(self, branch: int) -> str | None:
        name = self._other(branch, MAIN)
        if name == MAIN:
            return "nothing"
        run(self.context, DeleteBranch(name, with_children=True))
        del self.world.branches[name]
        return None

    def _cleanup(self, _: int) -> None:
        run(self.context, CleanUp(_EVERYTHING, confirm=True))
        self.world.cleaned = len(self.world.commits) - 1

    # Merges

    def _merge(self, source: int, into: int, strategy: str | None) -> str:
        target = self._named(into)
        return self._merge_branches(self._other(source, target), target, strategy)

    def _cross(self, one: int, two: int, strategy: str | None) -> str:
        """Merge two branches into each other at the same time."""
        first = self._named(one)
        second = self._other(two, first)
        if first == second:
            return "nothing"
        before = self._create(second)
        outcome = self._merge_branches(first, second, strategy)
        back = self._merge_branches(before, first, strategy)
        run(self.context, DeleteBranch(before, with_children=True))
        del self.world.branches[before]
        return f"{outcome}, {back}"

    def _merge_branches(self, source: str, into: str, strategy: str | None) -> str:
        if source == into:
            return "nothing"
        outcome, want = self.world.merge(source, into, strategy)
        how = options(strategy)
        preview = run(self.context, PreviewMerge(source, into, how))
        self._compare_preview(preview, outcome, want, f"{source} into {into}")
        done = _attempt(lambda: run(self.context, Merge(source, into, how)), MergeConflictError)
        refused = isinstance(done, MergeConflictError)
        assert refused == want.is_refused, f"{source} into {into}: {done}, {want.clashes}"
        if isinstance(done, MergeConflictError):
            assert done.every == preview.conflicts
            self._compare(into)
            return "refused"
        assert str(done.outcome) == outcome
        if outcome == "fast_forward":
            self.world.branches[into] = self.world.branches[source]
        elif outcome == "merged":
            assert want.state is not None
            parents = (self.world.branches[into], self.world.branches[source])
            self._commit(into, want.state, parents)
        self._compare(into)
        return outcome

    def _compare_preview(self, said: MergePreview, outcome: str, want: Merged, what: str) -> None:
        assert str(said.outcome) == outcome, f"{what}: {said.outcome}, not {outcome}"
        told = _keys(said.conflicts)
        if want.schema_clash:
            assert None in told, f"{what}: no conflict of schemas among {told}"
        else:
            assert told == set(want.clashes), f"{what}: {told}, not {set(want.clashes)}"

    def _rebase(self, branch: int, onto: int) -> str:
        name = self._other(branch, MAIN)
        other = self._other(onto, name)
        if name == MAIN:
            return "nothing"
        if self.world.branches[other] in self.world.head(name).ancestors:
            assert not run(self.context, Rebase(name, other)).moved
            return "nothing"
        own = self.world.own(name, other)
        wanted = [self.world.rebase(name, other)]
        if len(own) > 1 and own[0].parents[0] <= self.world.cleaned:
            wanted.append(self.world.rebase_at_once(name, other))
        done = _attempt(lambda: run(self.context, Rebase(name, other)), MergeConflictError)
        if isinstance(done, MergeConflictError):
            assert None in wanted, f"rebase of {name} onto {other}: {done}"
            self._compare(name)
            return "refused"
        assert done.moved
        found, ids = self._content(name), [commit.id for commit in done.commits]
        fits = [each for each in wanted if each is not None and len(each) == len(ids)]
        fits = [each for each in fits if self._ends(other, each, found)]
        assert fits, f"rebase of {name} onto {other}: {ids} to {found}, not {wanted}"
        self._take_over(name, other, fits[0], ids)
        return "done" if fits[0] is wanted[0] else "done at once"

    def _ends(self, onto: str, states: list[State], found: State) -> bool:
        return _same(states[-1] if states else self.world.head(onto).state, found)

    def _take_over(self, name: str, onto: str, states: list[State], ids: list[str]) -> None:
        head = self.world.branches[onto]
        for state, commit_id in zip(states, ids, strict=True):
            schema_ = state.properties != self.world.commits[head].state.properties
            head = self.world.commit((head,), state, schema=schema_)
            self.ids[head] = commit_id
        self.world.branches[name] = head

    def _revert(self, branch: int, _: int, back: int) -> str:
        name = self._named(branch)
        commit = self._commit_of(name, back)
        if not commit.parents:
            return "nothing"
        parent = self.world.commits[commit.parents[0]]
        schema_ = commit.state.properties != parent.state.properties

        def act() -> Any:
            return run(self.context, Revert(self.ids[commit.number], name)).commit

        if schema_:
            return _refuses(act, InvalidArgumentError)
        return self._apply_change(name, commit.number, parent.number, act)

    def _pick(self, branch: int, other: int, back: int) -> str:
        name = self._named(branch)
        commit = self._commit_of(self._other(other, name), back)
        if not commit.parents:
            return "nothing"

        def act() -> Any:
            return run(self.context, CherryPick(self.ids[commit.number], name)).commit

        return self._apply_change(name, commit.parents[0], commit.number, act)

    def _apply_change(self, name: str, start: int, end: int, act: Callable[[], Any]) -> str:
        world = self.world
        ours = world.head(name).state
        want = world.change([start], ours, world.commits[end].state)
        made = _attempt(act, MergeConflictError, HistoryReclaimedError)
        if isinstance(made, HistoryReclaimedError):
            assert min(start, end) <= world.cleaned, "a state is gone that nobody gave up"
            return "reclaimed"
        refused = isinstance(made, MergeConflictError)
        assert refused == want.is_refused, f"{made}, not {want}"
        if refused:
            return "refused"
        assert want.state is not None
        assert (made is None) == (want.state == ours), f"{made} for {ours} to {want.state}"
        if made is None:
            return "nothing"
        self._commit(name, want.state)
        self._compare(name)
        return "done"

    def _commit_of(self, branch: str, back: int) -> Any:
        chain = self.world.chain(branch)
        return chain[back % len(chain)]

    # Comparing

    def _commit(
        self, name: str, state: State, parents: tuple[int, ...] = (), *, schema_: bool = False
    ) -> None:
        above = parents or (self.world.branches[name],)
        number = self.world.commit(above, state, schema=schema_)
        self.world.branches[name] = number
        self.ids[number] = resolve(self.context.root, Target(name)).commit_id

    def _content(self, name: str) -> State:
        tables = content(self.context, name)
        rows = {f"{name}:{key}": row for name in tables for key, row in tables[name].items()}
        return State(rows, {})

    def _compare(self, name: str) -> None:
        want, found = self.world.head(name).state, self._content(name)
        assert _same(want, found), f"{name} holds {found.rows}, not {want.rows}"

    def compare_all(self) -> None:
        for name in self.world.branches:
            self._compare(name)
        for source, into in permutations(self.world.branches, 2):
            outcome, want = self.world.merge(source, into)
            preview = run(self.context, PreviewMerge(source, into))
            self._compare_preview(preview, outcome, want, f"{source} into {into}")


def _same(want: State, found: State) -> bool:
    plain = {
        key: {name: value for name, value in row.items() if value is not None}
        for key, row in want.rows.items()
    }
    there = {
        key: {name: value for name, value in row.items() if name != "key"}
        for key, row in found.rows.items()
    }
    return plain == there


def _keys(conflicts: tuple[MergeConflict, ...]) -> set[str | None]:
    return {f"{c.type_name}:{c.entity_id}" if c.entity_id else None for c in conflicts}


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _attempt(act: Callable[[], Any], *errors: type[Exception]) -> Any:
    """What came of it, an expected error included."""
    try:
        return act()
    except errors as error:
        return error


def _refuses(act: Callable[[], Any], error: type[Exception]) -> str:
    try:
        act()
    except error:
        return "refused"
    raise AssertionError(f"{error.__name__} was expected")
