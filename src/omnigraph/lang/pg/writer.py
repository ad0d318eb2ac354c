"""Spell trees as text, one line per declaration head, property or constraint.

What is written reads back as an equal tree.
"""

from __future__ import annotations

from omnigraph.lang.pg import ast

INDENT = "    "
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write_schema(schema: ast.Schema) -> str:
    """A whole schema, with a blank line between declarations."""
    return "\n\n".join(write_declaration(d) for d in schema.declarations) + "\n"


def write_declaration(declaration: ast.Declaration) -> str:
    head = write_head(declaration)
    if not declaration.members:
        return head if isinstance(declaration, ast.Edge) else f"{head} {{}}"
    body = "".join(f"{INDENT}{write_member(m)}\n" for m in declaration.members)
    return f"{head} {{\n{body}}}"


def write_head(declaration: ast.Declaration) -> str:
    """Everything before the opening brace."""
    parts = [declaration.name.text]
    if isinstance(declaration, ast.Edge):
        parts = [f"{parts[0]}:", declaration.source.text, "->", declaration.target.text]
    parts += [write_annotation(a) for a in declaration.annotations]
    if isinstance(declaration, ast.Node) and declaration.implements:
        parts += ["implements", ", ".join(n.text for n in declaration.implements)]
    return " ".join([_keyword(declaration), *parts])


def write_member(member: ast.Member) -> str:
    if isinstance(member, ast.Annotation):
        return write_annotation(member)
    parts = [f"{member.name.text}:", write_type(member.type)]
    return " ".join(parts + [write_annotation(a) for a in member.annotations])


def write_type(ref: ast.TypeRef) -> str:
    text = ref.name
    if ref.name == "enum":
        text = f"enum({', '.join(v.text for v in ref.values)})"
    elif ref.name == "Vector":
        text = f"Vector({ref.dim})"
    text = f"[{text}]" if ref.is_list else text
    return f"{text}?" if ref.nullable else text


def write_annotation(annotation: ast.Annotation) -> str:
    if not annotation.arguments:
        return f"@{annotation.name}"
    return f"@{annotation.name}({', '.join(_argument(a) for a in annotation.arguments)})"


def _argument(argument: ast.Argument) -> str:
    value = write_value(argument.value)
    return value if argument.name is None else f"{argument.name}={value}"


def write_value(value: ast.Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_ESCAPES.get(c, c) for c in value) + '"'
    if isinstance(value, ast.Word):
        return value.text
    if isinstance(value, ast.Bounds):
        return f"{_bound(value.minimum)}..{_bound(value.maximum)}"
    return repr(value)


def _bound(bound: int | float | None) -> str:
    return "" if bound is None else repr(bound)


def _keyword(declaration: ast.Declaration) -> str:
    if isinstance(declaration, ast.Interface):
        return "interface"
    return "node" if isinstance(declaration, ast.Node) else "edge"
