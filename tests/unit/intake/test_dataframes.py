"""Frames and parameters that no type of ours holds: taken, or refused by name."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.main import app
from omnigraph.errors import InvalidDataError
from omnigraph.graph import Graph

SCHEMA = "node P {\n name: String @key\n n: I64?\n f: Vector(2)?\n tags: [String]?\n}"


@pytest.fixture
def graph(tmp_path) -> Graph:
    return omnigraph.init(str(tmp_path / "g"), SCHEMA)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"])], ids=str)
def test_18_23_words_of_polars_are_text(graph, kind):
    graph.ingest(
        pl.DataFrame({"name": ["a", "b"]}).with_columns(pl.col("name").cast(kind)), type="P"
    )
    found = graph.query("query q() { match { $p: P } return { $p.name } }")
    assert sorted(row["p.name"] for row in found) == ["a", "b"]


THREE = pa.array([[1.0] * 3], pa.list_(pa.float32(), 3))
FRAMES = {
    "int128": (pl.DataFrame({"name": ["a"], "n": [1]}, schema_overrides={"n": pl.Int128}), "n"),
    "mixed": (pd.DataFrame({"name": ["a", "b"], "n": [1, "x"]}), "n"),
    "mixed lists": (pd.DataFrame({"name": ["a", "b"], "tags": [["x"], "x"]}), "tags"),
    "objects": (pd.DataFrame({"name": ["a"], "n": [object()]}), "n"),
    "complex": (pd.DataFrame({"name": ["a"], "n": [1 + 2j]}), "n"),
    "twice": (pd.DataFrame([["a", "b"]], columns=["name", "name"]), "name"),
    "twice in Arrow": (pa.table([pa.array(["a"])] * 2, names=["name", "name"]), "name"),
    "length": (
        pa.table({"name": ["a"], "f": pa.array([[1.0] * 3], pa.list_(pa.float32(), 3))}),
        "f",
    ),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("way", ["ingest", "load"])
def test_18_23_frames_that_do_not_fit_are_refused_by_column(graph, name, way):
    frame, column = FRAMES[name]
    before = graph.snapshot()
    act = graph.ingest if way == "ingest" else graph.load
    options = {} if way == "ingest" else {"engine": "embedded"}
    with pytest.raises(InvalidDataError) as caught:
        act(frame, type="P", **options)
    assert caught.value.violations[0].property == column
    assert graph.snapshot() == before


@pytest.mark.parametrize(
    ("params", "said"),
    [('{"n": "a", "n": "b"}', "occurs twice"), ('{"n": ' + "[" * 100_000, "nested too deeply"),
     ('{"n": NaN}', "not JSON"), ('{"n": {"x": 1, "x": 2}}', "occurs twice")],
)  # fmt: skip
def test_18_24_parameters_are_strict_json(graph, params, said):
    query = "query q($n: String) { match { $p: P { name: $n } } return { $p.name } }"
    words = ["query", "--store", graph.uri, "-e", query, "--params", params]
    done = CliRunner().invoke(app, words)
    assert done.exit_code != 0
    assert not isinstance(done.exception, RecursionError)
    assert said in done.output + str(done.exception)
