"""Planted bugs: mutants of the code that keeps data safe, each switched on by its name.

A mutant is a set of patches, applied from outside; nothing of it is in the program. `applied`
switches one on for a block of this process, and `Nursery.planted` for a nursery's children. Each
says which check of the harness should notice it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import arguments
from omnigraph.commit import (
    audit,
    branches,
    decide,
    door,
    genesis,
    journal,
    preconditions,
    recovery,
    retention,
)
from omnigraph.commit.decide import Outcome, TableStatus
from omnigraph.engines import snapshotreader
from omnigraph.engines.embedded import (
    arrays,
    catalog_view,
    integrity,
    lineage,
    mutation,
    rownumbers,
)
from omnigraph.engines.expressions import integers
from omnigraph.history import ancestry, places
from omnigraph.history import manifestrows as rows
from omnigraph.history.refs import MAIN_BRANCH, branch_path
from omnigraph.lang.gq.check import paths, walks
from omnigraph.merges import bases, mergeplan, schemaconflicts, tablemerge
from omnigraph.model import snapshot as model_snapshot
from omnigraph.model.catalog import Catalog
from omnigraph.model.conflict import Side
from omnigraph.model.references import STORED
from omnigraph.model.visibility import Visibility, visible_catalog
from omnigraph.operations import lifecycle, merge, rebase, revert
from omnigraph.rows import checks as plan_checks
from omnigraph.rows import columns, setchecks, threeway
from omnigraph.storage import (
    blobpolicy,
    derived,
    incarnation,
    indexhealth,
    manifest,
    scratch,
    searchresult,
    text,
)
from omnigraph.storage import tableschema as storage_schemas
from omnigraph.storage.lockowner import LockToken
from omnigraph.writes import handoff, request, rowgroup

REFERENCES = "references"
UNIVERSE, LINEAGE, SWEEP, TWICE, ISOLATION, KILLS, CROWDS, RESTORES, SEARCHES, TEXTS, DECAY = (
    "universe",
    "history",
    "crash sweep",
    "kill in recovery",
    "isolation",
    "kill loop",
    "crowd loop",
    "restores",
    "search lives",
    "texts",
    "decay",
)
LIVES = "lives"
PRESSURE = "memory pressure"
VISIBILITY = "visibility"
Patch = tuple[Any, str, Any]


@dataclass(frozen=True)
class Mutant:
    """`patches` are made anew each time, since they wrap what is there. `scene`: for sweeps."""

    room: str
    what: str
    check: str
    patches: Callable[[], list[Patch]]
    scene: str = "verb ingest: append"


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _catalog_with_one_hash(catalog: Catalog, visibility: Visibility) -> Catalog:
    return replace(visible_catalog(catalog, visibility), hash=catalog.hash)


# Commit.


def _publish_first(root: Any, line: Any, proposal: Any, planned: Any, claimed: Any) -> Any:
    sidecar = door._sidecar(line.branch_id, planned, proposal)
    etag = journal.arm(root, sidecar)
    published = door._publish(line, proposal, planned, claimed)
    door._land_all(root, sidecar, proposal, etag, claimed.token)
    door._disarm_quietly(root, sidecar)
    return published


def _disarm_first(root: Any, line: Any, proposal: Any, planned: Any, claimed: Any) -> Any:
    sidecar = door._sidecar(line.branch_id, planned, proposal)
    etag = journal.arm(root, sidecar)
    door._land_all(root, sidecar, proposal, etag, claimed.token)
    door._disarm_quietly(root, sidecar)
    return door._publish(line, proposal, planned, claimed)


def _land_all_but_one(root: Any, sidecar: Any, proposal: Any, *rest: Any) -> None:
    fewer = replace(proposal, staged=proposal.staged[:-1] or proposal.staged)
    _LAND_ALL(root, sidecar, fewer, *rest)


_LAND_ALL = door._land_all


def _publish_without_comparing(self: Any, base: Any, *rest: Any) -> Any:
    return _PUBLISH(self, self.read(), *rest)


_PUBLISH = manifest.ManifestFile.publish


def _unlocked(store: Any, name: str, **how: Any) -> Any:
    from omnigraph.storage.lockowner import Holder

    holder = Holder.here(how.get("owner", ""), "write")
    return nullcontext(LockToken(name, 1, holder, lambda: None))


def _any_text(value: Any, what: str = "", **bounds: Any) -> Any:
    return value


def _by_version_alone(dataset: Any) -> bytes:
    return str(dataset.version).encode()


# Recovery.


def _forward_anyway(sidecar: Any, statuses: Any, settled: bool) -> Outcome:
    found = _OUTCOME(sidecar, statuses, settled)
    return Outcome.ROLLED_FORWARD if found is Outcome.ROLLED_BACK else found


_OUTCOME = decide._outcome


def _erase_first(root: Any, sidecar: Any, decision: Any, commit_id: Any) -> None:
    root.objects.delete(journal.sidecar_path(sidecar.id))
    audit.record(root, sidecar, decision, commit_id)


def _append_again(root: Any, row: Any) -> None:
    from omnigraph.storage import auditlog

    auditlog.append(root, row)


# Branches, birth, history.


def _register_first(root: Any, name: str, line: Any, sequence: int, actor: str) -> Any:
    late: list[Any] = []

    def remember(self: Any, rows: Any) -> None:
        late.append((self, rows))

    with patch.object(manifest.ManifestFile, "create", remember):
        branch = branches._begin(root, name, line, sequence, actor)
    branches._register(root, branch)
    for file, rows_ in late:
        file.create(rows_)
    return branch


def _unname_first(root: Any, branch: Any) -> None:
    if branch.renamed_from is not None:
        root.objects.delete(branch_path(branch.renamed_from))
    _REGISTER(root, branch)


_REGISTER = branches._register


def _manifest_first(root: Any, catalog: Any, source: str, actor: str) -> Any:
    first = genesis._first_commit(catalog, actor)
    state = rows.BranchState({}, (first,), (), None, 0)
    root.manifest("main").create(rows.encode_state(state))
    genesis.store_schema(root, catalog)
    root.objects.put(genesis.SCHEMA_SOURCE, source.encode())
    return first


def _forget_a_change(tables_: Any, commit: Any) -> Any:
    fewer = commit.changes[:-1] if len(commit.changes) > 1 else commit.changes
    return _APPLY(tables_, replace(commit, changes=fewer))


_APPLY = rows.apply_commit


# Merging and checking.


def _ours_wins(self: Any, table: Any, granularity: Any, strategy: Any, *rest: Any) -> None:
    _SETTLER(self, table, granularity, strategy or Side.OURS, *rest)


_SETTLER = threeway._Settler.__init__


def _keep_deleted(*args: Any, **kwargs: Any) -> Any:
    return replace(_MERGE_TABLE(*args, **kwargs), deletes=())


_MERGE_TABLE = threeway.merge_table


# Ancestry.


def _first_parents(self: Any, place: Any) -> list[Any]:
    return list(_PARENTS(self, place))[:1]


_PARENTS = places.Places.parents


def _chain_by_time(root: Any, head: Any, known: Any) -> list[Any]:
    """The first parents that are younger than the newest common ancestor."""
    since = ancestry.merge_bases(root, [head], [known]).newest.commit.created_at_us
    chain, place = [], head
    while place is not None and place.commit.created_at_us > since:
        chain.append(place)
        place = ancestry.parent_of(root, place)
    return chain[::-1]


def _newest_base(root: Any, ours: Any, theirs: Any) -> Any:
    return ancestry.Bases(ancestry.merge_bases(root, ours, theirs).places[:1])


def _bases_with_main(root: Any, heads: Any) -> list[Any]:
    main, *others = heads
    return [ancestry.merge_bases(root, [main], [head]).newest for head in others]


def _only_updates(diff: Any, item: Any) -> list[str]:
    was = diff.before.column("id")
    inside = pc.is_in(diff.after.column("id"), value_set=was.combine_chunks())
    return _SET_IN(replace(diff, after=diff.after.filter(inside)), item)


_SET_IN = schemaconflicts._set_in


def _unchecked(kind: type[Any]) -> Callable[[], list[Patch]]:
    runners = {**integrity._RUNNERS, kind: _nothing}
    return lambda: [(integrity, "_RUNNERS", runners)]


def _nowhere(column: Any) -> Any:
    return pa.array([False] * len(column))


def _leniently(op: Any, left: Any, right: Any, wanted: Any, strict: bool) -> Any:
    return _ONE_BY_ONE(op, left, right, wanted, False)


_ONE_BY_ONE = integers._one_by_one

# Searching.


def _by_count(table: Any, column: str, fragments: Any) -> Any:
    marks = [(tuple(f.path for f in m.files), repr(m.deletion_file)) for m in _metadata(fragments)]
    return column, tuple(marks)


# Memory.


def _by_version(version: Any, serial: int) -> Any:
    return rownumbers.Label(version, rownumbers.FROM_NOTHING)


def _taken_again(view: Any) -> Any:
    return view.resident.arrays(view._bounds)


def _metadata(fragments: Any) -> list[Any]:
    return [fragment.metadata for fragment in fragments]


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


MUTANTS: dict[str, Mutant] = {
    "skip the requirements": Mutant(
        "commit",
        "a write lands on a state that it was not prepared for",
        UNIVERSE,
        lambda: [(door, "check_requirements", _nothing), (door, "refuse_drift", _nothing)],
    ),
    "skip the fence of reads": Mutant(
        "commit",
        "what a write's checks read may change under it",
        UNIVERSE,
        lambda: [(preconditions, "_check_unchanged", _nothing)],
    ),
    "fence only what is written": Mutant(
        "commit",
        "a write does not say what its checks have read",
        UNIVERSE,
        lambda: [(rowgroup, "_requirements", _constant([]))],
    ),
    "publish before the tables": Mutant(
        "commit", "the manifest names versions that are not there yet", SWEEP,
        lambda: [(door, "_carry_out", _publish_first)],
    ),
    "publish without one table": Mutant(
        "commit", "the last table of a commit is not landed", UNIVERSE,
        lambda: [(door, "_land_all", _land_all_but_one)],
    ),
    "publish without comparing": Mutant(
        "commit", "the manifest is replaced whatever it says by now", ISOLATION,
        lambda: [
            (manifest.ManifestFile, "publish", _publish_without_comparing),
            (door, "writer_lock", _unlocked),
        ],
    ),
    "no sidecar": Mutant(
        "commit", "tables move without a record", SWEEP,
        lambda: [(journal, "arm", _constant("etag")), (journal, "confirm", _nothing)],
    ),
    "drop the sidecar early": Mutant(
        "commit", "the record goes before the publish", SWEEP,
        lambda: [(door, "_carry_out", _disarm_first)],
    ),
    "keep the sidecar": Mutant(
        "commit", "the record of a finished commit stays", SWEEP,
        lambda: [(journal, "disarm", _nothing)],
    ),
    "acknowledge without publishing": Mutant(
        "commit", "a commit is told and never made visible", UNIVERSE,
        lambda: [(door, "publish", lambda line, commits, *rest: list(commits))],
    ),
    "no writer lock": Mutant(
        "commit", "two writers prepare, land and publish at once", ISOLATION,
        lambda: [(door, "writer_lock", _unlocked), (recovery, "writer_lock", _unlocked)],
    ),
    "forget what a dead holder did": Mutant(
        "commit", "a request that another process had carried out is carried out again", CROWDS,
        lambda: [(handoff, "_left_commit", _nothing)],
    ),
    "a version number names a manifest": Mutant(
        "storage", "a manifest of the same version in a restored graph is taken for the old one",
        RESTORES,
        lambda: [(manifest, "_transaction", _by_version_alone)],
    ),
    "a restored graph is the same graph": Mutant(
        "storage", "what was cached of a graph is used for the one restored in its place", RESTORES,
        lambda: [(incarnation, "_continues", _constant(True))],
    ),
    "store any text": Mutant(
        "commit", "a message that no store can hold is written into the history", TEXTS,
        lambda: [
            *((room, "check_text", _any_text) for room in (arguments, preconditions, request)),
            (rows, "encode_payload", json.dumps),
            (journal, "encode_object", lambda value: json.dumps(value).encode()),
        ],
    ),
    "roll half forward": Mutant(
        "recovery", "a commit is published of which a part has landed", SWEEP,
        lambda: [(decide, "_outcome", _forward_anyway)],
    ),
    "recovery forgets the branch": Mutant(
        "recovery", "whatever waits is taken for a deleted branch's", SWEEP,
        lambda: [(recovery, "list_branches", _constant([]))],
    ),
    "restore nothing": Mutant(
        "recovery", "a roll-back publishes without putting tables back", SWEEP,
        lambda: [(recovery, "_restore_tables", _constant([]))],
    ),
    "settle twice": Mutant(
        "recovery", "a commit that is visible already is published again", SWEEP,
        lambda: [(recovery, "_settling_commit", _nothing)],
    ),
    "recover without an audit": Mutant(
        "recovery", "nobody learns of a recovery", SWEEP,
        lambda: [(audit, "record", _nothing)],
    ),
    "audit twice": Mutant(
        "recovery", "a recovery that is repeated is told twice", TWICE,
        lambda: [(audit, "_append_once", _append_again)],
    ),
    "erase before the audit": Mutant(
        "recovery", "the record goes before the audit row", TWICE,
        lambda: [(recovery, "_close", _erase_first)],
    ),
    "take a foreign version for ours": Mutant(
        "recovery", "what nobody landed counts as landed", SWEEP,
        lambda: [(decide, "classify", _constant(TableStatus.LANDED))],
    ),
    "register before the manifest": Mutant(
        "branches", "a branch has a name before it exists", SWEEP,
        lambda: [(branches, "begin_branch", _register_first)], "branch create",
    ),
    "rename by deleting first": Mutant(
        "branches", "for a moment a renamed branch has no name", SWEEP,
        lambda: [(branches, "_register", _unname_first)], "branch rename",
    ),
    "graph before its schema": Mutant(
        "branches", "a graph exists before its schema is stored", SWEEP,
        lambda: [
            (room, "create_graph", _manifest_first)
            for room in (genesis, lifecycle)
            if hasattr(room, "create_graph")
        ], "deed import",
    ),
    "forget a change": Mutant(
        "history", "a commit's last table keeps its old version", UNIVERSE,
        lambda: [(rows, "apply_commit", _forget_a_change)],
    ),
    "cleanup forgets tags": Mutant(
        "retention", "what a tag names is removed", UNIVERSE,
        lambda: [(retention, "list_tags", _constant([]))],
    ),
    "cleanup forgets branches": Mutant(
        "retention", "what only another branch needs is removed", UNIVERSE,
        lambda: [(retention, "list_branches", _constant([MAIN_BRANCH]))],
    ),
    "merge by our side": Mutant(
        "merge", "what clashes is decided without asking", UNIVERSE,
        lambda: [(threeway._Settler, "__init__", _ours_wins)],
    ),
    "merge keeps what was deleted": Mutant(
        "merge", "rows that the other side deleted come back", UNIVERSE,
        lambda: [(tablemerge, "merge_table", _keep_deleted)],
    ),
    "merge without rules": Mutant(
        "merge", "two sides that hold together break a rule", UNIVERSE,
        lambda: [(mergeplan, "find_violations", _constant([]))],
    ),
    "merge leaves orphans": Mutant(
        "merge", "edges stay whose nodes the other side deleted", UNIVERSE,
        lambda: [
            (mergeplan, "find_orphans", _constant([])),
            (mergeplan, "find_violations", _constant([])),
        ],
    ),
    "merge forgets merges": Mutant(
        "merge", "what was merged before is merged again", UNIVERSE,
        lambda: [(places.Places, "parents", _first_parents)],
    ),
    "merge with the newest base": Mutant(
        "merge", "of several common ancestors one is taken, and the others are undone", LINEAGE,
        lambda: [(merge, "merge_bases", _newest_base)],
    ),
    "merge records by time": Mutant(
        "merge", "commits that are older than the merge base are not recorded", LINEAGE,
        lambda: [(merge, "own_chain", _chain_by_time)],
    ),
    "rebase by time": Mutant(
        "merge", "own commits that are older than the merge base are left out", LINEAGE,
        lambda: [(rebase, "own_chain", _chain_by_time)],
    ),
    "merge drops inserted values": Mutant(
        "merge", "new rows lose values of a property that the other side dropped", LINEAGE,
        lambda: [(schemaconflicts, "_set_in", _only_updates)],
    ),
    "merge forgets what is contested": Mutant(
        "merge", "where common ancestors disagree, one of them is taken", LINEAGE,
        lambda: [(bases, "_united", _constant({}))],
    ),
    "cleanup keeps bases with main only": Mutant(
        "retention", "what other branches have in common is removed", LINEAGE,
        lambda: [(retention, "junctions", _bases_with_main)],
    ),
    "revert the other way": Mutant(
        "merge", "a revert does again what it should undo", UNIVERSE,
        lambda: [(revert.Change, "reversed", lambda self: self)],
    ),
    "no uniqueness": Mutant(
        "validation", "a unique value is given out twice", UNIVERSE,
        _unchecked(setchecks.Unique),
    ),
    "no ends": Mutant(
        "validation", "edges point to nodes that are not there", UNIVERSE,
        _unchecked(setchecks.Endpoint),
    ),
    "no cardinality": Mutant(
        "validation", "a node gets more edges than allowed", UNIVERSE,
        _unchecked(setchecks.Count),
    ),
    "no allow-list": Mutant(
        "validation", "a blob refers to a place that is not allowed", REFERENCES,
        lambda: [(blobpolicy.AllowList, "admit", lambda self, address: address)],
    ),
    "marks of references are believed": Mutant(
        "validation", "a reference that says that it was stored is not checked", REFERENCES,
        lambda: [(storage_schemas, "is_proven", lambda value: value.startswith(STORED))],
    ),
    "append over what is there": Mutant(
        "validation", "an append takes an id that is taken", UNIVERSE,
        _unchecked(setchecks.FreeId),
    ),
    "delete without edges": Mutant(
        "validation", "a deleted node leaves its edges", UNIVERSE,
        lambda: [(mutation.Mutation, "_incident", _constant(()))],
    ),
    "search finds the dead": Mutant(
        "search", "rows that an index still names are taken for those beside them", SEARCHES,
        lambda: [
            (searchresult.Scope, "existing", lambda self, row_ids: row_ids == row_ids),
            (rownumbers, "places_of", lambda ascending, wanted: ascending.searchsorted(wanted)),
        ],
    ),
    "believe derived files": Mutant(
        "search", "what is kept beside the tables is used without comparing checksums", DECAY,
        lambda: [(derived, "_verify", _nothing)],
    ),
    "insist on indexes": Mutant(
        "search", "a read fails with the index that it asked", DECAY,
        lambda: [(indexhealth, "DAMAGE", ()), (text, "DAMAGE", ())],
    ),
    "branches share a text index": Mutant(
        "search", "the rows that are gone are counted instead of named", SEARCHES,
        lambda: [(scratch, "scratch_key", _by_count)],
    ),
    "arrays by version only": Mutant(
        "memory", "arrays by number are used with any numbering of their version", PRESSURE,
        lambda: [(arrays, "Label", _by_version), (lineage, "Label", _by_version)],
    ),
    "a numbering for each access": Mutant(
        "memory", "a query takes the numbering again whenever it needs it", PRESSURE,
        lambda: [
            (catalog_view.TypeView, "arrays", property(_taken_again)),
            (catalog_view.TypeView, "numbering", property(lambda view: view.arrays.numbering)),
        ],
    ),
    "kept in any numbering": Mutant(
        "memory", "adjacency is kept on disk whatever numbering it is in", PRESSURE,
        lambda: [(rownumbers.Numbering, "is_from_nothing", True)],
    ),
    "fuzzy leaves words as they are": Mutant(
        "search", "a word is compared with stems, and its own stem is not", SEARCHES,
        lambda: [(text, "fuzzy_terms", str.split)],
    ),
    "integers become null": Mutant(
        "validation", "an integer beyond its type is written as null", LIVES,
        lambda: [(integers, "_one_by_one", _leniently)],
    ),
    "dates without ends": Mutant(
        "validation", "days outside of the calendar are let in", LIVES,
        lambda: [
            (columns, "has_outside", _constant(False)),
            (plan_checks, "has_outside", _constant(False)),
            (plan_checks, "outside", _nowhere),
        ],
    ),
    "visibility without its hash": Mutant(
        "memory", "tables in memory are shared by all visibilities", VISIBILITY,
        lambda: [(snapshotreader.SnapshotReader, "cache_key", _constant(()))],
    ),
    "plans without the visibility": Mutant(
        "queries", "compiled queries and plans are shared by all visibilities", VISIBILITY,
        lambda: [(model_snapshot, "visible_catalog", _catalog_with_one_hash)],
    ),
    "walks touch both ends": Mutant(
        "queries", "a walk of several hops keeps only edges that touch both of its ends", LIVES,
        lambda: [
            (walks, "ways", lambda options, src, dst, low, high: paths._single(options, src, dst))
        ],
    ),
}  # fmt: skip


@contextmanager
def applied(name: str) -> Iterator[None]:
    """Switch a mutant on for a block; no name, no mutant."""
    with ExitStack() as stack:
        for target, attribute, value in MUTANTS[name].patches() if name else ():
            stack.enter_context(patch.object(target, attribute, value))
        yield
