"""Typed graph operators: what a checked query means, as frozen dataclasses.

What it does: `expr` holds expressions, `query` holds read and write queries.
Every expression knows its type; names are resolved against one catalog; search, negation, traversal
and mutation are operators here, never strings or flags.
"""
