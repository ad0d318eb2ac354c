"""Run a command for the reader: print it, print what it says, insist on its exit code."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def omnigraph(*arguments: str, exits: int = 0, **environment: str) -> None:
    """Run the program as a reader would type it."""
    _show(arguments, environment)
    run([str(BIN / "omnigraph"), *arguments], exits=exits, **environment)


def omnigraph_with_progress(*arguments: str) -> None:
    """The same with a line of progress on a terminal; elsewhere, a line for every stage."""
    _show(arguments, {})
    command = [str(BIN / "omnigraph"), *arguments]
    is_seen = sys.stderr.isatty()
    if not is_seen:
        command += ["--progress", "json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=None if is_seen else subprocess.PIPE, text=True
    ) as running:
        for line in running.stderr or ():
            _tell(line)
        for line in running.stdout or ():
            print(f"   {line.rstrip()}", flush=True)
    if running.returncode:
        sys.exit(f"   That should have succeeded, and ended with {running.returncode}.")


def run(command: list[str], *, exits: int = 0, **environment: str) -> None:
    """Run a command, print what it says indented, and stop the tour if it ends otherwise."""
    done = subprocess.run(
        command,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # in the order in which a terminal would show it
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        print(f"   {line}")
    if done.returncode != exits:
        sys.exit(f"   That should have ended with {exits}, and ended with {done.returncode}.")


def _show(arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    typed = "".join(f"{name}={shlex.quote(value)} " for name, value in environment.items())
    print(f"   $ {typed}omnigraph {shlex.join(arguments)}", flush=True)


def _tell(line: str) -> None:
    """What a line on standard error says: the end of a stage, or something else."""
    if not line.startswith("{"):
        print(f"   {line.rstrip()}", flush=True)
        return
    event = json.loads(line)["progress"]
    if event["finished"]:
        rows = f", {event['rows']:,} rows" if event["rows"] else ""
        print(f"   … {event['stage']}: {event['elapsed_s']:.1f} s{rows}", flush=True)
