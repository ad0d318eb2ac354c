"""Code shared by all writes, between the operations and the commit package.

- `request`: what a caller wants written. `attempt`: the retry loop, from a request to its commit.
- `conditions`: keys and conditions of requests. `rowgroup`: requests of rows as one proposal.
  `standalone`: a request that makes a proposal of its own.
- `groupcommit`: requests of several threads in one publish. `handoff`: of several processes.
- `requiredvectors`, `staleness`: vectors that a write must make, or that are out of date.
- `tablechanges`: stored tables under a changed schema.

Not included: verbs (`operations`), and making a commit visible (`commit`).
"""
