"""Check and lower the search functions: as conditions, as scores, as ranks, fused.

Guarantees: `search`, `fuzzy`, `match_text` and `bm25` keep rows where they stand as a condition
and give a score where they stand as a value; `nearest` and `rrf` always give a score.
Deliberately absent: indexes, and how a text becomes a vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph.ir import expr as ir
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check.scope import show_type
from omnigraph.model.types import I64, INTEGER_KINDS, Kind

if TYPE_CHECKING:
    from omnigraph.lang.gq.check.values import Values

TEXT_MODES: Final = {mode.value: mode for mode in ir.TextMode}
RANKINGS: Final = frozenset({"nearest", *TEXT_MODES})
FUNCTIONS: Final = RANKINGS | {"rrf", "score", "rank"}
_TEXT_CODES: Final = {"search": "T19", "fuzzy": "T19", "match_text": "T20", "bm25": "T20"}
_DEFAULT_K: Final = 60

Ranking: TypeAlias = ir.VectorScore | ir.TextScore


def lower_search(values: Values, node: ast.Call) -> ir.Expr | None:
    name = node.name.text
    if name == "rrf":
        return _fuse(values, node)
    if name in ("score", "rank"):
        return _score_or_rank(values, node)
    return _ranking(values, node)


def _ranking(values: Values, node: ast.Call) -> Ranking | None:
    if node.name.text == "nearest":
        return _nearest(values, node)
    found = _text_arguments(values, node)
    return None if found is None else ir.TextScore(TEXT_MODES[node.name.text], *found)


def text_match(values: Values, node: ast.Call) -> ir.TextMatch | None:
    """A text function as a condition."""
    found = _text_arguments(values, node)
    return None if found is None else ir.TextMatch(TEXT_MODES[node.name.text], *found)


def _text_arguments(
    values: Values, node: ast.Call
) -> tuple[ir.Property, ir.Expr, ir.Expr | None] | None:
    name = node.name.text
    code = _TEXT_CODES[name]
    most = 3 if name == "fuzzy" else 2
    if not 2 <= len(node.args) <= most:
        wanted = "two or three arguments" if most == 3 else "two arguments"
        return values.error(code, f"`{name}` takes {wanted}: a property and a text", node.span)
    field = _field(values, node, code)
    query = values.lower(node.args[1])
    edits = values.lower(node.args[2]) if len(node.args) == 3 else None
    if field is None or query is None or (len(node.args) == 3 and edits is None):
        return None
    if field.type.kind is not Kind.STRING:
        message = f"`{name}` searches a String property, got {field.type}"
        return values.error(code, message, node.args[0].span)
    if query.type.kind is not Kind.STRING:
        message = f"`{name}` looks for a String, got {show_type(query.type)}"
        return values.error(code, message, node.args[1].span)
    if edits is not None and edits.type.kind not in INTEGER_KINDS:
        message = f"the number of edits must be an integer, got {show_type(edits.type)}"
        return values.error(code, message, node.args[2].span)
    return field, query, edits


def _field(values: Values, node: ast.Call, code: str) -> ir.Property | None:
    field = node.args[0]
    name = node.name.text
    if not isinstance(field, ast.Property):
        message = f"the first argument of `{name}` is a property, such as `$x.title`"
        return values.error(code, message, field.span)
    return values.searched(field, code, name)


def _nearest(values: Values, node: ast.Call) -> ir.VectorScore | None:
    if len(node.args) != 2:
        message = "`nearest` takes two arguments: a vector property and what to be near to"
        return values.error("T15", message, node.span)
    field = _field(values, node, "T15")
    query = values.lower(node.args[1])
    if field is None or query is None:
        return None
    if field.type.kind is not Kind.VECTOR:
        message = f"`nearest` needs a Vector property, got {field.type}"
        return values.error("T15", message, node.args[0].span)
    problem = _vector_problem(query, field.type.dim or 0)
    if problem is not None:
        return values.error("T15", problem, node.args[1].span)
    return ir.VectorScore(field, _as_vector(query, field))


def _vector_problem(query: ir.Expr, dim: int) -> str | None:
    type_ = query.type
    if type_.kind is Kind.STRING:
        return None  # embedded when the query runs
    if type_.kind is Kind.VECTOR:
        if type_.dim == dim:
            return None
        return f"the property is a Vector({dim}), the query a Vector({type_.dim})"
    if isinstance(query, ir.Literal) and isinstance(query.value, list):
        if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in query.value):
            return "a vector holds numbers"
        if len(query.value) == dim:
            return None
        return f"the property is a Vector({dim}), the list has {len(query.value)} items"
    return f"`nearest` needs a Vector({dim}) or a String to embed, got {show_type(type_)}"


def _as_vector(query: ir.Expr, field: ir.Property) -> ir.Expr:
    if isinstance(query, ir.Literal) and isinstance(query.value, list):
        return ir.Literal([float(x) for x in query.value], field.type.as_nullable(False))
    return query


def _fuse(values: Values, node: ast.Call) -> ir.Fuse | None:
    rankings = [arg for arg in node.args if _is_ranking(arg)]
    rest = node.args[len(rankings) :]
    if len(rankings) < 2 or len(rest) > 1 or tuple(rankings) != node.args[: len(rankings)]:
        names = ", ".join(f"`{name}`" for name in sorted(RANKINGS))
        message = "`rrf` takes two or more rankings and then, if wanted, a constant k"
        return values.error("T21", message, node.span, f"rankings are {names}")
    found = [_ranking(values, arg) for arg in rankings if isinstance(arg, ast.Call)]
    k: ir.Expr | None = ir.Literal(_DEFAULT_K, I64)
    if rest:
        k = _constant_k(values, rest[0])
    whole = tuple(each for each in found if each is not None)
    return None if k is None or len(whole) < len(found) else ir.Fuse(whole, k)


def _is_ranking(node: ast.Expr) -> bool:
    return isinstance(node, ast.Call) and node.name.text in RANKINGS


def _constant_k(values: Values, node: ast.Expr) -> ir.Expr | None:
    k = values.lower(node)
    if k is None:
        return None
    if not isinstance(k, ir.Literal | ir.Param) or k.type.kind not in INTEGER_KINDS:
        message = "the k of `rrf` must be an integer or an integer parameter"
        return values.error("T21", message, node.span)
    if isinstance(k, ir.Literal) and k.value <= 0:
        return values.error("T21", "the k of `rrf` must be greater than 0", node.span)
    return k


def _score_or_rank(values: Values, node: ast.Call) -> ir.Expr | None:
    name = node.name.text
    inner = node.args[0] if len(node.args) == 1 else None
    if not isinstance(inner, ast.Call) or inner.name.text not in RANKINGS | {"rrf"}:
        message = f"`{name}` takes one ranking"
        return values.error("T45", message, node.span, f"for example `{name}(bm25($x.title, $q))`")
    found = _fuse(values, inner) if inner.name.text == "rrf" else _ranking(values, inner)
    if found is None or name == "score":
        return found
    return ir.RankOf(found)
