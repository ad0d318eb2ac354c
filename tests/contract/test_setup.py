"""Set-up on a strange machine: one sentence says what is missing, and nothing is half done."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import setup

ROOT = Path(__file__).resolve().parents[2]


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run_setup(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", folder / "scripts" / "setup.sh"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def is_one_sentence(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith(".\n") and "Traceback" not in text


@pytest.fixture
def path_of_old_pythons(tmp_path: Path) -> str:
    """A PATH on which every Python refuses, as an old one does."""
    for name in ("python", "python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        script(tmp_path / "bin" / name, "exit 1")
    found = shutil.which("dirname")
    assert found
    (tmp_path / "bin" / "dirname").symlink_to(found)
    return str(tmp_path / "bin")


def test_an_old_python(path_of_old_pythons: str) -> None:
    done = run_setup(ROOT, PATH=path_of_old_pythons, PYTHON="")
    assert done.returncode == 1
    assert is_one_sentence(done.stderr), done.stderr
    assert "Python 3.11 or newer" in done.stderr


def test_an_old_python_that_was_asked_for(path_of_old_pythons: str) -> None:
    done = run_setup(ROOT, PYTHON=f"{path_of_old_pythons}/python3")
    assert done.returncode == 1
    assert is_one_sentence(done.stderr), done.stderr


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in ("scripts", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_no_network(clone: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_EXTRA_INDEX_URL": ""}
    done = run_setup(clone, **nowhere, PIP_FIND_LINKS="", PIP_NO_CACHE_DIR="1", HOME=str(clone))
    assert done.returncode == 1
    assert is_one_sentence(done.stderr), done.stderr
    assert "cannot be reached" in done.stderr
    assert not list((clone / ".venv").glob("*.stamp"))


def test_a_python_without_venv(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "VENV", clone / ".venv")
    monkeypatch.setattr(sys, "executable", str(script(clone / "python3", "exit 1")))
    with pytest.raises(setup.MissingError, match="install its venv module"):
        setup._create_venv()


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(setup.MissingError, match="no Java was found: install it"):
        setup.require_java()


@pytest.mark.parametrize(
    ("told", "number"),
    [('openjdk version "11.0.2" 2019-01-15', 11), ('java version "1.8.0_392"', 8)],
)
def test_an_old_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, number: int
) -> None:
    script(tmp_path / "bin" / "java", f"echo '{told}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(setup.MissingError, match=f"Java {number} was found"):
        setup.require_java()


@pytest.mark.parametrize("told", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "25"'])
def test_a_good_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    script(tmp_path / "bin" / "java", f"echo '{told}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    setup.require_java()


def test_what_is_missing_is_printed_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(group: str) -> None:
        raise setup.MissingError("Install it.")

    monkeypatch.setattr(setup, "install", refuse)
    monkeypatch.setattr(sys, "argv", ["setup.py"])
    assert setup.main() == 1
    assert capsys.readouterr().err == "Install it.\n"


def test_a_failure_that_is_not_the_network_is_quoted() -> None:
    assert "Hashes do not match" in setup._explain("...\nERROR: Hashes do not match\n\n")


def test_the_stamp_follows_lock_and_place(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "ROOT", clone)
    monkeypatch.setattr(setup, "LOCKS", clone / "requirements")
    first = setup._fingerprint("dev")
    (clone / "requirements" / "dev.txt").write_text("changed")
    assert setup._fingerprint("dev") != first


@pytest.mark.parametrize(
    "lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda p: p.name
)
def test_a_lock_pins_and_hashes_everything_and_names_no_host(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    entries = [line for line in text.splitlines() if re.match(r"[a-z0-9]", line)]
    assert entries
    assert [line for line in entries if "==" not in line] == []
    assert len(entries) <= text.count("--hash=sha256:")
