"""Search for the rows with given keys on executors: a scan of a table, file by file.

The holders that the embedded engine finds, in the same order; tasks read the columns of the key
alone, and the driver gets the ids of holders.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from omnigraph.bulk.runner import Runner
from omnigraph.bulk.stagedkeys import shares
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.rows.keyowners import Holders, KeyShape, holders_among, together
from omnigraph.storage.distributed import list_files, scan_files
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import open_table


def passer_on(
    runner: Runner,
) -> Callable[[GraphRoot, TableVersion, KeyShape, pa.Array], Holders]:
    """A way to find the rows of a version that hold one of many keys."""

    def passed(root: GraphRoot, version: TableVersion, shape: KeyShape, keys: pa.Array) -> Holders:
        files = list_files(root.location, version)
        parts = shares(files, lambda file: file[1], runner.width)
        # The keys travel with the function, once for all tasks.
        look = partial(_look, root.location, version, shape, keys)
        items = [[number for number, _ in part] for part in parts]
        return together(runner.run(look, items, "look for keys"))

    return passed


# In tasks


def _look(
    location: Location, version: TableVersion, shape: KeyShape, keys: pa.Array, files: list[int]
) -> Holders:
    columns = shape.columns(open_table(location, version).schema.names)
    return holders_among(shape, scan_files(location, version, files, columns), keys)
