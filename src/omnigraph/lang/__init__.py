"""The two languages: `pg` for schemas and `gq` for queries.

What it does: turns text into checked, typed values, and explains what is wrong with a text.
Every function is pure; the only exceptions are `SchemaError` and `QueryError`.
"""
