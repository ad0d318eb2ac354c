"""The engine in this process: Arrow from Lance, adjacency in numpy, plans run operator by operator.

Read in this order: `numbering` and `resident` (a table version in memory), `catalog_view` (types
and spaces), `adjacency`, `topology` and `walk` (edges), `frame` (rows), `evaluate` (expressions),
then one module per family of operators, and `engine`. For writes: `lookup` and `lookups` (who has a
key), `view` (what a write sees), `matching`, `statements`, `integrity`, `staging`.

Guarantees: a query only reads, and a write only stages; rows stay numbers until they are returned;
caches hold immutable things.
Deliberately absent: commits, and everything that another engine would need to know.
"""

from omnigraph.engines.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
