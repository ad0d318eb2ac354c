"""`branch merge`, `branch rebase`, `commit revert` and `commit cherry-pick` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.twosides import content, new_graph, person, put

from omnigraph.cli.main import run
from omnigraph.history.refs import list_branches
from omnigraph.operations.branching import create_branch
from omnigraph.operations.context import Context


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Both sides changed anna and bob, and each changed something by itself."""
    made = new_graph(str(tmp_path / "graph"))
    put(made, {"Person": [person("anna", age=30), person("bob", age=40), person("cy", age=50)]})
    create_branch(made, "f")
    put(made, {"Person": [person("anna", age=1), person("bob", age=1), person("dan")]})
    put(made, {"Person": [person("anna", age=2), person("bob", age=2), person("eve")]}, "f")
    return made


def ages(context: Context, branch: str = "main") -> dict[str, Any]:
    return {name: row.get("age") for name, row in content(context, branch)["Person"].items()}


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    found = run([*words, "--json"])
    printed = capsys.readouterr()
    assert found == code, printed.err
    return json.loads(printed.out) if printed.out else None


def test_conflicts_are_decided_in_a_file(
    context: Context, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    uri, before, file = context.root.uri, content(context), tmp_path / "conflicts.jsonl"
    merge = ("branch", "merge", uri, "f")
    seen = told(capsys, *merge, "--preview")
    assert seen["counts"]["Person"]["inserted"] == 1
    assert [c["kind"] for c in seen["conflicts"]] == ["DivergentUpdate", "DivergentUpdate"]
    refused = run([*merge, "--conflicts", str(file)])
    assert refused != 0
    capsys.readouterr()
    assert content(context) == before
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["id"], line["base"]["age"]) for line in lines] == [("anna", 30), ("bob", 40)]
    lines[0]["resolution"], lines[1]["resolution"] = "theirs", {"age": 9}
    file.write_text("\n".join(json.dumps(line) for line in lines))
    done = told(capsys, *merge, "--resolutions", str(file), "--delete-branch")
    assert (done["outcome"], done["branch_deleted"]) == ("merged", True)
    assert len(done["commit"]["parents"]) == 2
    assert ages(context) == {"anna": 2, "bob": 9, "cy": 50, "dan": None, "eve": None}
    assert [branch.name for branch in list_branches(context.root)] == ["main"]


@pytest.mark.parametrize(
    ("words", "age"),
    [
        (("--strategy", "ours"), 1),
        (("--strategy", "theirs"), 2),
        (("--type-strategy", "Person=theirs"), 2),
        (("--strategy", "theirs", "--type-strategy", "Person=ours"), 1),
    ],
)
def test_a_strategy_decides(
    context: Context, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], age: int
) -> None:
    told(capsys, "branch", "merge", context.root.uri, "f", *words)
    assert ages(context) == {"anna": age, "bob": age, "cy": 50, "dan": None, "eve": None}


def test_granularity(context: Context, capsys: pytest.CaptureFixture[str]) -> None:
    uri = context.root.uri
    create_branch(context, "g")
    put(context, {"Person": [person("cy", age=51)]})
    put(context, {"Person": [person("cy", age=50, city="Rome")]}, "g")
    seen = told(capsys, "branch", "merge", uri, "g", "--preview", "--granularity", "entity")
    assert len(seen["conflicts"]) == 1
    told(capsys, "branch", "merge", uri, "g")
    assert content(context)["Person"]["cy"] == {"name": "cy", "age": 51, "city": "Rome"}


def test_revert_pick_and_rebase(context: Context, capsys: pytest.CaptureFixture[str]) -> None:
    uri = context.root.uri
    listed = told(capsys, "commit", "list", uri, "--branch", "f")["commits"]
    picked = listed[0]["graph_commit_id"]
    assert run(["commit", "cherry-pick", uri, picked]) != 0
    told(capsys, "commit", "cherry-pick", uri, picked, "--strategy", "theirs")
    assert ages(context) == {"anna": 2, "bob": 2, "cy": 50, "dan": None, "eve": None}
    newest = told(capsys, "commit", "list", uri)["commits"][0]["graph_commit_id"]
    told(capsys, "commit", "revert", uri, newest)
    assert ages(context) == {"anna": 1, "bob": 1, "cy": 50, "dan": None}
    told(capsys, "branch", "rebase", uri, "f", "--strategy", "theirs")
    assert ages(context, "f") == {"anna": 2, "bob": 2, "cy": 50, "dan": None, "eve": None}
    assert told(capsys, "branch", "merge", uri, "f")["outcome"] == "fast_forward"
