"""The page of promises agrees with the tests that cite them, and the check finds differences."""

from __future__ import annotations

from pathlib import Path

import promises

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "promises.md").read_text()
WORD = "ledger"  # kept apart from the ids below, which would otherwise count as citations


def test_the_page_agrees_with_the_tests() -> None:
    assert list(promises.find_mismatches(PAGE, promises.cited(ROOT / "tests"))) == []


def test_every_row_of_the_page_is_read() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    tables = sum(line.startswith("|---") for line in rows)
    assert len(list(promises.stated(PAGE))) == len(rows) - 2 * tables > 0


def test_citations_are_found_in_comments_and_docstrings(tmp_path: Path) -> None:
    file = tmp_path / "unit" / "test_a.py"
    file.parent.mkdir()
    file.write_text(f'# {WORD}: C01, C02 R03\ndef test_b():\n    """{WORD}: C01"""\n')
    places = promises.cited(tmp_path)
    assert places == {
        "C01": ["unit/test_a.py:1", "unit/test_a.py:3"],
        "C02": ["unit/test_a.py:1"],
        "R03": ["unit/test_a.py:1"],
    }


def found(state: str, *cited: str) -> list[str]:
    page = f"| id | promise | state |\n|---|---|---|\n| C01 | A promise. | {state} |\n"
    return list(promises.find_mismatches(page, {each: ["test_a.py:1"] for each in cited}))


def test_differences_are_found() -> None:
    assert found("kept", "C01") == found("partly: no server", "C01") == found("not yet") == []
    assert found("kept") == ["promises.md marks C01 as kept, but no test cites it."]
    assert found("partly: no server") == ["promises.md marks C01 as partly, but no test cites it."]
    assert found("not yet", "C01") == [
        "promises.md marks C01 as not yet kept, but test_a.py:1 cites it."
    ]
    assert found("not yet", "C99") == ["test_a.py:1 cites C99, which promises.md does not list."]
    assert "use kept" in found("soon", "C01")[0]


def test_an_id_that_is_listed_twice_is_found() -> None:
    row = "| C01 | A promise. | not yet |\n"
    assert list(promises.find_mismatches(row + row, {})) == ["promises.md lists C01 twice."]
