"""Every public function with wrong arguments: an answer or an error of ours, nothing half done.

The functions and their parameters are found by introspection. A new one is covered when it is
written; if it needs an argument that is not in `GOOD`, or has an annotation that
`tests/support/wrongvalues.py` does not know, the test fails and says so.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.support.wrongvalues import BUILT, CLASSES, VALUES, allowed, parameters

import omnigraph
from omnigraph import aio, builder
from omnigraph.errors import InvalidArgumentError, OmniGraphError, QueryError
from omnigraph.graph import Graph
from omnigraph.model.result import Result

SCHEMA = """
node Person { name: String @key  age: I32?  photo: Blob? }
edge Knows: Person -> Person { since: Date? }
"""
READ = "query q() { match { $p: Person } return { $p.name } }"
WRITE = 'query q() { insert Person { name: "new" } }'

# Arguments that a method needs, or needs for finishing soon.
GOOD: dict[str, dict[str, Any]] = {
    "acting_as": {"actor": "act-eve"},
    "algorithm": {"name": "no such algorithm"},
    "apply_schema": {"source": SCHEMA},
    "blob": {"type_name": "Person", "id": "ann", "property": "photo"},
    "blob_stat": {"type_name": "Person", "id": "ann", "property": "photo"},
    "cherry_pick": {"commit": "side-commit"},
    "cleanup": {"keep": 1},
    "commit": {"prefix": "head"},
    "commit_changes": {"commit": "head"},
    "commit_changes_page": {"commit": "head"},
    "copy": {"place": "copied"},
    "create_branch": {"name": "new"},
    "create_tag": {"name": "new"},
    "delete_branch": {"name": "side"},
    "delete_tag": {"name": "v1"},
    "diff": {"before": "v1", "after": "main"},
    "explain": {"text": READ},
    "export": {"place": "out.jsonl"},
    "ingest": {"data": [{"name": "new"}], "type": "Person"},
    "install_baseline": {"path": "base.jsonl"},
    "load": {"source": "people.jsonl", "engine": "embedded"},
    "merge": {"source": "side"},
    "mutate": {"text": WRITE},
    "on": {"branch": "side"},
    "plan_schema": {"source": SCHEMA},
    "preview_merge": {"source": "side"},
    "query": {"text": READ},
    "prepare": {"text": READ},
    "rename_branch": {"old": "side", "new": "other"},
    "revert": {"commit": "head"},
    "set_durability": {"durability": "process"},
    "with_durability": {"durability": "process"},
    "write_algorithm": {"name": "no such algorithm", "property": "age"},
}


def public_methods(owner: type) -> list[str]:
    found = inspect.getmembers_static(owner, inspect.isfunction)
    return sorted(name for name, _ in found if not name.startswith("_"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with two branches, a tag and a blob, to be copied for each method."""
    place = tmp_path_factory.mktemp("made") / "g"
    graph = omnigraph.init(place, SCHEMA, actor="act-ann")
    graph.ingest([{"type": "Person", "data": {"name": "ann", "age": 1, "photo": b"\x00\x01"}}])
    graph.create_tag("v1")
    graph.create_branch("side").mutate('query q() { insert Person { name: "bob" } }')
    graph.mutate('query q() { insert Person { name: "cy" } }')
    return place


class Copies:
    """Copies of the graph, each in a folder of its own, which becomes the current one."""

    def __init__(self, made: Path, folder: Path) -> None:
        self._made, self._folder, self._count = omnigraph.open(made), folder, 0

    def move(self) -> Path:
        """Into a new folder."""
        self._count += 1
        place = self._folder / str(self._count)
        place.mkdir()
        os.chdir(place)
        Path("people.jsonl").write_text('{"type": "Person", "data": {"name": "new"}}\n')
        return place

    def next(self) -> Graph:
        place = self.move() / "g"
        self._made.copy(place)
        return omnigraph.open(place, actor="act-ann")


@pytest.fixture
def copies(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copies:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # and back, when the test has ended
    return Copies(made, tmp_path)


def good_arguments(graph: Graph, name: str) -> dict[str, Any]:
    """What a call needs, with the words for commits replaced."""
    commits = {"head": graph.snapshot, "side-commit": graph.on("side").snapshot}
    given = GOOD.get(name, {})
    return {key: commits[v]().commit_id if str(v) in commits else v for key, v in given.items()}


def used_up(found: Any) -> None:
    """What a call returns may do its work later: let it."""
    if isinstance(found, Result):
        found.to_arrow()
    elif isinstance(found, AbstractContextManager) and not isinstance(found, Graph):
        with found:
            pass
    elif isinstance(found, Iterator):
        list(islice(found, 1000))


def outcome_of(call: Callable[[], Any]) -> OmniGraphError | str | None:
    """An error of ours, another exception in words, or None for success."""
    try:
        used_up(call())
    except OmniGraphError as error:
        json.dumps(error.to_dict())
        str(error).encode()
        return error
    except Exception as error:  # noqa: BLE001  any other exception is what this test looks for
        return f"{type(error).__name__}: {error}"[:300]
    return None


def fault_in(outcome: OmniGraphError | str | None, fits: bool) -> str | None:
    """What is wrong with how a call ended."""
    if isinstance(outcome, str):
        return outcome
    if fits or isinstance(outcome, InvalidArgumentError):
        return None
    return "accepted" if outcome is None else f"refused late, as {outcome.code}: {outcome}"


def calls_of(
    function: Callable[..., Any], good: dict[str, Any]
) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """Every parameter with every value: its name, whether it fits, all arguments."""
    for each in parameters(function):
        may_be = allowed(str(each.annotation))
        for name, make in VALUES.items():
            yield f"{each.name} = {name}", name in may_be, {**good, each.name: make()}


def state_of(graph: Graph) -> Any:
    return graph.snapshot(), [info.branch for info in graph.branches()], graph.tags()


@pytest.mark.parametrize("name", public_methods(Graph))
def test_18_23_methods_of_a_graph(copies: Copies, name: str) -> None:
    needed = {each.name for each in parameters(getattr(Graph, name)) if each.default is each.empty}
    assert needed <= set(GOOD.get(name, {})), f"add good arguments of {name} to GOOD"
    graph = copies.next()
    before, faults = state_of(graph), []
    for called, fits, arguments in calls_of(getattr(Graph, name), good_arguments(graph, name)):
        outcome = outcome_of(lambda: getattr(graph, name)(**arguments))  # noqa: B023
        fault = fault_in(outcome, fits)
        faults += [f"{called}: {fault}"] if fault else []
        if outcome is None:  # it may have changed the graph
            assert graph.verify(quick=True).findings == [], called
            copies.move()
            if state_of(graph) != before:
                graph = copies.next()
                before = state_of(graph)
        elif fits:
            assert state_of(graph) == before, called
    assert not faults, "\n".join(faults)
    assert {"p.name": "ann"} in omnigraph.open(graph.uri).query(READ).rows()


def faults_of(make: Callable[..., Any], good: dict[str, Any]) -> list[str]:
    """The same for a function that changes no graph."""
    found = []
    for called, fits, arguments in calls_of(make, good):
        fault = fault_in(outcome_of(lambda: make(**arguments)), fits)  # noqa: B023
        found += [f"{called}: {fault}"] if fault else []
    return found


# Classes among the public names that only this package makes.
RESULTS = {
    "AsyncGraph",
    "Baseline",
    "BlobStat",
    "Block",
    "BranchInfo",
    "Change",
    "Cleanup",
    "Commit",
    "CommitGraph",
    "Copied",
    "Drawing",
    "EmbedResult",
    "Explanation",
    "ExportResult",
    "FeedPage",
    "Graph",
    "Lag",
    "LoadResult",
    "Loss",
    "MergePreview",
    "MergeResult",
    "OmniGraphError",
    "PreparedQuery",
    "ProgressEvent",
    "ReadDraft",
    "Reconciler",
    "Recoveries",
    "Repair",
    "Result",
    "Rows",
    "SchemaChange",
    "SchemaPlan",
    "SchemaText",
    "Snapshot",
    "Stats",
    "Tag",
    "Upkeep",
    "Verification",
    "WriteDraft",
    "WriteResult",
}


def argument_classes() -> list[type]:
    """The classes that callers make: public ones, and those that methods take."""
    found = {getattr(omnigraph, name) for name in omnigraph.__all__ if name not in RESULTS}
    return sorted(
        (each for each in found if inspect.isclass(each)),
        key=lambda each: each.__name__,
    )


def test_every_class_of_arguments_is_here() -> None:
    made = {each.__name__ for each in argument_classes()} | {"CommitKind", "SparkSession"}
    assert made >= CLASSES - BUILT


@pytest.mark.parametrize("made", argument_classes(), ids=lambda each: each.__name__)
def test_18_23_classes_of_arguments(made: type) -> None:
    faults = faults_of(made, {"id": "act-eve"} if made is omnigraph.Principal else {})
    assert not faults, "\n".join(faults)


FUNCTIONS: dict[str, dict[str, Any]] = {
    "connect": {"name": "g"},
    "draw": {"result": [{"a": "x", "b": "y"}], "edges": [("a", "b")]},
    "init": {"uri": "new", "schema": SCHEMA},
    "open": {"uri": "g"},
}


def public_functions() -> list[str]:
    return [name for name in omnigraph.__all__ if inspect.isfunction(getattr(omnigraph, name))]


@pytest.mark.parametrize("name", public_functions())
def test_18_23_functions_of_the_package(copies: Copies, name: str) -> None:
    copies.next()
    faults = faults_of(getattr(omnigraph, name), FUNCTIONS[name])
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", omnigraph.spark.__all__)
def test_18_23_functions_for_spark_programs(copies: Copies, name: str) -> None:
    copies.next()
    good: dict[str, dict[str, Any]] = {
        "register": {"spark": None},
        "create_views": {"spark": None, "graph": "g"},
    }
    faults = faults_of(getattr(omnigraph.spark, name), good[name])
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", public_methods(Result))
def test_18_23_methods_of_a_result(copies: Copies, name: str) -> None:
    result = copies.next().query(READ)
    faults = faults_of(getattr(result, name), {})
    assert not faults, "\n".join(faults)


# Functions that decide by the type of their arguments; `aio` only passes them on.
AWAITED = [name for name in public_methods(aio.AsyncGraph) if name not in ("stream",)]


@pytest.mark.parametrize("name", AWAITED)
def test_18_23_methods_for_asyncio(copies: Copies, name: str) -> None:
    """They pass their arguments on to `Graph`: each of its parameters, with what nothing takes."""
    graph = copies.next()

    async def call(arguments: dict[str, Any]) -> None:
        found = getattr(aio.AsyncGraph(graph), name)(**arguments)
        if inspect.isawaitable(found):
            await found
        elif isinstance(found, AsyncIterator):
            [each async for each in found]
        elif isinstance(found, AbstractAsyncContextManager):
            async with found:
                pass

    good, faults = good_arguments(graph, name), []
    for called, fits, arguments in calls_of(getattr(Graph, name), good):
        if not fits:
            fault = fault_in(outcome_of(lambda: asyncio.run(call(arguments))), fits)  # noqa: B023
            faults += [f"{called}: {fault}"] if fault else []
    assert not faults, "\n".join(faults)


P, F = builder.var("p"), builder.var("f")
PATTERN = builder.node(P, "Person")
DRAFT = builder.query().match(PATTERN)
READY = DRAFT.returns(P.name)
# What is called, by its name, and the arguments that it needs.
BUILDERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "alias": (builder.alias, {"name": "x"}),
    "distinct": (builder.distinct, {"value": P.name}),
    "mutation": (builder.mutation, {}),
    "node": (builder.node, {"var": P, "type": "Person"}),
    "optional": (builder.optional, {}),
    "query": (builder.query, {}),
    "var": (builder.var, {"name": "x"}),
    "variables": (builder.variables, {"names": "x y"}),
    "walk": (builder.walk, {"src": P, "edge": "knows", "dst": F}),
    "without": (builder.without, {}),
}
for _owner, _made, _good in (
    (builder.Expr, P.age, {"other": 1, "pattern": "x", "options": [1], "op": "="}),
    (builder.ReadDraft, DRAFT, {"condition": P.age, "count": 1}),
    (builder.WriteDraft, builder.mutation(), {"type": "Person", "where": P.age}),
):
    for _name in public_methods(_owner):
        _of = READY if _name in ("having", "order", "limit", "offset") else _made
        _needs = {p.name for p in parameters(getattr(_owner, _name)) if p.default is p.empty}
        _call = {key: value for key, value in _good.items() if key in _needs}
        BUILDERS[f"{_owner.__name__}.{_name}"] = (getattr(_of, _name), _call)


def built_calls(
    function: Callable[..., Any], good: dict[str, Any]
) -> Iterator[tuple[str, bool, Callable[[], Any]]]:
    """Every parameter with every value; some take their arguments by position only."""
    order = [each.name for each in parameters(function)]
    for each in parameters(function):
        may_be = allowed(str(each.annotation))
        for name, make in VALUES.items():
            if each.kind is each.VAR_POSITIONAL:
                call = partial(function, make(), **good)
            elif each.kind is each.VAR_KEYWORD:
                call = partial(function, **good, extra=make())
            elif each.kind is each.POSITIONAL_ONLY:
                call = partial(function, *["x"] * order.index(each.name), make())
            else:
                call = partial(function, **{**good, each.name: make()})
            yield f"{each.name} = {name}", name in may_be, call


def shown_whole(made: Any) -> Any:
    """What was built, as text: names and constants are written there at the latest."""
    if isinstance(made, builder.Clause):
        return str(builder.query().match(made).returns(P.name))
    if isinstance(made, builder.ReadDraft) and made._stage is None:
        return str(made.returns(P.name))
    return repr(made) if isinstance(made, builder.Expr) else str(made)


@pytest.mark.parametrize("name", BUILDERS)
def test_18_23_queries_built_from_values(name: str) -> None:
    function, good = BUILDERS[name]
    faults = []
    for called, fits, call in built_calls(function, good):
        fault = fault_in(outcome_of(lambda: shown_whole(call())), fits)  # noqa: B023
        faults += [f"{called}: {fault}"] if fault else []
    assert not faults, "\n".join(faults)


def test_every_function_of_the_builder_is_here() -> None:
    made = {name for name in builder.__all__ if inspect.isfunction(getattr(builder, name))}
    assert made <= set(BUILDERS)


INJECTED = [
    "Person } return { $p.secret } #",
    "Person { age: 1 }",
    "a as b",
    "x, $p.secret",
    "knows|worksAt",
    "knows{1,9}",
    "p }",
    "String, $y: I32",
    "String) { match { $n: Node } return { $n } } query z($y: I32",
]


@pytest.mark.parametrize("text", INJECTED)
def test_18_22_names_are_names(text: str) -> None:
    """No name of a type, an edge, a property, a column, a query or a parameter is more than one."""
    for make in (
        lambda: builder.node(P, text),
        lambda: builder.node(P, "Person", **{text: 1}),
        lambda: builder.walk(P, text, F),
        lambda: builder.walk(P, ["knows", text], F),
        lambda: DRAFT.returns(**{text: P.name}),  # type: ignore[arg-type]
        lambda: DRAFT.hands_on(**{text: P.name}),  # type: ignore[arg-type]
        lambda: P.age.operator(text, 1),
        lambda: P[text],
        lambda: builder.this[text],
        lambda: str(builder.query(text).match(PATTERN).returns(P.name)),
        lambda: str(builder.query(**{text: "I32"}).match(PATTERN).returns(P.name)),
        lambda: str(builder.query(p=text).match(PATTERN).returns(P.name)),
        lambda: builder.mutation().insert(text, name="x"),
        lambda: builder.mutation().insert("Person", **{text: "x"}),
        lambda: builder.mutation().update(text, P.age),
        lambda: builder.mutation().delete(text, P.age),
        lambda: builder.mutation().upsert(text, name="x"),
        lambda: builder.mutation().upsert("Person", on_conflict=text, name="x"),
        lambda: builder.mutation().upsert("Person", updates={text: 1}, name="x"),
        lambda: builder.alias(text),
        lambda: builder.var(text),
        lambda: getattr(builder.fn, text)(1),
    ):
        with pytest.raises((InvalidArgumentError, QueryError)):
            make()
