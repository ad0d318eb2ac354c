"""Write the pages of docs/reference that follow from the code, and check docs against the code.

`reference.py` writes the pages; `reference.py --check` writes nothing and fails when a page has
drifted, when a command or one of its options has no help, when no hand-written page shows how
a command is used, or when the page of promises differs from the tests that cite them.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.main import get_command

import api
import promises
import reliability
from omnigraph import errors, faults
from omnigraph.cli import main as program

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Written by `make docs`; edit the code, not this page. -->"

Command = Any  # Typer keeps the classes of its commands private
Walk = Iterator[tuple[tuple[str, ...], Command]]


def commands_of(root: Command) -> Walk:
    """Every command and group below the program, with its path of names; without hidden ones."""

    def walk(group: Command, path: tuple[str, ...]) -> Walk:
        for name in group.commands:
            command = group.commands[name]
            if command.hidden:
                continue
            yield (*path, name), command
            if hasattr(command, "commands"):
                yield from walk(command, (*path, name))

    return walk(root, (root.name,))


def render_cli(root: Command) -> str:
    parts = [NOTE, "# Command line", _help_page(root, (root.name,))]
    for path, command in commands_of(root):
        parts += [f"## `{' '.join(path)}`", _help_page(command, path)]
    return "\n\n".join(parts) + "\n"


def _help_page(command: Command, path: tuple[str, ...]) -> str:
    context = command.context_class(command, info_name=" ".join(path), terminal_width=90)
    return f"```text\n{command.get_help(context).rstrip()}\n```"


def render_errors() -> str:
    lines = [
        NOTE,
        "",
        "# Errors",
        "",
        "Every error that OmniGraph raises on purpose, with its stable code. The classes live in",
        "`omnigraph.errors`; the hint is what the error says unless its cause knows better.",
        "",
        "| class | code | meaning | hint |",
        "|---|---|---|---|",
    ]
    for depth, kind in _tree(errors.OmniGraphError, 0):
        meaning = (inspect.getdoc(kind) or "").replace("\n", " ")
        indent = "&nbsp;" * 4 * depth
        name = f"{indent}`{kind.__name__}`"
        lines.append(f"| {name} | `{kind.code}` | {meaning} | {kind.default_hint or ''} |")
    return "\n".join(lines) + "\n"


def _tree(
    kind: type[errors.OmniGraphError], depth: int
) -> Iterator[tuple[int, type[errors.OmniGraphError]]]:
    yield depth, kind
    # Only what errors.py defines, in its order; tests make subclasses of their own.
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child, depth + 1)


def render_faults() -> str:
    lines = [NOTE, "", "# Fault points", "", "How to arm them: see `CONTRIBUTING.md`.", ""]
    lines += ["| point | the instant |", "|---|---|"]
    lines += [f"| `{name}` | {instant} |" for name, instant in faults.POINTS.items()]
    return "\n".join(lines) + "\n"


def pages() -> Mapping[str, Callable[[], str]]:
    return {
        "api.md": lambda: f"{NOTE}\n\n{api.render()}",
        "cli.md": lambda: render_cli(get_command(program.app)),
        "errors.md": render_errors,
        "faults.md": render_faults,
        "reliability.md": lambda: reliability.render(NOTE, reliability.load()),
    }


def find_drift() -> Iterator[str]:
    """Generated pages that are not what the code would generate now."""
    for name, render in pages().items():
        page = REFERENCE / name
        if not page.exists() or page.read_text() != render():
            yield f"docs/reference/{name} is out of date: run `make docs`."


def find_silence(root: Command) -> Iterator[str]:
    """Commands and options that do not say what they are for."""
    for path, command in commands_of(root):
        if not (command.help or "").strip():
            yield f"`{' '.join(path)}` has no help: give its function a docstring."
        for parameter in command.params:
            if parameter.name != "help" and not (parameter.help or "").strip():
                yield f"`{' '.join(path)}`: {parameter.name!r} has no help text."


def find_unshown(root: Command, text: str) -> Iterator[str]:
    """Commands that no hand-written page shows."""
    for path, command in commands_of(root):
        if not hasattr(command, "commands") and " ".join(path) not in text:
            yield f"`{' '.join(path)}` is shown nowhere: add it to a page of docs/guide."


def find_mismatches(root: Command) -> Iterator[str]:
    """Entries of the program's list whose line differs from the command's own help."""
    for name, entry in program.COMMANDS.items():
        own = (root.commands[name].help or "").strip().split("\n")[0]
        if own != entry.summary:
            yield f"`{name}` is listed as {entry.summary!r}, and its help says {own!r}."


def find_broken_promises() -> Iterator[str]:
    """Promises whose state on the page differs from the tests that cite them."""
    page = (ROOT / "docs" / "reference" / "promises.md").read_text()
    return promises.find_mismatches(page, promises.cited(ROOT / "tests"))


def hand_written() -> str:
    """The prose in which commands should appear."""
    found = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
    found += sorted((ROOT / "docs" / "guide").glob("**/*.md"))
    return "\n".join(page.read_text() for page in found)


def find_faults() -> list[str]:
    root = get_command(program.app)
    return [
        *find_drift(),
        *find_silence(root),
        *find_unshown(root, hand_written()),
        *find_mismatches(root),
        *find_broken_promises(),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on differences")
    if parser.parse_args().check:
        found = find_faults()
        print("\n".join(found) or "The docs agree with the code.")
        return 1 if found else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, render in pages().items():
        (REFERENCE / name).write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
