"""The backslash commands of the shell.

Guarantees: every command is in `COMMANDS`, with the help that `\\?` prints; a beginning that fits
one command alone is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from omnigraph.cli.commands.shell import entry
from omnigraph.cli.display import Format, moment, print_records
from omnigraph.cli.terminal import echo
from omnigraph.errors import BranchNotFoundError, InvalidArgumentError, TypeNotFoundError

if TYPE_CHECKING:
    from omnigraph.cli.commands.shell.conversation import Session
    from omnigraph.model.catalog import EdgeType, NodeType


class Command(NamedTuple):
    usage: str
    help: str
    run: Callable[[Session, str], None]


def run_command(session: Session, text: str) -> None:
    """Carry out a command."""
    word, _, rest = text.removeprefix("\\").partition(" ")
    COMMANDS[_find(word.strip().removesuffix(";"))].run(session, rest.strip())


def _find(word: str) -> str:
    if word in COMMANDS:
        return word
    fitting = [name for name in COMMANDS if word and name.startswith(word)]
    if len(fitting) == 1:
        return fitting[0]
    meant = " or ".join(f"\\{name}" for name in fitting)
    hint = f"Did you mean {meant}?" if fitting else "\\? lists the commands."
    raise InvalidArgumentError(f"There is no command \\{word}.", hint=hint)


def _describe(session: Session, name: str) -> None:
    if not name:
        print_records(_types(session), ("kind", "type", "entities", "from", "to"))
        return
    catalog = session.catalog
    table = catalog.node(name) or catalog.edge(name)
    if table is None:
        raise TypeNotFoundError(f"There is no type {name!r}.", hint="\\d lists the types.")
    print_records([_property(table, each.name) for each in table.properties], _PROPERTY)
    for line in _ends(session, table):
        echo(line)


_PROPERTY = ("property", "type", "key", "default")


def _types(session: Session) -> list[dict[str, Any]]:
    snapshot = session.graph.snapshot()
    rows = []
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        rows.append(
            {
                "kind": str(table.kind),
                "type": table.name,
                "entities": version.rows if version else 0,
                "from": getattr(table, "src_type", ""),
                "to": getattr(table, "dst_type", ""),
            }
        )
    return rows


def _property(table: NodeType | EdgeType, name: str) -> dict[str, Any]:
    found = table.by_name[name]
    return {
        "property": name,
        "type": str(found.type),
        "key": "key" if name in getattr(table, "key", ()) else "",
        "default": found.default if found.has_default else "",
    }


def _ends(session: Session, table: NodeType | EdgeType) -> list[str]:
    """The edges at a node type, or the two ends of an edge type."""
    source = getattr(table, "src_type", None)
    if source is not None:
        return [f"edge {table.name}: {source} -> {getattr(table, 'dst_type', '')}"]
    edges = session.catalog.edges_of(table.name)
    return [f"edge {each.name}: {each.src_type} -> {each.dst_type}" for each in edges]


def _branch(session: Session, name: str) -> None:
    if not name:
        infos = session.graph.branches()
        here = session.graph.branch_name
        records = [
            {
                "": "*" if info.name == here else "",
                "branch": info.name,
                "head": info.head.id,
                "ahead": info.ahead,
                "behind": info.behind,
            }
            for info in infos
        ]
        print_records(records, ("", "branch", "head", "ahead", "behind"))
        return
    if name not in session.branch_names():
        raise BranchNotFoundError(f"There is no branch {name!r}.", branch=name)
    session.graph = session.graph.on(name)


def _explain(session: Session, text: str) -> None:
    run = text.startswith("--run ")
    text = text.removeprefix("--run ").strip()
    if not text:
        raise InvalidArgumentError("Nothing to explain.", hint="\\explain [--run] match { … } …")
    word = text.split(maxsplit=1)[0].removesuffix(";")
    if word in session.queries:
        arguments = entry.read_arguments(text[len(word) :])
        found = session.graph.explain(session.find(word), word, arguments, run=run)
    else:
        found = session.graph.explain(entry.as_query(text), run=run)
    echo(found.to_text(), nl=False)


def _run(session: Session, text: str) -> None:
    name, _, rest = text.partition(" ")
    session.run(name.removesuffix(";"), entry.read_arguments(rest))


def _input(session: Session, file: str) -> None:
    if not file:
        raise InvalidArgumentError("Which file?", hint="\\i queries.gq")
    names = session.load(Path(file).expanduser())
    echo(f"remembered {', '.join(names)}", err=True)


def _queries(session: Session, _: str) -> None:
    from omnigraph.lang import gq

    records = []
    for name, text in session.queries.items():
        query = next(each for each in gq.parse(text).queries if each.name.text == name)
        params = ", ".join(f"${param.name.text}" for param in query.params)
        about = query.annotation("description") or ""
        records.append({"query": name, "parameters": params, "about": about})
    print_records(records, ("query", "parameters", "about"))


def _log(session: Session, count: str) -> None:
    most = int(count) if count.isdigit() else 10
    records = [
        {
            "commit": commit.id,
            "when": moment(commit.created_at_us),
            "actor": commit.actor,
            "kind": str(commit.kind),
            "message": commit.message,
        }
        for commit in islice(session.graph.commits(), most)
    ]
    print_records(records, ("commit", "when", "actor", "kind", "message"))


def _schema(session: Session, _: str) -> None:
    echo(session.graph.schema(), nl=False)


def _format(session: Session, name: str) -> None:
    if name and name not in set(Format):
        raise InvalidArgumentError(
            f"There is no format {name!r}.", hint=f"Use one of {', '.join(Format)}."
        )
    session.format = Format(name) if name else session.format
    echo(f"rows are printed as {session.format}", err=True)


def _timing(session: Session, _: str) -> None:
    session.timing = not session.timing
    echo(f"timing is {'on' if session.timing else 'off'}", err=True)


def _quit(session: Session, _: str) -> None:
    session.is_over = True


def _help(session: Session, _: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        echo(f"\\{command.usage:<{width}}  {command.help}")
    echo("Type a query to run it: match { … } return { … }, insert …, or query name() { … }.")
    echo("Run a stored query with: name n=3. Enter ends a statement whose braces are closed.")


COMMANDS: dict[str, Command] = {
    "d": Command("d [TYPE]", "The types, or the properties of one.", _describe),
    "branch": Command("branch [NAME]", "The branches, or go to one.", _branch),
    "explain": Command("explain [--run] QUERY", "How a query is answered.", _explain),
    "i": Command("i FILE", "Remember the queries of a file.", _input),
    "queries": Command("queries", "The queries that are remembered.", _queries),
    "run": Command("run NAME [n=3 …]", "Run one of them.", _run),
    "log": Command("log [N]", "The newest commits.", _log),
    "schema": Command("schema", "The branch's schema.", _schema),
    "format": Command("format [FORMAT]", "How rows are printed.", _format),
    "timing": Command("timing", "Say how long a statement took, or stop saying it.", _timing),
    "?": Command("?", "This list.", _help),
    "q": Command("q", "Leave.", _quit),
}
