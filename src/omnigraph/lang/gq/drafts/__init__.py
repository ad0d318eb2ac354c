"""Queries built from Python values instead of text.

    expressions   variables, properties, operators, functions
    clauses       what stands in a pattern
    queries       reads and mutations, stage by stage
    writing       a tree as text

A built query is text in the end, so it has the meaning, the checks, the messages and the cache that
the same text has.
"""
