"""Data from outside, converted to rows of the graph's types, and back.

- `inputforms`, `dataframes`, `sources`, `loadsources`: what a caller may pass, as values.
- `envelopes`, `records`: JSONL. `csvrecords`, `delimited`: delimited text. `buffers`: Arrow.
- `typedrows`: any of them as checked rows with ids.
- `outputs`: rows as JSONL, columns by name or delimited text.

An input is checked before anything reads it; what is wrong is reported by record.
Not included: storage, and rules about several rows (`rows.setchecks`).
"""
