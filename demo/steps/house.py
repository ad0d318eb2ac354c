"""What the package does before there is a graph: say what it is, and fail well."""

from __future__ import annotations

from pathlib import Path

from demo.steps.shell import omnigraph


def show_versions(out: Path) -> None:
    """What is installed."""
    omnigraph("version")


def fail_helpfully(out: Path) -> None:
    """An error says what to do next, to people and to scripts."""
    omnigraph("--log-level", "loud", "version", exits=2)
    omnigraph("--log-level", "loud", "version", "--json", exits=2)
