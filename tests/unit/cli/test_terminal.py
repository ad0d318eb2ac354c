"""The real program on a terminal: width, progress, Ctrl-C, colour, the shell."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from tests.support.pseudoterminal import CTRL_C, CTRL_D, TAB, Terminal, plain

import omnigraph
from omnigraph.cli.texttables import width

SCHEMA = """
node Person {
    name: String @key
    motto: String?
}
edge Knows: Person -> Person
"""
ROWS = [
    {"type": "Person", "data": {"name": "Ada", "motto": "on engines, " * 20}},
    {"type": "Person", "data": {"name": "京都の人", "motto": "長い言葉" * 30}},
    {"edge": "Knows", "from": "Ada", "to": "京都の人"},
]
ALL = "query q() { match { $p: Person } return { $p.name, $p.motto, $p.id } }"
MORE = '{"type": "Person", "data": {"name": "New"}}\n'


@pytest.fixture
def graph(tmp_path: Path) -> str:
    place = str(tmp_path / "g")
    omnigraph.init(place, SCHEMA).ingest(ROWS)
    return place


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "more.jsonl"
    file.write_text(MORE)
    return str(file)


@pytest.mark.parametrize("columns", [20, 47])  # rows as blocks, and as a table
def test_a_table_fits_the_width(graph: str, columns: int) -> None:
    with Terminal("query", "--store", graph, "-e", ALL, columns=columns) as terminal:
        lines = plain(terminal.read_to_end()).splitlines()
        assert terminal.exit_code() == 0
    assert len(lines) >= 4
    assert max(width(line) for line in lines) <= columns
    assert max(width(line) for line in lines) > min(columns, 80) - 20  # it uses the room


def test_long_work_shows_progress_and_takes_it_away(graph: str, rows: str) -> None:
    slow = {"OMNIGRAPH_FAULTS": "commit.before_lock=delay:2500"}
    with Terminal("ingest", graph, "--data", rows, env=slow) as terminal:
        terminal.read_until("write  1 rows")
        assert re.fullmatch(r"  [\d,]+ rows/s", terminal.read_until("rows/s"))
        told = plain(terminal.read_to_end())
        assert terminal.exit_code() == 0
    assert "rows/s" not in told
    assert "Person: 1 inserted" in told


@pytest.fixture
def two_sides(graph: str) -> str:
    opened = omnigraph.open(graph)
    side = opened.create_branch("side")
    for branch, name in ((opened, "Bob"), (side, "Cy")):
        branch.ingest([{"type": "Person", "data": {"name": name}}])
    opened.create_branch("other")
    return graph


def test_a_merge_tells_its_rows(two_sides: str) -> None:
    slow = {"OMNIGRAPH_FAULTS": "commit.before_lock=delay:2500"}
    with Terminal("branch", "merge", two_sides, "side", env=slow) as terminal:
        bar = terminal.read_until("1 rows")
        assert re.search(r"write  ━+  100%  1 rows$", bar), bar
        told = plain(terminal.read_to_end())
        assert terminal.exit_code() == 0
    assert "merged: side into main" in told


def test_ctrl_c_in_the_middle_of_a_merge(two_sides: str, tmp_path: Path) -> None:
    """While its rows are being written, which another thread does."""
    release = tmp_path / "release"
    held = {"OMNIGRAPH_FAULTS": f"commit.before_fork=pause:{release}@1"}
    merge = ("branch", "merge", two_sides, "side", "--into", "other")
    with Terminal(*merge, env=held) as terminal:
        while not release.with_name("release.reached").exists():
            time.sleep(0.02)
        terminal.send(CTRL_C)
        told = plain(terminal.read_to_end())
        assert terminal.exit_code() == 130
    assert "stopped; nothing was changed" in told
    with Terminal(*merge) as terminal:
        assert "merged: side into other" in plain(terminal.read_to_end())


def test_quiet_shows_neither_progress_nor_the_target(graph: str, rows: str) -> None:
    slow = {"OMNIGRAPH_FAULTS": "commit.before_lock=delay:1500"}
    with Terminal("ingest", graph, "--data", rows, "--quiet", env=slow) as terminal:
        told = terminal.read_to_end()
        assert terminal.exit_code() == 0
    assert told.startswith("Person: 1 inserted\r\ncommit ")


# ledger: R15
@pytest.mark.parametrize(
    ("instant", "said", "people"),
    [
        ("commit.before_lock", "stopped; nothing was changed", 2),
        ("commit.after_table", "stopped", None),  # finished or undone; see below
        ("commit.after_publish", "stopped, but it was done already: commit ", 3),
    ],
)
def test_ctrl_c_leaves_nothing_half_done_and_says_so(
    graph: str, rows: str, tmp_path: Path, instant: str, said: str, people: int | None
) -> None:
    release = tmp_path / "release"
    held = {"OMNIGRAPH_FAULTS": f"{instant}=pause:{release}@1"}
    with Terminal("ingest", graph, "--data", rows, env=held) as terminal:
        while not release.with_name("release.reached").exists():
            time.sleep(0.02)
        terminal.send(CTRL_C)
        told = plain(terminal.read_to_end())
        assert terminal.exit_code() == 130
    assert said in told
    assert "Traceback" not in told
    opened = omnigraph.open(graph, read_only=True)
    assert opened.recoveries().pending == ()
    assert opened.verify().is_clean
    found = len(opened.query("query q() { match { $p: Person } return { $p.name } }"))
    assert found == (people or (3 if "done already" in told else 2))


def test_colour_only_where_it_is_wanted(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.gq")  # a failure that needs no graph comes soonest
    with Terminal("fmt", missing) as terminal:
        assert "\x1b[31m\x1b[1merror[invalid_argument]:" in terminal.read_to_end()
        assert terminal.exit_code() == 2
    with Terminal("fmt", missing, env={"NO_COLOR": "1"}) as terminal:
        told = terminal.read_to_end()
    assert "error[invalid_argument]:" in told
    assert "\x1b[3" not in told


def test_a_conversation(graph: str, tmp_path: Path) -> None:
    home = {"OMNIGRAPH_HOME": str(tmp_path / "home")}
    with Terminal("shell", graph, env=home) as terminal:
        terminal.read_until("main>")
        terminal.send("match { $p: Per" + TAB)
        terminal.read_until("Person")
        terminal.send(" }\rreturn { $p.name }\r")
        terminal.read_until("京都の人")
        terminal.read_until("main>")
        terminal.send("nonsense\r")
        terminal.read_until("error[")
        terminal.read_until("main>")
        terminal.send("half a")
        terminal.read_until("half a")
        terminal.send(CTRL_C)
        terminal.read_until("main>")
        terminal.send(CTRL_D)
        assert terminal.exit_code() == 0
    history = (tmp_path / "home" / "history").read_text()
    assert "match { $p: Person }" in history
    assert (tmp_path / "home" / "history").stat().st_mode & 0o777 == 0o600


def test_a_person_is_asked_before_something_far_is_destroyed() -> None:
    with Terminal("branch", "delete", "s3://bucket/graph", "try") as terminal:
        terminal.read_until("s3://bucket/graph is not local: delete the branch try? [y/N]")
        terminal.send("n\r")
        assert "nothing was done" in terminal.read_to_end()
        assert terminal.exit_code() == 1


def test_ctrl_c_while_a_graph_is_made(tmp_path: Path) -> None:
    schema, release = tmp_path / "s.pg", tmp_path / "release"
    schema.write_text(SCHEMA)
    held = {"OMNIGRAPH_FAULTS": f"init.before_manifest=pause:{release}@1"}
    place = str(tmp_path / "g")
    with Terminal("init", place, "--schema", str(schema), env=held) as terminal:
        while not release.with_name("release.reached").exists():
            time.sleep(0.02)
        terminal.send(CTRL_C)
        assert f"stopped; there is no graph at {place}" in plain(terminal.read_to_end())
        assert terminal.exit_code() == 130
    omnigraph.init(place, SCHEMA)
