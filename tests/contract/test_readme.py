"""A stranger's path: what README prints, typed into a real shell in a copy of the clone.

From their own data to a merged branch. The environment is the one that the tests run in, which
`make setup` made; everything else is as it is printed, in one shell, stopping at the first failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.docpages import ROOT, missing_lines, read_page

README = read_page(ROOT / "README.md")
WAYS = ("init", "load", "query", "branch create", "mutate", "diff", "branch merge", "commit list")


def test_the_readme_shows_the_whole_way() -> None:
    typed = "\n".join(block.text for block in README.blocks if block.runs)
    assert [way for way in WAYS if f"omnigraph {way}" not in typed] == []
    setup = [block.text.strip() for block in README.blocks if "make setup" in block.text]
    assert setup == ["make setup && . .venv/bin/activate"]


@pytest.mark.slow
def test_the_readme_runs_as_printed(tmp_path: Path) -> None:
    clone = tmp_path / "omnigraph"
    ignored = shutil.ignore_patterns(".*", "out", "__pycache__", "tests", "benchmarks")
    shutil.copytree(ROOT, clone, ignore=ignored)
    (clone / ".venv").symlink_to(ROOT / ".venv")
    script = "set -eu\n. .venv/bin/activate\n"
    shown = ""
    for block in README.blocks:
        if block.kind == "sh" and block.runs:
            script += block.text
        elif block.kind == "python" and block.runs:
            script += f"python - <<'PYTHON'\n{block.text}PYTHON\n"
        shown += block.shows or ""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=clone,
        env=os.environ | {"COLUMNS": "100", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert missing_lines(shown, done.stdout) == [], done.stdout
    assert done.stdout.endswith("'p.name': 'Grace'}]\n"), done.stdout
