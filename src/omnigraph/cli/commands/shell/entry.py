"""Input of the shell: whether it is complete, and what kind of statement it is.

Pure functions; braces inside strings and comments do not count.
"""

from __future__ import annotations

import re
from typing import Any

from omnigraph.errors import InvalidArgumentError
from omnigraph.model.strictjson import read_json

NAME = "shell"  # of a query that was typed without one

_SKIPPED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|\'[^\'\n]*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
_BARE = re.compile(r"(match|with|insert|update|delete|upsert)\b")
_PAIR = re.compile(r"""([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S+)""")


def is_complete(text: str) -> bool:
    """Whether Enter ends the statement rather than its line."""
    stripped = text.strip()
    if not stripped or stripped.startswith("\\") or stripped.endswith(";"):
        return not _wants_query(stripped) or _is_balanced(stripped)
    if not _is_balanced(stripped):
        return False
    if _BARE.match(stripped):
        return _is_over(stripped)
    return not stripped.startswith("query") or "{" in stripped


def _wants_query(text: str) -> bool:
    return text.startswith(("\\explain", "\\run"))


def _is_balanced(text: str) -> bool:
    rest = _SKIPPED.sub("", text)
    return all(
        rest.count(opened) <= rest.count(closed) for opened, closed in (("{", "}"), ("(", ")"))
    ) and not rest.count('"')


def _is_over(text: str) -> bool:
    """A read without its `query` ends with what it returns, or an empty line after that."""
    if text.startswith(("insert", "delete", "update", "upsert")):
        return True
    return "return" in _SKIPPED.sub("", text)


def as_query(text: str) -> str:
    """A statement as the text of a query; what has no `query` around it gets one."""
    stripped = text.strip().removesuffix(";").rstrip()
    return f"query {NAME}() {{ {stripped} }}" if _BARE.match(stripped) else stripped


def read_arguments(text: str) -> dict[str, Any]:
    """Parameters as a JSON object, or as `name=value` with values in JSON or as plain words."""
    stripped = text.strip().removesuffix(";").strip()
    if not stripped:
        return {}
    if stripped.startswith("{"):
        return _object(stripped)
    found = {match[1]: _value(match[2]) for match in _PAIR.finditer(stripped)}
    if not found or _PAIR.sub("", stripped).strip():
        raise InvalidArgumentError(
            f"{stripped!r} are no parameters.", hint='Write n=3 city="Paris", or a JSON object.'
        )
    return found


def _object(text: str) -> dict[str, Any]:
    try:
        value = read_json(text)
    except ValueError as error:
        raise InvalidArgumentError(f"The parameters are not JSON: {error}.") from error
    assert isinstance(value, dict)  # it begins with a brace
    return value


def _value(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return text
