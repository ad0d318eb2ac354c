"""The walks in ARCHITECTURE.md are the calls that a query, a mutation, a load and a recovery make.

A walk on the page is a block of functions, one per line, as `module:function`. An indented function
is called, directly or not, by the one above it with less indentation; functions of one depth are
called in the order of their lines. The rooms of a block are all the rooms that the call enters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests.support.callrecord import Call, Function, Record, recorded_calls

import omnigraph
from omnigraph import faults

PAGE = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
BLOCK = re.compile(
    r"^### (?P<title>[^\n]+)\n(?:(?!^#).)*?^```walk\n(?P<lines>.*?)^```", re.M | re.S
)
LINE = re.compile(r"(?P<indent> *)(?P<module>[\w.]+):(?P<name>[\w.]+)(?:  +\S.*)?")
# Values, operators and what every room uses: the page says that walks leave them out.
EVERYWHERE = frozenset({"model", "ir", "caches", "arguments", "faults", "logs", "progress"}) | {
    "exhaustion",
    "headroom",
    "threadpools",
    "errors",
}
TITLES = ("A query", "A mutation", "A load", "A recovery")

SCHEMA = "node Person { name: String @key\n age: I32? }\nedge Knows: Person -> Person"
START = """query start() {
    insert Person { name: "ann", age: 3 }
    insert Person { name: "bob" }
    insert Knows { from: "ann", to: "bob" }
}"""
QUERY = "query q() { match { $p: Person $p knows $q } return { $p.name, $q.name } }"
CHANGE = """query change() {
    insert Person { name: "cat" }
    update Person set { age: age + 1 } where name = "ann"
    insert Knows { from: "cat", to: "ann" }
}"""
LINES = (
    '{"type": "Person", "data": {"name": "dan"}}\n{"edge": "Knows", "from": "dan", "to": "ann"}\n'
)


class HaltError(BaseException):
    """Stops a write as the death of its process does."""


@dataclass(frozen=True)
class Step:
    """A function of a walk, with the functions that it is called from."""

    function: Function
    callers: tuple[Function, ...]

    def __str__(self) -> str:
        return " > ".join(str(each) for each in (*self.callers, self.function))

    def is_met_by(self, call: Call) -> bool:
        """Whether the function is called, and its callers are on the stack in their order."""
        above = iter(call.stack[:-1])
        return call.function == self.function and all(each in above for each in self.callers)


def read_walks(page: str) -> dict[str, list[Step]]:
    return {found["title"]: list(_steps(found["lines"])) for found in BLOCK.finditer(page)}


def _steps(lines: str) -> Iterator[Step]:
    open_steps: list[tuple[int, Function]] = []
    for line in lines.splitlines():
        found = LINE.fullmatch(line)
        assert found, f"not a step of a walk: {line!r}"
        depth = len(found["indent"])
        while open_steps and open_steps[-1][0] >= depth:
            open_steps.pop()
        function = Function(found["module"], found["name"])
        yield Step(function, tuple(each for _, each in open_steps))
        open_steps.append((depth, function))


def differences(steps: list[Step], record: Record) -> list[str]:
    """What a walk says and the calls do not show, and rooms that it leaves out."""
    said = {step.function.room for step in steps}
    entered = record.rooms() - EVERYWHERE
    found = [f"the page leaves out the room {room}" for room in sorted(entered - said)]
    calls = iter(record.calls)
    for step in steps:
        if not any(step.is_met_by(call) for call in calls):
            return [*found, f"not called, or not here: {step}"]
    return found


@dataclass(frozen=True)
class Place:
    """A small graph, and a file to load into it."""

    uri: str
    lines: Path

    def graph(self) -> omnigraph.Graph:
        return omnigraph.open(self.uri)


def made(folder: Path) -> Place:
    folder.mkdir()
    graph = omnigraph.init(str(folder / "graph"), SCHEMA)
    graph.mutate(START)
    lines = folder / "lines.jsonl"
    lines.write_text(LINES)
    return Place(graph.uri, lines)


def interrupt(graph: omnigraph.Graph) -> None:
    """Leave a write whose first table is committed and whose manifest is not."""
    with (
        faults.armed("commit.after_table", faults.Raise(HaltError)),
        pytest.raises(HaltError),
    ):
        graph.mutate(CHANGE)


def a_query(place: Place) -> Record:
    graph = place.graph()
    with recorded_calls() as record:
        graph.query(QUERY).rows()
    return record


def a_mutation(place: Place) -> Record:
    graph = place.graph()
    with recorded_calls() as record:
        graph.mutate(CHANGE)
    return record


def a_load(place: Place) -> Record:
    graph = place.graph()
    with recorded_calls() as record:
        graph.load(place.lines, "merge")
    return record


def a_recovery(place: Place) -> Record:
    interrupt(place.graph())
    with recorded_calls() as record:
        place.graph()
    return record


WALKS: dict[str, Callable[[Place], Record]] = dict(
    zip(TITLES, (a_query, a_mutation, a_load, a_recovery), strict=True)
)


@pytest.fixture(scope="module")
def record_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Record]:
    """The calls of a walk, on the second graph: the first one imports what is imported late."""

    @cache
    def walked(title: str) -> Record:
        folder = tmp_path_factory.mktemp("walk")
        WALKS[title](made(folder / "first"))
        return WALKS[title](made(folder / "second"))

    return walked


def test_the_page_has_the_four_walks() -> None:
    assert tuple(read_walks(PAGE.read_text())) == TITLES


@pytest.mark.parametrize("title", TITLES)
def test_a_walk_matches_the_calls(title: str, record_of: Callable[[str], Record]) -> None:
    steps = read_walks(PAGE.read_text())[title]
    assert differences(steps, record_of(title)) == []


@pytest.mark.parametrize("title", TITLES)
def test_rooms_of_a_walk_are_a_sentence_of_the_page(title: str) -> None:
    """Every room that a walk names is described in the code map."""
    page = PAGE.read_text()
    for step in read_walks(page)[title]:
        assert re.search(rf"\*\*`{step.function.room}(\.py|/)?`\*\*", page), step.function.room


def test_a_wrong_page_is_noticed(record_of: Callable[[str], Record]) -> None:
    """A step too many, steps in the wrong order, a wrong caller, a room left out."""
    record = record_of("A query")
    steps = read_walks(PAGE.read_text())["A query"]
    absent = Step(Function("commit.door", "commit"), ())
    assert differences([*steps, absent], record) != []
    assert differences(list(reversed(steps)), record) != []
    misplaced = [Step(step.function, (steps[-1].function,)) for step in steps]
    assert differences(misplaced, record) != []
    without = [step for step in steps if step.function.room != "plan"]
    assert differences(without, record) == ["the page leaves out the room plan"]
