"""A model of histories: commits as a graph, states as plain dicts, merges by their definition.

Written from the definitions alone: ancestors are sets, the common state of two groups of commits is
the merge of their newest common ancestors, and a three-way merge compares values. Nothing of the
program is used.

A value that common ancestors disagree about is `UNKNOWN`: nothing equals it, so that two branches
agree about it or clash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
MAIN = "main"


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()


@dataclass(frozen=True)
class State:
    """Rows by key, and the properties that they have: by name, their number, and what rows without
    a value have. `next` is the number of the next property: two branches that both add a property
    after the same history give it the same number, and it is one property."""

    rows: dict[str, Any]
    properties: dict[str, tuple[int, Any]]
    next: int = 1

    def value(self, row: Row, name: str, identity: tuple[int, Any]) -> Any:
        """A value of a row; a property that the state does not have has its default there."""
        if self.properties.get(name) != identity:
            return identity[1]
        return row.get(name)


class SchemaClashError(Exception):
    """Two states have properties that do not combine."""


@dataclass(frozen=True)
class Commit:
    number: int
    parents: tuple[int, ...]
    state: State
    ancestors: frozenset[int]
    changes_schema: bool = False


@dataclass
class Merged:
    """A merged state, the keys that clash (with a strategy: none), and whether properties do."""

    state: State | None
    clashes: frozenset[str] = frozenset()
    schema_clash: bool = False

    @property
    def is_refused(self) -> bool:
        return self.schema_clash or bool(self.clashes)


def _knows(value: Any) -> bool:
    if isinstance(value, dict):
        return all(each is not UNKNOWN for each in value.values())
    return value is not UNKNOWN


def _combine(base: Any, ours: Any, theirs: Any) -> Any:
    """Three values, each a row, a single value or None."""
    if _knows(ours) and _knows(theirs) and ours == theirs:
        return ours
    if _knows(base) and _knows(theirs) and theirs == base:
        return ours
    if _knows(base) and _knows(ours) and ours == base:
        return theirs
    if all(isinstance(each, dict) for each in (base, ours, theirs)):
        return {name: _combine(base[name], ours[name], theirs[name]) for name in ours}
    return UNKNOWN


def _decide(base: Any, ours: Any, theirs: Any, strategy: str) -> Any:
    """The same where one side wins what clashes."""
    found = _combine(base, ours, theirs)
    chosen = ours if strategy == "ours" else theirs
    if found is UNKNOWN:
        return chosen
    if isinstance(found, dict):
        return {k: chosen[k] if v is UNKNOWN else v for k, v in found.items()}
    return found


def _merge_properties(base: State, ours: State, theirs: State) -> dict[str, tuple[int, Any]]:
    was, mine, others = (set(each.properties.items()) for each in (base, ours, theirs))
    kept = (was & mine & others) | (mine - was) | (others - was)
    found = dict(kept)
    if len(found) < len(kept):
        raise SchemaClashError
    return found


def merge_states(base: State, ours: State, theirs: State, strategy: str | None = None) -> Merged:
    """The three-way merge of states."""
    try:
        properties = _merge_properties(base, ours, theirs)
    except SchemaClashError:
        return Merged(None, schema_clash=True)
    rows: dict[str, Any] = {}
    clashes = set()
    for key in base.rows.keys() | ours.rows.keys() | theirs.rows.keys():
        was, mine, other = (_seen(side, key, properties) for side in (base, ours, theirs))
        _agree(mine, other, ours, theirs, properties)
        row = _decide(was, mine, other, strategy) if strategy else _combine(was, mine, other)
        if not _knows(row):
            clashes.add(key)
        if row is not None:
            rows[key] = row
    following = max(ours.next, theirs.next)
    return Merged(State(rows, properties, following), frozenset(clashes))


def _seen(side: State, key: str, properties: dict[str, tuple[int, Any]]) -> Any:
    row = side.rows.get(key)
    if not isinstance(row, dict):
        return row
    return {name: side.value(row, name, identity) for name, identity in properties.items()}


def _agree(mine: Any, other: Any, ours: State, theirs: State, properties: dict[str, Any]) -> None:
    """A side that does not know a property agrees with whatever the other one has there."""
    if not (isinstance(mine, dict) and isinstance(other, dict)):
        return
    for name, identity in properties.items():
        if ours.properties.get(name) != identity:
            mine[name] = other[name]
        if theirs.properties.get(name) != identity:
            other[name] = mine[name]


def loses_values(base: State, ours: State, theirs: State) -> bool:
    """Whether one side dropped a property that the other one gave a value."""
    return any(
        _gave(base, keeper, name, identity)
        for dropper, keeper in ((ours, theirs), (theirs, ours))
        for name, identity in base.properties.items()
        if dropper.properties.get(name) != identity and keeper.properties.get(name) == identity
    )


def _gave(base: State, side: State, name: str, identity: tuple[int, Any]) -> bool:
    for key, row in side.rows.items():
        was = base.rows.get(key)
        if was is UNKNOWN or (was is not None and was[name] is UNKNOWN):
            if row[name] is not None:
                return True
        elif was is None:
            if row[name] not in (None, identity[1]):
                return True
        elif row[name] != was[name]:
            return True
    return False


@dataclass
class World:
    """All commits, and what each branch's name means."""

    commits: list[Commit] = field(default_factory=list)
    branches: dict[str, int] = field(default_factory=dict)
    # The newest commit when history was last given up; states of older ones may be gone.
    cleaned: int = -1

    def commit(self, parents: Sequence[int], state: State, *, schema: bool = False) -> int:
        above: Iterable[int] = (a for p in parents for a in self.commits[p].ancestors)
        number = len(self.commits)
        ancestors = frozenset({number, *above})
        self.commits.append(Commit(number, tuple(parents), state, ancestors, schema))
        return number

    def head(self, branch: str) -> Commit:
        return self.commits[self.branches[branch]]

    def chain(self, branch: str) -> list[Commit]:
        """First parents, newest first."""
        found = [self.head(branch)]
        while found[-1].parents:
            found.append(self.commits[found[-1].parents[0]])
        return found

    def bases(self, ours: Sequence[int], theirs: Sequence[int]) -> list[int]:
        """The common ancestors that no other common ancestor descends from."""
        mine, others = (
            frozenset().union(*(self.commits[n].ancestors for n in side)) for side in (ours, theirs)
        )
        common = mine & others
        below = {a for n in common for a in self.commits[n].ancestors - {n}}
        return sorted(common - below)

    def common(self, bases: Sequence[int]) -> State:
        """The state that commits with these newest common ancestors have in common."""
        state = self.commits[bases[0]].state
        for place, number in enumerate(bases[1:], 1):
            lower = self.common(self.bases(bases[:place], [number]))
            found = merge_states(lower, state, self.commits[number].state)
            if found.state is None:
                raise SchemaClashError
            state = found.state
        return state

    def change(
        self, bases: Sequence[int], ours: State, theirs: State, strategy: str | None = None
    ) -> Merged:
        """A three-way merge against a common state, with all that refuses it."""
        try:
            base = self.common(bases)
        except SchemaClashError:
            return Merged(None, schema_clash=True)
        found = merge_states(base, ours, theirs, strategy)
        if found.state is not None and loses_values(base, ours, theirs):
            return Merged(found.state, found.clashes, schema_clash=True)
        return found

    def merge(self, source: str, into: str, strategy: str | None = None) -> tuple[str, Merged]:
        """What merging would do: the outcome, and the state."""
        ours, theirs = self.head(into), self.head(source)
        if theirs.number in ours.ancestors:
            return "already_up_to_date", Merged(ours.state)
        if ours.number in {commit.number for commit in self.chain(source)}:
            return "fast_forward", Merged(theirs.state)
        bases = self.bases([ours.number], [theirs.number])
        return "merged", self.change(bases, ours.state, theirs.state, strategy)

    def own(self, branch: str, onto: str) -> list[Commit]:
        """The first parents of a branch that another one does not have, oldest first."""
        known = self.head(onto).ancestors
        return [commit for commit in self.chain(branch) if commit.number not in known][::-1]

    def rebase(self, branch: str, onto: str) -> list[State] | None:
        """The states of the commits that a rebase makes, None if one does not fit."""
        tip = self.head(onto)
        states = [tip.state]
        for commit in self.own(branch, onto):
            parent = commit.parents[0]
            bases = self.bases([tip.number, parent], [commit.number])
            if len(commit.parents) == 1:
                bases = [parent]
            found = self.change(bases, states[-1], commit.state)
            if found.is_refused or found.state is None:
                return None
            if found.state != states[-1]:
                states.append(found.state)
        return states[1:]

    def rebase_at_once(self, branch: str, onto: str) -> list[State] | None:
        """The same where the commits between are no longer known: all changes as one."""
        tip, head = self.head(onto), self.head(branch)
        found = self.change(self.bases([tip.number], [head.number]), tip.state, head.state)
        if found.is_refused or found.state is None:
            return None
        return [found.state] if found.state != tip.state else []
