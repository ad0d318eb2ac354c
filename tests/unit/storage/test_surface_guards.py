"""What we lean on in Lance, one small test per fact, so that an upgrade that changes it turns red.

These do not test OmniGraph. When one fails after an upgrade, look at who relies on the fact.
"""

# ledger: S04, S06

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import obstore
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from lance.fragment import write_fragments
from lance.schema import LanceSchema
from obstore.store import LocalStore

commit = lance.LanceDataset.commit


def rows(*ids: int, value: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "value": [value] * len(ids)})


def ids(dataset: lance.LanceDataset) -> list[int]:
    found: list[int] = dataset.to_table(columns=["id"])["id"].to_pylist()
    return sorted(found)


def stage(
    dataset: lance.LanceDataset, table: pa.Table, mode: str, options: dict[str, str] | None = None
) -> lance.Transaction:
    return write_fragments(
        table, dataset, mode=mode, return_transaction=True, storage_options=options
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def dataset(path: str) -> lance.LanceDataset:
    return lance.write_dataset(rows(1, 2, 3), path, enable_stable_row_ids=True)


# Commits


def test_a_stale_append_lands_all_the_same(dataset: lance.LanceDataset, path: str) -> None:
    staged = stage(dataset, rows(10), "append")
    lance.write_dataset(rows(20), path, mode="append")
    landed = commit(dataset, staged, read_version=1, max_retries=0)
    assert landed.version == 3, "so we must compare the version with read_version + 1"
    assert ids(landed) == [1, 2, 3, 10, 20]


def test_a_stale_overwrite_is_refused(dataset: lance.LanceDataset, path: str) -> None:
    staged = stage(dataset, rows(10), "overwrite")
    lance.write_dataset(rows(20), path, mode="append")
    with pytest.raises(CommitConflictError):
        commit(dataset, staged, read_version=1, max_retries=0)
    assert ids(lance.dataset(path)) == [1, 2, 3, 20]


def test_a_fresh_commit_lands_one_version_above(dataset: lance.LanceDataset) -> None:
    for mode in ("append", "overwrite"):
        version = dataset.version
        staged = stage(dataset, rows(version), mode)
        dataset = commit(dataset, staged, read_version=version, max_retries=0)
        assert dataset.version == version + 1


def test_staged_inserts_of_one_new_key_both_land(dataset: lance.LanceDataset) -> None:
    first, second = (
        dataset.merge_insert("id").when_not_matched_insert_all().execute_uncommitted(rows(7))[0]
        for _ in range(2)
    )
    commit(dataset, first, read_version=1, max_retries=0)
    landed = commit(dataset, second, read_version=1, max_retries=0)
    assert ids(landed) == [1, 2, 3, 7, 7], "so keys are safe only under the writer lock"


def test_a_staged_update_of_changed_rows_is_refused(dataset: lance.LanceDataset) -> None:
    first, second = (
        dataset.merge_insert("id").when_matched_update_all().execute_uncommitted(rows(1))[0]
        for _ in range(2)
    )
    commit(dataset, first, read_version=1, max_retries=0)
    with pytest.raises(OSError, match=r"(?i)conflict"):
        commit(dataset, second, read_version=1, max_retries=0)


def test_one_append_committed_twice_doubles_its_rows(dataset: lance.LanceDataset) -> None:
    staged = stage(dataset, rows(10), "append")
    commit(dataset, staged, read_version=1, max_retries=0)
    landed = commit(dataset, staged, read_version=1, max_retries=0)
    assert ids(landed) == [1, 2, 3, 10, 10], "so recovery compares transaction ids"


def test_a_version_tells_which_transaction_made_it(dataset: lance.LanceDataset, path: str) -> None:
    staged = stage(dataset, rows(10), "append")
    commit(dataset, staged, read_version=1, max_retries=0)
    found = lance.dataset(path).read_transaction(2)
    assert found is not None
    assert found.uuid == staged.uuid


def test_transaction_properties_can_be_read_back(dataset: lance.LanceDataset, path: str) -> None:
    staged = stage(dataset, rows(10), "append")
    staged.transaction_properties = {"commit": "01ABC"}
    commit(dataset, staged, read_version=1, max_retries=0)
    found = lance.dataset(path).read_transaction(2)
    assert found is not None
    assert found.transaction_properties == {"commit": "01ABC"}


def test_staging_moves_no_head(dataset: lance.LanceDataset, path: str) -> None:
    stage(dataset, rows(10), "append")
    stage(dataset, rows(10), "overwrite")
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute_uncommitted(rows(1, 10))
    dataset.merge_insert("id").when_matched_delete().execute_uncommitted(rows(1))
    assert lance.dataset(path).version == 1


def test_a_staged_delete_by_key_counts_before_it_lands(dataset: lance.LanceDataset) -> None:
    staged, stats = (
        dataset.merge_insert("id").when_matched_delete().execute_uncommitted(rows(2, 3, 99))
    )
    assert stats["num_deleted_rows"] == 2
    assert ids(commit(dataset, staged, read_version=1, max_retries=0)) == [1]


def test_a_new_table_can_be_staged_with_no_rows(path: str) -> None:
    staged = write_fragments(rows(), path, mode="create", return_transaction=True)
    landed = commit(path, staged, enable_stable_row_ids=True)
    assert (landed.version, ids(landed), landed.has_stable_row_ids) == (1, [], True)


def test_versions_are_files_whose_names_count_down(dataset: lance.LanceDataset, path: str) -> None:
    lance.write_dataset(rows(4), path, mode="append")
    names = sorted(os.listdir(f"{path}/_versions"))
    assert names[:2] == [f"{2**64 - 1 - version:020d}.manifest" for version in (2, 1)]


def test_commits_on_s3_have_one_winner(s3_root: str, s3_server: Any) -> None:
    environ = s3_server.environ()
    options = {
        "aws_access_key_id": environ["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": environ["AWS_SECRET_ACCESS_KEY"],
        "aws_region": environ["AWS_REGION"],
        "aws_endpoint": environ["AWS_ENDPOINT_URL"],
        "allow_http": "true",
    }
    uri = f"{s3_root}/table"
    dataset = lance.write_dataset(rows(1), uri, storage_options=options)
    staged = [
        write_fragments(
            rows(number),
            dataset,
            mode="overwrite",
            return_transaction=True,
            storage_options=options,
        )
        for number in (2, 3)
    ]
    commit(dataset, staged[0], read_version=1, max_retries=0, storage_options=options)
    with pytest.raises(CommitConflictError):
        commit(dataset, staged[1], read_version=1, max_retries=0, storage_options=options)
    assert ids(lance.dataset(uri, storage_options=options)) == [2]


# Overwrite with fragments of the version before: how the manifest is published


def test_an_overwrite_may_keep_old_fragments(dataset: lance.LanceDataset, path: str) -> None:
    kept = [fragment.metadata for fragment in dataset.get_fragments()]
    files = set(os.listdir(f"{path}/data"))
    new = write_fragments(rows(9), dataset, schema=dataset.schema)
    operation = lance.LanceOperation.Overwrite(dataset.schema, [*kept, *new])
    landed = commit(dataset, operation, read_version=1, max_retries=0)
    assert landed.to_table()["id"].to_pylist() == [1, 2, 3, 9], "kept first, in order"
    assert landed.has_stable_row_ids
    assert files < set(os.listdir(f"{path}/data")), "the old file is referred to, not copied"
    last = landed.scanner(fragments=[landed.get_fragments()[-1]]).to_table()
    assert last["id"].to_pylist() == [9]
    with pytest.raises(CommitConflictError):
        commit(dataset, operation, read_version=1, max_retries=0)


def test_an_overwrite_may_drop_some_fragments(dataset: lance.LanceDataset) -> None:
    for number in (4, 5):
        dataset = commit(
            dataset, stage(dataset, rows(number), "append"), read_version=dataset.version
        )
    kept = [fragment.metadata for fragment in dataset.get_fragments()[:-1]]
    new = write_fragments(rows(9), dataset, schema=dataset.schema)
    operation = lance.LanceOperation.Overwrite(dataset.schema, [*kept, *new])
    landed = commit(dataset, operation, read_version=dataset.version, max_retries=0)
    assert ids(landed) == [1, 2, 3, 4, 9]
    assert ids(dataset) == [1, 2, 3, 4, 5], "the version before is untouched"


def test_trimming_versions_keeps_what_kept_fragments_need(
    dataset: lance.LanceDataset, path: str
) -> None:
    for number in range(10, 16):
        kept = [fragment.metadata for fragment in dataset.get_fragments()]
        new = write_fragments(rows(number), dataset, schema=dataset.schema)
        operation = lance.LanceOperation.Overwrite(dataset.schema, [*kept, *new])
        dataset = commit(dataset, operation, read_version=dataset.version, max_retries=0)
    dataset.cleanup_old_versions(older_than=timedelta(0), retain_versions=2)
    assert [version["version"] for version in lance.dataset(path).versions()] == [6, 7]
    assert ids(lance.dataset(path)) == [1, 2, 3, *range(10, 16)]


def test_trimming_versions_spares_staged_files(dataset: lance.LanceDataset, path: str) -> None:
    staged = stage(dataset, rows(50), "append")
    for number in (10, 11):
        dataset = lance.write_dataset(rows(number), path, mode="append")
    dataset.cleanup_old_versions(older_than=timedelta(0), retain_versions=3)
    landed = commit(dataset, staged, read_version=1, max_retries=0)
    assert ids(landed) == [1, 2, 3, 10, 11, 50]


def test_a_write_staged_on_a_trimmed_version_cannot_land(
    dataset: lance.LanceDataset, path: str
) -> None:
    staged = stage(dataset, rows(50), "append")
    dataset = lance.write_dataset(rows(10), path, mode="append")
    dataset.cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    with pytest.raises(OSError, match="not found"):
        commit(dataset, staged, read_version=1, max_retries=0)


# Branches


def test_a_branch_is_a_dataset_of_its_own_and_copies_nothing(
    dataset: lance.LanceDataset, path: str
) -> None:
    lance.write_dataset(rows(4), path, mode="append")
    files = set(os.listdir(f"{path}/data"))
    branch = dataset.create_branch("line-1", reference=(None, 1))
    assert ids(branch) == [1, 2, 3]
    assert set(os.listdir(f"{path}/data")) == files
    written = commit(branch, stage(branch, rows(9), "append"), read_version=branch.version)
    assert written.version == branch.version + 1
    assert ids(lance.dataset(f"{path}/tree/line-1")) == [1, 2, 3, 9]
    assert ids(lance.dataset(path)) == [1, 2, 3, 4]
    nested = written.create_branch("line-2", reference=("line-1", written.version))
    assert ids(nested) == [1, 2, 3, 9]
    assert ids(lance.dataset(f"{path}/tree/line-2")) == [1, 2, 3, 9]


def test_a_branch_begins_with_the_version_it_forked_from(dataset: lance.LanceDataset) -> None:
    assert dataset.create_branch("line", reference=(None, 1)).version == 1


def test_a_branch_name_is_taken_once(dataset: lance.LanceDataset) -> None:
    branch = dataset.create_branch("line", reference=(None, 1))
    branch = commit(branch, stage(branch, rows(9), "append"), read_version=1)
    with pytest.raises((OSError, ValueError, RuntimeError)):  # Said in words that tell nothing.
        dataset.create_branch("line", reference=(None, 1))
    assert ids(lance.dataset(f"{dataset.uri}/tree/line")) == [1, 2, 3, 9]


# Row ids and deltas


def test_deltas_need_stable_row_ids(tmp_path: Path) -> None:
    for stable, expected in ((True, [4]), (False, [])):
        path = tmp_path / str(stable)
        lance.write_dataset(rows(1, 2, 3), path, enable_stable_row_ids=stable)
        dataset = lance.write_dataset(rows(4), path, mode="append")
        delta = dataset.delta(begin_version=1, end_version=2)
        inserted = pa.table(delta.get_inserted_rows())
        assert inserted["id"].to_pylist() == expected, "without them it says nothing, silently"


def test_a_delta_tells_inserted_updated_and_deleted(dataset: lance.LanceDataset) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    staged, _ = merge.execute_uncommitted(rows(2, 4, value="b"))
    dataset = commit(dataset, staged, read_version=1, max_retries=0)
    gone = dataset.to_table(columns=["id"], filter="id = 3", with_row_id=True)["_rowid"].to_pylist()
    staged, _ = dataset.merge_insert("id").when_matched_delete().execute_uncommitted(rows(3))
    dataset = commit(dataset, staged, read_version=2, max_retries=0)
    delta = dataset.delta(begin_version=1, end_version=3)
    assert pa.table(delta.get_inserted_rows())["id"].to_pylist() == [4]
    assert pa.table(delta.get_updated_rows())["id"].to_pylist() == [2]
    assert pa.table(delta.get_deleted_row_ids())["_rowid"].to_pylist() == gone


# Reading


def vectors(path: str) -> lance.LanceDataset:
    values = pa.array([[float(number), 0.0] for number in range(100)], pa.list_(pa.float32(), 2))
    return lance.write_dataset(pa.table({"id": range(100), "at": values}), path)


def test_nearest_neighbours_are_filtered_too_late_by_default(path: str) -> None:
    dataset = vectors(path)
    nearest = {"column": "at", "q": [0.0, 0.0], "k": 5}
    late = dataset.to_table(nearest=nearest, filter="id >= 90")
    early = dataset.to_table(nearest=nearest, filter="id >= 90", prefilter=True)
    assert late.num_rows == 0
    assert early["id"].to_pylist() == [90, 91, 92, 93, 94]


def test_memory_is_shared_under_one_scheme_only() -> None:
    lance.write_dataset(rows(1), "shared-memory://guards/t")
    assert ids(lance.dataset("shared-memory://guards/t")) == [1]
    lance.write_dataset(rows(1), "memory://guards/t")
    with pytest.raises(ValueError, match="not found"):
        lance.dataset("memory://guards/t")


# obstore


def test_obstore_cannot_compare_and_set_on_disk(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    etag = obstore.put(store, "a", b"1")["e_tag"]
    with pytest.raises(NotImplementedError):
        obstore.put(store, "a", b"2", mode={"e_tag": etag})


# Steps of maintenance


def _rewriting(dataset: lance.LanceDataset) -> Any:
    old = [fragment.metadata for fragment in dataset.get_fragments()]
    return lance.LanceOperation.Rewrite(
        groups=[lance.LanceOperation.RewriteGroup(old, [replace(old[0], id=900)])],
        rewritten_indices=[],
    )


def _indexing(dataset: lance.LanceDataset) -> Any:
    index = dataset.create_index_uncommitted("id", "BTREE", name="x", fragment_ids=[0])
    return lance.LanceOperation.CreateIndex(new_indices=[index], removed_indices=[])


def _projecting(dataset: lance.LanceDataset) -> Any:
    schema: Any = dataset.lance_schema
    make, (meta, first, *_) = schema.__reduce__()
    return lance.LanceOperation.Project(make(meta, first))


def _merging(dataset: lance.LanceDataset) -> Any:
    schema = LanceSchema.from_pyarrow(pa.schema([*dataset.schema, pa.field("more", pa.int64())]))
    return lance.LanceOperation.Merge([f.metadata for f in dataset.get_fragments()], schema)


@pytest.mark.parametrize("made", [_rewriting, _indexing, _projecting, _merging])
def test_no_step_lands_across_a_restore(dataset: lance.LanceDataset, path: str, made: Any) -> None:
    """A writer that was paused between its steps, and restored meanwhile, lands nothing more."""
    step = lance.Transaction(read_version=1, operation=made(dataset))
    lance.dataset(path, version=1).restore()
    with pytest.raises((CommitConflictError, OSError)):
        commit(dataset, step, read_version=1, max_retries=0)
    assert lance.dataset(path).version == 2


def test_detached_versions_belong_to_no_line(dataset: lance.LanceDataset, path: str) -> None:
    step = lance.Transaction(read_version=1, operation=_projecting(dataset))
    first = commit(dataset, step, detached=True, max_retries=5)
    step = lance.Transaction(read_version=first.version, operation=_indexing(first))
    second = commit(first, step, detached=True, max_retries=5)
    assert lance.dataset(path).version == 1
    assert [each["version"] for each in lance.dataset(path).versions()] == [1]
    names = {name for name in os.listdir(f"{path}/_versions") if name.startswith("d")}
    assert names == {f"d{version}.manifest" for version in (first.version, second.version)}
    lance.dataset(path).cleanup_old_versions(older_than=timedelta(0))
    assert names <= set(os.listdir(f"{path}/_versions")), "whoever makes them removes them"
    for name in names:
        os.remove(f"{path}/_versions/{name}")
    with pytest.raises(ValueError, match="Not found"):  # what is open is read again
        second.to_table(filter="id = 2")


def test_a_fork_names_its_parent_by_its_whole_address(
    dataset: lance.LanceDataset, path: str
) -> None:
    dataset.create_branch("fork", reference=(None, 1))
    (name,) = [n for n in os.listdir(f"{path}/tree/fork/_versions") if n.endswith(".manifest")]
    data = Path(f"{path}/tree/fork/_versions/{name}").read_bytes()
    assert path.encode() in data[: -len(b"LANC")]
    assert data.endswith(b"LANC")


def test_compaction_keeps_references(path: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("scan")])
    for number, mode in enumerate(("create", "append")):
        cells = lance.blob_array([f"s3://nowhere/{number}"])
        lance.write_dataset(
            pa.table([pa.array([number]), cells], schema=schema),
            path,
            mode=mode,
            data_storage_version="2.2",
            allow_external_blob_outside_bases=True,
        )
    dataset = lance.dataset(path)
    dataset.optimize.compact_files()
    cells = lance.dataset(path).to_table().column("scan").to_pylist()
    assert [(cell["kind"], cell["blob_uri"]) for cell in cells] == [
        (3, "s3://nowhere/0"),
        (3, "s3://nowhere/1"),
    ]


def test_the_manifest_in_memory_names_its_transaction(
    dataset: lance.LanceDataset, path: str
) -> None:
    """And a latest version that was replaced under a handle is noticed by `checkout_latest`."""
    other = f"{path}-other"
    shutil.copytree(path, other)
    for place in (path, other):
        lance.write_dataset(dataset.schema.empty_table(), place, mode="append")
    ours, theirs = lance.dataset(path), lance.dataset(other)
    for each in (ours, theirs):
        made_by = each.read_transaction(each.version)
        assert made_by is not None
        assert f"-{made_by.uuid}.txn".encode() in each._ds.serialized_manifest()
    assert ours.version == theirs.version
    wanted = theirs._ds.serialized_manifest()
    shutil.rmtree(path)
    shutil.copytree(other, path)
    ours.checkout_latest()
    assert ours._ds.serialized_manifest() == wanted
