"""Patterns follow RE2, whichever engine looks at them."""

from __future__ import annotations

import pytest

from omnigraph.lang.regex import matches, pattern_error


@pytest.mark.parametrize(
    "pattern", ["", "^[A-Z]{3}-[0-9]+$", r"\p{Lu}+", "(?i)abc", "[[:alpha:]]+", r"a\.b", r"\z", "é"]
)
def test_good_patterns(pattern: str) -> None:
    assert pattern_error(pattern) is None


@pytest.mark.parametrize("pattern", ["[A-Z", "(", "a**", r"(a)\1", "(?=x)", "a{2,1}", "*"])
def test_bad_patterns(pattern: str) -> None:
    assert pattern_error(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b+", "abbc", True),
        ("^b", "ab", False),
        (r"\p{Lu}", "äÖ", True),
        (r"^\w+$", "ä", False),  # RE2 counts ASCII alone, Python would not
        (r"^\d+$", "12", True),
    ],
)
def test_matching(pattern: str, text: str, found: bool) -> None:
    assert matches(pattern, text) is found
