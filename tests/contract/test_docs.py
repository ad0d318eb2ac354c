"""The docs agree with the code, and the check that says so can tell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command

import reference

ROOT = Path(__file__).resolve().parents[2]


def test_the_docs_agree_with_the_code() -> None:
    assert reference.find_faults() == []


@pytest.fixture
def planted() -> object:
    app = typer.Typer(name="omnigraph")

    @app.callback()
    def root() -> None:
        """The program."""

    @app.command()
    def silent(count: Annotated[int, typer.Option()] = 1) -> None: ...

    group = typer.Typer(help="A group.")
    app.add_typer(group, name="branch")

    @group.command()
    def create() -> None:
        """Create a branch."""

    @group.command()
    def delete() -> None:
        """Delete a branch."""

    return get_command(app)


def test_a_command_without_help_is_seen(planted: object) -> None:
    found = list(reference.find_silence(planted))
    assert any("`omnigraph silent` has no help" in each for each in found)
    assert any("'count' has no help" in each for each in found)
    assert not any("branch" in each for each in found)


def test_a_command_that_no_page_shows_is_seen(planted: object) -> None:
    found = list(reference.find_unshown(planted, "Type `omnigraph branch create x`."))
    assert [each.split("`")[1] for each in found] == ["omnigraph silent", "omnigraph branch delete"]


def test_a_page_that_drifted_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for page in reference.REFERENCE.glob("*.md"):
        (tmp_path / page.name).write_text(page.read_text())
    monkeypatch.setattr(reference, "REFERENCE", tmp_path)
    assert list(reference.find_drift()) == []
    (tmp_path / "errors.md").write_text("# Errors\n")
    assert list(reference.find_drift()) == [
        "docs/reference/errors.md is out of date: run `make docs`."
    ]


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_names_only_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    named = {name for page in pages for name in re.findall(r"`make ([a-z-]+)", page.read_text())}
    named |= {n for p in pages for n in re.findall(r"^make ([a-z-]+)", p.read_text(), re.MULTILINE)}
    assert named - targets == set()
    assert {"demo", "test"} <= named
