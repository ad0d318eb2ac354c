"""What all writes have in common, between a verb and the commit door.

- `request`: what a caller wants written. `attempt`: a request up to its commit, with retries.
- `groupcommit`: requests of several threads in one publish. `handoff`: of several processes.
- `requiredvectors`, `staleness`: vectors that a write must make, or that are out of date.
- `tablechanges`: stored tables under a changed schema.

Deliberately absent: verbs (`operations`), and making a commit visible (`commit`).
"""
