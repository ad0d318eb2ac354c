"""Bulk work over rows, split into tasks for a `Runner`: this process, or Spark executors.

- `runner`: the protocol, and the runner of this process.
- `splits`, `partreader`, `partrows`, `partwriter`: inputs cut into parts, read, checked, staged.
- `stagedkeys`, `absence`, `verdicts`, `integrity`: set checks over staged and committed keys.
- `load`: those stages in order, up to staged writes. `export`: the other way.
- `keyscan`: which rows of a table have one of many keys. `rowvectors`: vectors made from texts.

Rows stay in tasks; nothing here moves a branch or imports PySpark.
"""
