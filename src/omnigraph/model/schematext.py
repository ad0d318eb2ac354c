"""A graph's schema as text that shows itself well in a notebook."""

from __future__ import annotations

from html import escape

from omnigraph.model import html
from omnigraph.model.catalog import Catalog, EdgeType, NodeType


class SchemaText(str):
    """The `.pg` text, a subclass of str. `catalog` is the compiled schema."""

    __slots__ = ("catalog",)
    catalog: Catalog

    def __new__(cls, text: str, catalog: Catalog) -> SchemaText:
        made = super().__new__(cls, text)
        made.catalog = catalog
        return made

    def _repr_html_(self) -> str:
        return "".join(_described(table) for table in self.catalog.tables())


def _described(table: NodeType | EdgeType) -> str:
    rows = [
        {
            "property": each.name,
            "type": str(each.type),
            "": "key" if each.name in getattr(table, "key", ()) else "",
        }
        for each in table.properties
    ]
    ends = ""
    if isinstance(table, EdgeType):
        ends = f": {escape(table.src_type)} → {escape(table.dst_type)}"
    head = f"<p><b>{escape(str(table.kind))} {escape(table.name)}</b>{ends}</p>"
    return head + (html.table(("property", "type", ""), rows) if rows else "")
