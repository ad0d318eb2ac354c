"""Conformance cases of writes and merges: data in files, and the ways to carry out their steps.

A step is one of
    mutate: the body of a mutation, or a whole query; with `params`
    data:   JSONL envelopes as values; with `mode`, `types`, `edge_key`
    text:   the same as a raw text
    schema: texts of the schema to replace, as a map from old to new
Only `data` and `text` are carried out in several ways: by ingest, and by a load on any engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import omnigraph
from omnigraph.errors import InvalidDataError, MergeConflictError, OmniGraphError
from omnigraph.model.write import WriteResult

CASES = Path(__file__).resolve().parents[1] / "conformance"
Step = Mapping[str, Any]
# Rows by type, in the order of an export; properties without a value are left out.
State = dict[str, list[dict[str, Any]]]
# Writes the records of a step, which are in a file of lines, into a graph.
Way = Callable[[omnigraph.Graph, Path, Mapping[str, Any]], WriteResult]


@dataclass(frozen=True)
class Case:
    name: str
    graph: str
    content: Mapping[str, Any]

    def __str__(self) -> str:
        return self.name


def read_cases(folder: str, allowed: frozenset[str]) -> list[Case]:
    """The cases of all files of a folder. A misspelt field is an error."""
    found: list[Case] = []
    for path in sorted((CASES / folder).glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        for case in content["cases"]:
            unknown = set(case) - allowed - {"name"}
            assert not unknown, f"{path.name}: {case['name']}: {sorted(unknown)}"
            found.append(Case(case["name"], content["graph"], case))
    return found


def new_graph(name: str, folder: Path) -> omnigraph.Graph:
    """A graph of `conformance/graphs`, with its rows."""
    content = yaml.safe_load((CASES / "graphs" / f"{name}.yaml").read_text())
    graph = omnigraph.init(str(folder / "graph"), content["schema"])
    graph.ingest(content["data"])
    return graph


def state(graph: omnigraph.Graph) -> State:
    """All rows, sorted within their type."""
    found: State = {}
    for line in b"".join(graph.export_lines()).splitlines():
        record = json.loads(line)
        row = dict(record.get("data", {}))
        if "edge" in record:
            row |= {"from": record["from"], "to": record["to"]}
        found.setdefault(record.get("edge") or record["type"], []).append(row)
    return ordered(found)


def ordered(rows: Mapping[str, list[dict[str, Any]]]) -> State:
    """Rows in one order, and no types without rows."""
    return {
        name: sorted(found, key=lambda row: json.dumps(row, sort_keys=True))
        for name, found in sorted(rows.items())
        if found
    }


def carry_out(graph: omnigraph.Graph, step: Step, way: Way, folder: Path) -> WriteResult | None:
    """One step; a change of the schema has no result."""
    if "schema" in step:
        text = str(graph.schema())
        for old, new in step["schema"].items():
            assert old in text, f"the schema has no {old!r}"
            text = text.replace(old, new)
        graph.apply_schema(text)
        return None
    if "mutate" in step:
        return graph.mutate(query_text(step["mutate"]), params=step.get("params"))
    path = folder / "lines.jsonl"
    lines = [json.dumps(record, ensure_ascii=False) for record in step.get("data", ())]
    path.write_text(step.get("text") or "".join(f"{line}\n" for line in lines))
    options = {name: step[name] for name in ("mode", "types", "edge_key") if name in step}
    return way(graph, path, options)


def query_text(body: str) -> str:
    return body if body.lstrip().startswith("query") else f"query change() {{ {body} }}"


# What cases expect, in the form in which they spell it.


def affected(result: WriteResult) -> dict[str, list[int]]:
    """Numbers of inserted, updated and deleted rows, by type."""
    return {
        name: [count.inserted, count.updated, count.deleted]
        for name, count in sorted(result.affected.items())
        if count.total
    }


def failure(error: OmniGraphError) -> dict[str, Any]:
    """The code of an error, and what it says of rows, queries or conflicts."""
    found: dict[str, Any] = {"code": error.code}
    if isinstance(error, InvalidDataError):
        found["violations"] = sorted(
            [".".join(part for part in (item.type_name, item.property) if part), item.rule]
            for item in error.violations
        )
    if isinstance(error, MergeConflictError):
        found["conflicts"] = sorted(
            [item["kind"], item["type"], str(item["id"]), *item["properties"]]
            for item in error.conflicts
        )
    if error.details.get("diagnostics"):
        found["diagnostics"] = [item.code for item in error.details["diagnostics"]]
    if error.details.get("ids"):
        found["ids"] = sorted(error.details["ids"])
    return found


# The ways of data into a graph.


def by_ingest(graph: omnigraph.Graph, path: Path, options: Mapping[str, Any]) -> WriteResult:
    return graph.ingest(path, **options)


def by_records(graph: omnigraph.Graph, path: Path, options: Mapping[str, Any]) -> WriteResult:
    """Envelopes as values instead of text."""
    return graph.ingest([json.loads(line) for line in path.read_text().splitlines()], **options)


def by_embedded_load(graph: omnigraph.Graph, path: Path, options: Mapping[str, Any]) -> WriteResult:
    return graph.load(path, engine="embedded", **options)


def by_load(graph: omnigraph.Graph, path: Path, options: Mapping[str, Any]) -> WriteResult:
    """The tasks of Spark: on its executors if there is a session, in this process otherwise."""
    return graph.load(path, **options)
