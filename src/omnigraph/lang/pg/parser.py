"""Build the tree of a schema text: a recursive-descent parser that survives errors.

What it does: reads declarations one by one; after an error it goes on at the next property or
declaration, so that one text can yield many findings.
Guarantees: always returns a tree and never raises; work is linear in the text; a tree that was
read without findings is complete.
Deliberately absent: meaning. Unknown types, wrong constraints and clashing names pass through.
"""

from __future__ import annotations

import math

from omnigraph.lang.diagnostics import Report, Span, suggest
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.lexer import END, NUMBER, STRING, VALUE, WORD, Token

KEYWORDS = ("interface", "node", "edge")
_LIST_CONSTRAINTS = frozenset({"key", "unique", "index"})
_VALUE_CONSTRAINTS = frozenset({"range", "check"})
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_MAX_NUMBER_LENGTH = 400
_WANTED = {WORD: "a name", NUMBER: "a number", STRING: "a text in quotes", VALUE: "a value"}


class _UnreadableError(Exception):
    """Internal: the current member or declaration cannot be read any further."""


def parse_tokens(tokens: list[Token], report: Report) -> ast.Schema:
    """The tree of a token list. Findings go to the report."""
    return _Parser(tokens, report).schema()


_FORMS = {
    "interface": "an interface is written `interface Name { property: Type }`",
    "node": "a node type is written `node Name { property: Type }`",
    "edge": "an edge is written `edge Name: From -> To`",
    "property": "a property is written `name: Type`, with `?` if it may be null",
    "type": "types are written `String`, `I64?`, `[String]`, `Vector(3)` or `enum(a, b)`",
    "annotation": "an annotation is written `@name` or `@name(value)`",
}


class _Parser:
    def __init__(self, tokens: list[Token], report: Report) -> None:
        self.tokens = tokens
        self.report = report
        self.at = 0
        self.current = tokens[0]
        self.broken = False
        self.last_error = -1
        # The syntax of the current construct, as a fallback hint.
        self.form = _FORMS["node"]

    # Moving through the tokens ------------------------------------------------------------

    def advance(self) -> Token:
        token = self.current
        if token.kind != END:
            self.at += 1
            self.current = self.tokens[self.at]
        return token

    def following(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def accept(self, kind: str) -> Token | None:
        return self.advance() if self.current.kind == kind else None

    def expect(self, kind: str, where: str, hint: str | None = None) -> Token:
        if self.current.kind == kind:
            return self.advance()
        wanted = _WANTED.get(kind) or f"`{kind}`"
        raise self.unexpected(f"expected {wanted} {where}", hint)

    def unexpected(self, message: str, hint: str | None = None) -> _UnreadableError:
        token = self.current
        found = "the text ends" if token.kind == END else f"found `{token.text[:40]}`"
        self.error("S001", f"{message}, but {found}", token.span, hint or self.form)
        return _UnreadableError()

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.broken = True
        # A second finding at the same place only tells that the first was not understood.
        if span.start != self.last_error:
            self.report.add(code, message, span, hint=hint)
        self.last_error = span.start

    def starts_declaration(self) -> bool:
        return self.current.text in KEYWORDS and self.following().kind == WORD

    def starts_property(self) -> bool:
        return self.current.kind == WORD and self.following().kind == ":"

    # Declarations -------------------------------------------------------------------------

    def schema(self) -> ast.Schema:
        declarations: list[ast.Declaration] = []
        outside = False
        while self.current.kind != END and not self.report.full:
            if self.current.text in KEYWORDS:
                declarations.append(self.declaration())
            else:
                outside = True
                self.skip_to_declaration()
        return ast.Schema(tuple(declarations), broken=outside)

    def skip_to_declaration(self) -> None:
        token = self.current
        hint = suggest(token.text, KEYWORDS) if token.kind == WORD else None
        self.form = _FORMS["node"]
        self.unexpected("expected `interface`, `node` or `edge`", hint)
        self.advance()
        while self.current.kind != END and not self.starts_declaration():
            self.advance()

    def declaration(self) -> ast.Declaration:
        self.broken = False
        keyword = self.advance()
        self.form = _FORMS[keyword.text]
        name = self.type_name(f"after `{keyword.text}`")
        if keyword.text == "interface":
            declaration: ast.Declaration = ast.Interface(name)
        elif keyword.text == "node":
            declaration = ast.Node(name)
        else:
            declaration = ast.Edge(name)
        try:
            self.head(declaration)
        except _UnreadableError:
            self.skip_to_body()
        if self.current.kind == "{":
            declaration.members = self.body()
        elif not isinstance(declaration, ast.Edge) and not self.broken:
            self.unexpected(f"expected `{{` after `{keyword.text} {name.text}`")
        declaration.span = Span(keyword.start, self.tokens[max(self.at - 1, 0)].end)
        declaration.broken = self.broken
        return declaration

    def head(self, declaration: ast.Declaration) -> None:
        """Everything between the name and the body."""
        if isinstance(declaration, ast.Edge):
            self.expect(":", "after the edge name")
            declaration.source = self.type_name("as the source of the edge")
            self.expect("->", "between the ends of the edge")
            declaration.target = self.type_name("as the target of the edge")
        annotations: list[ast.Annotation] = []
        while True:
            if self.current.kind == "@":
                annotations.append(self.annotation())
            elif self.current.text == "implements" and isinstance(declaration, ast.Node):
                declaration.implements += self.implements()
            else:
                break
        declaration.annotations = tuple(annotations)

    def implements(self) -> tuple[ast.Name, ...]:
        self.advance()
        names = [self.type_name("after `implements`")]
        while self.accept(","):
            names.append(self.type_name("after the comma"))
        return tuple(names)

    def type_name(self, where: str) -> ast.Name:
        token = self.current
        if token.kind != WORD:
            self.unexpected(f"expected a type name {where}")
            return ast.Name("", Span(token.start, token.start))
        self.advance()
        if not token.text[0].isupper():
            hint = f"write `{token.text.lstrip('_').capitalize() or 'Name'}`"
            message = f"type name `{token.text}` must start with a capital letter"
            self.error("S101", message, token.span, hint)
        return ast.Name(token.text, token.span)

    def skip_to_body(self) -> None:
        while self.current.kind not in (END, "{") and not self.starts_declaration():
            self.advance()

    # Bodies -------------------------------------------------------------------------------

    def body(self) -> tuple[ast.Member, ...]:
        opening = self.advance()
        members: list[ast.Member] = []
        while self.current.kind != "}":
            if self.current.kind == END or self.starts_declaration():
                self.error("S006", "the body is not closed", opening.span, "add a closing `}`")
                return tuple(members)
            start = self.at
            try:
                self.member(members)
            except _UnreadableError:
                self.skip_to_member(start)
        self.advance()
        return tuple(members)

    def member(self, members: list[ast.Member]) -> None:
        if self.current.kind == "@":
            annotation = self.annotation()
            if _is_constraint(annotation):
                members.append(annotation)
            else:
                self.stray_annotation(annotation)
        elif self.current.kind == WORD:
            self.property(members)
        else:
            comma = "properties need no separator; remove the comma"
            fix = comma if self.current.kind == "," else _FORMS["property"]
            raise self.unexpected("expected a property or a constraint", fix)

    def stray_annotation(self, annotation: ast.Annotation) -> None:
        name = annotation.name
        known = name in _LIST_CONSTRAINTS | _VALUE_CONSTRAINTS
        hint = f"a constraint in the body names its properties: `@{name}(name)`"
        if not known:
            hint = "write it behind the property or the type that it is about"
        self.error("S001", f"`@{name}` must follow a property", annotation.span, hint)

    def property(self, members: list[ast.Member]) -> None:
        self.form = _FORMS["property"]
        name = self.property_name()
        self.expect(":", f"after the property name `{name.text}`")
        type_ref = self.type_ref()
        annotations: list[ast.Annotation] = []
        constraints: list[ast.Annotation] = []
        while self.current.kind == "@":
            annotation = self.annotation()
            # `name: String @unique(a, b)` states a constraint of the body, not of the property.
            (constraints if _is_constraint(annotation) else annotations).append(annotation)
        span = Span(name.span.start, (annotations[-1] if annotations else type_ref).span.end)
        members.append(ast.Property(name, type_ref, tuple(annotations), span))
        members.extend(constraints)

    def property_name(self) -> ast.Name:
        token = self.advance()
        if token.text[0].isupper():
            hint = f"write `{token.text[0].lower()}{token.text[1:]}`"
            message = f"property name `{token.text}` must start with a small letter or `_`"
            self.error("S102", message, token.span, hint)
        return ast.Name(token.text, token.span)

    def skip_to_member(self, start: int) -> None:
        """Go on to what looks like the next member, past the one that began at `start`."""
        while self.current.kind not in (END, "}"):
            if self.at > start and (self.current.kind == "@" or self.starts_property()):
                return
            if self.starts_declaration():
                return
            self.advance()

    # Types --------------------------------------------------------------------------------

    def type_ref(self) -> ast.TypeRef:
        start = self.current.start
        if self.current.kind == "[":
            ref = self.list_type()
        elif self.current.kind == WORD and not self.starts_property():
            ref = self.plain_type()
        else:
            raise self.unexpected("expected a type", _FORMS["type"])
        if self.accept("?"):
            ref.nullable = True
        ref.span = Span(start, self.tokens[self.at - 1].end)
        return ref

    def list_type(self) -> ast.TypeRef:
        opening = self.advance()
        if self.current.kind != WORD:
            hint = "a list holds scalars, as in `[String]`"
            raise self.unexpected("expected the type of the list's items", hint)
        item = self.plain_type()
        if mark := self.accept("?"):
            self.error("S203", "list items cannot be optional", mark.span, "remove the `?`")
        closing = self.expect("]", "after the type of the list's items")
        if item.name in ("enum", "Vector"):
            span = Span(opening.start, closing.end)
            message = f"a list of `{item.name}` is not supported"
            self.error("S203", message, span, "a list holds scalars, as in `[String]`")
        return ast.TypeRef(item.name, is_list=True)

    def plain_type(self) -> ast.TypeRef:
        token = self.advance()
        if token.text == "enum":
            return ast.TypeRef("enum", values=self.enum_values())
        if token.text == "Vector":
            return ast.TypeRef("Vector", dim=self.dimension())
        return ast.TypeRef(token.text)

    def enum_values(self) -> tuple[ast.Name, ...]:
        self.expect("(", "after `enum`", "an enum is written `enum(open, closed)`")
        if closing := self.accept(")"):
            self.error("S205", "an enum needs at least one value", closing.span)
            return ()
        values: list[ast.Name] = []
        while True:
            hint = "values are letters, digits, `_` and `-`, without quotes"
            token = self.expect(VALUE, "in the enum", hint)
            values.append(ast.Name(token.text, token.span))
            if not self.accept(","):
                break
        self.expect(")", "after the enum's values")
        return tuple(values)

    def dimension(self) -> int | None:
        self.expect("(", "after `Vector`", "a vector is written with its length: `Vector(768)`")
        token = self.expect(NUMBER, "as the length of the vector")
        self.expect(")", "after the length of the vector")
        value = self.number(token)
        if isinstance(value, int) and 1 <= value <= 2**31 - 1:
            return value
        message = f"a vector's length is a whole number from 1 to {2**31 - 1}"
        self.error("S202", message, token.span)
        return None

    # Annotations --------------------------------------------------------------------------

    def annotation(self) -> ast.Annotation:
        start = self.advance().start
        self.form = _FORMS["annotation"]
        name = self.expect(WORD, "after `@`")
        arguments: tuple[ast.Argument, ...] = ()
        if self.accept("("):
            arguments = self.arguments()
        end = self.tokens[self.at - 1].end
        return ast.Annotation(name.text, arguments, Span(start, end))

    def arguments(self) -> tuple[ast.Argument, ...]:
        if self.accept(")"):
            return ()
        found = [self.argument()]
        while self.accept(","):
            found.append(self.argument())
        self.expect(")", "after the arguments")
        return tuple(found)

    def argument(self) -> ast.Argument:
        token = self.current
        if token.kind == WORD and self.following().kind == "=":
            self.advance()
            self.advance()
            value = self.value()
            return ast.Argument(value, token.text, Span(token.start, self.tokens[self.at - 1].end))
        value = self.value()
        return ast.Argument(value, None, Span(token.start, self.tokens[self.at - 1].end))

    def value(self) -> ast.Value:
        token = self.current
        if token.kind == STRING:
            return self.string(self.advance())
        if token.kind == WORD:
            self.advance()
            return token.text == "true" if token.text in ("true", "false") else ast.Word(token.text)
        if token.kind == NUMBER:
            number = self.number(self.advance())
            return ast.Bounds(number, self.upper_bound()) if self.accept("..") else number
        if self.accept(".."):
            token = self.expect(NUMBER, "after `..`")
            return ast.Bounds(None, self.number(token))
        raise self.unexpected("expected a value")

    def upper_bound(self) -> int | float | None:
        if self.current.kind == NUMBER:
            return self.number(self.advance())
        self.accept("*")  # `1..*` and `1..` mean the same
        return None

    def number(self, token: Token) -> int | float:
        if len(token.text) <= _MAX_NUMBER_LENGTH:
            if token.text.lstrip("-").isdigit():
                return int(token.text)
            value = float(token.text)
            if math.isfinite(value):
                return value
        self.error("S007", f"the number `{token.text[:20]}` is too large", token.span)
        return 0

    def string(self, token: Token) -> str:
        body = token.text[1:-1]
        if "\\" not in body:
            return body
        parts: list[str] = []
        at = 0
        while (slash := body.find("\\", at)) >= 0:
            parts.append(body[at:slash])
            escaped = body[slash + 1]
            if escaped not in _ESCAPES:
                place = token.start + 1 + slash
                hint = r"use one of `\"`, `\\`, `\n`, `\r`, `\t`"
                message = (
                    f"`\\{escaped}` is not an escape" if escaped.isprintable() else "bad escape"
                )
                self.error("S005", message, Span(place, place + 2), hint)
            parts.append(_ESCAPES.get(escaped, escaped))
            at = slash + 2
        return "".join(parts) + body[at:]


def _is_constraint(annotation: ast.Annotation) -> bool:
    """Whether an annotation with arguments names its properties, as constraints of a body do."""
    if not annotation.arguments:
        return False
    if annotation.name in _LIST_CONSTRAINTS:
        return True
    first = annotation.arguments[0]
    return annotation.name in _VALUE_CONSTRAINTS and isinstance(first.value, ast.Word)
