"""The spark engine: the data pipeline, and what outgrows one machine.

- `settings`, `archive`, `session`: which Spark, and getting one.
- `tasks`: a list of values through a function on executors, one answer for each.
- `splits`, `reading`, `shaping`, `writing`: inputs cut into parts, read, checked and staged there.
- `integrity`: set checks over staged and committed keys.
- `load`: those stages in order, up to staged writes.
- `queries`, `engine`: read queries over DataFrames.
- `comparing`: what differs between two versions of a table.

Guarantees: rows stay on executors; nothing here moves a branch. Importing this package does not
import PySpark.
Deliberately absent: commits, and meaning of its own. Rules and parsers are `plan`'s.
"""
