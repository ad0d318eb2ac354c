"""The page about the schema language and the editor grammar agree with the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.lang import pg
from omnigraph.lang.pg.constraints import CONSTRAINTS
from omnigraph.lang.pg.parser import KEYWORDS
from omnigraph.model.types import SCALAR_KINDS

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs/reference/schema-language.md").read_text()
GRAMMAR: dict[str, Any] = json.loads((ROOT / "editors/pg.tmLanguage.json").read_text())


@pytest.mark.parametrize("table", [pg.CHANGES, pg.FINDINGS])
def test_every_code_is_on_the_page(table: dict[str, str]) -> None:
    shown = dict(re.findall(r"^\| `((?:OG-|S\d)[^`]*)` \| (.*) \|$", PAGE, re.MULTILINE))
    assert {code: shown.get(code) for code in table} == table
    assert set(shown) == {*pg.CHANGES, *pg.FINDINGS}


def test_every_code_in_the_source_is_listed() -> None:
    found: set[str] = set()
    for path in (ROOT / "src/omnigraph/lang/pg").glob("*.py"):
        if path.name != "codes.py":
            found |= set(re.findall(r'"(S\d{3}|OG-[A-Z]{2}-\d{3})"', path.read_text()))
    assert found == {*pg.FINDINGS, *pg.CHANGES} - {"OG-DS-101"}  # kept for later


def test_the_examples_compile_and_are_in_style() -> None:
    examples = re.findall(r"```pg\n(.*?)```", PAGE, re.DOTALL)
    assert examples
    for example in examples:
        pg.compile_schema(example)
        assert pg.format_schema(example) == example


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
    words = {
        *KEYWORDS,
        *CONSTRAINTS,
        *map(str, SCALAR_KINDS),
        "implements",
        "enum",
        "card",
        "Vector",
    }
    assert {word for word in words if not re.search(rf"\b{word}\b", known)} == set()


def test_the_patterns_of_the_editor_grammar_are_patterns() -> None:
    for pattern in patterns(GRAMMAR):
        re.compile(pattern)


def test_includes_lead_somewhere() -> None:
    text = json.dumps(GRAMMAR)
    assert set(re.findall(r'"include": "#(\w+)"', text)) <= set(GRAMMAR["repository"])
