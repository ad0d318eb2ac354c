"""Moving graphs: an export that comes back the same, and a backup taken while others write."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.schemachanges import BASE, content, new_graph

import omnigraph
from omnigraph.errors import (
    AlreadyExistsError,
    FormatError,
    GraphMovedError,
    GraphNotFoundError,
    InvalidArgumentError,
)
from omnigraph.graph import Graph
from omnigraph.operations import export as exporting
from omnigraph.operations.transfer import import_graph
from omnigraph.storage.manifest import FORMAT_VERSION
from omnigraph.storage.reclamation import manifest_ids
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import forget_tables

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "maintenance.md"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(str(tmp_path / "g"))


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_an_export_comes_back_the_same(graph: Graph, tmp_path: Path, form: str) -> None:
    graph.optimize()
    place = str(tmp_path / ("out.jsonl" if form == "jsonl" else "out"))
    graph.export(place, format=form)
    import_graph(str(tmp_path / "copy"), place, graph.schema())
    copy = omnigraph.open(str(tmp_path / "copy"))
    assert content(copy) == content(graph)
    assert copy.verify().findings == []
    again = str(tmp_path / ("again.jsonl" if form == "jsonl" else "again"))
    copy.export(again, format=form)
    if form == "jsonl":
        assert Path(again).read_bytes() == Path(place).read_bytes()
    else:
        files = sorted(path.relative_to(place) for path in Path(place).rglob("*.*"))
        assert len(files) == 6
        assert all((Path(again) / f).read_bytes() == (Path(place) / f).read_bytes() for f in files)


def test_large_tables_are_exported_in_pieces(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes, whatever fits into memory; and no file when it fails half-way."""
    graph.mutate('query d() { delete Person where name = "p03" }')
    graph.optimize()
    graph.ingest([{"type": "City", "data": {"id": "a first one", "title": "x"}}])
    graph.export(str(tmp_path / "whole.jsonl"))
    for name, value in (("_WHOLE_ROWS", 2), ("_WHOLE_BLOB_ROWS", 2), ("_BLOB_ROWS", 5)):
        monkeypatch.setattr(exporting, name, value)
    monkeypatch.setattr(exporting, "_BATCH_ROWS", 3)
    graph.export(str(tmp_path / "pieces.jsonl"))
    assert (tmp_path / "pieces.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    before = {path.name for path in tmp_path.iterdir()}
    with (
        patch.object(exporting, "to_lines", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        graph.export(str(tmp_path / "never.jsonl"))
    assert {path.name for path in tmp_path.iterdir()} == before


def test_import_needs_an_empty_place(graph: Graph, tmp_path: Path) -> None:
    place = str(tmp_path / "out.jsonl")
    graph.export(place)
    with pytest.raises(AlreadyExistsError):
        import_graph(graph.uri, place, BASE)


# ledger: S05
def test_a_graph_of_an_older_format_is_rebuilt(graph: Graph, tmp_path: Path) -> None:
    """Its manifests say an older number; the new graph has the present one, the old stays."""
    side = graph.create_branch("side")
    side.ingest([{"type": "City", "data": {"id": "s", "title": "s"}}])
    want, schema = (content(graph), content(side)), graph.schema()
    root = GraphRoot.at(graph.uri)
    for branch_id in manifest_ids(root):
        root.manifest(branch_id).stamp(0)
    for number, name in enumerate(("main", "side")):
        uri = str(tmp_path / f"new {name}")
        made = import_graph(uri, graph.uri, branch=name)
        assert made.loaded.commit is not None
        new = omnigraph.open(uri)
        assert content(new) == want[number]
        assert new.schema() == schema
        assert GraphRoot.at(uri).manifest("main").format_version() == FORMAT_VERSION
        assert new.verify().findings == []
    fresh = GraphRoot.at(graph.uri)
    assert {fresh.manifest(each).format_version() for each in manifest_ids(fresh)} == {0}
    root.manifest("main").stamp(FORMAT_VERSION + 1)
    with pytest.raises(FormatError, match="Upgrade OmniGraph"):
        import_graph(str(tmp_path / "newest"), graph.uri)


def test_an_export_needs_its_schema(graph: Graph, tmp_path: Path) -> None:
    graph.export(str(tmp_path / "out.jsonl"))
    with pytest.raises(InvalidArgumentError, match="schema"):
        import_graph(str(tmp_path / "copy"), str(tmp_path / "out.jsonl"))


def recipe() -> tuple[str, str]:
    """How the guide takes a backup, and how it restores one."""
    text = GUIDE.read_text().split("## Backup and restore\n")[1].split("\n## ")[0]
    back_up, restore = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return back_up, restore


def run(commands: str, folder: Path) -> None:
    place = Path(sys.executable).parent
    environ = {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", commands], cwd=folder, env=environ, check=True, timeout=120)


def test_a_copy_is_made_whole_where_it_lies(graph: Graph, tmp_path: Path) -> None:
    """Forks name the files that they share by their address; a copy must not read the original."""
    side = graph.create_branch("side")
    side.ingest([{"type": "City", "data": {"id": "s", "title": "s"}}])
    deep = side.create_branch("deep")
    deep.ingest([{"type": "City", "data": {"id": "d", "title": "d"}}])
    want = {name: content(graph.on(name)) for name in ("main", "side", "deep")}
    before = {path: path.read_bytes() for path in Path(graph.uri).rglob("*") if path.is_file()}
    copied = str(tmp_path / "elsewhere" / "copy")
    shutil.copytree(graph.uri, copied)
    copy = omnigraph.open(copied)
    assert content(copy) == want["main"], "main has forked nothing"
    with pytest.raises(GraphMovedError, match="was copied or moved"):
        content(copy.on("side"))
    with pytest.raises(GraphMovedError):
        copy.on("deep").ingest([{"type": "City", "data": {"id": "x", "title": "x"}}])
    assert any("was copied" in finding.message for finding in copy.verify().findings)
    seen = copy.repair()
    assert (seen.executed, seen.strays > 0) == (False, True)
    with pytest.raises(GraphMovedError):
        content(copy.on("side"))
    assert copy.repair(confirm=True).strays == seen.strays
    assert copy.repair().strays == 0
    shutil.rmtree(graph.uri)
    assert {name: content(copy.on(name)) for name in want} == want
    copy.merge("deep")
    assert content(copy)["City"] == content(copy.on("deep"))["City"]
    copy.optimize()
    copy.cleanup(keep=1, grace=timedelta(0), confirm=True)
    assert copy.verify().findings == []
    # The original was never touched.
    for path, data in before.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    forget_tables()
    assert {name: content(graph.on(name)) for name in want} == want
    assert graph.verify().findings == []


def test_a_link_to_a_graph_is_the_graph(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("side").ingest([{"type": "City", "data": {"id": "s", "title": "s"}}])
    (tmp_path / "link").symlink_to(graph.uri)
    linked = omnigraph.open(str(tmp_path / "link"), branch="side")
    assert content(linked) == content(graph.on("side"))


def test_the_recipe_for_backups(graph: Graph, tmp_path: Path) -> None:
    """The commands of the guide, while somebody writes, optimizes and merges."""
    back_up, restore = recipe()
    os.rename(graph.uri, tmp_path / "shop")
    graph = omnigraph.open(str(tmp_path / "shop"))
    graph.create_branch("side").ingest([{"type": "City", "data": {"id": "s", "title": "s"}}])
    graph.create_tag("v1")
    tagged, stop = content(graph), threading.Event()

    def write() -> None:
        writer, n = omnigraph.open(graph.uri), 0
        while not stop.is_set():
            target = writer.on("side") if n % 3 == 2 else writer
            target.ingest([{"type": "City", "data": {"id": f"w{n:05d}", "title": f"w{n}"}}])
            n += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        run(back_up, tmp_path)
    finally:
        stop.set()
        thread.join()
    shutil.copytree(tmp_path / "backup", tmp_path / "kept")
    run(restore, tmp_path)
    shutil.rmtree(tmp_path / "broken")
    shutil.rmtree(tmp_path / "backup")
    forget_tables()  # as a new process would
    restored = omnigraph.open(graph.uri)
    assert restored.verify().findings == []
    assert content(restored, tag="v1") == tagged
    for name, turns in (("main", (0, 1)), ("side", (2,))):
        shown = {row["id"] for row in content(restored.on(name))["City"]}
        written = sorted(int(id[1:]) for id in shown if id.startswith("w"))
        all_of_them = [n for n in range(max(written, default=-1) + 1) if n % 3 in turns]
        assert written == all_of_them, "a commit is missing between others"
    assert "s" in {row["id"] for row in content(restored.on("side"))["City"]}
    restored.merge("side")
    restored.ingest([{"type": "City", "data": {"id": "after", "title": "x"}}])
    assert restored.verify().findings == []


def test_a_copy_needs_an_empty_place_and_leaves_nothing_half_done(
    graph: Graph, tmp_path: Path
) -> None:
    with pytest.raises(AlreadyExistsError):
        graph.copy(graph.uri)
    with (
        patch.object(shutil, "copyfile", side_effect=OSError(28, "no space left on device")),
        pytest.raises(OSError, match="no space"),
    ):
        graph.copy(str(tmp_path / "copy"))
    with pytest.raises(GraphNotFoundError):
        omnigraph.open(str(tmp_path / "copy"))
    reader = omnigraph.open(graph.uri, read_only=True)
    assert reader.copy(str(tmp_path / "other")).objects > 0
    assert content(omnigraph.open(str(tmp_path / "other"))) == content(graph)
