"""Import directions: the walls stand, and each kind of breach is seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the source tree, in which a test may plant what it likes."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(house: Path, module: str, text: str) -> None:
    """Write a module, with the packages above it where they do not exist yet."""
    *rooms, name = module.split(".")
    folder = house / "src" / "omnigraph"
    for room in rooms:
        folder /= room
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    (folder / f"{name}.py").write_text(text)


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=house,
        env=os.environ | {"PYTHONPATH": str(house / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_house_as_it_stands(house: Path) -> None:
    done = lint(house)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "text", "wall"),
    [
        ("engines.planted", "import omnigraph.commit.planted_target", "Rooms"),
        ("commit.planted", "import omnigraph.operations.planted_target", "Rooms"),
        ("lang.planted", "import omnigraph.plan.planted_target", "Rooms"),
        ("plan.planted", "import omnigraph.storage.planted_target", "no I/O"),
        ("lang.planted", "import pyspark", "no I/O"),
        ("ir.planted", "import datafusion", "no I/O"),
        ("engines.embedded.planted", "import omnigraph.engines.spark.planted_target", "each other"),
        ("operations.planted", "import lance", "Only storage touches Lance"),
        ("engines.planted", "import omnigraph.storage.landing", "Only the commit door lands"),
    ],
    ids=lambda value: value.removeprefix("import ") if isinstance(value, str) else None,
)
def test_a_breach_is_seen(house: Path, module: str, text: str, wall: str) -> None:
    if "planted_target" in text:
        plant(house, text.removeprefix("import omnigraph."), "")
    plant(house, module, text + "\n")
    done = lint(house)
    assert done.returncode != 0
    broken = [line for line in done.stdout.splitlines() if "BROKEN" in line]
    assert any(wall in line for line in broken), done.stdout
    assert f"omnigraph.{module}" in done.stdout


def test_a_room_that_nobody_placed_is_seen(house: Path) -> None:
    plant(house, "attic.planted", "")
    done = lint(house)
    assert done.returncode != 0
    assert "attic" in done.stdout
