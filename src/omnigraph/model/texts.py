"""Texts that are stored: what may go into a control object, a table or a name.

    check_text(message, "message", most=MESSAGE_BYTES)
    encode_object({"actor": ...})          the bytes of a control object

Guarantees: every text that passes can be written as UTF-8, read back, and printed as JSON. A text
from a command line or a file name may hold lone surrogates (bytes that were no UTF-8), which
Python carries along and no store can hold; those are refused before anything is written.
Deliberately absent: values of properties. Those are checked where rows are typed (`plan`).
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from omnigraph.errors import InvalidArgumentError

# Messages and details are in the tail of a manifest, which every publish writes again.
MESSAGE_BYTES = 64 << 10
NAME_BYTES = 1024
_SURROGATES = re.compile("[\ud800-\udfff]")


def check_text(value: object, what: str, *, most: int = MESSAGE_BYTES) -> str:
    """The value, if it is a text that can be stored; `what` names it in the error."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"The {what} is a text, not {value!r}.")
    size = len(value) if len(value) > most else len(_utf8(value, what))
    if size > most:
        raise InvalidArgumentError(
            f"The {what} is longer than {most:,} bytes.", hint="Shorten it.", most_bytes=most
        )
    if "\0" in value:
        raise InvalidArgumentError(f"The {what} holds a NUL character.", hint="Leave it out.")
    return value


def check_line(value: object, what: str, *, most: int = NAME_BYTES) -> str:
    """The same for a text that names something: one line, without control characters."""
    text = check_text(value, what, most=most)
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise InvalidArgumentError(
            f"The {what} {text!r} holds control characters.", hint="Use one line of plain text."
        )
    return text


def encode_object(value: Any) -> bytes:
    """A control object as JSON. Raises InvalidArgumentError if it holds a text that cannot be
    stored, wherever in it."""
    return encode_payload(value).encode()


def encode_payload(value: Any) -> str:
    """The same as a text, for a row of a manifest."""
    encoded = json.dumps(value, separators=(",", ":"), sort_keys=True)
    # Only a text with surrogates is written with this escape: pairs for characters beyond the
    # basic plane, and lone ones. So most objects are not looked at twice.
    if "\\ud" in encoded:
        _refuse_surrogates(value)
    return encoded


def _refuse_surrogates(value: Any, where: str = "value") -> None:
    if isinstance(value, str):
        _utf8(value, where)
    elif isinstance(value, dict):
        for key, item in value.items():
            _utf8(str(key), where)
            _refuse_surrogates(item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_surrogates(item, where)


def _utf8(value: str, what: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"The {what} is not valid Unicode: there is a lone surrogate at character "
            f"{error.start + 1} of {_excerpt(value, error.start)!a}.",
            hint="Give it as UTF-8.",
        ) from None


def _excerpt(value: str, at: int) -> str:
    return value[max(0, at - 20) : at + 20]


def readable(value: str) -> str:
    """A stored text with U+FFFD in the place of what is not Unicode, to be shown to people."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", value)
    return value
