"""Code shared by all writes, between the operations and the commit package.

- `request`: what a caller wants written. `attempt`: a request up to its commit, with retries.
- `groupcommit`: requests of several threads in one publish. `handoff`: of several processes.
- `requiredvectors`, `staleness`: vectors that a write must make, or that are out of date.
- `tablechanges`: stored tables under a changed schema.

Not included: verbs (`operations`), and making a commit visible (`commit`).
"""
