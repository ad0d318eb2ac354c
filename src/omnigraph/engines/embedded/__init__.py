"""The engine in this process: Arrow from Lance, adjacency in numpy, plans run operator by operator.

Read in this order: `rownumbers` and `tablecache` (a table version in memory), `catalog_view` (types
and spaces), `adjacency`, `neighbours` and `walk` (edges), `frame` (rows), `frameexpr`
(expressions), then one module per family of operators, and `engine`. For writes: `keylookup` and
`lookupcache` (who has a key), `view` (what a write sees), `mutationrows`, `mutation`, `integrity`,
`stagedelta`.

A query only reads, and a write only stages; rows stay numbers until they are returned; caches hold
immutable things.
"""

from omnigraph.engines.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
