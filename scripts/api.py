"""The page about the Python API, from the source: signatures, docstrings, and what they return.

It begins with the public names of the package and follows the annotations of their methods to the
classes that callers get to see, one step. Nothing is imported: the source is read as a tree.
Names that begin with an underscore, and what has no docstring and no fields, are left out.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
PACKAGE = "omnigraph"
MAIN = "Graph"  # the class whose methods are told at length
INTRODUCTION = """# Python

`import omnigraph as og`. Every error is an `og.OmniGraphError`; see [errors](errors.md).
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def render() -> str:
    parts = [INTRODUCTION]
    told: list[tuple[str, ast.ClassDef]] = []
    for name, home in _public():
        node = _find(home, name)
        if isinstance(node, ast.ClassDef):
            told.append((home, node))  # after the functions
        elif isinstance(node, Function):
            parts.append(_function(node, f"omnigraph.{name}", "##"))
        elif node is None:
            parts += _module(f"{PACKAGE}.{name}")
    told.sort(key=lambda each: each[1].name != MAIN)
    parts += [_class(node) for _, node in told]
    parts.append("## What calls give and take\n")
    names = {node.name for _, node in told}
    seen = {found.name: found for home, node in told for found in _mentioned(home, node)}
    parts += [_class(seen[name]) for name in sorted(seen.keys() - names)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def _public() -> Iterator[tuple[str, str]]:
    """Public names with the modules that hold them; errors have a page of their own."""
    for name, home in _imports(PACKAGE).items():
        if name != "errors" and not home.endswith(".errors"):
            yield name, home


@cache
def _tree(module: str) -> ast.Module:
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


@cache
def _imports(module: str) -> dict[str, str]:
    """Names that a module takes from elsewhere in the package, and where they live."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE)
        for alias in node.names
        if node.module
    }


def _find(module: str, name: str) -> ast.stmt | None:
    """Where a name is defined: here, or where this module has it from."""
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            return node
    home = _imports(module).get(name)
    return _find(home, name) if home and home != module else None


def _module(name: str) -> list[str]:
    """A public module: the names that it exports, or else its functions."""
    doc = (ast.get_docstring(_tree(name)) or "").split("\n\nGuarantees:")[0]
    lines = [f"## `{name}`", "", _with_code(doc), ""]
    for exported in _exported(name):
        node = _find(name, exported)
        if isinstance(node, Function):
            lines.append(f"- `{_signature(node, node.name)}`{_said(node)}")
        elif isinstance(node, ast.ClassDef):
            lines.append(f"- `{exported}`: {(ast.get_docstring(node) or '').splitlines()[0]}")
    return ["\n".join(lines) + "\n"]


def _exported(module: str) -> list[str]:
    body = _tree(module).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    names = [node.name for node in body if isinstance(node, Function)]
    return [name for name in names if not name.startswith("_")]


def _with_code(doc: str) -> str:
    """Indented examples of a docstring as blocks."""
    parts = []
    for part in doc.split("\n\n"):
        is_code = all(line.startswith("    ") for line in part.splitlines())
        parts.append(f"```text\n{textwrap.dedent(part)}\n```" if is_code and part else part)
    joined = "\n\n".join(parts)
    return joined.replace("\n```\n\n```text\n", "\n\n")


def _class(node: ast.ClassDef) -> str:
    level = "##" if node.name == MAIN else "###"
    lines = [f"{level} `{node.name}`", "", _with_code(ast.get_docstring(node) or ""), ""]
    fields = [f"- `{ast.unparse(each)}`" for each in node.body if _is_field(each)]
    lines += [*fields, ""] if fields else []
    for each in node.body:
        if isinstance(each, Function) and not each.name.startswith("_"):
            if level == "##":
                lines.append(_function(each, each.name, f"{level}#"))
            else:
                lines.append(f"- `{_signature(each, each.name)}`{_said(each)}")
    return "\n".join(lines) + "\n"


def _is_field(node: ast.stmt) -> bool:
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
        return False
    return not node.target.id.startswith("_")


def _said(node: Function) -> str:
    told = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
    return f": {told}" if told else ""


def _function(node: Function, name: str, level: str) -> str:
    signature = _signature(node, name)
    if len(signature) > 96:
        signature = _wrapped(node, name)
    lines = [f"{level} `{name}`", "", "```text", signature, "```", ""]
    return "\n".join([*lines, ast.get_docstring(node) or "", ""])


def _signature(node: Function, name: str) -> str:
    if any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list):
        return f"{name}: {_returned(node)}"
    return f"{name}({', '.join(_arguments(node))}) -> {_returned(node)}"


def _wrapped(node: Function, name: str) -> str:
    return f"{name}(\n    " + ",\n    ".join(_arguments(node)) + f",\n) -> {_returned(node)}"


def _arguments(node: Function) -> list[str]:
    plain = node.args
    positional = plain.posonlyargs + plain.args
    defaults = [None] * (len(positional) - len(plain.defaults)) + list(plain.defaults)
    pairs = zip(positional, defaults, strict=True)
    said = [_argument(each, default) for each, default in pairs if each.arg not in ("self", "cls")]
    if plain.vararg:
        said.append("*" + ast.unparse(plain.vararg))
    elif plain.kwonlyargs:
        said.append("*")
    said += [
        _argument(each, default)
        for each, default in zip(plain.kwonlyargs, plain.kw_defaults, strict=True)
    ]
    return said + (["**" + ast.unparse(plain.kwarg)] if plain.kwarg else [])


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    told = ast.unparse(argument)
    return told if default is None else f"{told} = {ast.unparse(default)}"


def _returned(node: Function) -> str:
    return ast.unparse(node.returns) if node.returns else "None"


def _mentioned(home: str, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """Classes of ours in the annotations of a class's public methods."""
    for each in node.body:
        if not isinstance(each, Function) or each.name.startswith("_"):
            continue
        annotations = [argument.annotation for argument in each.args.args + each.args.kwonlyargs]
        for annotation in [*annotations, each.returns]:
            for part in ast.walk(annotation) if annotation else ():
                name = part.id if isinstance(part, ast.Name) else getattr(part, "attr", None)
                found = _find(home, name) if name else None
                if found is None and isinstance(part, ast.Attribute):
                    found = _find_in_module(home, part)
                if isinstance(found, ast.ClassDef):
                    yield found


def _find_in_module(home: str, part: ast.Attribute) -> ast.stmt | None:
    """`inspecting.CommitFilter`: a class of a module that was imported by its name."""
    module = part.value.id if isinstance(part.value, ast.Name) else ""
    package = _imports(home).get(module)
    return _find(f"{package}.{module}", part.attr) if package else None
