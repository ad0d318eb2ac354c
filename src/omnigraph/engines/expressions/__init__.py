"""What expressions mean, for every engine: evaluation over columns of Arrow values.

- `functions`, `comparisons`: values in, values out.
- `evaluate`: an expression over rows, wherever an engine keeps those.
- `searches`: constants and fusion of search functions.
- `shapes`: what a returned node looks like, and the schema of a result.

Both engines call this code, in this process or inside Spark's tasks, so that a query has one
meaning.
"""
