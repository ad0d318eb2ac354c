"""`omnigraph cleanup`: give up history."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, Store, Yes
from omnigraph.cli.targets import Targeted, ask_consent, open_graph
from omnigraph.cli.terminal import echo, note
from omnigraph.errors import InvalidArgumentError

app = new_app()

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@app.command(cls=Targeted)
def cleanup(
    graph: Store,
    keep: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of commits of each branch to keep."),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Remove older states, such as 7d; units s, m, h, d, w."),
    ] = None,
    grace: Annotated[
        str, typer.Option(metavar="AGE", help="Keep states that were current within this time.")
    ] = "1h",
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Execute, instead of a preview.")
    ] = False,
    yes: Yes = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Remove old history by a retention rule, and unreferenced data."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.elder import cleanup_fields

    if confirm:
        ask_consent(graph, "remove history", yes=yes)
    age = parse_age(older_than) if older_than else None
    opened = open_graph(graph, actor=actor, read_only=not confirm)
    done = opened.cleanup(keep=keep, older_than=age, grace=parse_age(grace), confirm=confirm)
    if as_json:
        print_json({**cleanup_fields(opened, done, keep, age), **done.to_dict()})
        return
    for table in done.tables:
        told = [f"{table.versions} versions"] if table.versions else []
        told += [f"{len(table.forks)} forks"] if table.forks else []
        told += ["all of it"] if table.whole else []
        told += [f"{table.detached} unfinished"] if table.detached else []
        told += [f"failed: {table.error}"] if table.error else []
        echo(f"{table.path}: {', '.join(told)}, {table.bytes} bytes")
    echo(f"{len(done.manifests)} deleted branches" if done.manifests else "no deleted branch")
    for name in done.litter:
        echo(f"{name}: left by a writer that died")
    verb = "removed" if done.executed else "would remove"
    echo(f"{verb} {done.versions} versions, {done.bytes} bytes")
    if not done.executed:
        note("run it with --confirm to execute")


def parse_age(text: str) -> timedelta:
    """A length of time as a person writes it: 90s, 15m, 12h, 7d, 2w."""
    match = re.fullmatch(r"(\d+)([smhdw])", text.strip())
    if match is None:
        raise InvalidArgumentError(
            f"{text!r} is not a length of time.", hint="Write it as 90s, 15m, 12h, 7d or 2w."
        )
    try:
        return timedelta(seconds=int(match[1]) * _UNITS[match[2]])
    except (OverflowError, ValueError):  # more days, or more digits, than Python counts
        raise InvalidArgumentError(
            f"{text[:20]!r} is longer than can be counted.", hint="Write less than 999999999d."
        ) from None
