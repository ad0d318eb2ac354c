"""What is drawn: progress, tables, and values that need no checking."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from omnigraph.cli import main, progressline, texttables
from omnigraph.cli.rowformats import cell
from omnigraph.progress import Progress


@pytest.mark.parametrize(
    ("event", "seconds", "text"),
    [
        (Progress("query"), 3.2, "query  0:03"),
        (
            Progress("write", 45, 100, 1_204_000, 48_100_000),
            12.0,
            "write  ━━━━━━━━━───────────   45%  1,204,000 rows  100,333 rows/s  48.1 MB  0:12  "
            "0:14 to go",
        ),
        (Progress("clean", 0, 4), 3700.0, "clean  ────────────────────    0%  1:01:40"),
    ],
)
def test_a_line_of_progress(event: Progress, seconds: float, text: str) -> None:
    assert progressline.describe(event, seconds) == text


def test_sizes() -> None:
    assert [progressline.sized(n) for n in (0, 999, 1500, 2_000_000, 3 * 10**15)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.0 MB",
        "3000.0 TB",
    ]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def narrow(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr("sys.stdout", Screen())
    monkeypatch.setenv("NO_COLOR", "1")
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: size)


def test_text_is_wrapped_or_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, 16)
    rows = [["ab", "one two three"]]
    assert texttables.table(["a", "b"], rows).splitlines()[2] == "ab  one two thr…"
    wrapped = texttables.table(["a", "b"], rows, texttables.Layout(8, wraps=True)).splitlines()
    assert wrapped[2:] == ["ab  one two", "    three"]


def test_rows_that_have_no_room_become_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, 16)
    rows = [["1111111", "2222222", "3" * 20], ["1", "2", "3"]]
    assert texttables.table(["one", "two", "three"], rows).splitlines() == [
        "one    1111111",
        "two    2222222",
        "three  33333333…",
        "",
        "one    1",
        "two    2",
        "three  3",
    ]
    layout = texttables.Layout(wraps=True)
    wrapped = texttables.table(["one", "two", "three"], rows, layout).splitlines()
    assert wrapped[2:5] == ["three  333333333", "       333333333", "       33"]
    narrow(monkeypatch, 3)
    assert max(map(len, texttables.table(["one", "two"], [["1", "2"]]).splitlines())) <= 3


def test_without_a_terminal_nothing_is_cut() -> None:
    assert "x" * 500 in texttables.table(["a"], [["x" * 500]])


def test_wide_letters_take_two_places() -> None:
    assert texttables.width("京都") == 4
    assert texttables.width("e\u0301") == 1


def test_a_terminal_is_not_ruled_by_data() -> None:
    assert cell("a\x1b[31mb\nc") == "a\\x1b[31mb\\nc"
    assert cell(True) == "true"
    assert cell([1, None]) == "[1, null]"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["commit", "list", "g", "--limit", "many"], 2, "'--limit': 'many' is not a whole number"),
        (["commit", "list", "g", "--limit", "0"], 2, "0 is not at least 1"),
        (["commit", "list", "g", "--json", "--limit", "x"], 2, '{"error": {"code": "invalid_arg'),
        (["no", "--format", "json"], 2, "\"No such command 'no'."),
        (["diff", "main"], 2, "No graph is named; 'main' was taken as FROM"),
        (["query", "g", "-e", "x"], 2, "No graph is named; 'g' was taken as NAME"),
        (["query", "--store", "g", "-e", "x", "--format", "zebra"], 2, "'zebra' is not one of"),
        (["completion", "zebra"], 2, "'zebra' is not one of"),
        (["fmt"], 2, "Missing argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_values_are_refused_as_ever(
    words: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    assert main.run(words) == code
    assert said in capsys.readouterr().err
