"""Compaction: the same rows in fewer files.

    plan = plan_layout(table)                 nothing is written
    rewritten = rewrite(dataset, plan)        new files, not visible yet
    groups = still_valid(dataset, rewritten)  those that fit a newer version too

Guarantees: rows keep their values, blobs and row ids; files whose rows were changed in the meantime
are left alone, so that compaction never undoes a write; a table that was just compacted has nothing
to do.
Deliberately absent: committing. Lance's own commit of a compaction takes a transaction that cannot
be recorded in advance, so the door lands one of ours instead.

What becomes of indexes: a B-tree knows rows by their place, so rows that moved fall out of it and
compaction rebuilds it. Text and vector indexes know rows by their ids and follow them, under two
conditions that Lance leaves to us: a new file must have its number before it lands (or the index
would take file 0 for it, and miss rows), and files must not be put together with files that such an
index does not cover.

New files get their numbers when they are written, with room for what writers add until they land:
so a B-tree over them can be built before anybody sees them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import lance
from lance import optimize

from omnigraph.storage.failures import translated
from omnigraph.storage.protobuf import first_number
from omnigraph.storage.table import Table
from omnigraph.storage.tableschema import FILE_FORMAT, ROWS_PER_FILE

_LANCE: Any = optimize  # its types leave out the form in JSON
# So many rows are rewritten between two signs of progress.
_ROWS_PER_TASK = 10 * ROWS_PER_FILE
# So many small files side by side are always put together.
_MANY_FILES = 4
# A file is rewritten if more than this share of its rows is deleted.
_DELETED_SHARE = 0.1
# Where Lance's manifest keeps the greatest number that it gave to a file.
_GREATEST_ID = 11
# So many files may be added by writers before the numbers of new files are overtaken; more where
# rewriting takes longer. Numbers have 32 bits and are never used again, so room is not for free.
_HEADROOM = 512
_ROWS_PER_NUMBER = 100
_OPTIONS = {"target_rows_per_fragment": ROWS_PER_FILE}


@dataclass(frozen=True)
class LayoutPlan:
    """Which files of a version would be rewritten, in which groups."""

    files: int
    rows: int
    groups: tuple[tuple[int, ...], ...]

    @property
    def is_empty(self) -> bool:
        return not self.groups


@dataclass(frozen=True)
class Group:
    """Files and those that are to take their place."""

    old: tuple[Any, ...]
    new: tuple[Any, ...]


@dataclass(frozen=True)
class Rewritten:
    """New files, and the first of the numbers that they have."""

    groups: tuple[Group, ...]
    first: int


def plan_layout(
    table: Table, *, leaving: Collection[str] = (), rebuilt: Collection[str] = ()
) -> LayoutPlan:
    """What compaction would do to a version. `leaving`: columns that are to go, and with them the
    files that hold them; `rebuilt`: segments of indexes that are rebuilt anyway, and so need not
    follow."""
    dataset = table.dataset
    with translated("plan", table.version.path):
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        covers = _covers(dataset, frozenset(rebuilt))
        heavy = _holding(dataset, fragments, frozenset(leaving))
    runs = [run for run in _runs(fragments, covers, heavy) if _is_worthwhile(run, heavy)]
    return LayoutPlan(
        sum(len(run) for run in runs),
        sum(int(fragment.num_rows) for run in runs for fragment in run),
        tuple(tuple(int(fragment.id) for fragment in run) for run in runs),
    )


def rewrite(
    dataset: Any,
    plan: LayoutPlan,
    done: Callable[[int], None] | None = None,
    elsewhere: Callable[[list[str]], list[str]] | None = None,
) -> Rewritten:
    """Write the new files. `done` is called with the number of rows rewritten so far. `elsewhere`
    carries tasks out in other processes, and returns their outcomes in order."""
    groups, rows = [], 0
    with translated("compact", dataset.uri):
        template = json.loads(_LANCE.Compaction.plan(dataset, dict(_OPTIONS)).json())
        files = {fragment.fragment_id: fragment.metadata for fragment in dataset.get_fragments()}
        texts = [_task(template, [files[n] for n in numbers]) for numbers in plan.groups]
        for result in _results(dataset, texts, elsewhere):
            groups.append(Group(tuple(result.original_fragments), tuple(result.new_fragments)))
            rows += sum(int(fragment.num_rows) for fragment in result.new_fragments)
            if done is not None:
                done(rows)
    first = _greatest_id(dataset) + 1 + _HEADROOM + plan.rows // _ROWS_PER_NUMBER
    return Rewritten(_numbered(groups, first), first)


def _results(
    dataset: Any, texts: list[str], elsewhere: Callable[[list[str]], list[str]] | None
) -> Iterator[Any]:
    if elsewhere is not None:
        yield from (_LANCE.RewriteResult.from_json(text) for text in elsewhere(texts))
        return
    for text in texts:
        yield _LANCE.CompactionTask.from_json(text).execute(dataset)


def still_valid(dataset: Any, rewritten: Rewritten) -> tuple[Group, ...]:
    """The groups whose old files are in `dataset` exactly as they were. None, once writers have
    added so many files that the numbers of the new ones may be taken."""
    if _greatest_id(dataset) >= rewritten.first:
        return ()
    there = {f.fragment_id: _identity(f.metadata) for f in dataset.get_fragments()}
    return tuple(
        group
        for group in rewritten.groups
        if all(there.get(int(old.id)) == _identity(old) for old in group.old)
    )


def rewrite_transaction(version: int, groups: Sequence[Group]) -> Any:
    """One Lance transaction that puts the new files in the place of the old."""
    operation = lance.LanceOperation.Rewrite(
        groups=[
            lance.LanceOperation.RewriteGroup(list(group.old), list(group.new)) for group in groups
        ],
        rewritten_indices=[],
    )
    return lance.Transaction(read_version=version, operation=operation)


def _covers(dataset: Any, rebuilt: Collection[str]) -> dict[int, frozenset[str]]:
    """Which segments of indexes that follow rows cover each file."""
    found: dict[int, set[str]] = defaultdict(set)
    for index in dataset.describe_indices():
        if str(index.index_type).upper() != "BTREE":
            for segment in index.segments:
                for fragment in segment.fragment_ids if str(segment.uuid) not in rebuilt else ():
                    found[int(fragment)].add(str(segment.uuid))
    return {fragment: frozenset(segments) for fragment, segments in found.items()}


def _holding(dataset: Any, fragments: Sequence[Any], columns: Collection[str]) -> frozenset[int]:
    """The files that hold some of these columns, or columns that the schema no longer has."""
    kept = {n for field in dataset.lance_schema.fields() for n in _numbers(field, columns)}
    return frozenset(
        int(fragment.id)
        for fragment in fragments
        if any(
            number >= 0 and number not in kept for file in fragment.files for number in file.fields
        )
    )


def _numbers(field: Any, leaving: Collection[str]) -> Iterator[int]:
    if field.name() not in leaving:
        yield field.id()
        for child in field.children():
            yield from _numbers(child, ())


def _runs(
    fragments: Sequence[Any], covers: Mapping[int, frozenset[str]], heavy: Collection[int]
) -> Iterator[list[Any]]:
    """Neighbours that may be put together."""
    run: list[Any] = []
    rows = 0
    for fragment in fragments:
        worn = _is_scarred(fragment) or fragment.id in heavy
        small = fragment.num_rows < ROWS_PER_FILE or worn
        full = rows + fragment.num_rows > _ROWS_PER_TASK
        if run and (not small or full or covers.get(fragment.id) != covers.get(run[-1].id)):
            yield run
            run, rows = [], 0
        if small:
            run.append(fragment)
            rows += int(fragment.num_rows)
    if run:
        yield run


def _is_worthwhile(run: Sequence[Any], heavy: Collection[int]) -> bool:
    """A few rows more are no reason to write a large file again."""
    if any(_is_scarred(fragment) or fragment.id in heavy for fragment in run):
        return True
    sizes = sorted(int(fragment.num_rows) for fragment in run)
    return len(run) >= _MANY_FILES or (len(run) > 1 and 10 * sum(sizes[:-1]) >= sizes[-1])


def _is_scarred(fragment: Any) -> bool:
    """Whether too many of a file's rows are gone."""
    return bool(fragment.num_rows < (1 - _DELETED_SHARE) * fragment.physical_rows)


def _task(template: dict[str, Any], run: Sequence[Any]) -> str:
    options = {**template["options"], "data_storage_version": FILE_FORMAT}
    task = {"fragments": [fragment.to_json() for fragment in run]}
    return json.dumps({"task": task, "read_version": template["read_version"], "options": options})


def _identity(fragment: Any) -> tuple[Any, ...]:
    """What a fragment is made of: its files, and which of their rows are gone."""
    deletion = fragment.deletion_file
    mark = None if deletion is None else deletion.asdict()
    return (
        tuple(file.path for file in fragment.files),
        json.dumps(mark, sort_keys=True, default=str),
    )


def _numbered(groups: Sequence[Group], first: int) -> tuple[Group, ...]:
    numbered = []
    for group in groups:
        new = tuple(replace(file, id=first + place) for place, file in enumerate(group.new))
        numbered.append(Group(group.old, new))
        first += len(new)
    return tuple(numbered)


def _greatest_id(dataset: Any) -> int:
    """The greatest number that a file of the line ever had: Lance remembers files by them."""
    return first_number(dataset._ds.serialized_manifest(), _GREATEST_ID)
