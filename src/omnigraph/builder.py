"""Query builder: queries from Python values.

    from omnigraph.builder import fn, node, query, var, walk

    p, f = var("p"), var("f")
    friends = (
        query("friends", who="String")
        .match(node(p, "Person", name=var("who")), walk(p, "knows", f), f.age > 30)
        .returns(f.name, age=f.age)
        .order(f.age.desc())
        .limit(10)
    )
    graph.query(friends, params={"who": "Ada"}).rows()
    print(friends)  # as text

A built query and its text compile to the same IR.
"""

from __future__ import annotations

from omnigraph.lang.gq.drafts.clauses import Clause, node, optional, walk, without
from omnigraph.lang.gq.drafts.expressions import (
    Expr,
    Var,
    alias,
    distinct,
    fn,
    this,
    var,
    variables,
)
from omnigraph.lang.gq.drafts.queries import Built, ReadDraft, WriteDraft, mutation, query

__all__ = [
    "Built",
    "Clause",
    "Expr",
    "ReadDraft",
    "Var",
    "WriteDraft",
    "alias",
    "distinct",
    "fn",
    "mutation",
    "node",
    "optional",
    "query",
    "this",
    "var",
    "variables",
    "walk",
    "without",
]
