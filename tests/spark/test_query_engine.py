"""The spark engine from the outside: asking, bounds, explanations, the caller's session."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.spark.inputs import SCHEMA, knows, person
from tests.support.pseudoterminal import Terminal

import omnigraph
from omnigraph import progress
from omnigraph.engines.base import Cancellation, Limits, Options
from omnigraph.engines.spark import jobprogress
from omnigraph.engines.spark.jobevents import ProgressEvent
from omnigraph.errors import CancelledError, InvalidArgumentError, LimitExceededError
from omnigraph.graph import Graph

FRIENDS = "query q() { match { $p: Person $p knows $q } return { $p.name as p, $q.name as q } }"
# Ends when it is stopped: 60 to the power of 6 rows.
ENDLESS = """query q() {
    match { $a: Person $b: Person $c: Person $d: Person $e: Person $f: Person }
    return { count(distinct $a.age + $b.age + $c.age + $d.age + $e.age + $f.age) as n }
}"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Graph:
    made = omnigraph.init(str(tmp_path_factory.mktemp("asked") / "graph"), SCHEMA)
    people = [person(f"p{n:02d}", age=n, email=f"{n}@x") for n in range(60)]
    made.ingest([*people, knows("p00", "p01", id="k1"), knows("p01", "p02", id="k2")])
    return made


def test_a_query_reads_the_state_that_was_asked_for(graph: Graph, spark: Any) -> None:
    before = graph.snapshot().commit_id
    graph.create_branch("later")
    later = graph.on("later")
    later.ingest([knows("p02", "p03", id="k3")])
    found = later.query(FRIENDS, engine="spark")
    assert found.rows() == later.query(FRIENDS).rows()
    assert len(found) == 3
    assert found.branch == "later"
    old = later.query(FRIENDS, engine="spark", commit=before)
    assert old.rows() == [{"p": "p00", "q": "p01"}, {"p": "p01", "q": "p02"}]
    assert old.commit_id == before
    assert old.schema == graph.query(FRIENDS).schema


def test_the_session_of_the_caller_stays_the_active_one(graph: Graph, spark: Any) -> None:
    graph.query(FRIENDS, engine="spark").rows()
    active = type(spark).getActiveSession()
    assert active is spark
    assert active.conf.get("spark.sql.shuffle.partitions") != "1"


def test_explanations_name_the_engine(graph: Graph, spark: Any) -> None:  # ledger: Q03
    assert graph.explain(FRIENDS).to_text().startswith("engine embedded\n")
    planned = graph.explain(FRIENDS, engine="spark")
    assert planned.to_text().startswith("engine spark\n")
    assert planned.to_json()["engine"] == "spark"
    assert "MapInArrow" in graph.explain(FRIENDS, engine="spark", run=True).to_text()


def test_a_query_is_stopped_when_its_time_is_over(graph: Graph, spark: Any) -> None:
    options = Options(limits=Limits(seconds=3.0))
    with pytest.raises(LimitExceededError) as caught:  # ledger: Q04
        graph.query(ENDLESS, engine="spark", options=options).rows()
    assert caught.value.details["resource"] == "seconds"


def test_a_query_is_stopped_by_another_thread(graph: Graph, spark: Any) -> None:
    cancellation = Cancellation()
    threading.Timer(2.0, cancellation.cancel).start()
    options = Options(limits=Limits(seconds=None), cancellation=cancellation)
    with pytest.raises(CancelledError):
        graph.query(ENDLESS, engine="spark", options=options).rows()


def test_too_many_rows_are_refused(graph: Graph, spark: Any) -> None:
    text = "query q() { match { $p: Person $q: Person } return { $p.name as p, $q.name as q } }"
    with pytest.raises(LimitExceededError):
        graph.query(text, engine="spark", options=Options(Limits(rows_returned=100))).rows()
    assert len(graph.query(text, engine="spark")) == 3600


def test_what_a_task_refuses_reaches_the_caller(graph: Graph, spark: Any) -> None:
    text = "query q($r: String) { match { $p: Person $p.email matches $r } return { $p.name } }"
    with pytest.raises(InvalidArgumentError, match="not a regular expression"):
        graph.query(text, params={"r": "("}, engine="spark").rows()
    with pytest.raises(InvalidArgumentError, match="limit"):
        graph.query(
            "query q($n: I64) { match { $p: Person } return { $p.name } limit $n }",
            params={"n": -1},
            engine="spark",
        )


def test_asked_from_the_command_line(
    graph: Graph, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from omnigraph.cli.main import run

    store = ["--store", graph.uri]
    assert run(["query", "-e", FRIENDS, "--engine", "spark", "--json", *store]) == 0
    assert '"p00"' in capsys.readouterr().out
    assert run(["explain", "-e", FRIENDS, "--engine", "spark", *store]) == 0
    assert capsys.readouterr().out.startswith("engine spark\n")


def test_queries_and_algorithms_tell_how_far_spark_has_come(
    graph: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobprogress, "EVERY_S", 0.005)
    events: list[ProgressEvent] = []
    with jobprogress.hearing(events.append):
        assert len(graph.query(FRIENDS, engine="spark").rows()) == 2
    assert [e.stage for e in events if e.finished] == ["prepare the query", "run the query"]
    assert events[-1].rows == 2
    assert events[-1].tasks_done == events[-1].tasks > 0
    running = [event for event in events if event.stage.startswith("run the query, stage ")]
    assert any(event.tasks for event in running)
    assert all(event.tasks_done <= event.tasks for event in running)
    # Whoever listens to everything hears Spark, too.
    heard: list[progress.Progress] = []
    with progress.listening(heard.append):
        graph.algorithm("degree").collect()
        graph.query(FRIENDS, engine="spark").rows()
    assert {"compute degree", "run the query"} <= {moment.stage for moment in heard}
    assert heard[-1].rows == 2


@pytest.mark.slow
def test_a_query_on_spark_shows_its_progress_on_a_terminal(graph: Graph) -> None:
    words = ("query", "-e", FRIENDS, "--store", graph.uri, "--engine", "spark")
    env = {"OMNIGRAPH_SPARK_RESIDENT": "off", "OMNIGRAPH_SPARK_MASTER": "local[2]"}
    with Terminal(*words, columns=100, env=env) as terminal:
        terminal.read_until("run the query", 300)
        assert "p00" in terminal.read_to_end(300)
        assert terminal.exit_code() == 0
