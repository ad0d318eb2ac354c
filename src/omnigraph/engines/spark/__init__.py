"""The spark engine: everything that needs PySpark.

- `settings`, `archive`, `session`: which Spark, and getting one.
- `sparkrunner`: a list of values through a function on executors, one answer for each.
- `queries`, `engine`: read queries over DataFrames.
- `tablecompare`: what differs between two versions of a table.

Rows stay on executors; nothing here moves a branch. Importing this package does not import PySpark.
"""
