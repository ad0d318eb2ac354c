"""Every text that a method takes, with texts that no store can hold: refused, or harmless.

The methods and their text arguments are found by inspection, so that a new one is tried as well.
After each call the graph must answer everything as before.
"""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.mutants.catalogue import applied

import omnigraph as og
from omnigraph import arguments
from omnigraph.commit import journal, preconditions
from omnigraph.errors import InvalidArgumentError, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.history import manifestrows, refs
from omnigraph.history.log import BranchLog
from omnigraph.operations import merge
from omnigraph.writes import request

SCHEMA = (
    "node P { name: String @key  age: I64?  rank: F64?  note: String?  tags: [String]? }\n"
    "edge K: P -> P { why: String? }\n"
)
READ = "query q() { match { $p: P } return { $p.name } order { $p.name } }"
WRITE = 'query w() { insert P { name: "x" } }'
HOSTILE = ["caf\udce9", "\ud800", "a\0b", "\udfff" * 3, "x" * 300_000, "a\nb\x1b[2J"]
# What a method needs beside the text that is tried.
NEEDED: dict[str, dict[str, Any]] = {
    "query": {"text": READ},
    "explain": {"text": READ},
    "mutate": {"text": WRITE},
    "ingest": {"data": '{"type":"P","data":{"name":"x"}}\n'},
    "load": {"source": [{"name": "x"}], "type": "P", "engine": "embedded"},
    "export": {"place": "out.jsonl"},
    "copy": {"place": "copied"},
    "plan_schema": {"source": SCHEMA},
    "prepare": {"text": READ},
    "apply_schema": {"source": f"{SCHEMA}node Q {{ name: String @key }}\n"},
    "create_branch": {"name": "g"},
    "delete_branch": {"name": "f"},
    "rename_branch": {"old": "f", "new": "g"},
    "merge": {"source": "f"},
    "preview_merge": {"source": "f"},
    "revert": {"commit": "HEAD"},
    "cherry_pick": {"commit": "F"},
    "diff": {"before": "main", "after": "f"},
    "create_tag": {"name": "u"},
    "delete_tag": {"name": "t"},
    "blob": {"type_name": "P", "id": "a", "property": "name"},
    "blob_stat": {"type_name": "P", "id": "a", "property": "name"},
    "on": {"branch": "f"},
    "acting_as": {"actor": "me"},
    "commit": {"prefix": "HEAD"},
    "commit_changes": {"commit": "HEAD"},
    "commit_changes_page": {"commit": "HEAD"},
}
# Methods that start Spark, and places outside of the graph, where the file system decides.
ON_SPARK = {"algorithm", "write_algorithm"}
LEFT_OUT = {("export", "place"), ("load", "rejects"), ("install_baseline", "path")}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("texts") / "g"
    graph = og.init(str(place), SCHEMA)
    graph.ingest(
        '{"type":"P","data":{"name":"a","age":1}}\n{"type":"P","data":{"name":"b"}}\n'
        '{"edge":"K","from":"a","to":"b"}\n'
    )
    graph.create_branch("f")
    graph.on("f").mutate('query u() { update P set { age: 7 } where name = "a" }')
    graph.mutate('query u() { update P set { age: 8 } where name = "b" }')
    graph.create_tag("t")
    return place


@pytest.fixture
def graph(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A copy at the address where it was made, so that its forks are at home."""
    monkeypatch.chdir(tmp_path)
    kept = template.with_name("kept")
    if not kept.exists():
        shutil.copytree(template, kept)
    shutil.rmtree(template)
    shutil.copytree(kept, template)
    return og.open(str(template))


def text_arguments() -> Iterator[tuple[str, str]]:
    for name, method in inspect.getmembers(Graph, inspect.isfunction):
        if name.startswith("_") or name in ON_SPARK:
            continue
        for parameter in inspect.signature(method).parameters.values():
            kinds = str(parameter.annotation).split(" | ")
            if "str" in kinds and (name, parameter.name) not in LEFT_OUT:
                yield name, parameter.name


def look(graph: Graph) -> object:
    """Everything that there is to ask."""
    fresh = og.open(graph.uri)
    checked = fresh.verify()
    assert checked.is_clean, checked.findings
    fresh.create_branch("look")
    fresh.delete_branch("look")
    fresh.cleanup(older_than=timedelta(days=1))
    return [
        [fresh.on(name).query(READ).rows(), [c.id for c in fresh.on(name).commits()]]
        for name in sorted(branch.name for branch in fresh.branches())
    ], [json.dumps([tag.name, tag.message, tag.actor]) for tag in fresh.tags()]


def test_18_01_arguments_are_found() -> None:
    found = set(text_arguments())
    assert len(found) > 60
    assert {("mutate", "message"), ("create_tag", "message"), ("on", "branch")} <= found


@pytest.mark.parametrize(
    "text",
    [*HOSTILE[:2], *(pytest.param(text, marks=pytest.mark.slow) for text in HOSTILE[2:])],
    ids=[ascii(text)[:20] for text in HOSTILE],
)
@pytest.mark.parametrize("method", sorted({name for name, _ in text_arguments()}))
def test_18_01_no_text_harms_a_graph(graph: Graph, method: str, text: str) -> None:
    before = look(graph)
    for name, argument in text_arguments():
        if name != method:
            continue
        given = {**NEEDED.get(name, {}), argument: text}
        for key, value in given.items():
            if value in ("HEAD", "F") and key != argument:
                given[key] = graph.on("main" if value == "HEAD" else "f").snapshot().commit_id
        try:
            result = getattr(graph, name)(**given)
            if isinstance(result, Graph):
                result.mutate(WRITE)
            elif isinstance(result, Iterator):
                list(result)
            elif isinstance(result, og.Result):
                result.rows()
        except OmniGraphError as error:
            json.dumps(error.to_dict()).encode()
            assert look(graph) == before, (name, argument)
        else:
            before = look(graph)  # it was done, and everything can still be read


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text)[:20] for text in HOSTILE])
@pytest.mark.parametrize("place", ["name", "note", "tags", "id", "edge", "param", "list param"])
def test_18_01_no_value_harms_a_table(graph: Graph, place: str, text: str) -> None:
    before = look(graph)
    person: dict[str, Any] = {"type": "P", "data": {"name": "v"}}
    doors: dict[str, Callable[[], Any]] = {
        "name": lambda: graph.ingest(_line({"type": "P", "data": {"name": text}})),
        "note": lambda: graph.ingest(_line({"type": "P", "data": {"name": "v", "note": text}})),
        "tags": lambda: graph.ingest(_line({"type": "P", "data": {"name": "v", "tags": [text]}})),
        "id": lambda: graph.ingest(_line({**person, "id": text})),
        "edge": lambda: graph.ingest(_line({"edge": "K", "from": "a", "to": text})),
        "param": lambda: graph.mutate(
            "query p($n: String) { insert P { name: $n } }", params={"n": text}
        ),
        "list param": lambda: graph.mutate(
            'query p($n: [String]) { insert P { name: "v", tags: $n } }', params={"n": [text]}
        ),
    }
    try:
        doors[place]()
    except OmniGraphError as error:
        json.dumps(error.to_dict()).encode()
        assert look(graph) == before
    else:
        look(graph)


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record) + "\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["mutate", "--query-text", WRITE, "--message"],
        ["tag", "create", "u", "--message"],
    ],
    ids=["mutate", "tag"],
)
def test_18_01_bytes_on_the_command_line(graph: Graph, arguments: list[str]) -> None:
    program = str(Path(sys.executable).with_name("omnigraph"))
    command = [part.encode() for part in (program, *arguments)]
    command = [*command, b"caf\xe9", b"--store", graph.uri.encode()]
    if arguments[0] == "mutate":
        (query := Path("w.gq")).write_text(WRITE)
        command = [program.encode(), b"mutate", b"--query", bytes(query)]
        command += [b"--store", graph.uri.encode()]
        command += [b"--message", b"caf\xe9"]
    before = look(graph)
    ended = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert ended.returncode != 0
    assert b"not valid U" in ended.stderr, ended.stderr
    assert look(graph) == before


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The program without its checks, as earlier releases were."""
    for module in (arguments, preconditions, request, merge):
        monkeypatch.setattr(module, "check_text", lambda value, *what, **how: value)
    monkeypatch.setattr(manifestrows, "encode_payload", json.dumps)
    for module in (journal, refs):
        monkeypatch.setattr(module, "encode_object", lambda value: json.dumps(value).encode())
    return monkeypatch


def test_18_01_a_graph_with_such_a_text_works(graph: Graph, careless: pytest.MonkeyPatch) -> None:
    """Written by a release that did not look: everything works, and fsck names the commit."""
    made = graph.mutate(WRITE, message="caf\udce9").commit
    assert made is not None
    written = made.id
    tag = refs.Tag(
        "bad", "main", written, BranchLog(graph._context.root, "main").state.head.sequence
    )
    bad = json.dumps({**json.loads(tag.to_bytes()), "message": "caf\udce9"}).encode()
    graph._context.root.objects.put(refs.tag_path("bad"), bad)
    careless.undo()
    fresh = og.open(graph.uri)
    assert [tag.message for tag in fresh.tags()] == ["caf\ufffd", ""]
    for number in range(70):  # beyond the tail, so that it is sealed and read from there
        fresh.mutate(f'query w() {{ insert P {{ name: "n{number}" }} }}')
    assert {"p.name": "x"} in fresh.query(READ).rows()
    assert fresh.commit(written).message == "caf\ufffd"
    fresh.create_branch("after")
    fresh.cleanup(older_than=timedelta(0), keep=5, confirm=True)
    fresh.optimize()
    (finding,) = fresh.verify().findings
    assert written in finding.where
    assert "not valid Unicode" in finding.message
    row = next(
        r for r in fresh._context.root.manifest("main").read().history() if r.object_id == written
    )
    assert "\\udce9" in row.payload  # kept as it was


@pytest.mark.parametrize("payload", ["", "{", "[]", "{}", "17", "[" * 20_000])
def test_18_01_a_damaged_row_hides_no_other(
    graph: Graph, payload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = manifestrows.encode_commit

    def damaged(commit: Any) -> Any:
        row = encode(commit)
        return replace(row, payload=payload) if commit.message == "hit" else row

    monkeypatch.setattr(manifestrows, "encode_commit", damaged)
    lost = graph.mutate(WRITE, message="hit").commit
    assert lost is not None
    monkeypatch.undo()
    fresh = og.open(graph.uri)
    assert {"p.name": "x"} in fresh.query(READ).rows()
    fresh.mutate('query w() { insert P { name: "y" } }')
    assert [c.id for c in fresh.commits()][1] == lost.id
    fresh.create_branch("g")
    fresh.on("g").mutate('query w() { insert P { name: "z" } }')
    before = fresh.query(READ, commit=lost.parents[0]).rows()
    assert {"p.name": "x"} not in before
    with pytest.raises(OmniGraphError, match=lost.id):
        fresh.query(READ, commit=lost.id).rows()
    findings = fresh.verify().findings
    assert {finding.where for finding in findings} == {f"main: commit {lost.id}"}


@pytest.mark.parametrize("folder", ["__refs", "__tags", "__recovery"])
def test_18_01_a_damaged_object_hides_no_other(graph: Graph, folder: str) -> None:
    root = graph._context.root
    graph.create_tag("z")
    root.objects.put(f"{folder}/broken.json", b"\xff{")
    reader = og.open(graph.uri, read_only=True)
    assert [branch.name for branch in reader.branches()] == ["main", "f"]
    assert [tag.name for tag in reader.tags()] == ["t", "z"]
    assert reader.query(READ).rows()
    assert list(reader.commits())
    (finding,) = [f for f in reader.verify().findings if f.severity == "error"]
    assert "broken" in finding.where + finding.message
    if folder != "__recovery":
        og.open(graph.uri).mutate(WRITE)
        # What a reference that cannot be read names is not taken for garbage.
        with pytest.raises(OmniGraphError, match="broken"):
            og.open(graph.uri).cleanup(older_than=timedelta(0), confirm=True)


def test_18_01_a_bad_text_fails_nobody_else() -> None:
    with pytest.raises(InvalidArgumentError, match="not valid Unicode"):
        request.Conditions("me", "caf\udce9")


def test_18_01_the_planted_bug_is_caught(graph: Graph) -> None:
    with applied("store any text"):
        graph.mutate(WRITE, message="caf\udce9")
    with pytest.raises(AssertionError):
        look(graph)
