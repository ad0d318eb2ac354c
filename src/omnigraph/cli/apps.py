"""The settings that every part of the program shares."""

from __future__ import annotations

from typing import Any

import typer

from omnigraph.cli.bundles import spread
from omnigraph.cli.optionvalues import Quick


class _App(typer.Typer):
    """A Typer application whose commands start quickly."""

    def command(self, name: str | None = None, *, cls: Any = None, **settings: Any) -> Any:
        register = super().command(name, cls=cls or Quick, **settings)
        return lambda function: register(spread(function))


def new_app(help: str | None = None, **settings: Any) -> typer.Typer:
    """An application for one module of commands; give a group of several its `help`.

    Help pages and errors stay plain: the rich ones cost 80 ms at every start, and a traceback is
    for us rather than for the reader.
    """
    return _App(
        help=help,
        no_args_is_help=help is not None,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        **settings,
    )
