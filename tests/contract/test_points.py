"""Fault points: every name in the source is declared, every declared name is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph import faults

SOURCE = Path(faults.__file__).parent


def names_hit(text: str) -> Iterator[str]:
    """The arguments of `faults.hit(...)`. Whatever would escape this check is refused."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "omnigraph.faults":
            assert "hit" not in [each.name for each in node.names], "write `faults.hit(...)`"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "faults.hit":
            (argument,) = node.args
            assert isinstance(argument, ast.Constant), f"not a literal: {ast.unparse(node)}"
            yield str(argument.value)


def unknown_names(folder: Path) -> set[str]:
    return {n for p in folder.rglob("*.py") for n in names_hit(p.read_text())} - set(faults.POINTS)


def test_every_point_in_the_source_is_declared() -> None:
    assert unknown_names(SOURCE) == set()


def test_a_planted_unknown_point_is_found(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("from omnigraph import faults\nfaults.hit('zebra')\n")
    assert unknown_names(tmp_path) == {"zebra"}


def test_a_computed_name_is_refused() -> None:
    with pytest.raises(AssertionError, match="not a literal"):
        list(names_hit("faults.hit(f'commit.{step}')"))
    with pytest.raises(AssertionError, match="write"):
        list(names_hit("from omnigraph.faults import hit"))


def test_every_declared_point_is_hit_somewhere() -> None:
    used = {name for path in SOURCE.rglob("*.py") for name in names_hit(path.read_text())}
    assert set(faults.POINTS) - used == set()


def test_every_point_says_which_instant_it_is() -> None:
    assert all(instant.strip() for instant in faults.POINTS.values())
