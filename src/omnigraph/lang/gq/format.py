"""Lay out query texts in one canonical style.

Style: four spaces; a block on one line if it holds one short thing or fits and has no comments,
otherwise one item per line; one blank line between queries; blank lines inside are kept, one at
a time; the parts after `return` in the order having, order, offset, limit.

Guarantees: the result reads as the same tree, holds every comment, and formats to itself. A
comment stays at the end of its line or above what it stood before; one from inside a line moves
above that line.
Deliberately absent: breaking long expressions.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from omnigraph.errors import QueryError
from omnigraph.lang.diagnostics import Report, Source, Span
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.printer import Printer
from omnigraph.lang.gq.syntax.lexer import Comment
from omnigraph.lang.gq.syntax.parser import Reading, read

WIDTH = 100
INDENT = "    "
_BLANK = re.compile(r"\n[ \t\r]*\n")


def format_queries(text: str, file: str | None = None) -> str:
    """The text in canonical layout. Raises `QueryError` if it cannot be read."""
    report = Report(Source(text, file))
    reading = read(report)
    report.raise_if_errors(QueryError)
    return _Layout(text, reading).run()


class _Layout:
    """Lines of output, and the comments that have not been written yet."""

    def __init__(self, text: str, reading: Reading) -> None:
        self.text = text
        self.file = reading.file
        self.comments: list[Comment] = reading.comments
        self.ends = [token.end for token in reading.tokens]
        self.tokens = reading.tokens
        self.next_comment = 0
        self.printer = Printer(text)
        self.lines: list[str] = []
        self.depth = 0
        self.last = 0  # where in the source the last thing written ends
        self.fresh = True  # at the start of a block, where blank lines are dropped

    def run(self) -> str:
        for query in self.file.queries:
            self._query(query)
        self._flush(len(self.text) + 1)
        return "\n".join(self.lines) + "\n" if self.lines else ""

    # Lines and comments ---------------------------------------------------------------------

    def _write(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)
        self.fresh = False

    def _space(self, start: int) -> None:
        """Keep one blank line where the source has some."""
        if not self.fresh and _BLANK.search(self.text, self.last, max(start, self.last)):
            self.lines.append("")

    def _flush(self, until: int, above: int | None = None) -> None:
        """Write the comments that start before an offset, each on lines of its own.

        `above` is the start of the line over which comments from inside it go.
        """
        while self.next_comment < len(self.comments):
            comment = self.comments[self.next_comment]
            if comment.start >= until:
                return
            self._space(comment.start if above is None else min(comment.start, above))
            self._write(_tidy(comment.text))
            self.last = comment.end
            self.next_comment += 1

    def _trail(self, end: int) -> None:
        """Put the comments that share the line of what was just written at its end."""
        self.last = max(self.last, end)
        while self.next_comment < len(self.comments):
            comment = self.comments[self.next_comment]
            between = self.text[end : comment.start]
            if comment.start < end or "\n" in comment.text or between.strip(" \t\r,"):
                return
            self.lines[-1] += f" {_tidy(comment.text)}"
            end = self.last = comment.end
            self.next_comment += 1

    def _line(self, span: Span, text: str) -> None:
        """One item on one line, its comments above it and at its end."""
        self._flush(span.end, above=span.start)
        self._space(span.start)
        self._write(text)
        self._trail(span.end)

    def _has_comments(self, span: Span) -> bool:
        at = self.next_comment
        while at < len(self.comments) and self.comments[at].start < span.end:
            if self.comments[at].start >= span.start:
                return True
            at += 1
        return False

    def _fits(self, span: Span, text: str) -> bool:
        width = len(INDENT) * self.depth + len(text)
        return width <= WIDTH and not self._has_comments(span)

    def _open(self, span: Span, text: str) -> None:
        self._flush(span.start)
        self._space(span.start)
        self._write(text)
        self.depth += 1
        self.fresh = True
        self.last = span.start

    def _close(self, span: Span, text: str = "}") -> None:
        self._flush(span.end)
        self.depth -= 1
        self._write(text)
        self._trail(span.end)

    # Queries --------------------------------------------------------------------------------

    def _query(self, query: ast.Query) -> None:
        if self.lines:
            self.lines.append("")
        self.fresh = True
        brace = self._brace_before(query.body.span.start)
        self._flush(brace, above=query.span.start)
        self._space(query.span.start)
        self.lines += self._head(query)
        self.depth, self.fresh, self.last = 1, True, brace
        if isinstance(query.body, ast.Read):
            for stage in query.body.stages:
                self._stage(stage)
        else:
            for statement in query.body.statements:
                self._statement(statement)
        self._close(query.span)

    def _brace_before(self, offset: int) -> int:
        return self.tokens[bisect_right(self.ends, offset) - 1].start

    def _head(self, query: ast.Query) -> list[str]:
        params = [self.printer.param(param) for param in query.params]
        head = f"query {query.name.text}({', '.join(params)})"
        if len(head) + 2 > WIDTH:
            lines = [f"query {query.name.text}(", *(f"{INDENT}{each}," for each in params), ")"]
        else:
            lines = [head]
        if not query.annotations:
            lines[-1] += " {"
            return lines
        annotations = [INDENT + self.printer.annotation(each) for each in query.annotations]
        return [*lines, *annotations, "{"]

    def _stage(self, stage: ast.Stage) -> None:
        if stage.match is not None:
            self._clauses("match", stage.match.clauses, stage.match.span)
        select = stage.select
        word = f"{select.keyword} distinct" if select.distinct else select.keyword
        self._items(word, select.items, self.printer.projection, select.span)
        if stage.having is not None:
            text = f"having {{ {self.printer.expr(stage.having.expr)} }}"
            self._line(stage.having.span, text)
        if stage.order is not None:
            self._items("order", stage.order.keys, self.printer.order_key, stage.order.span)
        for bound in (stage.offset, stage.limit):
            if bound is not None:
                self._line(bound.span, f"{bound.keyword} {self.printer.expr(bound.value)}")

    def _clauses(self, word: str, clauses: Sequence[ast.Clause], span: Span) -> None:
        texts = self.printer.clauses(clauses)
        alone = len(clauses) == 1 and not isinstance(clauses[0], ast.Negation | ast.Optional)
        one_line = f"{word} {{ {texts[0]} }}"
        if alone and self._fits(span, one_line):
            self._line(span, one_line)
            return
        self._open(span, f"{word} {{")
        for clause, text in zip(clauses, texts, strict=True):
            if isinstance(clause, ast.Negation | ast.Optional):
                inner = "not" if isinstance(clause, ast.Negation) else "optional"
                self._clauses(inner, clause.clauses, clause.span)
            else:
                self._line(clause.span, text)
        self._close(span)

    def _items(
        self,
        word: str,
        items: Sequence[ast.Projection] | Sequence[ast.OrderKey] | Sequence[ast.Field],
        show: Callable[..., str],
        span: Span,
        after: str = "",
    ) -> None:
        texts = [show(item) for item in items]
        one_line = f"{word} {{ {', '.join(texts)} }}{after}"
        if not items:
            one_line = f"{word} {{ }}{after}"
        if self._fits(span, one_line) or not items:
            self._line(span, one_line)
            return
        self._open(span, f"{word} {{")
        for item, text in zip(items, texts, strict=True):
            self._line(item.span, text if item is items[-1] else f"{text},")
        self._close(span, f"}}{after}")

    # Statements -----------------------------------------------------------------------------

    def _statement(self, node: ast.Statement) -> None:
        show = self.printer.field
        name = node.type.text
        match node:
            case ast.Insert():
                self._items(f"insert {name}", node.fields, show, node.span)
            case ast.Update():
                where = f" where {self.printer.expr(node.where)}"
                self._items(f"update {name} set", node.fields, show, node.span, where)
            case ast.Upsert():
                policy = f" on conflict {node.policy.text}"
                if node.updates:
                    policy += f" set {self.printer.fields(node.updates)}"
                self._items(f"upsert {name}", node.fields, show, node.span, policy)
            case ast.Delete():
                where = f"where {self.printer.expr(node.where)}"
                self._line(node.span, f"delete {name} {where}")


def _tidy(comment: str) -> str:
    """A comment without trailing space on any of its lines."""
    return "\n".join(line.rstrip() for line in comment.split("\n"))
