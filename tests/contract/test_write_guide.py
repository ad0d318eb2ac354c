"""The examples of the guide to writing run, in order, as they stand."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "write.md"


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) > 5
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)  # our own page
    rows = (
        names["graph"]
        .query(  # type: ignore[attr-defined]
            "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
        )
        .rows()
    )
    assert [(row["p.name"], row["p.age"]) for row in rows] == [
        ("Ada", 38),
        ("Alan", None),
        ("Grace", None),
        ("Linus", None),
    ]
