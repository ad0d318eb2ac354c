"""Where bytes live: control objects, locks and tables, on local disk, S3 or in memory.

- `location`: what a graph's address means.
- `objects`: small control objects with create-if-absent and compare-and-set.
- `locks`: the writer lock, an OS lock on disk and a lease with a fencing token on S3.
- `failures`: the one module that turns foreign exceptions into ours.
- `table`, `stagedwrites`, `manifest`: Lance datasets; nothing outside this package imports `lance`.

This package knows bytes, versions and names; it knows no graph, no schema and no query.
"""
