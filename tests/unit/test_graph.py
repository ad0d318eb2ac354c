"""The Python home: scratch branches, built queries, asyncio, notebooks, pictures."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import xml.etree.ElementTree as ET
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import aio, errors, progress
from omnigraph.builder import mutation, node, query, this, var, walk
from omnigraph.drawing.layout import place

SCHEMA = """
node Person {
    name: String @key
    age: I32?
}
edge Knows: Person -> Person
"""
ROWS = [
    {"type": "Person", "data": {"name": "Ada", "age": 36}},
    {"type": "Person", "data": {"name": "<b>Bo</b>"}},
    {"edge": "Knows", "from": "Ada", "to": "<b>Bo</b>"},
]
p, f = var("p"), var("f")
PEOPLE = query().match(node(p, "Person")).returns(p.name, p.age)
PAIRS = query().match(node(p, "Person"), walk(p, "knows", f)).returns(p, f)
HIRE = mutation("hire", n="String").insert("Person", name=var("n"))


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(str(tmp_path / "g"), SCHEMA)
    made.ingest(ROWS)
    return made


def names(graph: og.Graph) -> set[str]:
    return {row["p.name"] for row in graph.query(PEOPLE)}


def test_built_queries_run(graph: og.Graph) -> None:
    graph.mutate(HIRE, params={"n": "Zed"})
    graph.mutate(mutation().update("Person", this.name == "Zed", age=3))
    assert graph.query(PEOPLE).rows()[2] == {"p.name": "Zed", "p.age": 3}
    assert "Scan $p: Person" in graph.explain(PEOPLE).to_text()
    assert "rows;" in graph.explain(PEOPLE, run=True).to_text()


def test_a_scratch_branch_is_merged(graph: og.Graph) -> None:
    with graph.branch("try", message="tried") as b:
        b.mutate(HIRE, params={"n": "Zed"})
        assert "Zed" not in names(graph)
    assert "Zed" in names(graph)
    assert [info.name for info in graph.branches()] == ["main"]


def fail_on(scratch: AbstractContextManager[og.Graph]) -> None:
    with scratch as b:
        b.mutate(HIRE, params={"n": "Zed"})
        raise ZeroDivisionError


def test_a_scratch_branch_is_dropped(graph: og.Graph) -> None:
    with graph.branch(merge=False) as b:
        assert b.branch_name.startswith("scratch/")
        b.mutate(HIRE, params={"n": "Zed"})
    with pytest.raises(ZeroDivisionError):
        fail_on(graph.branch("try"))
    assert "Zed" not in names(graph)
    assert [info.name for info in graph.branches()] == ["main"]


def test_a_scratch_branch_with_a_conflict_is_kept(graph: og.Graph) -> None:
    older = mutation().update("Person", this.name == "Ada", age=37)
    younger = mutation().update("Person", this.name == "Ada", age=35)
    with contextlib.ExitStack() as stack:
        stack.enter_context(graph.branch("try")).mutate(older)
        graph.mutate(younger)
        with pytest.raises(errors.MergeConflictError) as caught:
            stack.close()
    assert caught.value.__notes__ == ["The branch 'try' is kept."]
    assert [info.name for info in graph.branches()] == ["main", "try"]


def test_notebooks_see_tables_and_pictures(graph: og.Graph) -> None:
    shown = graph.query(PEOPLE)._repr_html_()
    assert "<td" in shown
    assert "&lt;b&gt;Bo&lt;/b&gt;" in shown
    assert "<b>Bo" not in shown
    assert "2 rows" in shown
    assert "Person" in graph._repr_html_()
    schema = graph.schema()
    assert isinstance(schema, str)
    assert schema.startswith("node Person {")
    assert "edge Knows</b>: Person → Person" in schema._repr_html_()


def test_the_commit_graph(graph: og.Graph) -> None:
    with graph.branch("try") as b:
        b.mutate(HIRE, params={"n": "Zed"})
        graph.mutate(HIRE, params={"n": "Yan"})
    found = graph.commit_graph()
    assert [str(commit.kind) for commit in found][:1] == ["merge"]
    assert found.heads["main"] == found.commits[0].id
    shown = {commit.id for commit in found}
    svg = ET.fromstring(found._repr_html_())
    tag = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(f"{tag}circle")) == len(found)
    assert len(svg.findall(f"{tag}path")) == sum(each in shown for c in found for each in c.parents)
    assert str(found).count("\n") == len(found) - 1


def test_a_result_as_a_picture(graph: og.Graph, tmp_path: Path) -> None:
    drawing = og.draw(graph.query(PAIRS))
    assert repr(drawing) == "<Drawing of 2 nodes and 1 edges>"
    assert drawing.to_svg() == og.draw(graph.query(PAIRS)).to_svg()
    assert "&lt;b&gt;Bo" in ET.tostring(
        ET.parse(drawing.save(tmp_path / "x.svg")).getroot(), "unicode"
    )
    plain = og.draw([{"a": 1, "b": 2}, {"a": 2, "b": 3}], [("a", "b", "next")])
    assert (len(plain.marks), len(plain.lines)) == (3, 2)
    with pytest.raises(errors.InvalidArgumentError, match="no column 'c'"):
        og.draw([{"a": 1}], [("a", "c")])
    with pytest.raises(errors.InvalidArgumentError, match="holds nodes"):
        og.draw([{"a": 1}])
    with pytest.raises(errors.LimitExceededError):
        og.draw([{"a": n, "b": n + 1} for n in range(1000)], [("a", "b")])


def test_places_are_in_the_frame_and_apart() -> None:
    spots = place(30, [(n, n + 1) for n in range(29)])
    assert spots.min() >= 0
    assert spots.max() <= 1
    assert len({(round(x, 3), round(y, 3)) for x, y in spots.tolist()}) == 30
    assert place(1, []).tolist() == [[0.5, 0.5]]


# asyncio


def test_the_async_graph_has_every_method() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}

    assert methods(og.Graph) - methods(aio.AsyncGraph) == set()


def test_asyncio(tmp_path: Path) -> None:
    async def tell() -> tuple[list[str], list[str], int]:
        graph = await aio.init(str(tmp_path / "g"), SCHEMA)
        await graph.ingest(ROWS)
        async with graph.branch("try") as b:
            await b.mutate(HIRE, params={"n": "Zed"})
        result = await graph.query(PEOPLE)
        kinds = [str(commit.kind) async for commit in graph.commits()]
        batches = [batch async for batch in graph.stream(PEOPLE)]
        return [row["p.name"] for row in result], kinds, sum(b.num_rows for b in batches)

    people, kinds, rows = asyncio.run(tell())
    assert people == ["<b>Bo</b>", "Ada", "Zed"]
    assert kinds == ["mutate", "load", "init"]
    assert rows == 3


def test_a_cancelled_task_writes_nothing_and_waits_for_its_end(graph: og.Graph) -> None:
    async def tell() -> None:
        opened = aio.AsyncGraph(graph)
        task = asyncio.create_task(opened.ingest([{"type": "Person", "data": {"name": "Zed"}}]))
        await asyncio.to_thread(reached.wait)
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)  # the task hears of it in one of the next rounds of the loop
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    reached, go_on = threading.Event(), threading.Event()
    report = progress.report

    def slowly(stage: str, *args: int, **more: int) -> None:
        if stage == "write":
            reached.set()
            go_on.wait()
        report(stage, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "report", slowly)
        asyncio.run(tell())
    assert "Zed" not in names(graph)


def test_a_cancelled_query_stops(graph: og.Graph) -> None:
    stopped: list[bool] = []

    class Watched(og.Cancellation):
        def cancel(self) -> None:
            stopped.append(True)
            super().cancel()

    async def tell() -> None:
        opened = aio.AsyncGraph(graph)
        options = og.Options(cancellation=Watched())
        task = asyncio.create_task(opened.query(PEOPLE, options=options))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(tell())
    assert stopped == [True]


def test_a_scratch_branch_of_a_failed_task_is_dropped(graph: og.Graph) -> None:
    async def tell() -> None:
        async with aio.AsyncGraph(graph).branch("try"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(tell())
    assert [info.name for info in graph.branches()] == ["main"]
