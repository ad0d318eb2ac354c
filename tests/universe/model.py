"""A graph in memory, as its promises describe it: rows in dicts, branches, commits and tags.

It knows nothing of tables, versions, locks or files. `Model.predict` says what an operation must
lead to: a new state, or one of some refusals. Commits are known by the ids that the graph gave
them, with the state that the model says they have.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.rowmerge import Row, State, combine_states

SCHEMA = """
node Person {
    name: String @key
    age: I64? @range(0..100)
    email: String? @unique
}
node City {
    name: String @key
    size: I64?
}
edge Knows: Person -> Person @card(0..1) { weight: I64? }
edge Lives: Person -> City { since: I64? }
"""
MOST_KNOWN = 1
ENDS = {"Knows": ("Person", "Person"), "Lives": ("Person", "City")}
Op = dict[str, Any]

# Why something may be refused.
REFUSED, CLASH, MISSING, EXISTS, INVALID, CONFLICT, RECLAIMED = (
    "refused",
    "clash",
    "missing",
    "exists",
    "invalid",
    "conflict",
    "reclaimed",
)


class No(Exception):  # noqa: N818  # an answer, not a failure
    """The model refuses, for any of these reasons."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = set(reasons)


@dataclass(frozen=True)
class Node:
    """A commit: its state, its parents, and how many commits came before it anywhere."""

    state: State
    parents: tuple[str, ...]
    kind: str
    order: int
    schema: frozenset[str]


@dataclass
class Branch:
    number: int
    parent: int
    head: str


@dataclass(frozen=True)
class Verdict:
    """What must come of an operation on content. `take`: the target takes these commits over."""

    after: State
    merged: str | None = None
    take: str | None = None
    schema: frozenset[str] = frozenset()


@dataclass
class Model:
    branches: dict[str, Branch] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    made: int = 0
    cleaned: bool = False

    def state(self, branch: str) -> State:
        return self.head(branch).state

    def head(self, branch: str) -> Node:
        if branch not in self.branches:
            raise No(MISSING)
        return self.nodes[self.branches[branch].head]

    def chain(self, commit: str) -> Iterator[str]:
        """A commit and its first parents, newest first."""
        while True:
            yield commit
            parents = self.nodes[commit].parents
            if not parents:
                return
            commit = parents[0]

    def ancestors(self, commit: str) -> set[str]:
        found, waiting = set(), [commit]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.nodes[one].parents
        return found

    def back(self, branch: str, steps: int) -> str:
        """The commit some steps behind a branch's head."""
        self.head(branch)
        chain = list(self.chain(self.branches[branch].head))
        return chain[min(steps, len(chain) - 1)]

    def add(self, branch: str, commit: str, node: Node) -> None:
        self.nodes[commit] = node
        self.branches[branch].head = commit

    # Predictions

    def predict(self, op: Op) -> Verdict:
        """What an operation on content leads to; raises `No` when it must be refused."""
        kind = op["do"]
        if kind == "merge":
            return self._merge(op["source"], op["on"])
        if kind in ("revert", "pick"):
            return self._apply_commit(op)
        head = self.head(op["on"])
        if kind == "evolve":
            return Verdict(head.state, schema=head.schema | {op["extra"]})
        after = copy.deepcopy(head.state)
        CHANGES[kind](after, op)
        if not holds(after):
            raise No(REFUSED)
        return Verdict(after, schema=head.schema)

    def _merge(self, source: str, into: str) -> Verdict:
        if source == into:
            raise No(INVALID)
        ours, theirs = self.head(into), self.head(source)
        our_id, their_id = self.branches[into].head, self.branches[source].head
        common = self.ancestors(our_id) & self.ancestors(their_id)
        base = self.nodes[max(common, key=lambda commit: self.nodes[commit].order)]
        if their_id in common:
            return Verdict(ours.state, schema=ours.schema)
        if our_id in self.chain(their_id):
            return Verdict(theirs.state, take=their_id, schema=theirs.schema)
        merged, clash = combine_states(base.state, ours.state, theirs.state)
        if clash or not holds(merged):
            raise No(CLASH)
        return Verdict(merged, merged=their_id, schema=ours.schema | theirs.schema)

    def _apply_commit(self, op: Op) -> Verdict:
        ours = self.head(op["on"])
        commit = self.nodes[op["commit"]]
        if not commit.parents:
            raise No(INVALID, RECLAIMED)
        parent = self.nodes[commit.parents[0]]
        if commit.schema != parent.schema:
            raise No(INVALID)
        base, theirs = (commit, parent) if op["do"] == "revert" else (parent, commit)
        merged, clash = combine_states(base.state, ours.state, theirs.state)
        if clash or not holds(merged):
            raise No(CLASH, RECLAIMED)
        return Verdict(merged, schema=ours.schema)

    def renamed(self, op: Op) -> Model:
        """The model with other branches or tags; raises `No` when it must be refused."""
        after = Model(dict(self.branches), self.nodes, dict(self.tags), self.made, self.cleaned)
        if op["do"] in ("tag", "untag"):
            after._retag(op)
        else:
            after._rebranch(op)
        return after

    def _retag(self, op: Op) -> None:
        name = op["name"]
        if op["do"] == "untag":
            if self.tags.pop(name, None) is None:
                raise No(MISSING)
            return
        self.head(op["on"])
        if name in self.tags:
            raise No(EXISTS)
        self.tags[name] = self.branches[op["on"]].head

    def _rebranch(self, op: Op) -> None:
        name = op["on"]
        self.head(name)
        if op["do"] != "branch" and name == "main":
            raise No(INVALID)
        if op["do"] == "unbranch":
            if self.children(name):
                raise No(CONFLICT)
            del self.branches[name]
            return
        if op["name"] in self.branches:
            raise No(EXISTS)
        if op["do"] == "rename":
            self.branches[op["name"]] = self.branches.pop(name)
            return
        self.made += 1
        parent = self.branches[name]
        self.branches[op["name"]] = Branch(self.made, parent.number, parent.head)

    def children(self, branch: str) -> list[str]:
        number = self.branches[branch].number
        return [name for name, other in self.branches.items() if other.parent == number]


def empty() -> State:
    return {"Person": {}, "City": {}, "Knows": {}, "Lives": {}}


def holds(state: State) -> bool:
    """Whether the rules of the schema hold."""
    people = state["Person"].values()
    emails = [row["email"] for row in people if "email" in row]
    ages = [row["age"] for row in people if "age" in row]
    known = Counter(row["src"] for row in state["Knows"].values())
    whole = all(
        row["src"] in state[src] and row["dst"] in state[dst]
        for edge, (src, dst) in ENDS.items()
        for row in state[edge].values()
    )
    return (
        len(set(emails)) == len(emails)
        and all(0 <= age <= 100 for age in ages)
        and all(count <= MOST_KNOWN for count in known.values())
        and whole
    )


def given(row: Row) -> Row:
    return {key: value for key, value in row.items() if value is not None}


# What each operation does to the rows of a branch.


def _put(state: State, op: Op) -> None:
    for name, key, row in op["rows"]:
        if not 0 <= (row.get("age") or 0) <= 100:
            raise No(REFUSED)  # every record is looked at, also one that a later one replaces
        state[name][key] = given(row)


def _append(state: State, op: Op) -> None:
    names = [(name, key) for name, key, _ in op["rows"]]
    if len(set(names)) < len(names) or any(key in state[name] for name, key in names):
        raise No(REFUSED)
    _put(state, op)


def _replace(state: State, op: Op) -> None:
    keys = [key for _, key, _ in op["rows"]]
    if len(set(keys)) < len(keys):
        raise No(REFUSED)
    state[op["type"]] = {}
    _put(state, op)


def _set(state: State, op: Op) -> None:
    row = state[op["type"]].get(op["key"])
    if row is not None:
        state[op["type"]][op["key"]] = given({**row, op["property"]: op["value"]})


def _grow(state: State, op: Op) -> None:
    for key, row in state["Person"].items():
        if row.get("age", -1) >= op["low"]:
            state["Person"][key] = {**row, "age": row["age"] + 1}


def _remove(state: State, op: Op) -> None:
    name, key = op["type"], op["key"]
    if state[name].pop(key, None) is None:
        return
    for edge, (src, dst) in ENDS.items():
        state[edge] = {
            k: row
            for k, row in state[edge].items()
            if not ((src == name and row["src"] == key) or (dst == name and row["dst"] == key))
        }


def _unlink(state: State, op: Op) -> None:
    rows = state[op["type"]]
    state[op["type"]] = {k: row for k, row in rows.items() if row["src"] != op["key"]}


CHANGES = {
    "put": _put,
    "append": _append,
    "replace": _replace,
    "set": _set,
    "grow": _grow,
    "remove": _remove,
    "unlink": _unlink,
}
