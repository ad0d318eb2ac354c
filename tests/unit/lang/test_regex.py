"""One rule for regular expressions, in schemas, in constants and in parameters of queries."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import InvalidArgumentError, QueryError, SchemaError
from omnigraph.lang.pg import compile_schema

SCHEMA = "node Item {\n    name: String @key\n}\n"
GOOD = [r"\p{L}", r"^\pL+$", "a{2,3}", "(?i)abc", "[[:alpha:]]", r"\d+", "x{1000}", r"\x{10FFFF}"]
BAD = ["(a{1000}){1000}", "a{1001}", "((a{100}){100}){100}", "(?=a)", r"(a)\1", "(", "a**", "[z-a]"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(str(tmp_path_factory.mktemp("patterns") / "g"), SCHEMA)
    made.ingest([{"type": "Item", "data": {"name": name}} for name in ("abc", "x1", "é", "aa")])
    return made


def asked(graph: og.Graph, pattern: str, *, constant: bool) -> list[str]:
    spelled = '"' + pattern.replace("\\", "\\\\") + '"' if constant else "$p"
    params = "" if constant else "$p: String"
    text = (
        f"query q({params}) {{ match {{ $i: Item $i.name matches {spelled} }} "
        "return { $i.name as name } }"
    )
    return [row["name"] for row in graph.query(text, params={} if constant else {"p": pattern})]


@pytest.mark.parametrize("pattern", GOOD)
def test_18_23_a_pattern_is_accepted_everywhere(graph: og.Graph, pattern: str) -> None:
    assert asked(graph, pattern, constant=True) == asked(graph, pattern, constant=False)
    spelled = pattern.replace("\\", "\\\\")
    compile_schema(f'node Item {{\n    name: String @key @check("{spelled}")\n}}\n')


@pytest.mark.parametrize("pattern", BAD)
def test_18_23_a_pattern_is_refused_everywhere(graph: og.Graph, pattern: str) -> None:
    with pytest.raises(QueryError, match="T41"):
        asked(graph, pattern, constant=True)
    with pytest.raises(InvalidArgumentError, match="not a regular expression"):
        asked(graph, pattern, constant=False)
    spelled = pattern.replace("\\", "\\\\")
    with pytest.raises(SchemaError):
        compile_schema(f'node Item {{\n    name: String @key @check("{spelled}")\n}}\n')


@pytest.mark.parametrize("name", ["_score", "_distance", "__type"])
def test_18_23_names_of_result_columns_are_reserved(tmp_path: Path, name: str) -> None:
    wanted = SCHEMA.replace("}", f"    {name}: String?\n}}")
    with pytest.raises(SchemaError, match="S105"):
        compile_schema(wanted)
    graph = og.init(str(tmp_path / "g"), SCHEMA)
    with pytest.raises(SchemaError, match="is reserved"):
        graph.apply_schema(wanted)
