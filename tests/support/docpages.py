"""Pages of documentation, taken apart into blocks that can be run.

A comment right before a block says what a reader cannot see from the block itself:

    <!-- not run: needs S3 -->            why nothing runs it
    <!-- slow: starts Spark -->           run with the slow tests only
    <!-- needs: kuzu -->                  run where this Python module is installed
    <!-- file: mapping.yaml -->           the block is this file
    <!-- exits: 8 -->                     its last command ends with this code
    <!-- first: omnigraph tag create …--> done before it, and not shown

and, anywhere on the page, what it begins with:

    <!-- start: examples -->              the files of docs/examples
    <!-- start: shop -->                  the same, and the graph that its README makes

A `text` block right after a shell block is what that block prints: its lines must be found in
order, where `…` stands for anything and an id for any id. In a command, an id that begins with
`01M7` stands for the newest commit of the graph's `main`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

COMMENT = re.compile(r"^<!-- (not run|slow|needs|file|exits|first|start): (.+?) -->$")
KINDS = {"sh", "python", "pg", "gq", "json", "yaml", "csv", "text"}
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    kind: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)
    shows: str | None = None  # what a shell block prints, as the page says

    @property
    def runs(self) -> bool:
        return "not run" not in self.marks

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Page:
    path: Path
    start: str | None
    blocks: tuple[Block, ...]


def read_page(path: Path) -> Page:
    start: str | None = None
    blocks: list[Block] = []
    marks: dict[str, str] = {}
    adjacent = False  # nothing but blank lines since the last block
    lines = iter(enumerate(path.read_text().splitlines(), 1))
    for number, line in lines:
        if said := COMMENT.match(line):
            if said[1] == "start":
                start = said[2]
            else:
                marks[said[1]] = said[2]
        elif fence := re.match(r"^( *)```([a-z]*)$", line):
            text = _body(lines, fence[1])
            if fence[2] == "text" and adjacent and blocks[-1].kind == "sh" and not marks:
                blocks[-1] = replace(blocks[-1], shows=text)
            else:
                blocks.append(Block(path, number, fence[2], text, marks))
            marks, adjacent = {}, True
        elif line.strip():
            marks, adjacent = {}, False
    return Page(path, start, tuple(blocks))


def _body(lines: Iterator[tuple[int, str]], indent: str) -> str:
    kept = []
    for _, line in lines:
        if line.strip() == "```":
            break
        kept.append(line.removeprefix(indent))
    return "\n".join(kept) + "\n"


def commands(text: str) -> list[str]:
    """The commands of a shell block: lines, joined where they go on, with what they read."""
    found: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        while line.endswith("\\") or _open_quote(line):
            line += "\n" + next(lines)
        if here := re.search(r"<<'?([A-Z]+)'?", line):
            for more in lines:
                line += "\n" + more
                if more == here[1]:
                    break
        if line.strip() and not line.startswith("#"):
            found.append(line)
    return found


def _open_quote(text: str) -> bool:
    return text.split(" #")[0].count("'") % 2 == 1


def missing_lines(shown: str, printed: str) -> list[str]:
    """Lines of `shown` that `printed` does not have, in this order."""
    rest = iter(line.rstrip() for line in printed.splitlines())
    missing = []
    for line in shown.splitlines():
        pattern = re.escape(line.rstrip()).replace("…", ".*")
        pattern = re.sub(r"01[0-9A-HJKMNP-TV-Z]{6,24}", r"[0-9A-Z]+", pattern)
        if line.strip() and not any(re.fullmatch(pattern, each) for each in rest):
            missing.append(line)
    return missing


def title(page: Page) -> str:
    return str(page.path.relative_to(ROOT))


PATHS = sorted({ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")})
PAGES = [page for page in map(read_page, PATHS) if page.blocks]
