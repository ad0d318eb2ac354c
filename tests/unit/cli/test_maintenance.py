"""Commands that keep a graph in shape, from the outside: output, exit codes, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.support.schemachanges import BASE, content, new_graph

import omnigraph
from omnigraph.cli.commands.cleanup import parse_age
from omnigraph.cli.main import run
from omnigraph.errors import InvalidArgumentError


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return new_graph(str(tmp_path / "g")).uri


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]):
    """Run a command that prints JSON; returns what it printed."""

    def call(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert run([*arguments, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return call


def city_uri(uri: str) -> str:
    snapshot = omnigraph.open(uri).snapshot()
    table = snapshot.catalog.node("City")
    assert table is not None
    return f"{uri}/{snapshot.tables[table.id].path}"


def test_optimize(uri: str, told, capsys: pytest.CaptureFixture[str]) -> None:
    plan = told("optimize", uri, "--dry-run")
    assert plan["graph_commit_ids"] == []
    assert any(table["indexes"] for table in plan["tables"])
    done = told("optimize", uri, "--quiet")
    assert done["graph_commit_ids"]
    assert run(["optimize", uri]) == 0
    said = capsys.readouterr()
    assert said.out.endswith("nothing to do\n")
    assert run(["optimize", uri, "--indexes-only", "--type", "Nobody"]) == 3


def test_progress_goes_to_standard_error(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", uri]) == 0
    said = capsys.readouterr()
    assert "index of id built" in said.err
    assert "City: " in said.out


def test_maintain(uri: str, told, capsys: pytest.CaptureFixture[str]) -> None:
    assert told("maintain", uri, "--lag")["unindexed_rows"] > 0
    done = told("maintain", uri, "--unindexed-rows", "5")
    assert done["done"] is not None
    assert run(["maintain", uri, "--unindexed-rows", "5"]) == 0
    assert "within bounds" in capsys.readouterr().out
    assert run(["maintain", uri, "--lag"]) == 0
    assert "unindexed_rows" in capsys.readouterr().out


def test_cleanup(uri: str, told, capsys: pytest.CaptureFixture[str]) -> None:
    graph = omnigraph.open(uri)
    for n in range(3):
        graph.ingest([{"type": "City", "data": {"id": f"n{n}", "title": "x"}}])
    assert run(["cleanup", uri]) == 2
    assert "needs a policy" in capsys.readouterr().err
    preview = told("cleanup", uri, "--keep", "1", "--grace", "0s")
    assert (preview["executed"], preview["versions"]) == (False, 3)
    done = told("cleanup", uri, "--keep", "1", "--grace", "0s", "--confirm")
    assert (done["executed"], done["versions"]) == (True, 3)
    assert run(["cleanup", uri, "--older-than", "7d", "--confirm"]) == 0
    assert "removed 0 versions" in capsys.readouterr().out
    assert run(["cleanup", "s3://bucket/graph", "--keep", "1", "--confirm"]) == 2
    assert "--yes" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("2w", 1_209_600)])
def test_ages(text: str, seconds: int) -> None:
    assert parse_age(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "7 days", "1.5h"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_age(text)


def test_fsck_and_repair(uri: str, told, capsys: pytest.CaptureFixture[str]) -> None:
    assert told("fsck", uri)["clean"]
    assert run(["repair", uri]) == 0
    assert "no drift" in capsys.readouterr().out
    lance.dataset(city_uri(uri)).delete("id = 'c1'")
    found = told("fsck", uri, code=1)
    assert [finding["part"] for finding in found["findings"]] == ["table"]
    assert run(["fsck", uri]) == 1
    assert "not clean" in capsys.readouterr().out
    assert told("repair", uri)["tables"][0]["verdict"] == "suspicious"
    assert run(["repair", uri, "--confirm"]) == 1
    assert "--force" in capsys.readouterr().err
    assert told("repair", uri, "--confirm", "--discard")["graph_commit_id"]
    assert told("fsck", uri, "--quick")["clean"]


def test_stats(uri: str, told, capsys: pytest.CaptureFixture[str]) -> None:
    shown = told("stats", uri, "--disk")
    assert {each["type_name"]: each["rows"] for each in shown["types"]}["Person"] == 12
    assert run(["stats", uri]) == 0
    assert "id (btree)" in capsys.readouterr().out


def test_blobs(uri: str, tmp_path: Path, capfdbinary: Any) -> None:
    at = ["Person", "p02", "photo", "--store", uri]
    assert run(["blob", "get", *at]) == 0
    assert capfdbinary.readouterr().out == b"xx"
    out = tmp_path / "photo"
    assert run(["blob", "get", *at, "--offset", "1", "--out", str(out)]) == 0
    assert out.read_bytes() == b"x"
    assert run(["blob", "get", "Person", "p00", "photo", "--store", uri, "--out", str(out)]) == 3
    assert out.read_bytes() == b"x", "a failure touched the file"


def test_blob_stat(uri: str, told) -> None:
    shown = told("blob", "stat", "Person", "p02", "photo", "--store", uri)
    assert shown == told("blob", "stat", "node", "Person", "p02", "photo", "--store", uri)
    assert (shown["kind"], shown["size"]) == ("managed", 2)


def test_export_and_import(uri: str, told, tmp_path: Path) -> None:
    (tmp_path / "base.pg").write_text(BASE)
    place = str(tmp_path / "out.jsonl")
    assert run(["export", uri, "--to", place]) == 0
    copy = str(tmp_path / "copy")
    done = told("import", copy, "--from", place, "--schema", str(tmp_path / "base.pg"))
    assert done["rows"]["Person"] == 12
    assert content(omnigraph.open(copy)) == content(omnigraph.open(uri))
