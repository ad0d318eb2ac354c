"""The schema language as a whole: what holds for every schema."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.schemas import schemas, spelled

from omnigraph.lang import pg
from omnigraph.lang.diagnostics import Report, Source
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.lexer import tokenize

GAPS = [
    " ",
    "  ",
    "\n",
    "\n\n\n",
    "\t",
    "\r\n",
    " // end\n",
    "\n// own\n",
    " /* in */ ",
    "\n/* a\n b */\n",
]


@st.composite
def scattered(draw: st.DrawFn) -> tuple[ast.Schema, str]:
    """A schema and one of the many ways to write it."""
    schema = draw(schemas())
    tokens, _ = tokenize(Report(Source(spelled(schema))))
    gaps = draw(st.lists(st.sampled_from(GAPS), min_size=1, max_size=30))
    text = draw(st.sampled_from(["", *GAPS]))
    for number, token in enumerate(tokens):
        text += token.text + gaps[number % len(gaps)]
    return schema, text


def comments_of(text: str) -> list[str]:
    _, comments = tokenize(Report(Source(text)))
    return sorted(c.text.rstrip() for c in comments)


@given(schemas())
def test_writing_and_reading_gives_the_same_tree(schema: ast.Schema) -> None:
    assert pg.parse(spelled(schema)) == schema


@given(scattered())
def test_formatting_keeps_tree_and_comments_and_settles(case: tuple[ast.Schema, str]) -> None:
    schema, text = case
    formatted = pg.format_schema(text)
    assert pg.parse(formatted) == pg.parse(text) == schema
    assert comments_of(formatted) == comments_of(text)
    assert pg.format_schema(formatted) == formatted


@given(schemas())
def test_canonical_json_goes_there_and_back(schema: ast.Schema) -> None:
    catalog = pg.compile_schema(spelled(schema))
    text = pg.to_json(catalog)
    assert pg.from_json(text) == catalog
    assert pg.to_json(pg.from_json(text)) == text
    assert catalog.hash == pg.catalog_hash(catalog)


@given(schemas())
def test_the_text_of_a_catalog_compiles_to_it(schema: ast.Schema) -> None:
    catalog = pg.compile_schema(spelled(schema))
    source = pg.catalog_to_source(catalog)
    assert pg.compile_schema(source, accepted=catalog) == catalog
    assert pg.format_schema(source) == source


@given(schemas())
def test_order_of_declarations_does_not_touch_ids(schema: ast.Schema) -> None:
    first = pg.compile_schema(spelled(schema))
    schema.declarations = schema.declarations[::-1]
    assert pg.compile_schema(spelled(schema), accepted=first) == first
    again = pg.compile_schema(spelled(schema))
    ids = {t.name: {p.name: p.id for p in t.properties} for t in first.tables()}
    assert ids == {t.name: {p.name: p.id for p in t.properties} for t in again.tables()}
