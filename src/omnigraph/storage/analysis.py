"""The tokenizer settings of all text indexes.

Every option is spelled out, also where it is Lance's default: a match must not change its meaning
because a release of Lance chose other defaults.

An index holds stems alone. A word of a fuzzy query is compared with them twice: as it was typed
(without case and accents), and as its own stem. Either may be nearer to what was meant: `harness`
is held as `har`, which is four edits away from the word.

The index on disk and the scratch index of unindexed rows are built alike; the terms of a fuzzy
query include every term that an exact search for the same words looks for.
"""

from __future__ import annotations

from typing import Any, Final

import lance

TEXT_INDEX_OPTIONS: Final[dict[str, Any]] = {
    "base_tokenizer": "simple",  # words, split at white space and punctuation
    "language": "English",
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "ascii_folding": True,
    "with_position": True,  # for phrases
}
_ANALYSIS: Final = {k: v for k, v in TEXT_INDEX_OPTIONS.items() if k != "with_position"}


def stems(text: str) -> list[str]:
    """The terms that an index holds of a text, in order."""
    return [token.text for token in lance.tokenize(text, **_ANALYSIS)]


def fuzzy_terms(text: str) -> list[str]:
    """The terms that a fuzzy query compares with those of an index, each once."""
    words = [token.text for token in lance.tokenize(text, **{**_ANALYSIS, "stem": False})]
    return list(dict.fromkeys([*words, *stems(text)]))
