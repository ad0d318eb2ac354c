"""Whatever the text, the compiler answers with its own diagnostics: ten thousand of each kind in
`make crash`, a part of them in `make test`."""

from __future__ import annotations

import random
from pathlib import Path

from tests.crash.sizes import FULL

from omnigraph.errors import Diagnostic, SchemaError
from omnigraph.lang import pg

TEXTS = 10_000 if FULL else 1_000
GOLDEN = Path(__file__).parent.parent / "golden" / "pg"
PROGRAMS = [path.read_text() for path in sorted(GOLDEN.glob("*/*.pg"))]
PIECES = [
    "node", "edge", "interface", "implements", "enum(", "Vector(", "@key", "@unique(", "@range(",
    "@card(", "@default(", "->", "..", "{", "}", "(", ")", "[", "]", ":", "?", ",", "=", '"', "\\",
    "//", "/*", "*/", "-", "1e999", "9" * 5000, "\x00", "\ud800", "ü", "\ufeff", "\u2028", "\n",
    "'", "true", "0..", "@description(",
]  # fmt: skip


def findings(text: str) -> tuple[Diagnostic, ...]:
    try:
        catalog = pg.compile_schema(text, "fuzz.pg")
    except SchemaError as error:
        return error.diagnostics
    assert pg.from_json(pg.to_json(catalog)) == catalog
    formatted = pg.format_schema(text)
    assert pg.format_schema(formatted) == formatted
    return ()


def check(text: str) -> None:
    lines = text.count("\n") + 1
    for found in findings(text):
        assert found.code in pg.FINDINGS
        assert found.line is not None
        assert found.column is not None
        assert 1 <= found.line <= lines
        assert found.column >= 1
        assert found.excerpt
        assert found.hint, f"{found.code}: {found.message}"


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
            text = text[:at] + chance.choice(PIECES) + text[at:]
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
