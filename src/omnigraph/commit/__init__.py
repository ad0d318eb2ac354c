"""Commits: the only package that makes changes visible.

What it does: `door` publishes proposals, `journal` stores the recovery records, `decide` chooses
the recovery action, `recovery` executes it, `audit` records it; `branches`, `tags` and `genesis`
create and delete branches, tags and graphs. A commit over many tables is atomic, also if a process
is killed at any time.
"""
