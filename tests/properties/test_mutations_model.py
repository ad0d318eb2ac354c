"""Random sequences of writes against a plain dict, through one handle and through two.

The model knows nothing of tables, deltas or files: people by name, edges as a bag of ends. After
every step the graph must hold what the model holds, or have refused for the reason that the model
gives and hold what it held before.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.crash.sizes import FULL
from tests.support.memoryfolder import VARIABLE
from tests.support.writegraphs import another, new_graph, rows

from omnigraph.errors import InvalidDataError, KeyConflictError, OmniGraphError
from omnigraph.graph import Graph

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
    @range(age, 0..100)
}
edge Knows: Person -> Person @card(0..2) { how: String? }
edge Likes: Person -> Person
"""
MOST_KNOWN = 2
Person = dict[str, Any]
Ends = tuple[str, str, str | None]


@dataclass
class Model:
    people: dict[str, Person] = field(default_factory=dict)
    knows: list[Ends] = field(default_factory=list)
    likes: list[Ends] = field(default_factory=list)

    def check(self) -> None:
        """Raise what the graph must raise for a state like this."""
        emails = [p["email"] for p in self.people.values() if p["email"] is not None]
        ages = [p["age"] for p in self.people.values() if p["age"] is not None]
        ends = {end for src, dst, _ in (*self.knows, *self.likes) for end in (src, dst)}
        known = Counter(src for src, _, _ in self.knows)
        if (
            len(set(emails)) < len(emails)
            or any(not 0 <= age <= 100 for age in ages)
            or ends - self.people.keys()
            or any(count > MOST_KNOWN for count in known.values())
        ):
            raise InvalidDataError("broken")

    def remove(self, names: set[str]) -> None:
        for name in names & self.people.keys():
            del self.people[name]
        self.knows = [e for e in self.knows if not {e[0], e[1]} & names]
        self.likes = [e for e in self.likes if not {e[0], e[1]} & names]


@dataclass(frozen=True)
class Step:
    """One write: how the graph is asked, and what the model makes of it."""

    name: str
    ask: Callable[[Graph], Any]
    apply: Callable[[Model], None]


def mutation(body: str, apply: Callable[[Model], None]) -> Step:
    text = f"query q() {{ {body} }}"
    return Step(body, lambda graph: graph.mutate(text), apply)


# Statements, as text and as what they do to the model.

NAMES = st.sampled_from(["a", "b", "c", "d"])
AGES = st.sampled_from([None, 0, 7, 99, 100, 101])
EMAILS = st.sampled_from([None, "x", "y"])
Statement = tuple[str, Callable[[Model], None]]


def shown(value: object) -> str:
    return "null" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


@st.composite
def constructive(draw: Any) -> Statement:
    kind = draw(st.sampled_from(["insert", "insert", "age", "grow", "email", "upsert", "edge"]))
    name, age, email = draw(NAMES), draw(AGES), draw(EMAILS)
    given_ = f"name: {shown(name)}, age: {shown(age)}, email: {shown(email)}"
    if kind == "insert":
        return f"insert Person {{ {given_} }}", lambda m: put(m, name, age, email)
    if kind == "upsert":
        policy = draw(st.sampled_from(["update", "replace", "nothing", "error"]))
        text = f"upsert Person {{ {given_} }} on conflict {policy}"
        return text, lambda m: upsert(m, policy, name, age, email)
    if kind == "edge":
        edge, to = draw(st.sampled_from(["Knows", "Likes"])), draw(NAMES)
        text = f"insert {edge} {{ from: {shown(name)}, to: {shown(to)} }}"
        return text, lambda m: edges(m, edge).append((name, to, None))
    if kind == "age":
        text = f"update Person set {{ age: {shown(age)} }} where name = {shown(name)}"
        return text, lambda m: change(m, {name}, age=lambda _: age)
    if kind == "grow":
        low = draw(st.sampled_from([0, 7, 50]))
        text = f"update Person set {{ age: age + 1 }} where age >= {low}"
        return text, lambda m: change(
            m, named(m, lambda p: p["age"] is not None and p["age"] >= low), age=lambda a: a + 1
        )
    text = f"update Person set {{ email: {shown(email)} }} where name != {shown(name)}"
    return text, lambda m: change(m, m.people.keys() - {name}, email=lambda _: email)


def named(model: Model, wanted: Callable[[Person], bool]) -> set[str]:
    return {name for name, person in model.people.items() if wanted(person)}


def put(model: Model, name: str, age: int | None, email: str | None) -> None:
    if age is not None and not 0 <= age <= 100:
        raise InvalidDataError("range")
    model.people[name] = {"age": age, "email": email}


def upsert(model: Model, policy: str, name: str, age: int | None, email: str | None) -> None:
    if name in model.people and policy == "error":
        # The row itself is looked at first.
        put(copy.deepcopy(model), name, age, email)
        raise KeyConflictError("there", type_name="Person")
    if name in model.people and policy == "nothing":
        put(copy.deepcopy(model), name, age, email)
    else:
        put(model, name, age, email)


def edges(model: Model, edge: str) -> list[Ends]:
    return model.knows if edge == "Knows" else model.likes


def change(model: Model, names: Any, **changes: Callable[[Any], Any]) -> None:
    for name in sorted(names & model.people.keys()):
        person = model.people[name]
        for key, value in changes.items():
            person[key] = value(person[key])
        if person["age"] is not None and not 0 <= person["age"] <= 100:
            raise InvalidDataError("range")


@st.composite
def destructive(draw: Any) -> Statement:
    kind = draw(st.sampled_from(["name", "age", "null", "edge", "edges"]))
    name = draw(NAMES)
    if kind == "name":
        return f"delete Person where name = {shown(name)}", lambda m: m.remove({name})
    if kind == "age":
        low = draw(st.sampled_from([0, 7, 99]))
        return f"delete Person where age > {low}", lambda m: m.remove(
            {n for n, p in m.people.items() if p["age"] is not None and p["age"] > low}
        )
    if kind == "null":
        return "delete Person where email is null", lambda m: m.remove(
            {n for n, p in m.people.items() if p["email"] is None}
        )
    edge = draw(st.sampled_from(["Knows", "Likes"]))
    if kind == "edge":
        text = f"delete {edge} where from = {shown(name)}"
        return text, lambda m: keep(m, edge, lambda e: e[0] != name)
    text = f"delete {edge} where to = {shown(name)} or from = {shown(name)}"
    return text, lambda m: keep(m, edge, lambda e: name not in (e[0], e[1]))


def keep(model: Model, edge: str, wanted: Callable[[Ends], bool]) -> None:
    found = edges(model, edge)
    found[:] = [ends for ends in found if wanted(ends)]


@st.composite
def queries(draw: Any) -> Step:
    kind = draw(st.sampled_from([constructive(), constructive(), destructive()]))
    statements = draw(st.lists(kind, min_size=1, max_size=4))

    def apply(model: Model) -> None:
        for _, act in statements:
            act(model)

    return mutation(" ".join(text for text, _ in statements), apply)


# Ingest.


@st.composite
def ingests(draw: Any) -> Step:
    mode = draw(st.sampled_from(["append", "merge", "overwrite"]))
    people = draw(st.lists(st.tuples(NAMES, AGES, EMAILS), max_size=3))
    links = draw(st.lists(st.tuples(NAMES, NAMES), max_size=2))
    records: list[dict[str, Any]] = [
        {"edge": "Likes", "from": src, "to": dst} for src, dst in links
    ]
    records += [
        {"type": "Person", "data": {"name": name, "age": age, "email": email}}
        for name, age, email in people
    ]

    def apply(model: Model) -> None:
        ingest(model, mode, people, links)

    types = ["Person"] if mode == "overwrite" else []
    return Step(
        f"{mode} {people} {links}", lambda graph: graph.ingest(records, mode, types=types), apply
    )


def ingest(
    model: Model,
    mode: str,
    people: list[tuple[str, int | None, str | None]],
    links: list[tuple[str, str]],
) -> None:
    names = [name for name, _, _ in people]
    if any(age is not None and age > 100 for _, age, _ in people):
        raise InvalidDataError("range")
    if mode != "merge" and len(set(names)) < len(names):
        raise InvalidDataError("repeated")
    if mode == "append" and set(names) & model.people.keys():
        raise KeyConflictError("there", type_name="Person")
    if mode == "overwrite":
        model.people.clear()
        if links:
            model.likes.clear()
    for name, age, email in people:
        model.people[name] = {"age": age, "email": email}
    model.likes.extend((src, dst, None) for src, dst in links)


STEPS = st.lists(st.one_of(queries(), queries(), ingests()), min_size=1, max_size=14)


# Running.


def state(graph: Graph) -> Model:
    people = {
        row["name"]: {"age": row.get("age"), "email": row.get("email")}
        for row in rows(graph, "Person")
    }
    found = [
        sorted((row["src"], row["dst"], row.get("how")) for row in rows(graph, edge))
        for edge in ("Knows", "Likes")
    ]
    return Model(people, *found)


def expected(model: Model, step: Step) -> Model | type[OmniGraphError]:
    after = copy.deepcopy(model)
    try:
        step.apply(after)
        after.check()
    except OmniGraphError as error:
        return type(error)
    after.knows.sort(key=str)
    after.likes.sort(key=str)
    return after


def play(steps: list[Step], handles: Iterator[Graph]) -> None:
    model = Model()
    for step in steps:
        graph = next(handles)
        before = graph.snapshot()
        after = expected(model, step)
        if isinstance(after, Model):
            result = step.ask(graph)
            moved = after != model
            assert result.changed or not moved, step.name
            model = after
        else:
            with pytest.raises(OmniGraphError) as error:
                step.ask(graph)
            # A key that exists and a rule that is broken at once: either may be told.
            assert isinstance(error.value, InvalidDataError | KeyConflictError), step.name
            assert another(graph).snapshot() == before, step.name
        assert state(another(graph)) == model, step.name


def in_turn(*handles: Graph) -> Iterator[Graph]:
    """Handles one after the other, in an order that favours neither."""
    turn = 0
    while True:
        yield handles[(turn * turn // 3) % len(handles)]
        turn += 1


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_one_handle_agrees_with_the_model(steps):
    with tempfile.TemporaryDirectory(dir=os.environ.get(VARIABLE)) as folder:
        graph = new_graph(Path(folder), SCHEMA)
        play(steps, in_turn(graph))


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_two_stale_handles_agree_with_the_model(steps):
    """ledger: C04, C13"""
    with tempfile.TemporaryDirectory(dir=os.environ.get(VARIABLE)) as folder:
        first = new_graph(Path(folder), SCHEMA)
        second = another(first)
        second.snapshot()
        play(steps, in_turn(first, second))


@pytest.mark.slow
@settings(max_examples=200 if FULL else 60, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_many_more_sequences(steps):
    with tempfile.TemporaryDirectory(dir=os.environ.get(VARIABLE)) as folder:
        first = new_graph(Path(folder), SCHEMA)
        second = another(first)
        play(steps, in_turn(first, second))
