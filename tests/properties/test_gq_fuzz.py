"""Whatever the text, the compiler answers with its own findings: ten thousand of each kind in
`make crash`, a part of them in `make test`."""

from __future__ import annotations

import random
from pathlib import Path

from tests.crash.sizes import FULL

from omnigraph.errors import Diagnostic, QueryError
from omnigraph.lang import gq
from omnigraph.lang.gq.codes import ERRORS, WARNINGS
from omnigraph.lang.pg import compile_schema

TEXTS = 10_000 if FULL else 1_000
GOLDEN = Path(__file__).parent.parent / "golden" / "gq"
CATALOG = compile_schema((GOLDEN / "schema.pg").read_text())
PROGRAMS = [path.read_text() for path in sorted(GOLDEN.glob("*/*.gq"))]
PIECES = [
    "query", "match", "return", "with", "order", "limit", "offset", "having", "insert", "update",
    "delete", "upsert", "set", "where", "on conflict", "not", "optional", "distinct", "as", "in",
    "contains", "is null", "and", "or", "shortest", "$p", "$_", "$", "Person", "knows", "_", "<",
    "<-", ">", "|", "{", "}", "(", ")", "[", "]", ":", ",", ".", "=", "+", "-", "*", "/", "%", "@",
    '"', "\\", "//", "/*", "*/", "1e999", "9" * 5000, "0" * 5000, "((((" * 50, "not " * 100,
    "1+" * 500, "- " * 100, "not{" * 100, "\x00", "\ud800", "ü", "\ufeff", "\u2028", "\n", "'",
    "null", "count(*)", "rrf(", "date(", 'date("x")', "matches \"(\"", "$p.name", "{1,}", "{0,99}",
]  # fmt: skip


def findings(text: str) -> tuple[Diagnostic, ...]:
    try:
        gq.compile_file(text, CATALOG, "fuzz.gq")
    except QueryError as error:
        return error.diagnostics
    formatted = gq.format_queries(text)
    assert gq.format_queries(formatted) == formatted
    assert gq.parse(formatted) == gq.parse(text)
    return ()


def check(text: str) -> None:
    found = findings(text)
    linted = gq.lint(text, CATALOG, "fuzz.gq")
    assert bool(found) == (linted.status == "error")
    lines = text.count("\n") + 1
    for each in (*found, *(finding.diagnostic for finding in linted.findings)):
        assert each.code in ERRORS or each.code in WARNINGS
        assert each.line is not None
        assert each.column is not None
        assert 1 <= each.line <= lines
        assert each.column >= 1
        assert each.excerpt
        assert each.hint, f"{each.code}: {each.message}"


def random_text(chance: random.Random) -> str:
    raw = chance.randbytes(chance.randrange(0, 200))
    return raw.decode(chance.choice(["utf-8", "latin-1"]), "surrogateescape")


def mutated(chance: random.Random) -> str:
    text = chance.choice(PROGRAMS)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(text) + 1)
        until = min(len(text), at + chance.randrange(0, 12))
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:at] + text[until:]
        elif kind == 1:
            text = text[:at] + f" {chance.choice(PIECES)} " + text[at:]
        elif kind == 2:
            text = text[:at] + text[at:until] * 2 + text[until:]
        else:
            other = chance.choice(PROGRAMS)
            start = chance.randrange(len(other))
            text = text[:at] + other[start : start + chance.randrange(40)] + text[until:]
    return text


def test_random_byte_strings() -> None:
    chance = random.Random(3)
    for _ in range(TEXTS):
        check(random_text(chance))


def test_mutated_programs() -> None:
    chance = random.Random(4)
    for _ in range(TEXTS):
        check(mutated(chance))
