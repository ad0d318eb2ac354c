"""Results as pictures.

    omnigraph.draw(graph.query("query q() { match { $p: Person  $p knows $f } return { $p, $f } }"))

    elements   the nodes and edges of a result
    layout     the positions of nodes
    svg        the picture

The same result gives the same picture; no library beyond numpy.
"""

from __future__ import annotations

from omnigraph.drawing.elements import draw
from omnigraph.drawing.svg import Drawing

__all__ = ["Drawing", "draw"]
