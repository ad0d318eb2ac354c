"""The public names: added on purpose, loaded when used, cheap to import."""

from __future__ import annotations

import ast
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import omnigraph

NAMES = Path(__file__).with_name("public_names.txt")

# What a bare import must not bring along, whoever adds the next name.
HEAVY = {"lance", "pyarrow", "numpy", "datafusion", "pyspark", "pandas", "fastapi", "starlette"}


def test_the_public_names_are_these() -> None:
    # A new name is a promise: add it to the list when you mean to keep it.
    assert sorted(omnigraph.__all__) == NAMES.read_text().split()


@pytest.mark.parametrize("name", omnigraph.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(omnigraph, name) is not None


def test_type_checkers_see_what_python_sees() -> None:
    tree = ast.parse(inspect.getsource(omnigraph))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname for node in block.body for alias in node.names}  # type: ignore[attr-defined]
    assert seen == set(omnigraph._HOMES)
    assert seen | {"__version__"} == set(omnigraph.__all__)


def annotated_names(annotation: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(annotation)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def public_functions() -> Iterator[Callable[..., Any]]:
    for surface in (omnigraph.Graph, omnigraph.AsyncGraph):
        for name, member in vars(surface).items():
            function = member.fget if isinstance(member, property) else member
            if callable(function) and not name.startswith("_"):
                yield inspect.unwrap(function)
    for module in (omnigraph, omnigraph.aio, omnigraph.spark):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield inspect.unwrap(getattr(module, name))


def test_20_05_every_class_of_a_public_signature_can_be_imported() -> None:
    """Of this package; a class of Python, Arrow or Spark is imported from there."""
    missing = set()
    for function in public_functions():
        for annotation in function.__annotations__.values():
            for name in annotated_names(str(annotation)):
                found = vars(sys.modules[function.__module__]).get(name) or OUR_CLASSES.get(name)
                ours = inspect.isclass(found) and found.__module__.startswith("omnigraph.")
                if ours and name not in omnigraph.__all__:
                    missing.add(name)
    assert missing == set()


def our_classes() -> dict[str, type]:
    """Every class of the package by its name: annotations name some for type checkers only."""
    found = {}
    for info in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."):
        if "__main__" not in info.name:
            for name, value in vars(import_module(info.name)).items():
                if inspect.isclass(value) and value.__module__ == info.name:
                    found[name] = value
    return found


OUR_CLASSES = our_classes()


def test_dir_shows_the_public_names() -> None:
    assert dir(omnigraph) == sorted(omnigraph.__all__)


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Grpah'"):
        omnigraph.Grpah  # noqa: B018


def modules_after(code: str) -> set[str]:
    return {name.partition(".")[0] for name in all_modules_after(code)}


def all_modules_after(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_importing_brings_nothing_heavy() -> None:
    assert modules_after("import omnigraph") & HEAVY == set()


def test_the_program_loads_nothing_heavy_to_show_its_help() -> None:
    code = "from omnigraph.cli.main import run\nassert run(['--help']) == 0"
    assert modules_after(code) & (HEAVY | {"rich", "pydantic", "yaml"}) == set()


def test_the_program_loads_little_to_answer_a_query(tmp_path: Path) -> None:
    place = str(tmp_path / "g")
    omnigraph.init(place, "node Person { name: String @key }")
    asked = "query q() { match { $p: Person } return { $p.name } }"
    found = all_modules_after(
        "from omnigraph.cli import main, startup\n"
        "startup.as_program()\n"
        f"assert main.run(['query', '--store', {place!r}, '-e', {asked!r}]) == 0"
    )
    packages = {name.partition(".")[0] for name in found}
    needless = {"pandas", "datafusion", "pydantic", "pyspark", "rich", "prompt_toolkit", "asyncio"}
    assert packages & needless == set()
    assert not [name for name in found if name.startswith("omnigraph.commit.")]
    assert len(found) < 640  # what a start costs grows with this number; say why if you raise it


def cost(code: str) -> float:
    """Processor seconds of a piece of code in a process of its own."""
    timed = f"import time\nbegin = time.process_time()\n{code}\nspent = time.process_time() - begin"
    done = subprocess.run(
        [sys.executable, "-c", f"{timed}\nprint(spent)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])


def test_importing_costs_less_than_importing_lance() -> None:
    # Turns that alternate, the best of each: a busy machine slows single turns, not all of them.
    turns = [(cost("import lance"), cost("import omnigraph")) for _ in range(5)]
    lance, ours = (min(column) for column in zip(*turns, strict=True))
    assert ours < lance


def test_the_program_loads_little_to_show_its_help() -> None:
    typer = set(all_modules_after("import typer"))
    found = all_modules_after("from omnigraph.cli.main import run\nassert run(['--help']) == 0")
    # What a start costs grows with this number; say why if you raise it.
    assert len(set(found) - typer) < 60
