"""Pieces of HTML for notebooks.

Every text is escaped; no script, no style sheet, no picture from elsewhere; colours are those of
the page around it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_CELL = "text-align:left;vertical-align:top;max-width:32em;overflow-wrap:anywhere"
_LONGEST = 300


def table(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], caption: str | None = None
) -> str:
    """Rows as a table."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{cell(row.get(c))}</td>' for c in columns) + "</tr>"
        for row in rows
    )
    told = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{told}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cell(value: Any) -> str:
    """A value in a cell; nothing for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
