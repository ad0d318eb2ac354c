"""From tree to typed IR: names resolved against a catalog, types checked.

What it does: `check_query` walks a query's tree once and builds its IR on the way. Checking and
lowering are one walk because the IR carries types: a second walk would have to find out again
what the first one knew.
Pure; collects every finding it can; an IR that comes with no error in the report is well typed.
"""

from omnigraph.lang.gq.check.query import check_query

__all__ = ["check_query"]
