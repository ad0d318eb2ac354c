"""The `omnigraph` program: its list of commands, its global options, its way of failing.

Commands are loaded when they are called. The list below therefore repeats the first line of each
command's help; a contract test keeps the two equal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer._click.exceptions import ClickException
from typer.core import TyperGroup
from typer.main import get_command

import omnigraph
from omnigraph import errors, logs
from omnigraph.cli import callstate, interrupt
from omnigraph.cli.apps import new_app
from omnigraph.cli.failure import (
    FAILED,
    INTERRUPTED,
    exit_code,
    from_system,
    print_failure,
    print_usage,
    wants_json,
)
from omnigraph.cli.optionvalues import quickened
from omnigraph.cli.startup import as_program
from omnigraph.cli.terminal import echo, note
from omnigraph.exhaustion import exhaustion_reported


class Entry(NamedTuple):
    """A command of the program: the module that holds it, and one line of help."""

    module: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "init": Entry("omnigraph.cli.commands.init", "Create an empty graph with a schema."),
    "query": Entry("omnigraph.cli.commands.query", "Run a read query and print its rows."),
    "explain": Entry(
        "omnigraph.cli.commands.explain",
        "Show the plan of a read query.",
    ),
    "shell": Entry("omnigraph.cli.commands.shell", "Run queries and mutations interactively."),
    "mutate": Entry("omnigraph.cli.commands.mutate", "Run a mutation as one commit."),
    "ingest": Entry(
        "omnigraph.cli.commands.ingest", "Write a file of rows as one commit, without Spark."
    ),
    "load": Entry(
        "omnigraph.cli.commands.load",
        "Load inputs of any size as one commit, on Spark.",
    ),
    "export": Entry(
        "omnigraph.cli.commands.export", "Export a snapshot as JSONL, Parquet, Arrow or CSV."
    ),
    "algorithm": Entry("omnigraph.cli.commands.algorithm", "Run a graph algorithm, on Spark."),
    "embed": Entry(
        "omnigraph.cli.commands.embed",
        "Compute vectors of @embed properties that are missing or out of date.",
    ),
    "spark": Entry(
        "omnigraph.cli.commands.spark",
        "Manage a resident Spark session for other commands.",
    ),
    "branch": Entry("omnigraph.cli.commands.branch", "Create, list, merge and delete branches."),
    "commit": Entry(
        "omnigraph.cli.commands.commit", "Show history, revert and cherry-pick commits."
    ),
    "diff": Entry("omnigraph.cli.commands.diff", "Show which entities differ between two states."),
    "changes": Entry("omnigraph.cli.commands.changes", "Read the change feed of a graph."),
    "tag": Entry(
        "omnigraph.cli.commands.tag", "Create, list and delete tags, which keep commits readable."
    ),
    "snapshot": Entry(
        "omnigraph.cli.commands.snapshot",
        "Print the types, versions and row counts of a snapshot.",
    ),
    "schema": Entry("omnigraph.cli.commands.schema", "Show and change the schema of a graph."),
    "lint": Entry(
        "omnigraph.cli.commands.lint",
        "Check schemas and queries for errors and probable mistakes.",
    ),
    "fmt": Entry(
        "omnigraph.cli.commands.fmt",
        "Format schemas and queries; comments are kept.",
    ),
    "import": Entry(
        "omnigraph.cli.commands.import_",
        "Create a graph from an export, or from one state of another graph.",
    ),
    "copy": Entry(
        "omnigraph.cli.commands.copy",
        "Copy a graph with branches, tags and history, also while it is in use.",
    ),
    "blob": Entry("omnigraph.cli.commands.blob", "Inspect and read blobs."),
    "stats": Entry(
        "omnigraph.cli.commands.stats",
        "Count types, rows, bytes, files, index coverage and history.",
    ),
    "optimize": Entry(
        "omnigraph.cli.commands.optimize",
        "Compact files, build indexes, store adjacency lists.",
    ),
    "maintain": Entry(
        "omnigraph.cli.commands.maintain",
        "Optimize tables that exceed given limits, once or continuously.",
    ),
    "cleanup": Entry(
        "omnigraph.cli.commands.cleanup",
        "Remove old history by a retention rule, and unreferenced data.",
    ),
    "fsck": Entry(
        "omnigraph.cli.commands.fsck",
        "Check the consistency of manifests, tables, indexes and constraints.",
    ),
    "repair": Entry(
        "omnigraph.cli.commands.repair",
        "Repair tables that differ from the manifest, damaged files, and moved graphs.",
    ),
    "recovery": Entry("omnigraph.cli.commands.recovery", "List and recover interrupted writes."),
    "alias": Entry(
        "omnigraph.cli.commands.alias",
        "Run a query that your configuration defines.",
    ),
    "profile": Entry("omnigraph.cli.commands.profile", "Show the profiles of your configuration."),
    "login": Entry(
        "omnigraph.cli.commands.login",
        "Store the token of a server in ~/.omnigraph/credentials.",
    ),
    "logout": Entry("omnigraph.cli.commands.logout", "Delete the stored token of a server."),
    "completion": Entry(
        "omnigraph.cli.commands.completion",
        "Print a shell completion script.",
    ),
    "version": Entry(
        "omnigraph.cli.commands.version", "Print the versions of OmniGraph and its parts."
    ),
}


# The page of help, by what people want to do.
SECTIONS: dict[str, Sequence[str]] = {
    "Create and load": ("init", "ingest", "load", "import", "export", "copy", "embed"),
    "Query and modify": ("query", "explain", "shell", "mutate", "algorithm", "blob"),
    "History": ("branch", "commit", "diff", "changes", "tag", "snapshot"),
    "Schemas and queries": ("schema", "lint", "fmt"),
    "Maintenance": ("stats", "optimize", "maintain", "cleanup", "fsck", "repair", "recovery"),
    "Configuration and tools": (
        "alias",
        "profile",
        "login",
        "logout",
        "spark",
        "completion",
        "version",
    ),
}

# Names that the elder program had, and still understands.
RENAMED = {"read": "query", "change": "mutate", "check": "lint"}
# The same for two words. A query of such a name is asked with its name after an option.
_RENAMED_PAIRS = {("query", "lint"): "lint", ("query", "check"): "lint"}


class _Commands(MutableMapping[str, Any]):
    """What Typer sees as its dictionary of commands; a value is imported when it is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in RENAMED:
            note(f"warning: {name} is called {RENAMED[name]} now")
            name = RENAMED[name]
        if name not in self._loaded:
            self._loaded[name] = get_command(import_module(COMMANDS[name].module).app)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Program(TyperGroup):
    """The outermost group, which knows its commands by name and one line of help only."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()

    def get_params(self, ctx: Any) -> list[Any]:
        return quickened(super().get_params(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(len(name) for name in COMMANDS)
        for title, names in _sections():
            with formatter.section(title):
                # Padded, so that the columns of all sections stand below each other.
                formatter.write_dl([(f"{n:<{width}}", COMMANDS[n].summary) for n in names])


def _sections() -> Iterator[tuple[str, Sequence[str]]]:
    """All commands in the order of the page of help."""
    yield from SECTIONS.items()
    placed = {name for names in SECTIONS.values() for name in names}
    rest = [name for name in COMMANDS if name not in placed]
    if rest:
        yield "More commands", rest


app = new_app("A typed property-graph database on Lance tables.", name="omnigraph", cls=_Program)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"omnigraph {omnigraph.__version__}")
        raise typer.Exit


@app.callback()
def _configure(
    log_level: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help=f"Log to standard error: {', '.join(logs.LEVELS)}."),
    ] = None,
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Log one JSON object per line.")
    ] = False,
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            "-v",
            is_eager=True,
            callback=_print_version,
            help="Print the version of OmniGraph.",
        ),
    ] = False,
) -> None:
    if log_level is not None or log_json:
        logs.configure(log_level or "warning", as_json=log_json)
    if os.environ.get("OMNIGRAPH_FAULTS"):
        import_module("omnigraph.faults")  # refuses a malformed variable before any work begins


def _spelled_anew(arguments: Sequence[str]) -> list[str]:
    """The arguments with the elder's two-word commands as they are called now."""
    words = tuple(arguments[:2])
    if len(words) < 2 or words not in _RENAMED_PAIRS:
        return list(arguments)
    note(f"warning: {' '.join(words)} is called {_RENAMED_PAIRS[words]} now")
    return [_RENAMED_PAIRS[words], *arguments[2:]]


def run(arguments: Sequence[str]) -> int:
    """Run the program and return its exit code."""
    if "_OMNIGRAPH_COMPLETE" in os.environ:
        from typer._completion_classes import completion_init

        completion_init()  # a shell is asking which words may come next
    with callstate.running():
        return _run(arguments, as_json=wants_json(arguments))


def _run(arguments: Sequence[str], *, as_json: bool) -> int:
    try:
        with exhaustion_reported():
            code = get_command(app).main(
                _spelled_anew(arguments), prog_name="omnigraph", standalone_mode=False
            )
        return code if isinstance(code, int) else 0
    except errors.OmniGraphError as error:
        print_failure(error, as_json=as_json)
        return exit_code(error)
    except ClickException as error:
        print_usage(error, as_json=as_json)
        return error.exit_code
    except typer.Abort:
        return FAILED
    except OSError as error:
        failure = from_system(error)
        print_failure(failure, as_json=as_json)
        return exit_code(failure)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:  # of a reader that has gone away, or of a completion
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def main() -> None:
    """The console script."""
    as_program()
    interrupt.install()
    sys.exit(run(sys.argv[1:]))
