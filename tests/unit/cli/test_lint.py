"""`omnigraph lint`: findings as text and as JSON, and the exit code."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from omnigraph.cli import main

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\n"
GOOD = "query q($n: String) { match { $p: Person { name: $n } } return { $p.name } }\n"
DOUBTFUL = "query q($n: String) { match { $p: Person } return { $p.name } }\n"
BAD = "query q() { match { $p: Persn } return { $p.name } }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "good.gq").write_text(GOOD)
    return tmp_path


def test_a_folder_with_its_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["lint", str(folder)]) == 0
    assert capsys.readouterr().out == "2 files checked, errors: 0, warnings: 0\n"


def test_errors_fail(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.gq").write_text(BAD)
    assert main.run(["lint", str(folder / "bad.gq"), "--schema", str(folder / "s.pg")]) == 8
    told = capsys.readouterr().out
    assert f"{folder / 'bad.gq'}:1:25: error[T1]: there is no node type `Persn`" in told
    assert "hint: did you mean `Person`?" in told


def test_warnings_fail_when_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "doubtful.gq").write_text(DOUBTFUL)
    arguments = ["lint", "--query", str(folder / "doubtful.gq"), "--schema", str(folder / "s.pg")]
    assert main.run(arguments) == 0
    assert "warning[L203]" in capsys.readouterr().out
    assert main.run([*arguments, "--strict"]) == 8


def test_standard_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["lint", "-", "--schema", str(folder / "s.pg")]
    monkeypatch.setattr("sys.stdin", io.StringIO(BAD))
    assert main.run([*arguments, "--language", "gq"]) == 8
    assert "-:1:25: error[T1]" in capsys.readouterr().out
    assert main.run(arguments) == 2
    assert "hint: Add --language" in capsys.readouterr().err


def test_empty_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.pg").write_text("")
    (folder / "good.gq").write_text("")
    assert main.run(["lint", str(folder)]) == 0
    assert capsys.readouterr().out == "2 files checked, errors: 0, warnings: 0\n"


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.gq").write_text(BAD)
    assert main.run(["lint", str(folder), "--json"]) == 8
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["errors"], told["queries_processed"]) == ("error", 1, 2)
    assert told["schema_source"] == {"kind": "file", "path": str(folder / "s.pg")}
    assert [finding["code"] for finding in told["findings"]] == ["T1"]
    described = {result["name"]: result.get("operation") for result in told["results"]}
    assert described == {"q": None} or "operation" in told["results"][1]


def test_a_broken_schema_is_told_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.pg").write_text("node person {}")
    assert main.run(["lint", str(folder)]) == 8
    told = capsys.readouterr().out
    assert "error[S101]" in told
    assert "good.gq" not in told


@pytest.mark.parametrize("arguments", [[], ["x.txt"], ["good.gq"], ["missing"]])
def test_wrong_use(
    folder: Path,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert main.run(["lint", *arguments]) == 2
    assert "hint: " in capsys.readouterr().err
