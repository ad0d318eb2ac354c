"""Read and check annotations of types and properties.

What it does: turns what the language knows (`@embed`, `@default`, `@rename_from`, `@card`,
`@description`, `@instruction`) into typed values, sorts out constraints, keeps the rest.
Guarantees: unknown annotations survive unchanged, in a canonical order.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.diagnostics import Report, closest
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.constraints import CONSTRAINTS, Use, read_use
from omnigraph.lang.pg.defaults import read_default
from omnigraph.lang.pg.shape import PropertyShape, Rename
from omnigraph.model.catalog import Annotation, Cardinality, Constant, Embed
from omnigraph.model.types import Kind, ValueType

_TEXTS = ("description", "instruction")
_TYPED = ("default", "embed", "rename_from")
_KNOWN = (*CONSTRAINTS, *_TEXTS, *_TYPED, "card")
_MAX_CARDINALITY = 2**32 - 1


def read_property(
    prop: ast.Property, type_: ValueType, owner: ast.Declaration, report: Report
) -> tuple[PropertyShape, list[Use]]:
    """The shape of a property, and the constraints that follow it."""
    label = f"{owner.name.text}.{prop.name.text}"
    shape = PropertyShape(prop.name.text, type_, span=prop.name.span)
    uses: list[Use] = []
    if not prop.annotations:
        return shape, uses
    kept: list[Annotation] = []
    _check_repeats(prop.annotations, label, report)
    for annotation in prop.annotations:
        name = annotation.name
        if name in CONSTRAINTS:
            use = read_use(annotation, prop.name, report)
            if use is not None:
                uses.append(use)
        elif name in ("card", "instruction"):
            _misplaced(annotation, report)
        elif name == "embed":
            shape.embed = _embed(annotation, type_, owner, label, report)
        elif name == "rename_from":
            shape.rename = _rename(annotation, report)
        elif name == "default":
            shape.default, shape.has_default = _default(annotation, type_, report)
        else:
            kept.extend(_keep(annotation, report))
    shape.annotations = canonical(kept)
    return shape, uses


def read_type(
    declaration: ast.Declaration, report: Report
) -> tuple[tuple[Annotation, ...], Rename | None, Cardinality]:
    """The annotations of a type that are kept, its old name, and (for edges) its cardinality."""
    kept: list[Annotation] = []
    rename: Rename | None = None
    cardinality = Cardinality()
    _check_repeats(declaration.annotations, declaration.name.text, report)
    for annotation in declaration.annotations:
        name = annotation.name
        if name in CONSTRAINTS:
            message = f"`@{name}` cannot stand on a type as a whole"
            hint = f"write it after a property or in the body, as `@{name}(…)`"
            report.add("S302", message, annotation.span, hint=hint)
        elif name == "card" and isinstance(declaration, ast.Edge):
            cardinality = _cardinality(annotation, report)
        elif name in ("embed", "default", "card"):
            _misplaced(annotation, report)
        elif name == "rename_from":
            rename = _rename(annotation, report)
        else:
            kept.extend(_keep(annotation, report))
    return canonical(kept), rename, cardinality


def canonical(annotations: Sequence[Annotation]) -> tuple[Annotation, ...]:
    """Annotations in an order that does not depend on how they were written, each once."""
    # By spelling, because 1, 1.0 and true are equal to Python and not to a reader.
    spelled = {repr(a): a for a in annotations}
    return tuple(spelled[text] for text in sorted(spelled))


def _check_repeats(annotations: Sequence[ast.Annotation], label: str, report: Report) -> None:
    seen: set[str] = set()
    for annotation in annotations:
        name = annotation.name
        if name in seen and (name in _TEXTS or name in _TYPED or name == "card"):
            report.add("S401", f"`{label}` has `@{name}` twice", annotation.span)
        seen.add(name)


def _misplaced(annotation: ast.Annotation, report: Report) -> None:
    places = {
        "card": "after the ends of an edge",
        "instruction": "on a type",
        "embed": "after a vector property",
        "default": "after a property",
    }
    place = places[annotation.name]
    code = "S302" if annotation.name == "card" else "S403"
    report.add(code, f"`@{annotation.name}` can only stand {place}", annotation.span)


def _keep(annotation: ast.Annotation, report: Report) -> list[Annotation]:
    """An annotation that the compiler only carries along."""
    if annotation.name in _TEXTS and not _has_text(annotation):
        message = f"`@{annotation.name}` needs a text"
        hint = f'write `@{annotation.name}("…")`'
        report.add("S402", message, annotation.span, hint=hint)
        return []
    if annotation.name not in _KNOWN and (near := _resembles(annotation.name)):
        message = f"`@{annotation.name}` has no meaning to the compiler and is only kept"
        report.add("S903", message, annotation.span, severity="warning", hint=near)
    positional = tuple(_constant(a) for a in annotation.arguments if a.name is None)
    named = tuple((a.name, _constant(a)) for a in annotation.arguments if a.name is not None)
    if any(isinstance(a.value, ast.Bounds) for a in annotation.arguments):
        message = f"`@{annotation.name}` cannot take a range"
        report.add("S402", message, annotation.span)
    return [Annotation(annotation.name, positional, tuple(sorted(dict(named).items())))]


def _has_text(annotation: ast.Annotation) -> bool:
    first = annotation.arguments[0] if annotation.arguments else None
    if first is None or first.name is not None:
        return False
    return bool(str(_constant(first)).strip())


def _resembles(name: str) -> str | None:
    # Only near misses: annotations of one's own are welcome.
    from difflib import SequenceMatcher

    near = [k for k in _KNOWN if SequenceMatcher(None, name.lower(), k).ratio() >= 0.8]
    found = closest(name, near)
    return f"did you mean `@{found}`?" if found else None


def _constant(argument: ast.Argument) -> Constant:
    value = argument.value
    if isinstance(value, ast.Word):
        return value.text
    return None if isinstance(value, ast.Bounds) else value


def _only_argument(annotation: ast.Annotation) -> ast.Argument | None:
    arguments = annotation.arguments
    return arguments[0] if len(arguments) == 1 and arguments[0].name is None else None


def _rename(annotation: ast.Annotation, report: Report) -> Rename | None:
    argument = _only_argument(annotation)
    old = "" if argument is None else _constant(argument)
    if isinstance(old, str) and old.strip():
        return Rename(old, annotation.span)
    message = "`@rename_from` needs the old name and nothing else"
    report.add("S402", message, annotation.span, hint='write `@rename_from("old_name")`')
    return None


def _default(annotation: ast.Annotation, type_: ValueType, report: Report) -> tuple[Constant, bool]:
    argument = _only_argument(annotation)
    if argument is None:
        report.add("S402", "`@default` needs one value", annotation.span)
        return None, False
    value = read_default(type_, argument, report)
    return value, value is not None


def _embed(
    annotation: ast.Annotation,
    type_: ValueType,
    owner: ast.Declaration,
    label: str,
    report: Report,
) -> Embed | None:
    if isinstance(owner, ast.Edge) or type_.kind is not Kind.VECTOR:
        where = "edges" if isinstance(owner, ast.Edge) else f"`{label}`, which is no vector"
        report.add("S403", f"`@embed` cannot stand on {where}", annotation.span)
        return None
    source: Constant = None
    model: str | None = None
    for position, argument in enumerate(annotation.arguments):
        value = _constant(argument)
        if argument.name is None and position == 0:
            source = value
        elif argument.name == "model" and isinstance(value, str):
            model = value
        else:
            what = f"`{argument.name}`" if argument.name else "a second argument"
            message = f"`@embed` does not know {what}"
            report.add("S405", message, argument.span, hint="it takes a source and `model`")
    if isinstance(source, str) and source.strip():
        return Embed(source, model)
    message = "`@embed` needs the property whose text is embedded"
    report.add("S402", message, annotation.span, hint='write `@embed("text")`')
    return None


def _cardinality(annotation: ast.Annotation, report: Report) -> Cardinality:
    argument = _only_argument(annotation)
    bounds = None if argument is None else argument.value
    if not isinstance(bounds, ast.Bounds) or not _are_counts(bounds):
        message = "`@card` needs how few and how many edges may leave a node"
        report.add("S306", message, annotation.span, hint="write `@card(0..1)` or `@card(1..)`")
        return Cardinality()
    low, high = int(bounds.minimum or 0), bounds.maximum
    if high is not None and low > high:
        message = f"the cardinality starts at {low}, above its end {high}"
        report.add("S307", message, annotation.span, hint=f"write `@card({high}..{low})`")
        return Cardinality()
    return Cardinality(low, None if high is None else int(high))


def _are_counts(bounds: ast.Bounds) -> bool:
    ends = (bounds.minimum, bounds.maximum)
    return all(
        end is None or (isinstance(end, int) and 0 <= end <= _MAX_CARDINALITY) for end in ends
    )
