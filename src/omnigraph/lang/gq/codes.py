"""Every code that the query language can answer with, and what it means.

A published code never changes its meaning; no code is used that is not listed here.
"""

from __future__ import annotations

ERRORS: dict[str, str] = {
    # Text that cannot be read.
    "Q000": "something else was expected here",
    "Q001": "a query that mixes deletes with inserts or updates",
    "Q002": "an annotation that is written twice",
    "Q003": "an annotation that queries do not know",
    "Q004": "a number that is too large",
    "Q005": "expressions or blocks that nest too deeply",
    "Q006": "a query name that the text does not hold, or no name where it holds several",
    # Patterns.
    "T1": "a node type or interface that does not exist",
    "T2": "a property map that names a property the type does not have",
    "T3": "a value that does not fit the property",
    "T4": "an edge that does not exist",
    "T5": "an end of an edge that has the wrong type",
    "T6": "a property that the variable does not have, or of a variable that is not bound",
    "T7": "values that cannot be compared or assigned to each other",
    # Results.
    "T8": "an aggregate over a type that it cannot work on",
    "T9": "a value outside the groups of an aggregate, or a `not` without an outer variable",
    # Writes.
    "T10": "a write to a type that does not exist, or one that sets nothing",
    "T11": "a write that names a property the type does not have or cannot filter by",
    "T12": "an insert without a required property or end",
    "T13": "a property that is set twice",
    "T14": "a variable in a write that is not a parameter",
    # Paths and search.
    "T15": "hop bounds in the wrong order, or arguments that `nearest` cannot use",
    "T16": "an update of an edge",
    "T17": "an order by `nearest` without a limit",
    "T19": "arguments that `search` or `fuzzy` cannot use",
    "T20": "arguments that `match_text` or `bm25` cannot use",
    "T21": "arguments that `rrf` cannot use, or an order by it without a limit",
    "T22": "an undirected walk over an edge between different types",
    "T23": "an edge variable where only a node can stand",
    "T24": "a blob as a value",
    # Names.
    "T25": "a variable that is not bound here",
    "T26": "a name that is taken",
    "T27": "a parameter with a reserved or repeated name, or of an unknown type",
    # Expressions.
    "T28": "a list whose items do not share a type, or are not constants",
    "T29": "a condition that is neither true nor false",
    "T30": "arithmetic on something that is not a number",
    "T31": "a function that does not exist, or with the wrong arguments",
    "T32": "an aggregate in a place where rows are not grouped",
    "T33": "an alias that does not exist, or is given twice",
    "T34": "a value handed on by `with` that has no name",
    "T35": "a property that only some of the possible types have",
    "T36": "a hop count or `shortest` together with an edge variable",
    "T37": "a limit or offset that is not a whole number",
    "T38": "an upsert without a key, or with a policy that does not fit",
    "T39": "a date or time that is not one",
    "T40": "an `in` without a list",
    "T41": "a pattern that is not a regular expression",
    "T42": "an update of a key property",
    "T43": "an order by something that has no order",
    "T44": "an order or condition on a value that is not among the results",
    "T45": "a score or rank of something that does not rank",
}

WARNINGS: dict[str, str] = {
    "L201": "an optional property that no update sets",
    "L202": "a write without parameters",
    "L203": "a parameter that is not used",
    "L204": "a variable that is not used",
    "L205": "parts of a pattern that nothing connects",
    "L206": "a walk without an upper bound",
    "L207": "two queries of the same name",
    "L208": "`asc` on a ranking, which is always best first",
    "L209": "a variable with the name of a parameter",
    "L210": "an insert without a vector that must be embedded, and no provider to do it",
}
