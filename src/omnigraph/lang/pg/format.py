"""Write a schema text in the one canonical style.

What it does: one declaration head, property or constraint per line, four blanks of indent, single
blanks between words, at most one blank line in a row.
Guarantees: formatting twice changes nothing more; the tree stays equal; every comment is kept,
either on its own line or at the end of one.
Deliberately absent: reordering. The writer's order of declarations and annotations stays.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from omnigraph.errors import SchemaError
from omnigraph.lang.diagnostics import Report, Source
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.lexer import Comment, Token, tokenize
from omnigraph.lang.pg.parser import parse_tokens
from omnigraph.lang.pg.writer import INDENT, write_head, write_member


def format_schema(text: str, file: str | None = None) -> str:
    """The text in canonical style. A text that cannot be read raises `SchemaError`."""
    report = Report(Source(text, file))
    tokens, comments = tokenize(report)
    schema = parse_tokens(tokens, report)
    report.raise_if_errors(SchemaError)
    lines = _lines(schema, tokens, comments)
    _attach(lines, comments, tokens, text)
    return _print(lines, text)


@dataclass(slots=True)
class _Line:
    """One line of output, where it comes from, and the comments that go with it."""

    text: str
    start: int
    end: int
    indent: str = ""
    opens: bool = False  # a body follows
    closes: bool = False  # a body ends here
    apart: bool = False  # a blank line belongs before it, unless it comes first
    leading: list[Comment] = field(default_factory=list)
    trailing: list[Comment] = field(default_factory=list)


def _lines(schema: ast.Schema, tokens: list[Token], comments: list[Comment]) -> list[_Line]:
    lines: list[_Line] = []
    braces = [token.start for token in tokens if token.kind == "{"]
    after_tall = False
    for declaration in schema.declarations:
        start, end = declaration.span
        brace = bisect_right(braces, start)
        opening = braces[brace] if brace < len(braces) and braces[brace] < end else None
        inside = opening is not None and any(opening < c.start < end for c in comments)
        has_body = bool(declaration.members) or inside
        head = write_head(declaration)
        # Only edges without a body may stand close together.
        tall = has_body or not isinstance(declaration, ast.Edge)
        apart = bool(lines) and (after_tall or tall)
        if opening is None or not has_body:
            closed = head if isinstance(declaration, ast.Edge) else f"{head} {{}}"
            lines.append(_Line(closed, start, end, apart=apart))
        else:
            lines.append(_Line(f"{head} {{", start, opening + 1, opens=True, apart=apart))
            for member in declaration.members:
                lines.append(_Line(write_member(member), *member.span, indent=INDENT))
            lines.append(_Line("}", end - 1, end, closes=True))
        after_tall = tall
    return lines


def _attach(lines: list[_Line], comments: list[Comment], tokens: list[Token], text: str) -> None:
    """Give every comment to a line: behind it, or above it."""
    lines.append(_Line("", len(text), len(text)))  # takes what follows the last declaration
    starts = [line.start for line in lines]
    token_ends = [token.end for token in tokens[:-1]]
    for comment in comments:
        number = bisect_right(starts, comment.start) - 1
        line = lines[number] if number >= 0 else None
        before = bisect_right(token_ends, comment.start) - 1
        same_line = before >= 0 and "\n" not in text[token_ends[before] : comment.start]
        if line is not None and comment.start < line.end:
            line.leading.append(comment)
        elif line is not None and same_line and "\n" not in comment.text:
            line.trailing.append(comment)
        else:
            lines[min(number + 1, len(lines) - 1)].leading.append(comment)


def _print(lines: list[_Line], text: str) -> str:
    out: list[str] = []
    previous_end = 0
    may_part = False  # no blank line at the top, nor right after an opening brace
    for line in lines:
        indent = INDENT if line.closes and line.leading else line.indent
        apart = line.apart
        for comment in line.leading:
            parted = apart or _is_parted(text, previous_end, comment.start)
            if may_part and parted:
                out.append("")
            out.append(indent + _comment(comment))
            previous_end, may_part, apart = comment.end, True, False
        if not line.text:
            continue
        inside = bool(line.leading) and line.leading[-1].start > line.start
        parted = apart or (not inside and _is_parted(text, previous_end, line.start))
        if may_part and parted and not line.closes:
            out.append("")
        trailing = "".join(f" {_comment(c)}" for c in line.trailing)
        out.append(f"{line.indent}{line.text}{trailing}")
        previous_end = line.trailing[-1].end if line.trailing else line.end
        may_part = not line.opens
    return "\n".join(out) + "\n" if out else ""


def _is_parted(text: str, start: int, end: int) -> bool:
    """Whether the writer left a blank line between two places."""
    return text.count("\n", start, max(start, end)) >= 2


def _comment(comment: Comment) -> str:
    return "\n".join(line.rstrip() for line in comment.text.split("\n"))
