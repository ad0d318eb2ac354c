"""The schema language as a whole: what holds for every schema."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.randomschemas import schemas, spelled

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


# Making a schema costs more than all that is asked of it, so one schema is asked everything.
@given(scattered())
def test_what_holds_for_every_schema(case: tuple[ast.Schema, str]) -> None:
    schema, text = case
    check_formatting(schema, text)
    check_json(schema)
    check_source(schema)
    check_order(schema)


def check_formatting(schema: ast.Schema, text: str) -> None:
    """Writing and reading gives the same tree; formatting keeps tree and comments and settles."""
    assert pg.parse(spelled(schema)) == schema
    formatted = pg.format_schema(text)
    assert pg.parse(formatted) == pg.parse(text) == schema
    assert comments_of(formatted) == comments_of(text)
    assert pg.format_schema(formatted) == formatted


def check_json(schema: ast.Schema) -> None:
    """Canonical JSON goes there and back."""
    catalog = pg.compile_schema(spelled(schema))
    text = pg.to_json(catalog)
    assert pg.from_json(text) == catalog
    assert pg.to_json(pg.from_json(text)) == text
    assert catalog.hash == pg.catalog_hash(catalog)


def check_source(schema: ast.Schema) -> None:
    """The text of a catalog compiles to it."""
    catalog = pg.compile_schema(spelled(schema))
    source = pg.catalog_to_source(catalog)
    assert pg.compile_schema(source, accepted=catalog) == catalog
    assert pg.format_schema(source) == source


def check_order(schema: ast.Schema) -> None:
    """The order of declarations does not touch ids."""
    first = pg.compile_schema(spelled(schema))
    schema.declarations = schema.declarations[::-1]
    assert pg.compile_schema(spelled(schema), accepted=first) == first
    again = pg.compile_schema(spelled(schema))
    ids = {t.name: {p.name: p.id for p in t.properties} for t in first.tables()}
    assert ids == {t.name: {p.name: p.id for p in t.properties} for t in again.tables()}
