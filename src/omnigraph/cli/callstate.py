"""The state of one run of a command: its arguments and its target.

It always exists, so that output functions need not check whether a command is running.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.cli.rowformats import Format
    from omnigraph.config.addresses import Scope
    from omnigraph.config.operator import OperatorConfig
    from omnigraph.graph import Graph


@dataclass
class Invocation:
    """One call of the program. `options` are those that say which graph is meant."""

    command: str = "omnigraph"
    options: dict[str, str | None] = field(default_factory=dict)
    first: tuple[str, str] | None = None  # a word beside the graph: its place and what it says
    quiet: bool = False
    as_json: bool = False
    format: Format | None = None  # how a list of records is printed
    durability: str | None = None  # what writes promise, if the caller said so
    began: float = field(default_factory=time.time)
    config: OperatorConfig | None = None
    scope: Scope | None = None
    writing: Graph | None = None  # the graph that the command may be changing
    making: str | None = None  # the address at which it may be making a graph


_current: ContextVar[Invocation | None] = ContextVar("omnigraph_invocation", default=None)


def current() -> Invocation:
    """The call that is running, or one that says nothing."""
    return _current.get() or Invocation()


def begin(invocation: Invocation) -> None:
    """Say how the running command was called."""
    _current.set(invocation)


@contextmanager
def running() -> Iterator[None]:
    """One run of the program, which leaves nothing to the next one in the same process."""
    token = _current.set(Invocation())
    try:
        yield
    finally:
        _current.reset(token)
