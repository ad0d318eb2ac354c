"""From IR to a physical plan: build, then a readable tuple of rules, each in a file of its own.

- `build`: the logical plan, word for word.
- `rules`: the optimizer.
- `statistics`, `estimate`: what is known of the data, and what follows for row counts.
- `planner`: both in one call, with a cache.
- `explain`: a plan as text and as JSON.
- `coercion`: what a constant means against the type of the column that it meets.
- Of writes: `envelopes` and `records` (JSONL), `values` and `columns` (what an input may hold),
  `checks` (rows by themselves), `identities` (ids), `deltas` (what a write does), `constraints`
  (rows together), `findings` (violations).

Guarantees: planning does no I/O; equal queries, catalogs and statistics give equal plans; every
engine runs the same plans.
Deliberately absent: execution, and everything that knows Lance.
"""
