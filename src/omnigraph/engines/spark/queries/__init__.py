"""Read queries on Spark: the plan that the embedded engine runs, run on DataFrames.

Read in this order: `columnnames` (which column holds what), `batches` (expressions inside tasks),
`run` and `flow` (rows on their way), `scans` (tables), then one module per family of operators,
`execute`, and `resultbatches`.

The same rows in the same order as the embedded engine; rows stay on executors until they are
returned, a batch at a time; expressions mean what `engines.expressions` says, and are left to Spark
itself only where it means the same.
"""
