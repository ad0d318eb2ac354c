"""Answers as pictures.

    omnigraph.draw(graph.query("query q() { match { $p: Person  $p knows $f } return { $p, $f } }"))

    elements   which dots and lines a result stands for
    layout     where dots go
    svg        the picture

Guarantees: the same result gives the same picture; no library beyond numpy.
Deliberately absent: interaction, and pictures of more than a few hundred nodes.
"""

from __future__ import annotations

from omnigraph.drawing.elements import draw
from omnigraph.drawing.svg import Drawing

__all__ = ["Drawing", "draw"]
