"""Whether a text is a regular expression, and whether a text matches one.

What it does: patterns follow RE2, the dialect that Arrow runs over columns: no look-around and
no back-references, so matching takes linear time. A match may lie anywhere unless anchored.
What this module accepts, row checks and queries can run. One rule holds for `@check`, for a
constant of `matches` and for its parameter, which is tested when it is used.
"""

from __future__ import annotations

import re

# In these patterns Python and RE2 agree, so the plain ones need no Arrow at start-up. Counted
# repeats are not among them: RE2 limits their product.
_PLAIN = re.compile(
    r"(?:[A-Za-z0-9 _@%#~,:;/'\"<>=!.^$*+?|()\[\]-]|\\[dDwWsS.\\^$*+?|()\[\]{}/-])*"
)


def pattern_error(pattern: str) -> str | None:
    """Why a text is not a usable pattern; nothing when it is one."""
    if _is_plain(pattern):
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return str(error)
        return None
    return _re2_error(pattern)


def matches(pattern: str, text: str) -> bool:
    """Whether a valid pattern is found in a text."""
    if _is_plain(pattern) and text.isascii():
        return re.search(pattern, text) is not None
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.array([text]), pattern)[0].as_py())


def _is_plain(pattern: str) -> bool:
    # Groups with options, doubled classes and repeats of repeats are where the dialects part.
    odd = ("(?", "[[", "**", "++", "?+", "*+", "+*")
    return _PLAIN.fullmatch(pattern) is not None and not any(mark in pattern for mark in odd)


def _re2_error(pattern: str) -> str | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None
