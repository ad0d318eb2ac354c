"""Read and check constraints, wherever they are written.

What it does: a constraint may follow a property (`age: I32 @range(0..200)`) or stand in the body
and name its properties (`@range(age, 0..200)`). Both become one `Use`; a use is then checked
against the types of its properties and stored in the shape of its table.
Guarantees: what reaches a shape can be enforced on every row.
Deliberately absent: `@card`, which belongs to an edge as a whole (see `annotations`).
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang.diagnostics import Report, Span, offer
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.defaults import normal_bound
from omnigraph.lang.pg.shape import EdgeShape, NodeShape, PropertyShape, TableShape
from omnigraph.lang.regex import matches, pattern_error
from omnigraph.model.catalog import DST_COLUMN, SRC_COLUMN, Check, Range
from omnigraph.model.types import Kind, ValueType

CONSTRAINTS = ("key", "unique", "index", "range", "check")
_ON_EDGES = frozenset({"unique", "index"})
_UNKEYABLE = frozenset({Kind.LIST, Kind.VECTOR, Kind.BLOB})


@dataclass(eq=False, repr=False)
class Use:
    """One constraint on one or more properties."""

    kind: str
    names: tuple[ast.Name, ...]
    span: Span
    in_body: bool
    bounds: ast.Bounds | None = None
    pattern: str = ""


def read_use(annotation: ast.Annotation, on: ast.Name | None, report: Report) -> Use | None:
    """A constraint as written after the property `on`, or in the body when `on` is nothing."""
    use = _read(annotation, on)
    if use is None:
        _report_malformed(annotation, report)
    return use


def _read(annotation: ast.Annotation, on: ast.Name | None) -> Use | None:
    arguments = [a for a in annotation.arguments if a.name is None]
    if len(arguments) < len(annotation.arguments):
        return None
    names: tuple[ast.Name, ...]
    if on is not None:
        names = (on,)
    else:
        takes_all = annotation.name in ("key", "unique", "index")
        heads, arguments = (arguments, []) if takes_all else (arguments[:1], arguments[1:])
        names = tuple(
            ast.Name(a.value.text, a.span) for a in heads if isinstance(a.value, ast.Word)
        )
        if len(names) < max(len(heads), 1):
            return None
    use = Use(annotation.name, names, annotation.span, on is None)
    return use if _read_values(use, arguments) else None


def _read_values(use: Use, arguments: list[ast.Argument]) -> bool:
    if use.kind not in ("range", "check"):
        return not arguments
    if len(arguments) != 1:
        return False
    value = arguments[0].value
    if use.kind == "range" and isinstance(value, ast.Bounds):
        use.bounds = value
        return True
    if use.kind == "check" and isinstance(value, str):
        use.pattern = value
        return True
    return False


def _report_malformed(annotation: ast.Annotation, report: Report) -> None:
    shapes = {
        "key": "`@key` after a property, or `@key(a, b)` in the body",
        "unique": "`@unique` after a property, or `@unique(a, b)` in the body",
        "index": "`@index` after a property, or `@index(a, b)` in the body",
        "range": "`@range(0..10)` after a property, or `@range(name, 0..10)` in the body",
        "check": '`@check("…")` after a property, or `@check(name, "…")` in the body',
    }
    message = f"`@{annotation.name}` has the wrong arguments"
    report.add("S306", message, annotation.span, hint=f"write {shapes[annotation.name]}")


def check_use(use: Use, label: str, type_: ValueType, report: Report) -> bool:
    """Whether a constraint fits the type of one of its properties."""
    if problem := _misfit(use, type_):
        report.add("S303", f"`@{use.kind}` does not fit `{label}`: {problem}", use.span)
        return False
    if use.kind == "key" and type_.nullable:
        message = f"the key property `{label}` may not be null"
        report.add("S305", message, use.span, hint="remove the `?` from its type")
        return False
    if use.kind == "index" and type_.kind is Kind.LIST:
        message = f"`@index` has no effect on the list `{label}`"
        report.add("S901", message, use.span, severity="warning")
    return True


def _misfit(use: Use, type_: ValueType) -> str | None:
    kind = type_.kind
    if use.kind in ("key", "unique") and kind in _UNKEYABLE:
        return f"values of type `{type_}` cannot be compared"
    # In a body a list is taken too, and nothing is built for it: old schemas say so.
    unindexable = kind is Kind.BLOB or (kind is Kind.LIST and not use.in_body)
    if use.kind == "index" and unindexable:
        return f"values of type `{type_}` cannot be indexed"
    if use.kind == "range" and not type_.is_numeric:
        return f"a range needs numbers, and its type is `{type_}`"
    if use.kind == "check" and kind is not Kind.STRING:
        return f"a pattern needs a String, and its type is `{type_}`"
    return None


def check_values(use: Use, report: Report) -> bool:
    """Whether the bounds or the pattern of a constraint make sense by themselves."""
    if use.bounds is not None:
        low, high = use.bounds.minimum, use.bounds.maximum
        if low is not None and high is not None and low > high:
            message = f"the range starts at {low}, above its end {high}"
            report.add("S307", message, use.span, hint=f"write `{high}..{low}`")
            return False
    if use.kind == "check" and (problem := pattern_error(use.pattern)):
        report.add("S308", f"the pattern is not a regular expression: {problem}", use.span)
        return False
    return True


def add_uses(table: TableShape, uses: list[Use], broken: bool, report: Report) -> None:
    """Check every constraint of a table and store the good ones in its shape."""
    properties = {p.name: p for p in table.properties}
    _check_repeats(table, uses, report)
    for use in uses:
        if isinstance(table, EdgeShape) and use.kind not in _ON_EDGES:
            message = f"`@{use.kind}` cannot stand on an edge"
            hint = "edges take `@unique` and `@index`"
            report.add("S302", message, use.span, hint=hint)
        elif _check_members(table, use, properties, broken, report) and check_values(use, report):
            _store(table, use, properties, report)


def _check_repeats(table: TableShape, uses: list[Use], report: Report) -> None:
    seen: set[tuple[str, str]] = set()
    key: Use | None = None
    for use in uses:
        if not use.in_body:
            name = use.names[0].text
            if (use.kind, name) in seen:
                message = f"`{table.name}.{name}` has `@{use.kind}` twice"
                report.add("S309", message, use.span)
                continue
            seen.add((use.kind, name))
        if use.kind == "key" and isinstance(table, NodeShape):
            if key is not None:
                message = f"`{table.name}` has more than one `@key`"
                hint = "a key of several properties is written `@key(a, b)` in the body"
                report.add("S304", message, use.span, hint=hint)
            key = use


def _check_members(
    table: TableShape,
    use: Use,
    properties: dict[str, PropertyShape],
    broken: bool,
    report: Report,
) -> bool:
    good = True
    endpoints = {SRC_COLUMN, DST_COLUMN} if isinstance(table, EdgeShape) else set()
    for name in use.names:
        if name.text in endpoints:
            continue
        prop = properties.get(name.text)
        if prop is not None:
            label = f"{table.name}.{name.text}"
            good = check_use(use, label, prop.type, report) and good
            continue
        good = False
        if not broken:
            hint = offer(name.text, [*properties, *endpoints])
            message = f"`{table.name}` has no property `{name.text}`"
            report.add("S301", message, name.span, hint=hint)
    return good


def _store(
    table: TableShape, use: Use, properties: dict[str, PropertyShape], report: Report
) -> None:
    names = tuple(dict.fromkeys(name.text for name in use.names))
    if use.kind == "unique":
        table.uniques.append(names)
    elif use.kind == "index":
        table.indexes.append(names)
    elif isinstance(table, NodeShape):
        if use.kind == "key":
            table.key = names
        elif use.bounds is not None:
            table.ranges.append(_range(use.bounds, properties[names[0]]))
        else:
            table.checks.append(Check(names[0], use.pattern))
        _check_default(use, properties[names[0]], report)


def _range(bounds: ast.Bounds, prop: PropertyShape) -> Range:
    low = normal_bound(prop.type, bounds.minimum)
    return Range(prop.name, low, normal_bound(prop.type, bounds.maximum))


def _check_default(use: Use, prop: PropertyShape, report: Report) -> None:
    default = prop.default
    if not prop.has_default or default is None:
        return
    good = True
    if use.bounds is not None and isinstance(default, int | float):
        low, high = use.bounds.minimum, use.bounds.maximum
        good = (low is None or default >= low) and (high is None or default <= high)
    elif use.kind == "check" and isinstance(default, str):
        good = matches(use.pattern, default)
    if not good:
        message = f"the default of `{prop.name}` breaks its own `@{use.kind}`"
        report.add("S406", message, use.span)
