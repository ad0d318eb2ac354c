"""`omnigraph spark`: the resident Spark session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson
from omnigraph.cli.pipeline import Conf, Master
from omnigraph.cli.terminal import echo

if TYPE_CHECKING:
    from omnigraph.engines.spark.resident import Resident

app = new_app("Manage a resident Spark session for other commands.")


@app.command()
def start(master: Master = None, conf: Conf = None, as_json: AsJson = False) -> None:
    """Start a session that other commands use automatically."""
    from omnigraph.engines.spark.residentserver import start_resident
    from omnigraph.engines.spark.settings import parse_config, read_settings

    settings = read_settings(master, None, parse_config(";".join(conf or ())))
    if settings.remote is not None and master is None:
        settings = replace(settings, remote=None)  # the environment's endpoint is for commands
    resident, is_new = start_resident(settings)
    if is_new:
        _warm_up(resident)
    if as_json:
        _print({"running": True, "started": is_new}, resident)
    else:
        echo(f"{'started' if is_new else 'runs already'}: {_told(resident)}")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show whether a session is running; exit code 1 if not."""
    from omnigraph.engines.spark.residentserver import resident_status

    found = resident_status()
    running = found.resident is not None and not found.stale
    if as_json:
        _print(
            {"running": running, "usable": found.usable is not None, "why": found.unusable},
            found.resident,
        )
    elif not running:
        echo("not running" if found.resident is None else f"not running: {found.unusable}")
    else:
        note = f"; not used: {found.unusable}" if found.unusable else ""
        echo(f"running: {_told(found.resident)}{note}")
    if not running:
        raise typer.Exit(1)


@app.command()
def stop(as_json: AsJson = False) -> None:
    """Stop the session, if one is running."""
    from omnigraph.engines.spark.residentserver import stop_resident

    stopped = stop_resident()
    if as_json:
        _print({"running": False, "stopped": stopped is not None}, stopped)
    else:
        echo("not running" if stopped is None else f"stopped process {stopped.pid}")


def _warm_up(resident: Resident) -> None:
    """Run a first job, so that the first command does not wait for it; and see that it works."""
    from omnigraph.engines.spark.residentserver import stop_resident
    from omnigraph.engines.spark.session import get_session
    from omnigraph.engines.spark.settings import SparkSettings
    from omnigraph.engines.spark.sparkrunner import SparkRunner

    try:
        spark = get_session(SparkSettings(remote=resident.endpoint(), resident=True))
        SparkRunner(spark).run(abs, [0, 1], "warm up")
    except BaseException:
        stop_resident()
        raise


def _told(resident: Resident | None) -> str:
    assert resident is not None
    return f"{resident.url} on {resident.master}, process {resident.pid}"


def _print(what: dict[str, Any], resident: Resident | None) -> None:
    from omnigraph.cli.display import print_json

    print_json({**what, **(resident.to_json() if resident else {})})
