"""How text becomes tokens, fixed for every text index that OmniGraph builds.

Every option is spelled out, also where it is Lance's default: a match must not change its meaning
because a release of Lance chose other defaults.

Guarantees: the index on disk and the scratch index of unindexed rows are built alike.
Deliberately absent: a tokenizer of our own. Lance's is used for every row, indexed or not.
"""

from __future__ import annotations

from typing import Any, Final

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
