"""Batches of a scan of files: large where rows are narrow, small where they are wide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.querygraphs import write_graph

from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.distributed import list_files, scan_files
from omnigraph.storage.location import parse_location

ROWS = 20_000
TEXT = 1_500
MIB = 1024 * 1024
SCHEMA = "node Doc {\n  slug: String @key\n  body: String\n}\n"


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wide")


@pytest.fixture(scope="module")
def version(where: Path) -> TableVersion:
    rows = [{"slug": f"d{n:05}", "body": f"{n:05}" * (TEXT // 5)} for n in range(ROWS)]
    snapshot = write_graph(where, SCHEMA, {"Doc": rows})
    return next(iter(snapshot.tables.values()))


def scan(
    where: Path, version: TableVersion, columns: list[str], **options: Any
) -> list[pa.RecordBatch]:
    location = parse_location(str(where))
    files = [number for number, _ in list_files(location, version)]
    return list(scan_files(location, version, files, columns, **options))


def test_narrow_rows_come_in_large_batches(where: Path, version: TableVersion) -> None:
    assert [batch.num_rows for batch in scan(where, version, ["slug"])] == [ROWS]


@pytest.mark.parametrize("options", [{}, {"with_address": True}, {"whole_blobs": True}])
def test_wide_rows_come_in_batches_that_fit(
    where: Path, version: TableVersion, options: dict[str, object]
) -> None:
    batches = scan(where, version, ["slug", "body"], **options)
    assert max(batch.nbytes for batch in batches) <= 9 * MIB
    assert pa.Table.from_batches(batches)["slug"].to_pylist() == [f"d{n:05}" for n in range(ROWS)]


def test_what_a_filter_lets_through_is_not_one_batch(where: Path, version: TableVersion) -> None:
    # Lance fetches the wide column after filtering, for a whole batch of the filtered one.
    batches = scan(where, version, ["body"], filter="slug >= 'd00001'")
    assert sum(batch.num_rows for batch in batches) == ROWS - 1
    assert max(batch.num_rows for batch in batches) <= 8_192
