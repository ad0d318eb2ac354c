"""`branch merge`, `branch rebase`, `commit revert` and `commit cherry-pick` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.branchgraphs import content, new_graph, person, put

from omnigraph.cli.main import run
from omnigraph.history.refs import list_branches
from omnigraph.operations.context import Context
from omnigraph.operations.requests import CreateBranch
from omnigraph.operations.verbs import run as run_verb


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Both sides changed anna and bob, and each changed something by itself."""
    made = new_graph(str(tmp_path / "graph"))
    put(made, {"Person": [person("anna", age=30), person("bob", age=40), person("cy", age=50)]})
    run_verb(made, CreateBranch("f"))
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


def test_every_conflict_is_named_with_what_to_do_next(
    context: Context, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    merge, file = ("branch", "merge", context.root.uri, "f"), tmp_path / "c.jsonl"
    assert run([*merge, "--preview"]) == 0
    assert capsys.readouterr().out.startswith("2 conflicts stand in the way: f into main, ")
    assert run([*merge]) == 5
    said = capsys.readouterr().err
    assert all(f"  DivergentUpdate: Person '{name}' was" in said for name in ("anna", "bob"))
    assert "--conflicts FILE" in said
    assert run([*merge, "--conflicts", str(file)]) == 5
    said = capsys.readouterr().err
    assert f"wrote 2 conflicts to {file}" in said
    assert f"--resolutions {file}" in said


def test_what_was_decided_stays_in_the_file_of_what_is_left(
    context: Context, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    merge, file = ("branch", "merge", context.root.uri, "f"), tmp_path / "c.jsonl"
    again = (*merge, "--resolutions", str(file), "--conflicts", str(file))
    assert run([*merge, "--conflicts", str(file)]) == 5
    for name in ("anna", "bob"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert sorted(line["id"] for line in lines) == ["anna", "bob"]
        for line in lines:
            if line["id"] == name:
                line["resolution"] = "theirs"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        assert run([*again]) == (5 if name == "anna" else 0)
        said = capsys.readouterr().err
        assert ("wrote 1 conflict to" in said) == (name == "anna")
    assert ages(context)["anna"] == ages(context)["bob"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--type-strategy", "Persn=ours"), "There is no type 'Persn'; did you mean Person?"),
        (("--type-strategy", "Person=mine"), "There is no strategy 'mine'."),
        (("--resolutions", "FILE"), "photo: it is not base64"),
    ],
)
def test_a_decision_about_nothing_is_refused(
    context: Context,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    said: str,
) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text('{"type": "Person", "id": "anna", "resolution": {"photo": "#?"}}\n')
    before = content(context)
    given = [str(file) if word == "FILE" else word for word in words]
    assert run(["branch", "merge", context.root.uri, "f", *given]) == 2
    assert said in capsys.readouterr().err
    assert content(context) == before


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
    run_verb(context, CreateBranch("g"))
    put(context, {"Person": [person("cy", age=51)]})
    put(context, {"Person": [person("cy", age=50, city="Rome")]}, "g")
    seen = told(capsys, "branch", "merge", uri, "g", "--preview", "--granularity", "entity")
    assert len(seen["conflicts"]) == 1
    told(capsys, "branch", "merge", uri, "g")
    assert content(context)["Person"]["cy"] == {"name": "cy", "age": 51, "city": "Rome"}


def test_revert_pick_and_rebase(
    context: Context, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    uri = context.root.uri
    listed = told(capsys, "commit", "list", uri, "--branch", "f")["commits"]
    picked = listed[0]["graph_commit_id"]
    file = tmp_path / "c.jsonl"
    assert run(["commit", "cherry-pick", uri, picked, "--conflicts", str(file)]) == 5
    file.write_text(file.read_text().replace('"resolution": null', '"resolution": "theirs"'))
    told(capsys, "commit", "cherry-pick", uri, picked, "--resolutions", str(file))
    assert ages(context) == {"anna": 2, "bob": 2, "cy": 50, "dan": None, "eve": None}
    newest = told(capsys, "commit", "list", uri)["commits"][0]["graph_commit_id"]
    told(capsys, "commit", "revert", uri, newest)
    assert ages(context) == {"anna": 1, "bob": 1, "cy": 50, "dan": None}
    told(capsys, "branch", "rebase", uri, "f", "--strategy", "theirs")
    assert ages(context, "f") == {"anna": 2, "bob": 2, "cy": 50, "dan": None, "eve": None}
    assert told(capsys, "branch", "merge", uri, "f")["outcome"] == "fast_forward"
