"""Import directions: the walls stand, and each kind of breach is seen."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def copied(place: Path) -> Path:
    """A copy of the source tree, in which a test may plant what it likes."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", place / "src", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


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


def test_the_house_as_it_stands(tmp_path: Path) -> None:
    done = lint(copied(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


BREACHES = [
    ("engines.planted_1", "import omnigraph.commit.planted_target", "Rooms"),
    ("commit.planted_2", "import omnigraph.operations.planted_target", "Rooms"),
    ("lang.planted_3", "import omnigraph.plan.planted_target", "Rooms"),
    ("plan.planted_4", "import omnigraph.storage.planted_target", "no I/O"),
    ("lang.planted_5", "import pyspark", "no I/O"),
    ("ir.planted_6", "import datafusion", "no I/O"),
    ("engines.embedded.planted_7", "import omnigraph.engines.spark.planted_target", "each other"),
    ("operations.planted_8", "import lance", "Only storage touches Lance"),
    ("engines.planted_9", "import omnigraph.storage.tablehead", "Only the commit door lands"),
    ("operations.planted_11", "import omnigraph.commit.door", "Only the write path"),
    ("rows.planted_10", "import omnigraph.storage.planted_target", "know no storage"),
    ("intake.planted_11", "import pyspark", "know no storage"),
    ("bulk.planted_12", "import pyspark", "without Spark"),
    ("writes.planted_13", "import omnigraph.operations.planted_target", "Rooms"),
    ("attic.planted", "", "Rooms"),  # a room that nobody placed
]
# A wall's name, underlined, and what is said of it up to the next.
HEADED = r"^(.+)\n-+\n((?:(?!.+\n-+\n).*\n?)*)"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a house with every breach: the linter takes long, and tells them all."""
    house = copied(tmp_path_factory.mktemp("breached"))
    for module, text, _ in BREACHES:
        if "planted_target" in text:
            plant(house, text.removeprefix("import omnigraph."), "")
        plant(house, module, text + "\n")
    done = lint(house)
    assert done.returncode != 0
    return done.stdout


@pytest.mark.parametrize(("module", "text", "wall"), BREACHES, ids=[each[0] for each in BREACHES])
def test_a_breach_is_seen(told: str, module: str, text: str, wall: str) -> None:
    sections = re.findall(HEADED, told, re.MULTILINE)
    seen = "attic" if module.startswith("attic") else f"omnigraph.{module}"
    assert any(wall in title and seen in body for title, body in sections), told
