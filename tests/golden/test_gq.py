"""Golden files of the query language: what each construct, finding and warning looks like.

`gq/constructs/x.gq` compiles against `gq/schema.pg` to `x.ir.txt`; `gq/syntax/x.gq` reads as the
tree in `x.ast.txt`; `gq/errors/x.gq` and `gq/lint/x.gq` yield `x.txt`; `gq/format/x.gq` is
formatted as `x.fmt.gq`. With OMNIGRAPH_UPDATE_GOLDEN=1 the expected files are written anew; read
the difference before keeping it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omnigraph.errors import Diagnostic, QueryError
from omnigraph.ir.expr import ArithmeticOp, CompareOp
from omnigraph.ir.irtext import render as render_ir
from omnigraph.lang import gq
from omnigraph.lang.diagnostics import render
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check.calls import NAMES
from omnigraph.lang.gq.check.exprops import STRING_TESTS
from omnigraph.lang.gq.codes import ERRORS, WARNINGS
from omnigraph.lang.gq.variables import nodes_in
from omnigraph.lang.pg import compile_schema

HERE = Path(__file__).parent / "gq"
CATALOG = compile_schema((HERE / "schema.pg").read_text())


def cases(folder: str) -> list[str]:
    names = (path.name for path in (HERE / folder).glob("*.gq"))
    return sorted(name.removesuffix(".gq") for name in names if not name.endswith(".fmt.gq"))


def agree(path: Path, actual: str) -> None:
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        path.write_text(actual)
    assert actual == path.read_text(), f"{path.name} differs; see the head of this file"


def read(folder: str, name: str) -> str:
    return (HERE / folder / f"{name}.gq").read_text()


@pytest.mark.parametrize("name", cases("constructs"))
def test_construct(name: str) -> None:  # ledger: Q01 Q07
    parts = []
    for compiled in gq.compile_file(read("constructs", name), CATALOG, f"{name}.gq").values():
        described = json.dumps(compiled.description.to_dict(), indent=1)
        parts.append(f"{render_ir(compiled.query)}\n{described}\n")
    agree(HERE / "constructs" / f"{name}.ir.txt", "\n".join(parts))


@pytest.mark.parametrize("name", cases("syntax"))
def test_syntax(name: str) -> None:
    agree(HERE / "syntax" / f"{name}.ast.txt", ast.dump(gq.parse(read("syntax", name))) + "\n")


def findings(text: str, file: str, code: str) -> tuple[Diagnostic, ...]:
    """Mistakes are found in all queries of a file, but for the choice of one."""
    try:
        if code == "Q006":
            gq.compile_query(text, CATALOG, file=file)
        else:
            gq.compile_file(text, CATALOG, file)
    except QueryError as error:
        return error.diagnostics
    return ()


@pytest.mark.parametrize("name", cases("errors"))
def test_finding(name: str) -> None:  # ledger: C05
    code = name.split("-")[0]
    found = findings(read("errors", name), f"{name}.gq", code)
    assert code in {each.code for each in found}
    assert all(each.hint and each.excerpt and each.line and each.column for each in found)
    agree(HERE / "errors" / f"{name}.txt", "\n\n".join(render(each) for each in found) + "\n")


@pytest.mark.parametrize("name", cases("lint"))
def test_lint(name: str) -> None:
    can_embed = not name.startswith("L210")
    report = gq.lint(read("lint", name), CATALOG, f"{name}.gq", can_embed=can_embed)
    code = name.split("-")[0]
    if code in WARNINGS:
        assert code in {each.diagnostic.code for each in report.findings}
    assert all(each.diagnostic.hint for each in report.findings)
    shown = [render(each.diagnostic) for each in report.findings]
    pretty = json.dumps(report.to_dict(), indent=1)
    agree(HERE / "lint" / f"{name}.txt", "\n\n".join([*shown, pretty]) + "\n")


@pytest.mark.parametrize("name", cases("format"))
def test_format(name: str) -> None:
    text = read("format", name)
    formatted = gq.format_queries(text)
    agree(HERE / "format" / f"{name}.fmt.gq", formatted)
    assert gq.format_queries(formatted) == formatted
    assert gq.parse(formatted) == gq.parse(text)


def test_every_construct_has_a_file() -> None:
    kinds: set[type[ast.Node]] = set()
    words: set[str] = set()
    for name in cases("constructs"):
        for query in gq.parse(read("constructs", name)).queries:
            for node in nodes_in(query):
                kinds.add(type(node))
                if isinstance(node, ast.Binary):
                    words.add(node.op)
                elif isinstance(node, ast.Call):
                    words.add(node.name.text)
    assert set(ast.Node.__subclasses__()) - kinds == {ast.File}
    assert {*NAMES, *CompareOp, *ArithmeticOp, *STRING_TESTS} - words == set()


def test_every_error_has_a_file() -> None:
    assert {name.split("-")[0] for name in cases("errors")} == set(ERRORS)


def test_every_warning_has_a_file() -> None:
    assert {name.split("-")[0] for name in cases("lint")} >= set(WARNINGS)
