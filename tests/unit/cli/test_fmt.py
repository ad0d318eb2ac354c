"""`omnigraph fmt`: files in place, a check, and standard input."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from omnigraph.cli import main

UGLY = "query q(){match{$p:Person}return{$p.name}} // end"
PRETTY = "query q() {\n    match { $p: Person }\n    return { $p.name }\n} // end\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.gq").write_text(UGLY)
    (tmp_path / "s.pg").write_text("node Person{name:String}")
    return tmp_path


def test_files_are_written_in_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["fmt", str(folder)]) == 0
    assert (folder / "q.gq").read_text() == PRETTY
    assert (folder / "s.pg").read_text() == "node Person {\n    name: String\n}\n"
    assert capsys.readouterr().out.count(": written") == 2
    assert main.run(["fmt", str(folder)]) == 0
    assert capsys.readouterr().out == "2 files are in style\n"


def test_check_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["fmt", "--check", str(folder / "q.gq"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"changed": [str(folder / "q.gq")], "files": 1}
    assert (folder / "q.gq").read_text() == UGLY


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(UGLY))
    assert main.run(["fmt", "-", "--language", "gq"]) == 0
    assert capsys.readouterr().out == PRETTY
    assert main.run(["fmt", "-"]) == 2
    monkeypatch.setattr("sys.stdin", io.StringIO(UGLY))
    assert main.run(["fmt", "-", "--language", "gq", "--check"]) == 1
    assert "not formatted" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(PRETTY))
    assert main.run(["fmt", "-", "--language", "gq", "--check"]) == 0
    assert capsys.readouterr().out == ""


def test_what_cannot_be_read_stays_as_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "q.gq").write_text("query q( {")
    assert main.run(["fmt", str(folder / "q.gq")]) == 8
    assert "error[Q000]" in capsys.readouterr().err
    assert (folder / "q.gq").read_text() == "query q( {"


def test_one_unreadable_file_stops_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.pg").write_text("node A {")
    (folder / "b.gq").write_text("query q( {")
    assert main.run(["fmt", str(folder)]) == 8
    told = capsys.readouterr()
    assert told.out.count(": written") == 2
    assert (folder / "q.gq").read_text() == PRETTY
    assert f"{folder / 'a.pg'}:1:8: error[S006]" in told.err
    assert f"{folder / 'b.gq'}:1:10: error[Q000]" in told.err


def test_wrong_use_changes_nothing(folder: Path) -> None:
    (folder / "x.txt").write_text("no schema")
    assert main.run(["fmt", str(folder / "q.gq"), str(folder / "x.txt")]) == 2
    assert (folder / "q.gq").read_text() == UGLY


def test_an_empty_folder_is_wrong_use(tmp_path: Path) -> None:
    assert main.run(["fmt", str(tmp_path)]) == 2
