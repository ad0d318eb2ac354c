"""Every option and argument of every command with hostile values: a typed message, no traceback.

Commands and their options are found by introspection; a new command fails until `CALLS` has a
call of it that works. The program runs in this process, with streams as strict as real ones.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.crash.sizes import FULL
from typer.main import get_command

import omnigraph
from omnigraph.cli import main
from omnigraph.cli.main import app, run
from omnigraph.engines.spark import residentserver, session
from omnigraph.errors import EngineUnavailableError

SCHEMA = (
    "node Person { name: String @key  age: I32?  photo: Blob? }\nedge Knows: Person -> Person\n"
)
READ = "query q($n: String?) { match { $p: Person } return { $p.name } }"
WRITE = 'query q() { update Person set { age: 7 } where name = "ann" }'

# Texts, numbers, dates and lengths of time that make no sense; JSON that cannot be read.
WORDS: dict[str, str] = {
    "empty": "",
    "blank": " ",
    "word": "x",
    "not UTF-8": os.fsdecode(b"caf\xe9"),
    "two lines": "a\nb\x1b[31m",
    "long": "x" * 100_000,
    "dash": "-",
    "negative": "-1",
    "zero": "0",
    "huge": "9" * 30,
    "fraction": "1.5e400",
    "not a number": "nan",
    "long ago": "0001-01-01T00:00:00+14:00",
    "long time": "99999999999d",
    "longer time": "9" * 30 + "w",
    "no JSON": '{"n": ',
    "deep JSON": '{"n": ' * 20_000,
    "twice": '{"n": 1, "n": 2}',
    "half a character": '{"n": "\\ud800"}',
    "pairs": "a=b=c",
    "odd address": "s3:///x",
    "server": "http://127.0.0.1:1/x",
    "missing": "no/such/file.jsonl",
    "folder": "folder",
    "dangling": "dangling.jsonl",
    "junk": "junk.jsonl",
    "junk schema": "junk.pg",
    "junk query": "junk.gq",
    "junk columns": "junk.parquet",
    "junk arrow": "junk.arrow",
    "junk mapping": "junk.yaml",
    "empty file": "empty.jsonl",
    "below a file": "people.jsonl/x",
}

# A call of each command that works, up to what is tried.
CALLS: dict[str, list[str]] = {
    "alias": ["people", "--store", "g"],
    "algorithm": ["g", "degree"],
    "blob get": ["Person", "ann", "photo", "--store", "g"],
    "blob stat": ["Person", "ann", "photo", "--store", "g"],
    "branch create": ["g", "new"],
    "branch delete": ["g", "side"],
    "branch list": ["g"],
    "branch merge": ["g", "side"],
    "branch rebase": ["g", "side"],
    "branch rename": ["g", "side", "other"],
    "changes baseline": ["g"],
    "changes poll": ["g"],
    "cleanup": ["g", "--keep", "1"],
    "commit changes": ["g", "HEAD"],
    "commit cherry-pick": ["g", "HEAD"],
    "commit list": ["g"],
    "commit revert": ["g", "HEAD"],
    "commit show": ["g", "HEAD"],
    "completion": ["bash"],
    "copy": ["g", "--to", "copied"],
    "diff": ["g", "v1", "main"],
    "embed": ["g"],
    "explain": ["--store", "g", "-e", READ],
    "export": ["g"],
    "fmt": ["good.gq"],
    "fsck": ["g"],
    "import": ["new", "--from", "people.jsonl", "--schema", "good.pg"],
    "ingest": ["g", "--data", "people.jsonl"],
    "init": ["new", "--schema", "good.pg"],
    "lint": ["good.gq", "--schema", "good.pg"],
    "load": ["g", "--data", "people.jsonl", "--engine", "embedded", "--mode", "merge"],
    "login": ["prod", "--token", "t"],
    "logout": ["prod"],
    "maintain": ["g"],
    "mutate": ["--store", "g", "-e", WRITE],
    "optimize": ["g"],
    "profile list": [],
    "profile show": ["dev"],
    "query": ["--store", "g", "-e", READ],
    "recovery list": ["g"],
    "recovery run": ["g"],
    "repair": ["g"],
    "schema apply": ["g", "--schema", "good.pg"],
    "schema get": ["g"],
    "schema plan": ["g", "--schema", "good.pg"],
    "schema show": ["g"],
    "shell": ["g"],
    "snapshot": ["g"],
    "spark start": [],
    "spark status": [],
    "spark stop": [],
    "stats": ["g"],
    "tag create": ["g", "new"],
    "tag delete": ["g", "v1"],
    "tag list": ["g"],
    "version": [],
}
# Options that are the same code in every command: all words are tried with `query`, and with the
# other commands in the long run.
SHARED = {"store", "profile", "server", "cluster", "graph_id", "master", "remote", "conf", "actor",
          "branch", "commit", "version", "at", "tag", "format", "progress"}  # fmt: skip
EXITS = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}


def commands(command: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    command = command or get_command(app)
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name in list(inner):
        yield from commands(inner[name], f"{path} {name}".strip())


COMMANDS = dict(commands())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("made") / "g", SCHEMA, actor="act-ann")
    graph.ingest([{"type": "Person", "data": {"name": "ann", "photo": b"\x00\x01"}}])
    graph.create_tag("v1")
    graph.create_branch("side").mutate('query q() { insert Person { name: "bob" } }')
    graph.mutate('query q() { insert Person { name: "cy" } }')
    return graph


@pytest.fixture
def folder(
    made: omnigraph.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> omnigraph.Graph:
    """A folder with a copy of the graph and files of all kinds, and no way to start Spark."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    made.copy(tmp_path / "g")
    for suffix in ("jsonl", "pg", "gq", "parquet", "arrow", "yaml"):
        Path(f"junk.{suffix}").write_bytes(bytes(range(256)) * 5)
    Path("people.jsonl").write_text('{"type": "Person", "data": {"name": "new"}}\n')
    Path("good.gq").write_text(READ)
    Path("good.pg").write_text(SCHEMA)
    Path("empty.jsonl").touch()
    Path("dangling.jsonl").symlink_to("nowhere")
    Path("folder").mkdir()
    Path(".omnigraph").mkdir()
    config = "profiles: {dev: {store: g}}\naliases: {people: {file: good.gq, query: q}}\n"
    Path(".omnigraph/config.yaml").write_text(config)

    def refuse(*_: object, **__: object) -> None:
        raise EngineUnavailableError("Spark is not started in this test.")

    monkeypatch.setattr(session, "get_session", refuse)
    monkeypatch.setattr(residentserver, "start_resident", refuse)
    monkeypatch.setattr(main, "get_command", cache(get_command))  # made once, not for every call
    return omnigraph.open("g")


class Streams:
    """Standard streams as a terminal in UTF-8 has them: what is not valid text cannot pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch

    def renew(self) -> None:
        self.out, self.err = io.BytesIO(), io.BytesIO()
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(), "utf-8"))
        self._patch.setattr(sys, "stdout", io.TextIOWrapper(self.out, "utf-8"))
        err = io.TextIOWrapper(self.err, "utf-8", errors="backslashreplace")
        self._patch.setattr(sys, "stderr", err)

    def said(self) -> str:
        sys.stdout.flush()
        sys.stderr.flush()
        return self.err.getvalue().decode()


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Streams:
    return Streams(monkeypatch)


def fault_of(streams: Streams, arguments: Sequence[str]) -> str | None:
    """What is wrong with how a call ended."""
    streams.renew()
    try:
        code = run(arguments)
        said = streams.said()
    except BaseException as error:  # noqa: BLE001  anything that escapes is a traceback
        return f"{type(error).__name__}: {error}"[:300]
    if code not in EXITS:
        return f"exit code {code}"
    if code == 0:
        return None
    if arguments[0] == "lint" and code == 8:  # findings are what it prints
        return None if streams.out.getvalue() or said else "it says nothing"
    if "--json" in arguments:
        return None if _has_code(said) else f"no code: {said[:300]!r}"
    typed = "error[" in said or any(
        line.startswith(("Error", "Usage")) for line in said.splitlines()
    )
    return None if typed else f"exit {code} says {said[:200]!r}"


def _has_code(said: str) -> bool:
    """Whether the last line is an error with a code."""
    try:
        return bool(json.loads(said.rstrip("\n").split("\n")[-1])["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return False


def tried(name: str, command: Any, call: list[str], *, everything: bool) -> Iterator[list[str]]:
    """Calls of a command with one word of it replaced, or one option added."""
    words, turn = list(WORDS.values()), 0
    for param in command.params:
        if param.param_type_name == "argument" or getattr(param, "is_flag", False):
            continue
        some = 2 if param.name in SHARED else 11
        count = len(words) if everything or name == "query" else some
        for word in _some(words, turn, count):
            yield [*call, f"{param.opts[0]}={word}"]
        turn += count
    for place, given in enumerate(call):
        if not given.startswith("-") and not (place and call[place - 1].startswith("-")):
            for word in words if everything else _some(words, place, 11):
                yield [*call[:place], word, *call[place + 1 :]]


def _some(words: Sequence[str], first: int, count: int) -> list[str]:
    """As many of the words as wanted, spread over all of them, beginning with another each time."""
    step = max(1, len(words) // count)
    return [words[(first + n * step) % len(words)] for n in range(count)]


def faults_of(graph: Any, streams: Streams, name: str, *, everything: bool = False) -> list[str]:
    assert name in CALLS, f"add a call of `{name}` to CALLS"
    head = graph.snapshot().commit_id
    call = [head if word == "HEAD" else word for word in CALLS[name]]
    found = []
    for number, given in enumerate(tried(name, COMMANDS[name], call, everything=everything)):
        as_json = ["--json"] if number % 2 and _has_json(COMMANDS[name]) else []
        fault = fault_of(streams, [*name.split(), *given, *as_json])
        if fault:
            found.append(f"{' '.join(word[:60] for word in given)!r}: {fault}")
    return found


def _has_json(command: Any) -> bool:
    return any("--json" in param.opts for param in command.params)


@pytest.mark.parametrize("name", COMMANDS)
def test_18_23_hostile_words(folder: omnigraph.Graph, streams: Streams, name: str) -> None:
    faults = faults_of(folder, streams, name)
    assert not faults, "\n".join(faults)
    assert folder.on("main").verify(quick=True).findings == []


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="a part of `make crash`")
@pytest.mark.parametrize("name", COMMANDS)
def test_18_23_all_hostile_words(folder: omnigraph.Graph, streams: Streams, name: str) -> None:
    faults = faults_of(folder, streams, name, everything=True)
    assert not faults, "\n".join(faults)


def test_every_call_of_the_table_is_of_a_command() -> None:
    assert set(CALLS) == set(COMMANDS)


@pytest.mark.parametrize("option", ["--log-level", "--log-json", "--no-such-option"])
def test_18_23_hostile_options_of_the_program(streams: Streams, option: str) -> None:
    faults = [fault_of(streams, [f"{option}={word}", "version"]) for word in WORDS.values()]
    assert not any(faults), faults
