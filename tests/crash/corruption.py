"""Control objects that are not what they should be, and what everybody makes of them.

`probe` puts a damaged object in its place and asks the graph for everything that there is to ask,
read-only and for writing. Whatever is raised must be an error of ours.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash.verbs import SCHEMA, envelopes

import omnigraph
from omnigraph import faults
from omnigraph.errors import OmniGraphError, StorageTransientError
from omnigraph.graph import Graph
from omnigraph.history.log import BranchLog
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.segments import ManifestRow

UPDATE = "query q() { update A set { n: n + 1 } where n >= 0 }"


def furnished(uri: str) -> None:
    """A graph with every kind of control object, one interrupted write included."""
    graph = omnigraph.init(uri, SCHEMA, actor="act-anna")
    graph.ingest(envelopes(1), idempotency_key="first")
    side = graph.create_branch("side")
    side.ingest(envelopes(2))
    graph.ingest(envelopes(3))
    graph.create_branch("gone").ingest(envelopes(4))
    graph.delete_branch("gone")
    graph.merge("side")
    graph.create_tag("v1")
    graph.apply_schema(SCHEMA + "node C { n: I64? }\n")
    with faults.armed("commit.before_publish", faults.Raise(StorageTransientError)):
        try:
            side.ingest(envelopes(5))
        except OmniGraphError:
            return
    raise AssertionError("the write was not interrupted")


def control_objects(uri: str) -> list[str]:
    """Their paths below the graph: everything that is JSON or text."""
    root = Path(uri)
    found = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]
    ours = [path for path in found if path.startswith("__") and path.endswith(".json")]
    ours = [path for path in ours if not path.startswith("__manifest")]
    return sorted([*ours, "_schema.pg"])


def damages(data: bytes, seed: int) -> Iterator[bytes]:
    """Ways in which an object may be wrong: cut, flipped, emptied, or something else."""
    chance = random.Random(seed)
    yield b""
    yield data[: len(data) // 2]
    yield from (b"null", b"[]", b"{}", b'"x"', b"17", b"\xff\xfe\x00", b"[" * 20_000, b"9" * 5_000)
    for _ in range(3):
        flipped = bytearray(data)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        yield bytes(flipped)
    yield from _other_values(data, chance)


def _other_values(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """The same object with a field missing, or of another kind."""
    try:
        value = json.loads(data)
    except ValueError:
        return
    if not isinstance(value, dict):
        return
    for key in value:
        yield json.dumps({k: v for k, v in value.items() if k != key}).encode()
        other: Any = chance.choice([None, -1, "x", [], {}, [1], 1e300, "\ud800"])
        yield json.dumps({**value, key: other}).encode()


def _asks(graph: Graph) -> dict[str, Callable[[], Any]]:
    """Everything that there is to ask."""
    return {
        "branches": graph.branches,
        "tags": graph.tags,
        "commits": lambda: list(graph.commits()),
        "side": lambda: graph.on("side").snapshot(),
        "tag": lambda: graph.snapshot(tag="v1"),
        "schema": graph.schema,
        "query": lambda: graph.query("query q() { match { $a: A } return { $a.n } }").to_arrow(),
        "preview": lambda: graph.preview_merge("side"),
        "recoveries": graph.recoveries,
        "verify": graph.verify,
        "stats": graph.stats,
        "lag": graph.lag,
        "cleanup": lambda: graph.cleanup(keep=1, grace=timedelta(0)),
        "diff": lambda: list(graph.diff("main", "side")),
    }


def _deeds(graph: Graph) -> dict[str, Callable[[], Any]]:
    """Everything that writes."""
    return {
        "again": lambda: graph.ingest(envelopes(1), idempotency_key="first"),
        "mutate": lambda: graph.mutate(UPDATE),
        "on side": lambda: graph.on("side").mutate(UPDATE),
        "merge": lambda: graph.merge("side"),
        "evolve": lambda: graph.apply_schema(SCHEMA + "node C { n: I64? }\nnode D { n: I64? }\n"),
        "branch": lambda: graph.create_branch("new"),
        "rename": lambda: graph.rename_branch("side", "other"),
        "optimize": graph.optimize,
        "repair": lambda: graph.repair(confirm=True),
        "cleanup": lambda: graph.cleanup(keep=1, grace=timedelta(0), confirm=True),
        "delete": lambda: graph.delete_branch("new"),
        "untag": lambda: graph.delete_tag("v1"),
    }


def probe(uri: str, path: str, damaged: str) -> list[str]:
    """Put a damaged object in place; returns every error that was not ours."""
    Path(uri, path).write_bytes(base64.b64decode(damaged))
    return ask_everything(uri)


def probe_row(uri: str, branch_id: str, place: int, payload: str) -> list[str]:
    """The same for one row of a branch's manifest."""
    root = GraphRoot.at(uri)
    image = BranchLog(root, branch_id).image
    rows = list(image.tail)
    row = rows[place]
    rows[place] = ManifestRow(
        row.object_id,
        row.object_type,
        payload,
        row.sequence,
        row.created_at_us,
        row.actor,
        row.kind,
    )
    root.manifest(branch_id).publish(image, rows)
    return ask_everything(uri)


def probe_bytes(uri: str, path: str, at: int, mask: int) -> list[str]:
    """The same for one flipped byte of a file of Lance's."""
    file = Path(uri, path)
    data = bytearray(file.read_bytes())
    data[at % len(data)] ^= mask
    file.write_bytes(data)
    return ask_everything(uri)


def ask_everything(uri: str) -> list[str]:
    bad: list[str] = []
    for read_only in (True, False):
        graph = _try(bad, "open", partial(omnigraph.open, uri, read_only=read_only))
        if graph is None:
            continue
        todo = _asks(graph) if read_only else _deeds(graph)
        for name, act in todo.items():
            _try(bad, name, act)
    return bad


def _try(bad: list[str], name: str, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except OmniGraphError:
        return None
    except BaseException as error:  # noqa: BLE001  # also what Rust throws
        bad.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        return None
