"""Somebody who does what a page of documentation says, from its top to its end.

Shell blocks go through the program in this process, since hundreds of processes would take minutes;
other commands through bash. Python blocks share their names. Schemas and queries are compiled.
"""

from __future__ import annotations

import contextvars
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.docpages import ROOT, Block, Page, commands, missing_lines

import omnigraph
from omnigraph import logs
from omnigraph.cli import main
from omnigraph.lang import gq, pg

AN_ID = re.compile(r"\b01M7[0-9A-HJKMNP-TV-Z]*\b")


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples with their graph, made once and copied for every page."""
    place = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "docs" / "examples", place, dirs_exist_ok=True)
    graph = omnigraph.init(str(place / "shop"), (place / "shop.pg").read_text())
    graph.ingest(str(place / "shop.jsonl"))
    return place


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to stand in, and a home without anybody's configuration."""
    home, place = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    place.mkdir()
    before = dict(os.environ)
    os.environ |= {
        "HOME": str(home),
        "OMNIGRAPH_HOME": str(home / ".omnigraph"),
        "OMNIGRAPH_EMBEDDINGS_MOCK": "1",
        "COLUMNS": "100",
    }
    monkeypatch.chdir(place)
    yield place
    os.environ.clear()
    os.environ.update(before)
    logs.silence()


class Reader:
    """Somebody who does what a page says."""

    def __init__(self, page: Page, shop: Path, **names: Any) -> None:
        """Stand in an empty folder; `shop` is where the examples and their graph are."""
        self.page = page
        self.names = names
        self.schema: str | None = None
        if page.start is not None:
            examples = {"shop": shop, "examples": ROOT / "docs" / "examples"}[page.start]
            shutil.copytree(examples, Path.cwd(), dirs_exist_ok=True)

    def read(self, *, slow: bool = False) -> None:
        for block in self.page.blocks:
            if block.runs and (slow or "slow" not in block.marks) and _has_needs(block):
                self.run(block)

    def run(self, block: Block) -> None:
        if first := block.marks.get("first"):
            self.shell(Block(block.page, block.line, "sh", first))
        if file := block.marks.get("file"):
            path = Path(os.path.expandvars(file)).expanduser()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        kinds: dict[str, Callable[[Block], object]] = {
            "sh": self.shell,
            "python": self.python,
            "pg": self.compile_schema,
            "gq": self.compile_queries,
            "json": _parse_json,
            "yaml": lambda block: yaml.safe_load(block.text),
        }
        if act := kinds.get(block.kind):
            act(block)

    def python(self, block: Block) -> None:
        code = "\n" * block.line + block.text  # so that a traceback names the page's line
        exec(compile(code, str(block.page), "exec"), self.names)  # our own page

    def compile_schema(self, block: Block) -> None:
        pg.compile_schema(block.text, file=block.place)
        self.schema = block.text

    def compile_queries(self, block: Block) -> None:
        own = [each.text for each in self.page.blocks if each.kind == "pg"]
        schema = self.schema or (own[0] if own else Path("shop.pg").read_text())
        gq.compile_file(block.text, pg.compile_schema(schema), block.place)

    def shell(self, block: Block) -> None:
        printed = ""
        every = commands(block.text)
        for number, command in enumerate(every, 1):
            expected = int(block.marks.get("exits", 0)) if number == len(every) else 0
            code, told = type_in(_with_commit(command.replace("\\\n", " ")))
            assert code == expected, f"{block.place}: {command}\n{told}"
            printed += told
        if block.shows is not None:
            missing = missing_lines(block.shows, printed)
            assert missing == [], f"{block.place} does not print {missing}:\n{printed}"


def _with_commit(command: str) -> str:
    if not AN_ID.search(command):
        return command
    graph = next(word for word in command.split() if Path(word, "__manifest").exists())
    newest = next(omnigraph.open(graph, read_only=True).commits())
    return AN_ID.sub(newest.id, command)


def _has_needs(block: Block) -> bool:
    return all(importlib.util.find_spec(each) for each in block.marks.get("needs", "").split())


def _parse_json(block: Block) -> None:
    try:
        json.loads(block.text)
    except json.JSONDecodeError:
        for line in block.text.splitlines():
            json.loads(line)


def type_in(command: str) -> tuple[int, str]:
    """Run one line of shell; the program itself is called in this process."""
    words = list(shlex.shlex(command.split("<<")[0], posix=True, punctuation_chars=True))
    names = [Path(word).name for word in words]
    if "omnigraph" not in names or "$(" in command or "&&" in command:
        return _bash(command)
    given, _, rest = _split(command)
    return _program(rest, _bash(given)[1] if given else "")


def _split(command: str) -> tuple[str, str, str]:
    """What is piped into the program, and the program's own words."""
    if re.match(r"\s*\S*omnigraph ", command) or " | " not in command:
        return "", "", command
    return command.rpartition(" | ")


def _bash(command: str) -> tuple[int, str]:
    if exported := re.fullmatch(r"export (\w+)=(\S+)", command.split("#")[0].strip()):
        os.environ[exported[1]] = exported[2]
        return 0, ""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", command],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout + done.stderr


def _program(command: str, stdin: str) -> tuple[int, str]:
    """The program in this process, with the files that `<`, `>`, `>>` and `2>` name."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="<>")
    lexer.whitespace_split = True
    words = list(lexer)
    places: dict[str, str] = {}
    arguments: list[str] = []
    while words:
        word = words.pop(0)
        if word in {"<", ">", ">>"}:
            descriptor = arguments.pop() if arguments and arguments[-1] == "2" else ""
            places[descriptor + word] = os.path.expanduser(words.pop(0))
        else:
            arguments.append(os.path.expandvars(word))
    if "<" in places:
        stdin = Path(places["<"]).read_text()
    code, out, err = _call(arguments, stdin)
    told = ""
    for mark, printed in ((">", out), (">>", out), ("2>", err)):
        if mark in places:
            with Path(places[mark]).open("ab" if mark == ">>" else "wb") as file:
                file.write(printed)
    told += "" if {">", ">>"} & places.keys() else out.decode(errors="replace")
    return code, told + ("" if "2>" in places else err.decode(errors="replace"))


def _call(arguments: list[str], stdin: str) -> tuple[int, bytes, bytes]:
    while "=" in arguments[0]:  # NAME=value before the program
        variable, _, value = arguments.pop(0).partition("=")
        os.environ[variable] = value
    streams = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    try:
        # A context of its own, as a process has: what one command remembers is not the next one's.
        code = contextvars.copy_context().run(main.run, arguments[1:])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        printed = out.getvalue(), err.getvalue()
        sys.stdin, sys.stdout, sys.stderr = streams
    return code, *printed
