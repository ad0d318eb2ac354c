"""What the commands of the Spark pipeline share: how to reach Spark, and progress on the screen."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import progressline
from omnigraph.cli.bundles import Bundle
from omnigraph.cli.terminal import echo, note
from omnigraph.progress import Progress as Moment

if TYPE_CHECKING:
    from omnigraph.engines.spark.jobevents import ProgressEvent
    from omnigraph.engines.spark.settings import SparkSettings

Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master: local[4], spark://host:7077, yarn, k8s://…; default: the resident "
        "session if one runs, else local[*].",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="Spark setting; may be repeated."),
]
Progress = Annotated[
    str,
    typer.Option(
        metavar="FORM", help="Progress on standard error: auto (if it is a terminal), json or none."
    ),
]


@dataclass(frozen=True)
class OnSpark(Bundle):
    """Which Spark a command uses: what is named, else the resident session if there is one."""

    master: Master = None
    remote: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark Connect endpoint: sc://host:15002.")
    ] = None
    conf: Conf = None

    def settings(self) -> SparkSettings:
        from omnigraph.engines.spark.settings import parse_config, read_settings

        given = parse_config(";".join(self.conf or ()))
        settings = read_settings(self.master, self.remote, given)
        return _with_resident(settings) if settings.is_open else settings

    def started(self, engine: str | None) -> SparkSettings | None:
        """The settings, with a session that runs already; None for another engine."""
        if engine != "spark":
            return None
        settings = self.settings()
        start_session(settings, "omnigraph.graph", "omnigraph.engines.spark.engine")
        return settings


def start_session(settings: SparkSettings, *modules: str) -> None:
    """Before the graph is opened, from a process that is still small. What comes next is imported
    while Spark's machine starts: this process only waits for it. No thread does so: Ctrl-C in the
    middle of two imports could leave each of them waiting for the other."""
    from omnigraph.engines.spark.session import get_session

    os.environ.setdefault("OMNIGRAPH_SPARK_PANDAS", "false")  # no task of ours has a use for it
    get_session(settings, meanwhile=lambda: _import(modules))


def _import(modules: Sequence[str]) -> None:
    for name in modules:
        import_module(name)


def _with_resident(settings: SparkSettings) -> SparkSettings:
    from omnigraph.engines.spark.resident import find_resident

    found = find_resident()
    if found.usable is not None:
        endpoint = found.usable.endpoint(shared=not settings.config)
        return replace(settings, remote=endpoint, resident=True)
    if found.unusable is not None:
        text = f"The resident Spark session is not used: {found.unusable}."
        note(f"{text} Restart it: omnigraph spark stop, then omnigraph spark start.")
    return settings


def listener(form: str) -> Callable[[ProgressEvent], None] | None:
    """What to do with progress events."""
    if form == "json":
        return _print_json
    if form == "none" or not sys.stderr.isatty():
        return None
    return _show


@contextmanager
def heard(form: str, engine: str = "spark") -> Iterator[None]:
    """Print the progress of work on Spark that has no listener of its own. On a terminal the
    program's line hears it anyway."""
    if engine != "spark" or form != "json":
        yield
        return
    from omnigraph.engines.spark.jobprogress import hearing

    with hearing(_print_json):
        yield


def _print_json(event: ProgressEvent) -> None:
    echo(json.dumps({"progress": event.to_json()}), err=True)


def _show(event: ProgressEvent) -> None:
    """On the program's own line; bytes say more of a stage than its tasks."""
    done, total = event.tasks_done, event.tasks
    if event.bytes is not None and event.bytes_total:
        done, total = event.bytes, event.bytes_total
    progressline.hear(Moment(event.stage, done, total, event.rows, event.bytes))
