"""The database packages import no HTTP server; `server` and `client` are the only place for one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph

SOURCE = Path(omnigraph.__file__).parent
SURFACES = {"server", "client"}
TRANSPORTS = {"aiohttp", "fastapi", "flask", "httpx", "mcp", "socketserver", "starlette", "uvicorn"}


def imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def transports(text: str) -> list[str]:
    names = imported(text)
    return [n for n in names if n == "http.server" or n.partition(".")[0] in TRANSPORTS]


# ledger: P06
def test_the_database_imports_no_http_server() -> None:
    checked = 0
    for file in SOURCE.rglob("*.py"):
        if file.relative_to(SOURCE).parts[0] not in SURFACES:
            assert transports(file.read_text()) == [], file
            checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    "text",
    ["import http.server", "def f():\n    from fastapi import FastAPI", "import uvicorn.config"],
)
def test_a_planted_import_is_found(text: str) -> None:
    assert len(transports(text)) == 1
