"""From IR to a physical plan: build, then a readable tuple of rules, each in a file of its own.

- `logical`: the logical plan, word for word.
- `rules`: the optimizer.
- `statistics`, `estimate`: what is known of the data, and what follows for row counts.
- `planner`: both in one call, with a cache.
- `plantext`: a plan as text and as JSON.

Planning does no I/O; equal queries, catalogs and statistics give equal plans; every engine runs the
same plans.
"""
