"""`omnigraph login` and `omnigraph logout`: tokens of servers, kept for their owner alone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph.cli import suggestions
from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson
from omnigraph.cli.targets import operator
from omnigraph.cli.terminal import echo, note
from omnigraph.errors import InvalidArgumentError

app = new_app()
logout_app = new_app()

Server = Annotated[
    str,
    typer.Argument(
        metavar="SERVER",
        help="Name of the server in your configuration.",
        autocompletion=suggestions.servers,
    ),
]


@app.command()
def login(
    server: Server,
    token: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", help="The token; standard input is safer."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store the token of a server in ~/.omnigraph/credentials."""
    from omnigraph.cli.display import print_json
    from omnigraph.config.credentials import write_token

    path = write_token(server, (token if token is not None else _ask(server)).strip())
    if server not in operator().servers:
        note(f"note: {operator().path} has no server {server} yet")
    if as_json:
        kept = {"credentials": str(path), "credentials_path": str(path)}
        print_json({"server": server, **kept, "declared": server in operator().servers})
    else:
        echo(f"kept the token of {server} in {path}")


@logout_app.command()
def logout(server: Server, as_json: AsJson = False) -> None:
    """Delete the stored token of a server."""
    from omnigraph.cli.display import print_json
    from omnigraph.config.credentials import read_token, write_token

    was_kept = read_token(server) is not None
    path = write_token(server, None)
    if as_json:
        kept = {"credentials": str(path), "credentials_path": str(path)}
        print_json({"server": server, **kept})
    else:
        echo(f"forgot the token of {server}" if was_kept else f"no token of {server} was kept")


def _ask(server: str) -> str:
    """The token as it is typed or piped; on a terminal it does not show."""
    if sys.stdin.isatty():
        return str(typer.prompt(f"token of {server}", hide_input=True, err=True))
    line = sys.stdin.readline().strip()
    if not line:
        raise InvalidArgumentError(
            "There is no token on standard input.", hint=f"echo $TOKEN | omnigraph login {server}"
        )
    return line
