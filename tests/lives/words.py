"""Which texts a search finds: the documented analysis over a small vocabulary with known stems."""

from __future__ import annotations

import re

from tests.lives.values import STEMS, STOPS


def surface(text: str) -> list[str]:
    """Words as they are written, in lower case."""
    return [word.lower() for word in re.findall(r"[^\W_]+", text)]


def stems(text: str) -> list[str | None]:
    """Stems in order; None in the place of a common word."""
    return [None if word in STOPS else STEMS.get(word, word) for word in surface(text)]


def finds_any(text: str | None, asked: str) -> bool:
    if text is None:
        return False
    wanted = {stem for stem in stems(asked) if stem}
    return any(stem in wanted for stem in stems(text) if stem)


def finds_phrase(text: str | None, asked: str) -> bool:
    """All words in their places; a common word counts only by the place it takes."""
    if text is None:
        return False
    wanted = stems(asked)
    while wanted and wanted[0] is None:
        wanted.pop(0)
    while wanted and wanted[-1] is None:
        wanted.pop()
    if not wanted:
        return False
    held = stems(text)
    starts = range(len(held) - len(wanted) + 1)
    return any(
        all(w is None or w == held[start + n] for n, w in enumerate(wanted)) for start in starts
    )


def distance(left: str, right: str) -> int:
    """Edits between two words: insertions, deletions, substitutions."""
    before = list(range(len(right) + 1))
    for n, a in enumerate(left, 1):
        now = [n]
        for m, b in enumerate(right, 1):
            now.append(min(before[m] + 1, now[m - 1] + 1, before[m - 1] + (a != b)))
        before = now
    return before[-1]


def may_find_fuzzily(text: str | None, asked: str, edits: int) -> bool:
    """Whether any word, as written or as stem, is within the edits of one that is asked for."""
    if text is None:
        return False
    held = {*surface(text), *(stem for stem in stems(text) if stem)}
    wanted = {word for word in surface(asked) if word not in STOPS}
    wanted |= {stem for stem in stems(asked) if stem}
    return any(distance(a, b) <= edits for a in held for b in wanted)
