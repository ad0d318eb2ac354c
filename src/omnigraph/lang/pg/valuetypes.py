"""Resolve a written type to a value type."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Report, offer
from omnigraph.lang.pg import ast
from omnigraph.model.types import SCALAR_KINDS, Kind, ValueType, enum_of, list_of, scalar, vector

_SCALARS = {str(kind): kind for kind in SCALAR_KINDS}
_SPELLINGS = (*_SCALARS, "Vector", "enum")
# Names from other languages that people try first.
_FOREIGN = {
    "int": "I64",
    "integer": "I64",
    "long": "I64",
    "float": "F64",
    "double": "F64",
    "text": "String",
    "varchar": "String",
    "boolean": "Bool",
    "timestamp": "DateTime",
    "bytes": "Blob",
    "binary": "Blob",
}


def value_type(ref: ast.TypeRef, report: Report) -> ValueType | None:
    """The value type of a written type; nothing when there is none, which is then reported."""
    if ref.name == "enum":
        return None if ref.is_list else _enum(ref, report)
    if ref.name == "Vector":
        if ref.is_list or ref.dim is None:
            return None  # the parser has reported it
        return vector(ref.dim, nullable=ref.nullable)
    kind = _SCALARS.get(ref.name)
    if kind is None:
        hint = offer(_FOREIGN.get(ref.name.lower(), ref.name), _SPELLINGS)
        if ref.name.lower() in _FOREIGN:
            hint = f"did you mean `{_FOREIGN[ref.name.lower()]}`?"
        report.add("S201", f"there is no type `{ref.name}`", ref.span, hint=hint)
        return None
    if not ref.is_list:
        return scalar(kind, nullable=ref.nullable)
    if kind is Kind.BLOB:
        report.add("S203", "a list of `Blob` is not supported", ref.span)
        return None
    return list_of(kind, nullable=ref.nullable)


def _enum(ref: ast.TypeRef, report: Report) -> ValueType | None:
    seen: set[str] = set()
    for value in ref.values:
        if value.text in seen:
            report.add("S204", f"the enum lists `{value.text}` twice", value.span)
        seen.add(value.text)
    return enum_of(tuple(seen), nullable=ref.nullable) if seen else None
