"""Scans with filters that are Arrow expressions.

    scanner(dataset, columns=["id"], filter=pc.field("age") > 30, with_row_id=True)

Lance takes such a filter as Substrait, together with the types of all columns. Substrait has no
vectors, no extension types and no unsigned integers, and Lance's own serialization fails for
columns of such types: some that the filter does not name, such as a list of unsigned integers, and
all that it tests for null. Here every column of a nested or an extension type is declared as a
small integer under its own name. Lance resolves columns by position and uses their real types.

A column that the filter does not name never makes a scan fail; any column that is not an unsigned
integer can be tested for null.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from lance.dataset import ScannerBuilder
from pyarrow.substrait import serialize_expressions

# Arguments of Lance's `scanner` whose setters have other names.
_SETTERS = {
    "fragments": "with_fragments",
    "row_addr_allowlist": "row_addr_prefilter",
    "full_text_query": "full_text_search",
}


class _Builder(ScannerBuilder):
    """Lance's builder of scans, with filters in the serialization of this module."""

    def filter(self, filter: Any) -> _Builder:
        if isinstance(filter, pa.compute.Expression):
            self._substrait_filter = serialized(filter, self.ds.schema)  # type: ignore[assignment]
        else:
            super().filter(filter)
        return self


def scanner(dataset: Any, **options: Any) -> Any:
    """The same as `dataset.scanner(**options)`."""
    builder = _Builder(dataset)
    known = {name: value for name, value in options.items() if value is not None}
    builder.apply_defaults({_SETTERS.get(name, name): value for name, value in known.items()})
    return builder.to_scanner()


def serialized(filter: pa.compute.Expression, schema: pa.Schema) -> bytes:
    """A filter as Substrait, for a table with this schema."""
    declared = pa.schema([pa.field(each.name, _declared(each.type)) for each in schema])
    return bytes(serialize_expressions([filter], ["filter"], declared))


def _declared(type_: pa.DataType) -> pa.DataType:
    is_extension = isinstance(type_, pa.BaseExtensionType)
    return pa.int8() if is_extension or pa.types.is_nested(type_) else type_
