"""The program: its help, its global options, its way of ending."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

import omnigraph
from omnigraph import errors, logs
from omnigraph.cli import apps, main


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    logs.silence()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command `fail` that logs and then raises; it lives in a module of its own."""
    app = apps.new_app()

    @app.command()
    def fail(as_json: bool = typer.Option(False, "--json", help="JSON.")) -> None:
        """Fail."""
        logs.logger("omnigraph.planted").info("failing", extra=logs.fields(why="asked"))
        raise errors.BranchNotFoundError("There is no branch 'draft'.", branch="draft")

    monkeypatch.setitem(main.COMMANDS, "fail", main.Entry("planted", "Fail."))
    monkeypatch.setattr(main, "import_module", lambda name: SimpleNamespace(app=app))


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())  # long lines are wrapped
    assert all(name in told and entry.summary in told for name, entry in main.COMMANDS.items())


def test_without_arguments_it_shows_help_and_counts_as_wrong_use(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run([]) == 2
    said = capsys.readouterr()
    assert "Maintenance:" in said.out + said.err


def test_a_command_stands_in_one_section(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = [name for names in main.SECTIONS.values() for name in names]
    assert len(placed) == len(set(placed))
    assert set(placed) <= set(main.COMMANDS)
    monkeypatch.setitem(main.COMMANDS, "zebra", main.Entry("nowhere", "Be striped."))
    assert main.run(["--help"]) == 0
    assert re.search(r"More commands:\n(  .*\n)*  zebra +Be striped\.", capsys.readouterr().out)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["version"]) == 0
    assert capsys.readouterr().out.startswith(f"omnigraph {omnigraph.__version__}\n")


def test_version_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["version", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["omnigraph"] == omnigraph.__version__
    assert told["pylance"] == "14.0.2"


def test_a_typing_error_is_answered_with_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["verson"]) == 2
    assert "Did you mean 'version'?" in capsys.readouterr().err


@pytest.mark.usefixtures("planted")
def test_an_error_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["fail"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "error[branch_not_found]: There is no branch 'draft'.\n"
        "hint: List the branches to see which names exist.\n"
    )


@pytest.mark.usefixtures("planted")
def test_an_error_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["fail", "--json"]) == 3
    told = json.loads(capsys.readouterr().err)
    assert told["error"]["code"] == "branch_not_found"
    assert told["error"]["details"] == {"branch": "draft"}


@pytest.mark.usefixtures("planted")
def test_logging_is_off_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["fail"])
    assert "failing" not in capsys.readouterr().err
    assert logging.getLogger(logs.ROOT).level == logging.NOTSET


@pytest.mark.usefixtures("planted")
def test_log_level(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["--log-level", "info", "fail"])
    assert "INFO planted: failing why=asked\n" in capsys.readouterr().err


@pytest.mark.usefixtures("planted")
def test_log_json(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["--log-level", "info", "--log-json", "fail"])
    told = json.loads(capsys.readouterr().err.splitlines()[0])
    assert (told["message"], told["why"]) == ("failing", "asked")


def test_no_such_log_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--log-level", "loud", "version"]) == 2
    assert "Choose one of debug" in capsys.readouterr().err


def test_a_malformed_fault_is_refused_before_any_work() -> None:
    program = Path(sys.executable).parent / "omnigraph"
    done = subprocess.run(
        [program, "version"],
        env=os.environ | {"OMNIGRAPH_FAULTS": "zebra=kill"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[invalid_argument]: There is no fault point 'zebra'.\n")
