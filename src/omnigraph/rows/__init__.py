"""Row kernels: rows of a type as Arrow columns, and what is computed over them.

- `propertyvalues`, `columns`: one value, or a whole column, converted to the type of a property.
- `identities`: ids of nodes and edges.
- `coercion`: a constant compared with a column of another type.
- `checks`: rules of a row by itself. `setchecks`: rules of rows together. `breaches`: messages for
  broken set rules. `findings`: violations, collected and counted.
- `keyowners`: which rows have one of some keys.
- `deltas`: what a write does to its tables. `threeway`: the merge of one type.

Pure functions over Arrow; both engines and Spark tasks call the same ones.
Not included: I/O, formats of files (`intake`), and queries (`plan`).
"""
