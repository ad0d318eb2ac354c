"""`omnigraph alias`: named queries of the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import callstate, suggestions
from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson
from omnigraph.cli.queryargs import Params, ParamsFile, RowFormat
from omnigraph.cli.targets import Targeted, open_graph, operator
from omnigraph.errors import EngineUnavailableError, InvalidArgumentError, NotFoundError
from omnigraph.model.strictjson import read_json

if TYPE_CHECKING:
    from omnigraph.config.operator import Alias

app = new_app()


@app.command(cls=Targeted)
def alias(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of the alias; without it, all are listed.",
            autocompletion=suggestions.aliases,
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="VALUE...", help="Arguments of the query, in order."),
    ] = None,
    params: Params = None,
    params_file: ParamsFile = None,
    format: RowFormat = None,
    as_json: AsJson = False,
) -> None:
    """Run a query that your configuration defines."""
    from omnigraph.cli.display import chosen_format, print_result
    from omnigraph.cli.files import read_params, read_text

    if name is None:
        _list(as_json=as_json)
        return
    found = _find(name)
    file = _file_of(name, found)
    given = {**found.params, **_positional(name, found, arguments or [])}
    given |= read_params(params, params_file)
    _address(found)
    graph = open_graph(None, found.branch or "main", read_only=True)
    result = graph.query(read_text(file), found.query, given)
    print_result(result, chosen_format(format, as_json=as_json, alias=found.format))


def _find(name: str) -> Alias:
    known = operator().aliases
    if name not in known:
        raise NotFoundError(
            f"There is no alias {name!r} in {operator().path}.",
            hint=f"There are: {', '.join(known) or 'none'}.",
        )
    return known[name]


def _file_of(name: str, found: Alias) -> Path:
    if found.server is not None:
        raise EngineUnavailableError(
            f"The alias {name} uses the server {found.server}; this version has no servers.",
            hint="Give it a store and a file: aliases.<name>.store and aliases.<name>.file.",
        )
    if found.file is None:
        raise InvalidArgumentError(
            f"The alias {name} has no file for its query.",
            hint=f"Set aliases.{name}.file in {operator().path}.",
        )
    path = Path(found.file).expanduser()
    base = operator().path
    return path if path.is_absolute() or base is None else base.parent / path


def _positional(name: str, found: Alias, values: Sequence[str]) -> dict[str, Any]:
    if len(values) > len(found.args):
        raise InvalidArgumentError(
            f"The alias {name} takes {len(found.args)} arguments, not {len(values)}.",
            hint=f"They are: {' '.join(found.args) or 'none'}.",
        )
    return {key: _value(text) for key, text in zip(found.args, values, strict=False)}


def _value(text: str) -> Any:
    """A word as JSON if it is a number, true, false or null, else as text."""
    try:
        value = read_json(text)
    except ValueError:
        return text
    return text if isinstance(value, str | list | dict) else value


def _address(found: Alias) -> None:
    """The alias names the graph, unless the command line does."""
    options = callstate.current().options
    if not any(options.values()):
        options.update(store=found.store, profile=found.profile)


def _list(*, as_json: bool) -> None:
    from omnigraph.cli.display import print_json, print_records

    records = [
        {
            "name": name,
            "query": found.query,
            "target": found.store or found.profile or found.server,
            "file": found.file,
            "args": list(found.args),
        }
        for name, found in operator().aliases.items()
    ]
    if as_json:
        print_json({"aliases": records})
    else:
        print_records(records, ("name", "query", "target", "file", "args"))
