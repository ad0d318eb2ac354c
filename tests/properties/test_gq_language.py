"""Laws of the query language: what is written reads back, and formatting changes only layout."""

from __future__ import annotations

import re

from hypothesis import assume, given, settings
from tests.crash.sizes import FULL
from tests.support.querytexts import texts

from omnigraph.errors import QueryError
from omnigraph.lang import gq
from omnigraph.lang.gq import ast


def read(text: str) -> ast.File:
    """The tree of a random text; in some of them clauses run into each other."""
    try:
        return gq.parse(text)
    except QueryError:
        assume(False)
        raise


def comments(text: str) -> list[str]:
    return sorted(re.findall(r"// \w+|/\* \w+ \*/", text))


def check_format(text: str) -> None:
    tree = read(text)
    formatted = gq.format_queries(text)
    assert gq.parse(formatted) == tree
    assert comments(formatted) == comments(text)
    assert gq.format_queries(formatted) == formatted
    assert all(line == line.rstrip() for line in formatted.split("\n"))
    assert "\n\n\n" not in formatted


def check_spans(node: ast.Node) -> None:
    for name in node.FIELDS:
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, ast.Node):
                assert node.span.start <= child.span.start < child.span.end <= node.span.end
                check_spans(child)


# Making a text costs more than all that is asked of it, so one text is asked everything.
@settings(max_examples=1000 if FULL else 100)
@given(texts())
def test_formatting_keeps_the_tree_and_spans_lie_inside_what_holds_them(text: str) -> None:
    check_format(text)
    for query in read(text).queries:
        check_spans(query)
