"""The one write door: proposals become commits here, and nowhere else.

What it does: `door` publishes, `journal` keeps the recovery records, `decide` judges them,
`recovery` carries the judgement out, `audit` remembers it; `branches`, `tags` and `genesis` make
and unmake the names and the graph itself.
Guarantees: a commit over many tables is visible wholly or not at all, whatever dies when.
Deliberately absent: rows. What is handled here are ids, versions and small control objects.
"""
