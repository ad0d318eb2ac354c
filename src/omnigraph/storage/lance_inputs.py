"""Foreign Lance datasets as inputs.

Read at one version, the newest when the input was listed.
"""

from __future__ import annotations

from collections.abc import Iterator

import lance
import pyarrow as pa

from omnigraph.storage.blobrows import scan_whole
from omnigraph.storage.failures import translated
from omnigraph.storage.location import parse_location


def list_parts(address: str, size: int) -> Iterator[tuple[int, int, int]]:
    """Ranges of the dataset's files of about `size` bytes each: first, last (exclusive), bytes."""
    with translated("open", address):
        fragments = _open(address).get_fragments()
        sizes = [sum(f.file_size_bytes or 0 for f in each.metadata.files) for each in fragments]
    first, held = 0, 0
    for number, part in enumerate(sizes):
        held += part
        if held >= size or number == len(sizes) - 1:
            yield first, number + 1, held
            first, held = number + 1, 0


def scan_part(address: str, first: int, last: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of some of the dataset's files, with blobs as bytes."""
    with translated("scan", address):
        dataset = _open(address)
        yield from scan_whole(
            dataset,
            dataset.schema.names,
            fragments=dataset.get_fragments()[first:last],
            batch_size=batch_rows,
            scan_in_order=True,
        )


def _open(address: str) -> lance.LanceDataset:
    location = parse_location(address)
    options = dict(location.storage_options) or None
    return lance.dataset(location.lance_uri(), storage_options=options)
