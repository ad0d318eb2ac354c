"""Typed graph operators: what a checked query means, as frozen dataclasses.

What it does: `expr` holds expressions, `query` holds read and write queries.
Guarantees: every expression knows its type; names are resolved against one catalog; search,
negation, traversal and mutation are operators here, never strings or flags.
Deliberately absent: source spans, physical choices (indexes, join order), execution.
"""
