"""Control objects and manifest rows that do not hold what they should.

    with decoding("The tag 'v1'", hint="Restore it from a backup."):
        ...

Whatever is wrong with stored text (not JSON, a field missing, of another kind, absurdly deep)
becomes one `InvariantViolationError` that names the object; errors of ours pass untouched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from omnigraph.errors import InvariantViolationError
from omnigraph.model.texts import readable

WRONG = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


@contextmanager
def decoding(what: str, hint: str, **details: Any) -> Iterator[None]:
    """Run a block that takes stored text apart; `what` begins the sentence of the error."""
    try:
        yield
    except WRONG as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InvariantViolationError(
            f"{what} cannot be read: {why}.", hint=hint, **details
        ) from error


def text(value: object) -> str:
    """A text field. Raises what `decoder` knows."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    value.encode()  # half a character would only be found out when a file is named by it
    return value


def shown(value: object) -> str:
    """A text that only people read: what is not Unicode in it is replaced, and fails nothing."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return readable(value)


def shown_values(value: object) -> Any:
    """The same for every text in a JSON value."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, list):
        return [shown_values(item) for item in value]
    if isinstance(value, dict):
        return {readable(key): shown_values(item) for key, item in value.items()}
    return value


def text_or_none(value: object) -> str | None:
    return None if value is None else text(value)


def texts(value: object) -> tuple[str, ...]:
    """A field with a list of texts."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return tuple(text(item) for item in value)


def whole(value: object) -> int:
    """A field with a whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >> 63:
        raise TypeError(f"{value!r} is not an integer")
    return value


def read_fields(data: bytes | str) -> dict[str, Any]:
    """The fields of a stored object. Raises what `decoder` knows."""
    value = json.loads(data)
    if not isinstance(value, dict):
        raise TypeError("it does not hold an object")
    return value
