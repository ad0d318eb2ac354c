"""The two languages: `pg` for schemas and `gq` for queries.

What it does: turns text into checked, typed values, and explains what is wrong with a text.
Guarantees: every function is pure; the only exceptions are `SchemaError` and `QueryError`.
Deliberately absent: I/O of any kind. Callers read files and hand over text.
"""
