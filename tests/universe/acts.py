"""Carrying out one operation of a program on a real graph, and naming what came of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.universe.model import (
    CLASH,
    CONFLICT,
    ENDS,
    EXISTS,
    INVALID,
    MISSING,
    RECLAIMED,
    REFUSED,
    SCHEMA,
    Op,
)

from omnigraph import errors
from omnigraph.graph import Graph

DONE = "done"
_EXTRAS = {
    "extra": ("email: String? @unique", "email: String? @unique\n    extra: I64?"),
    "more": ("size: I64?", "size: I64?\n    more: String?"),
}
# The first class that fits gives the name.
_NAMES: tuple[tuple[type[errors.OmniGraphError], str], ...] = (
    (errors.InvalidDataError, REFUSED),
    (errors.KeyConflictError, REFUSED),
    (errors.MergeConflictError, CLASH),
    (errors.HistoryReclaimedError, RECLAIMED),
    (errors.BranchNotFoundError, MISSING),
    (errors.TagNotFoundError, MISSING),
    (errors.AlreadyExistsError, EXISTS),
    (errors.LockTimeoutError, "stuck"),
    (errors.ConflictError, CONFLICT),
    (errors.InvalidArgumentError, INVALID),
)


def schema_with(extras: frozenset[str] | set[str] | list[str]) -> str:
    text = SCHEMA
    for extra in sorted(extras):
        text = text.replace(*_EXTRAS[extra])
    return text


def carry_out(graph: Graph, op: Op) -> str:
    """Do it; returns `DONE`, or why it was refused. Other errors are not expected of anything."""
    try:
        _ACTS[op["do"]](graph.on(op["on"]), op)
    except errors.OmniGraphError as error:
        for kind, name in _NAMES:
            if isinstance(error, kind):
                return name
        raise
    return DONE


def _records(op: Op) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for name, key, row in op["rows"]:
        if name in ENDS:
            data = {k: v for k, v in row.items() if k not in ("src", "dst")}
            ends = {"from": row["src"], "to": row["dst"]}
            records.append({"edge": name, **ends, "data": {"id": key, **data}})
        else:
            records.append({"type": name, "data": row})
    return records


def _ingest(graph: Graph, op: Op) -> None:
    mode = {"put": "merge", "append": "append", "replace": "overwrite"}[op["do"]]
    types = [op["type"]] if mode == "overwrite" else []
    graph.ingest(_records(op), mode, types=types)


def _mutate(graph: Graph, text: str) -> None:
    graph.mutate(f"query q() {{ {text} }}")


def _shown(value: object) -> str:
    return "null" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


def _set(graph: Graph, op: Op) -> None:
    change = f"{op['property']}: {_shown(op['value'])}"
    _mutate(graph, f"update {op['type']} set {{ {change} }} where name = {_shown(op['key'])}")


def _grow(graph: Graph, op: Op) -> None:
    _mutate(graph, f"update Person set {{ age: age + 1 }} where age >= {op['low']}")


def _remove(graph: Graph, op: Op) -> None:
    _mutate(graph, f"delete {op['type']} where name = {_shown(op['key'])}")


def _unlink(graph: Graph, op: Op) -> None:
    _mutate(graph, f"delete {op['type']} where from = {_shown(op['key'])}")


_ACTS: dict[str, Any] = {
    "put": _ingest,
    "append": _ingest,
    "replace": _ingest,
    "set": _set,
    "grow": _grow,
    "remove": _remove,
    "unlink": _unlink,
    "branch": lambda graph, op: graph.create_branch(op["name"]),
    "unbranch": lambda graph, op: graph.delete_branch(op["on"]),
    "rename": lambda graph, op: graph.rename_branch(op["on"], op["name"]),
    "merge": lambda graph, op: graph.merge(op["source"]),
    "revert": lambda graph, op: graph.revert(op["commit"]),
    "pick": lambda graph, op: graph.cherry_pick(op["commit"]),
    "tag": lambda graph, op: graph.create_tag(op["name"]),
    "untag": lambda graph, op: graph.delete_tag(op["name"]),
    "evolve": lambda graph, op: graph.apply_schema(schema_with(op["schema"])),
    "optimize": lambda graph, op: graph.optimize(),
    "cleanup": lambda graph, op: graph.cleanup(keep=op["keep"], grace=timedelta(0), confirm=True),
}
