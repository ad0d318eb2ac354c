"""`diff`, `changes` and `commit changes` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.branchgraphs import edge, new_graph, person, put

from omnigraph.cli.main import run
from omnigraph.operations.requests import CreateBranch
from omnigraph.operations.verbs import run as run_verb


@pytest.fixture
def graph(tmp_path: Path) -> str:
    context = new_graph(str(tmp_path / "graph"))
    put(
        context,
        {
            "Person": [person("anna", age=30), person("bob")],
            "Knows": [edge("k1", "anna", "bob")],
        },
    )
    run_verb(context, CreateBranch("f"))
    put(context, {"Person": [person("anna", age=31)]}, "f", removed={"Knows": ["k1"]})
    return context.root.uri


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(arguments) == code
    return capsys.readouterr().out


def test_diff(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "diff", graph, "main", "f")
    assert text.splitlines() == [
        "~ node Person anna  age: 30 → 31",
        '- edge Knows k1  from: "anna", to: "bob"',
    ]
    found: dict[str, Any] = json.loads(printed(capsys, "diff", graph, "main", "f", "--json"))
    assert [each["op"] for each in found["changes"]] == ["update", "delete"]
    assert found["changes"][1]["before"]["endpoints"] == {"from": "anna", "to": "bob"}
    assert printed(capsys, "diff", graph, "f@3", "main@2", "--kind", "edge", "--op", "insert")
    assert printed(capsys, "diff", graph, "main", "f", "--type", "Company") == ""
    printed(capsys, "diff", graph, "main", "f", "--op", "eat", code=2)


def test_changes(graph: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = printed(
        capsys,
        "changes",
        "poll",
        graph,
        "--branch",
        "f",
        "--start",
        "beginning",
        "--json",
        "--limit",
        "1",
    )
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[-1]["cursor"] is not None or lines[-1]["next_page_token"] is None
    assert sum(len(line.get("changes", ())) for line in lines) >= 1
    assert "cursor " in printed(capsys, "changes", "poll", graph)
    out = tmp_path / "state.jsonl"
    told = json.loads(printed(capsys, "changes", "baseline", graph, "--out", str(out), "--json"))
    assert len(out.read_text().splitlines()) == 3
    cursor = told["baseline"]["resume_cursor"]
    assert json.loads(printed(capsys, "changes", "poll", graph, "--cursor", cursor, "--json"))
    streamed = printed(capsys, "changes", "baseline", graph).splitlines()
    assert json.loads(streamed[-1]) == told
    printed(capsys, "changes", "poll", graph, "--cursor", "x", code=2)


def test_commit_changes(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(printed(capsys, "commit", "list", graph, "--branch", "f", "--json"))
    newest = listed["commits"][0]["graph_commit_id"]
    text = printed(capsys, "commit", "changes", graph, newest, "--branch", "f")
    assert text.startswith("~ node Person anna")
    found = json.loads(printed(capsys, "commit", "changes", graph, newest, "--json"))
    assert len(found["changes"]) == 2
