"""Calls of Lance that commit by themselves, or that lie: allowed by name and place, or not at all.

Everything that can move a table's head, make or drop a line, or delete files is listed here with
the one place that may do it. A new call turns this test red; whoever adds it says why in the list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph

SOURCE = Path(omnigraph.__file__).parent

# Methods of datasets, fragments, indexes and compaction that take effect at once.
INLINE = {
    "add_bases",
    "add_columns",
    "alter_columns",
    "cleanup_old_versions",
    "commit",
    "commit_batch",
    "commit_existing_index_segments",
    "compact_files",
    "create_branch",
    "create_index",
    "create_scalar_index",
    "deep_clone",
    "delete",
    "delete_config_keys",
    "drop_columns",
    "drop_index",
    "execute",
    "initialize_mem_wal",
    "insert",
    "mem_wal_writer",
    "merge",
    "merge_columns",
    "merge_index_metadata",
    "migrate_manifest_paths_v2",
    "optimize_indices",
    "replace_field_metadata",
    "replace_schema",
    "replace_schema_metadata",
    "restore",
    "shallow_clone",
    "truncate_table",
    "update",
    "update_config",
    "update_field_metadata",
    "update_metadata",
    "update_schema_metadata",
    "write_dataset",
}

# Where one of them may be called, and on what. Below each: why it is harmless there.
ALLOWED = {
    # The two ways by which a table's head moves, and the manifest's.
    ("tablehead", "lance.LanceDataset.commit"),
    ("tablehead", "dataset.restore"),
    ("manifest", "lance.LanceDataset.commit"),
    # The manifest's first version, its trimming, and the recovery audit: no table of the graph.
    ("manifest", "lance.write_dataset"),
    ("manifest", "dataset.cleanup_old_versions"),
    ("auditlog", "lance.write_dataset"),
    # A table in memory that is thrown away after one search.
    ("scratch", "lance.write_dataset"),
    ("scratch", "dataset.create_scalar_index"),
    # A fork is invisible until a commit points to it; staging makes it, before the door.
    ("tableforks", "dataset.checkout_version(base.version).create_branch"),
    # Writes a deletion file that the staged transaction names.
    ("rowrewrite", "dataset.get_fragment(number).delete"),
    ("distributed", "dataset.get_fragment(int(fragment_id)).delete"),
    # Writes the new columns' files, for a transaction that is staged.
    ("columnchange", "fragment.merge_columns"),
    # One task of a compaction: writes files, `Compaction.commit` is never called.
    ("compaction", "_LANCE.CompactionTask.from_json(text).execute"),
    ("maintenancetasks", "_LANCE.CompactionTask.from_json(self.text).execute"),
    # A detached version belongs to no line: it moves no head, and nobody else sees it.
    ("detached", "lance.LanceDataset.commit"),
    # Cleanup, of what nobody needs.
    ("reclamation", "dataset.cleanup_old_versions"),
    ("reclamation", "dataset.branches.delete"),
    # Not Lance at all.
    ("buckets", "obstore.delete"),
    ("objects", "self.delete"),
    ("locks", "store.delete"),
    ("scratch", "digest.update"),
    ("versiondiff", "rows.drop_columns"),
    ("blobrows", "batch.drop_columns"),
    ("stagedwrites", "self.add_columns"),
    ("text", "covered.update"),
}

# Control objects have a `delete` of their own.
CONTROL = "objects.delete"

# Outside of storage there is no Lance; these names have no other meaning worth having there.
ELSEWHERE = {
    "alter_columns",
    "cleanup_old_versions",
    "commit_batch",
    "compact_files",
    "create_index",
    "create_scalar_index",
    "execute_uncommitted",
    "merge_insert",
    "optimize_indices",
    "truncate_table",
    "write_dataset",
    "write_fragments",
}


def calls(text: str) -> Iterator[tuple[str, str, ast.Call]]:
    """Every call of a method: its name, the whole of what is called, and the call."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, ast.unparse(node.func), node


def breaches_in_storage(module: str, text: str) -> list[str]:
    return [
        f"{module}: {written}"
        for name, written, _ in calls(text)
        if name in INLINE and (module, written) not in ALLOWED and not written.endswith(CONTROL)
    ]


def breaches_elsewhere(module: str, text: str) -> list[str]:
    return [f"{module}: {written}" for name, written, _ in calls(text) if name in ELSEWHERE]


def modules(storage: bool) -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if (path.parent.name == "storage") == storage:
            yield path.stem if storage else str(path.relative_to(SOURCE)), path.read_text()


# ledger: S04
def test_nothing_in_storage_commits_by_itself() -> None:
    assert [b for name, text in modules(True) for b in breaches_in_storage(name, text)] == []


# ledger: S04
def test_nothing_outside_of_storage_calls_lance() -> None:
    assert [b for name, text in modules(False) for b in breaches_elsewhere(name, text)] == []


# ledger: S04
def test_no_cleanup_removes_what_a_writer_may_be_about_to_name() -> None:
    for module, text in modules(True):
        for name, _, call in calls(text):
            if name == "cleanup_old_versions":
                given = {keyword.arg for keyword in call.keywords}
                assert "delete_unverified" not in given, module


def test_every_commit_refuses_to_be_rebased_in_silence() -> None:
    """`max_retries=0`, except for a birth, which has nothing to be rebased on."""
    found = [
        (module, {keyword.arg for keyword in call.keywords})
        for module, text in modules(True)
        for name, written, call in calls(text)
        if written == "lance.LanceDataset.commit"
    ]
    assert found
    for _, given in found:
        assert "max_retries" in given or "enable_stable_row_ids" in given


def test_the_list_holds_nothing_that_is_gone() -> None:
    used = {
        (module, written)
        for module, text in modules(True)
        for name, written, _ in calls(text)
        if name in INLINE
    }
    assert ALLOWED - used == set()


@pytest.mark.parametrize(
    "planted",
    [
        "dataset.update({'n': '1'})",
        "dataset.delete('n = 1')",
        "table.dataset.merge(data, 'id')",
        "dataset.merge_insert('id').when_matched_update_all().execute(data)",
        "dataset.optimize.optimize_indices()",
        "dataset.optimize.compact_files()",
        "lance.write_dataset(data, uri, mode='append')",
        "lance.LanceDataset.commit(dataset, operation)",
        "Compaction.commit(dataset, results)",
        "dataset.add_columns({'x': 'n + 1'})",
    ],
)
def test_a_planted_call_is_seen(planted: str) -> None:
    assert breaches_in_storage("planted", f"def f():\n    return {planted}\n")


def test_a_planted_call_outside_is_seen() -> None:
    assert breaches_elsewhere("engines/x.py", "lance.write_dataset(a, b)")
    assert breaches_elsewhere("operations/x.py", "ds.merge_insert('id')")
