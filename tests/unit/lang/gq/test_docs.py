"""The page about the query language and the editor grammar agree with the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.lang import gq
from omnigraph.lang.gq import codes
from omnigraph.lang.gq.check.calls import NAMES
from omnigraph.lang.gq.syntax.clauses import SECTIONS, STATEMENTS
from omnigraph.lang.gq.syntax.expressions import WORD_OPERATORS
from omnigraph.lang.pg import compile_schema
from omnigraph.model.types import SCALAR_KINDS

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs/reference/query-language.md").read_text()
GRAMMAR: dict[str, Any] = json.loads((ROOT / "editors/gq.tmLanguage.json").read_text())
OTHERS = {
    "query", "set", "where", "on", "conflict", "optional", "distinct", "shortest", "as", "asc",
    "desc", "replace", "nothing", "error", "true", "false", "null", "Vector", "date", "datetime",
    "description", "instruction",
}  # fmt: skip


@pytest.mark.parametrize("table", [codes.ERRORS, codes.WARNINGS])
def test_every_code_is_on_the_page(table: dict[str, str]) -> None:
    shown = dict(re.findall(r"^\| `([QTL]\d+)` \| (.*) \|$", PAGE, re.MULTILINE))
    assert {code: shown.get(code) for code in table} == table
    assert set(shown) == {*codes.ERRORS, *codes.WARNINGS}


def test_every_code_in_the_source_is_listed() -> None:
    found: set[str] = set()
    for path in (ROOT / "src/omnigraph/lang/gq").rglob("*.py"):
        found |= set(re.findall(r'"([QTL]\d{1,3})"', path.read_text()))
    assert found == {*codes.ERRORS, *codes.WARNINGS}


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_compile_and_are_in_style() -> None:
    (schema,) = examples("pg")
    catalog = compile_schema(schema)
    queries = examples("gq")
    assert len(queries) >= 9
    for text in queries:
        assert gq.compile_file(text, catalog)
        assert gq.format_queries(text) == text


def test_every_function_is_on_the_page() -> None:
    assert {name for name in NAMES if f"`{name}(" not in PAGE} == set()


def patterns(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name in ("match", "begin", "end"):
                yield value
            yield from patterns(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from patterns(item)


def test_the_editor_grammar_knows_the_words_of_the_language() -> None:
    known = " ".join(patterns(GRAMMAR)).replace("\\b", " ")
    words = {*SECTIONS, *STATEMENTS, *WORD_OPERATORS, *NAMES, *map(str, SCALAR_KINDS), *OTHERS}
    assert {word for word in words if not re.search(rf"\b{word}\b", known)} == set()


def test_the_patterns_of_the_editor_grammar_are_patterns() -> None:
    for pattern in patterns(GRAMMAR):
        re.compile(pattern)


def test_includes_lead_somewhere() -> None:
    text = json.dumps(GRAMMAR)
    assert set(re.findall(r'"include": "#(\w+)"', text)) <= set(GRAMMAR["repository"])
