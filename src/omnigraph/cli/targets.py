"""Commands that work on a graph: the options that select it, and how it is opened.

A graph is named by the first argument, by `--store` or `--profile`, or not at all: then the
operator's defaults hold. The argument may be left out when an option names the graph, or when there
are fewer words than the command needs.

Guarantees: every write tells on standard error what it is about to change, unless `--quiet` or
`--json` is given; destroying what is not on this machine's disk takes a `--yes` or an answer.
Deliberately absent: what a name stands for. `omnigraph.config` knows that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from omnigraph.cli import callstate, interrupt, progressline, suggestions
from omnigraph.cli.optionvalues import Quick
from omnigraph.cli.rowformats import Format
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    from omnigraph.config.addresses import Scope
    from omnigraph.config.operator import OperatorConfig
    from omnigraph.graph import Graph

LEFT_OUT = "\0"  # no argument can be this
_ADDRESSES = ("store", "server", "cluster", "profile", "graph_id")


def _shared(
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            "--uri",
            metavar="GRAPH",
            help="Address or name of the graph.",
            autocompletion=suggestions.stores,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A profile of ~/.omnigraph/config.yaml.",
            autocompletion=suggestions.profiles,
        ),
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="SERVER", hidden=True, help="A server's name or URL.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ROOT", hidden=True, help="A cluster's name or root.")
    ] = None,
    graph_id: Annotated[
        str | None,
        typer.Option("--graph", metavar="ID", hidden=True, help="Which of a server's graphs."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only data and errors.")] = False,
) -> None:
    """The options that every command with a graph has."""


@cache
def _options_of(function: Callable[..., None]) -> tuple[Any, ...]:
    """The options that a function declares, as Typer makes them."""
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return tuple(get_command(app).params)


def _writing(
    durability: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="power: survives a power failure; process: survives the end of the process.",
        ),
    ] = None,
) -> None:
    """The option of commands that write."""


class Targeted(Quick):
    """A command with a graph. Its argument GRAPH, if it has one, is the first and is optional."""

    shows_progress = True
    _format: Format | None = None

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._words = [param for param in self.params if param.param_type_name == "argument"]
        self._has_graph = bool(self._words) and self._words[0].name == "graph"
        if self._has_graph:
            self._words[0].required = False
        own = {param.name for param in self.params}
        self.params += [option for option in _options_of(_shared) if option.name not in own]
        if any("--as" in param.opts for param in self.params):
            self.params += _options_of(_writing)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if self._has_graph and not ctx.resilient_parsing and self._leaves_graph_out(ctx, args):
            args = [LEFT_OUT, *args]
        rest = super().parse_args(ctx, args)
        if ctx.params.get("graph") == LEFT_OUT:
            ctx.params["graph"] = None
        return rest

    def split(self, ctx: Any, args: list[str]) -> tuple[dict[str, Any], list[str]]:
        """The options and the words of a call, before anybody decides what the words mean."""
        parser = self.make_parser(ctx)
        parser._args = []  # so that all words are left over
        options, words, _ = parser.parse_args(list(args))
        return options, words

    def _leaves_graph_out(self, ctx: Any, args: list[str]) -> bool:
        options, words = self.split(ctx, args)
        if "help" in options:
            return False
        if any(options.get(name) is not None for name in _ADDRESSES):
            return len(words) < len(self._words)
        return len(words) < 1 + sum(word.required for word in self._words)

    def invoke(self, ctx: Any) -> Any:
        said = {name: ctx.params.pop(name, None) for name in _ADDRESSES if not self._owns(name)}
        quiet = bool(ctx.params.pop("quiet", False))
        durability = ctx.params.pop("durability", None)
        as_json = bool(ctx.params.get("as_json"))
        call = callstate.Invocation(
            ctx.command_path, said, self._first_word(ctx), quiet, as_json, self._format, durability
        )
        callstate.begin(call)
        if not self.shows_progress:
            return super().invoke(ctx)
        try:
            with progressline.shown(ctx.info_name, quiet=quiet):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            interrupt.tell()
            raise typer.Exit(interrupt.EXIT_CODE) from None

    def _first_word(self, ctx: Any) -> tuple[str, str] | None:
        for word in self._words[self._has_graph :]:
            value = ctx.params.get(word.name)
            if isinstance(value, str):
                return word.metavar or word.name, value
        return None

    def _owns(self, name: str) -> bool:
        return name not in {option.name for option in _options_of(_shared)}


def _listed(
    format: Annotated[
        Format | None, typer.Option("--format", help="Output format of the records.")
    ] = None,
) -> None:
    """The option of commands that print a list of records."""


class Listing(Targeted):
    """A command that prints a list of records, in any format; JSON has the command's own shape."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        place = next(n for n, param in enumerate(self.params) if param.name == "as_json")
        self.params[place:place] = _options_of(_listed)

    def invoke(self, ctx: Any) -> Any:
        format = ctx.params.pop("format", None)
        ctx.params["as_json"] = ctx.params["as_json"] or format is Format.JSON
        self._format = format
        return super().invoke(ctx)


class Interactive(Targeted):
    """A command that talks with a person: Ctrl-C and progress are its own affair."""

    shows_progress = False


def operator() -> OperatorConfig:
    """The operator's configuration, read once per call of the program."""
    from omnigraph.cli.terminal import note
    from omnigraph.config.operator import read_config

    call = callstate.current()
    if call.config is None:
        call.config = read_config()
        for warning in call.config.warnings:
            note(f"warning: {warning}")
    return call.config


def scope_of(graph: str | None) -> Scope:
    """The graph that a command is about."""
    from omnigraph.config.addresses import Address, resolve_scope

    call = callstate.current()
    said = dict(call.options)
    said["graph"] = said.pop("graph_id", None)
    try:
        call.scope = resolve_scope(operator(), Address(uri=graph, **said))
    except InvalidArgumentError as error:
        if error.details.get("missing") == "graph" and call.first is not None:
            place, word = call.first
            raise InvalidArgumentError(
                f"No graph is named; {word!r} was taken as {place}.", hint=error.hint
            ) from error
        raise
    return call.scope


def actor_named(actor: str | None) -> str | None:
    """Who acts: `--as`, else $OMNIGRAPH_ACTOR, else the configuration's actor."""
    import os

    return actor or os.environ.get("OMNIGRAPH_ACTOR") or operator().actor


def durability_named() -> str | None:
    """What writes promise: `--durability`, else $OMNIGRAPH_DURABILITY, else the configuration's
    default. None: what the graph says."""
    import os

    said = callstate.current().durability
    return said or os.environ.get("OMNIGRAPH_DURABILITY") or operator().defaults.durability


def open_graph(
    graph: str | None,
    branch: str = "main",
    *,
    actor: str | None = None,
    read_only: bool = False,
    spark: bool = False,
    to: str | None = None,
) -> Graph:
    """The graph that a command works on. Opening it for writing recovers it first. `to`: another
    place that the command writes to."""
    from omnigraph.cli import startup
    from omnigraph.cli.terminal import note

    scope = scope_of(graph)
    uri = scope.store_uri()
    if to is not None:
        tell_target(_scope_at(to))
    elif not read_only:
        tell_target(scope)
    if not spark:
        startup.without_pandas()
    import omnigraph

    opened = omnigraph.open(
        uri,
        branch=branch,
        actor=actor_named(actor),
        read_only=read_only,
        durability=durability_named(),
        storage_options=scope.storage_options or None,
    )
    for loss in opened.losses:
        note(f"warning: {loss.message}")
    if not read_only:
        callstate.current().writing = opened
    interrupt.check()
    return opened


@contextmanager
def beginning(graph: Graph, start: str | None) -> Iterator[bool]:
    """Begin the graph's branch on another one, if it does not exist, and say whether that was so;
    a block that fails takes it away again."""
    known = start is None or graph.branch_name in [info.name for info in graph.branches()]
    if start is None or known:
        yield False
        return
    graph.on(start).create_branch(graph.branch_name)
    try:
        yield True
    except BaseException:
        graph.delete_branch(graph.branch_name)
        raise


def place_for(graph: str | None) -> Scope:
    """Where a command makes a new graph."""
    scope = scope_of(graph)
    tell_target(scope)
    callstate.current().making = scope.store_uri()
    return scope


def _scope_at(address: str) -> Scope:
    from omnigraph.config.addresses import Address, resolve_scope

    return resolve_scope(operator(), Address(uri=address))


def tell_target(scope: Scope) -> None:
    """Say what is about to be written to."""
    from omnigraph.cli.terminal import note

    call = callstate.current()
    if not call.as_json:
        origin = "" if scope.is_explicit else f", from {scope.origin}"
        place = "local" if scope.is_local else "remote"
        note(f"{call.command} → {scope.address} ({place}{origin})")


def ask_consent(graph: str | None, what: str, *, yes: bool) -> None:
    """Before something is destroyed that may belong to others: a flag, or an answer."""
    from omnigraph.cli.terminal import echo

    scope = scope_of(graph)
    if scope.is_local or yes:
        return
    if callstate.current().as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidArgumentError(
            f"{scope.address} is not local, and this would {what}.",
            hint="Add --yes to confirm.",
        )
    with progressline.paused():
        if not typer.confirm(f"{scope.address} is not local: {what}?", err=True):
            echo("nothing was done", err=True)
            raise typer.Exit(interrupt.DECLINED)
