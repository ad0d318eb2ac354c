"""Work with too little of something: disk, memory, open files. Run in processes of their own.

python -m tests.crash.scarcity full <folder>      fill a small disk, make room, go on
python -m tests.crash.scarcity bytes <folder>     use up the bytes of a small disk, clean up, go on
python -m tests.crash.scarcity inodes <folder>    the same with its inodes
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from tests.crash.verbs import SCHEMA, envelopes
from tests.support.branchgraphs import content

import omnigraph
from omnigraph.errors import CommitOutcomeUnknownError, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.model.principal import Principal
from omnigraph.operations.context import Context
from omnigraph.storage.root import GraphRoot

Plain = dict[str, Any]
LARGE = 20_000


def _rows(number: int) -> list[Plain]:
    """Some rows in each of three tables, under names of their own."""
    return [row for k in range(40) for row in envelopes(number * 1000 + k)]


def _commits(graph: Graph) -> list[str]:
    return [commit.message for commit in graph.commits() if commit.message]


def count_rows(uri: str, branch: str = "main") -> set[int]:
    shown = content(Context(GraphRoot.at(uri), Principal.named("reader")), branch)
    return {len(rows) for rows in shown.values()}


def fill(uri: str, ballast: Path) -> Plain:
    """Write until there is no room, look, make room, and write again."""
    graph = omnigraph.init(uri, SCHEMA, actor="act-anna")
    ballast.write_bytes(b"\0" * 1_500_000)
    told, unclear, errors = [], [], []
    for number in range(1, 400):
        try:
            graph.ingest(_rows(number), message=str(number))
            told.append(str(number))
        except CommitOutcomeUnknownError as error:
            unclear.append(str(number))
            errors.append(type(error).__name__)
        except OmniGraphError as error:
            errors.append(type(error).__name__)
        if len(errors) == 3:
            break
    seen = _commits(omnigraph.open(uri, read_only=True))
    ballast.unlink()
    again = omnigraph.open(uri, actor="act-ben")
    after = _commits(again)
    again.ingest(_rows(999), message="999")
    findings = [str(found) for found in again.verify().findings]
    return {
        "told": told,
        "unclear": unclear,
        "errors": errors,
        "seen": seen,
        "after": after,
        "rows": sorted(count_rows(uri)),
        "findings": findings,
    }


def clean_full_disk(uri: str, ballast: Path, exhaust: Callable[[Path], None]) -> Plain:
    """Let the history of a graph fill a disk, clean up, and write again."""
    graph = omnigraph.init(uri, SCHEMA, actor="act-anna")
    graph.create_branch("side").ingest(_rows(500))
    graph.delete_branch("side")
    for number in range(1, 9):
        graph.ingest(_rows(number), "overwrite", message=str(number))
    exhaust(ballast)
    refused = ""
    try:
        graph.ingest(_rows(99))
    except OmniGraphError as error:
        refused = type(error).__name__
    again = omnigraph.open(uri, actor="act-ben")
    cleaned = again.cleanup(keep=1, grace=timedelta(0), confirm=True)
    again.ingest(_rows(100), "overwrite", message="100")
    return {
        "refused": refused,
        "versions": cleaned.versions,
        "bytes": cleaned.bytes,
        "errors": [table.error for table in cleaned.tables if table.error],
        "branches": len(cleaned.manifests),
        "commits": _commits(again),
        "rows": sorted(count_rows(uri)),
        "findings": [str(found) for found in again.verify().findings],
    }


def use_up_bytes(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"\0" * 64):
            pass


def use_up_inodes(ballast: Path) -> None:
    ballast.mkdir()
    with suppress(OSError):
        for number in count():
            (ballast / str(number)).touch()


def starve(uri: str, megabytes: int) -> str:
    """A load that needs more memory than there is."""
    graph = omnigraph.open(uri, actor="act-anna")
    graph.ingest(envelopes(7), "merge")  # what every process needs, before the limit
    rows = [row for k in range(LARGE) for row in envelopes(10_000 + k)]
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + megabytes * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        graph.ingest(rows, message="large")
    except (OmniGraphError, MemoryError) as error:
        return type(error).__name__
    return "done"


def run_with_few_files(uri: str, most: int) -> Plain:
    """Everyday work with few open files; says how many are open in the end."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    graph = omnigraph.open(uri, actor="act-anna")
    errors, done = [], 0
    opened: list[int] = []
    for number in range(30):
        try:
            graph.ingest(envelopes(100 + number), "merge")
            graph.query("query q() { match { $a: A } return { count(*) as n } }").to_arrow()
            graph.snapshot(version=1 + number % 3)
            done += 1
        except OmniGraphError as error:
            errors.append(type(error).__name__)
        opened.append(len(os.listdir("/proc/self/fd")))
    return {"done": done, "errors": errors, "opened": opened}


def main(arguments: list[str]) -> None:
    import json

    folder = Path(arguments[1])
    uri, ballast = str(folder / "graph"), folder / "ballast"
    match arguments[0]:
        case "full":
            said = fill(uri, ballast)
        case "bytes":
            said = clean_full_disk(uri, ballast, use_up_bytes)
        case _:
            said = clean_full_disk(uri, ballast, use_up_inodes)
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1:])
