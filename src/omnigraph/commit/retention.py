"""Retention: every table version that can still be read.

A state of a branch is kept while it is among the newest `keep` commits, or was the branch's head at
any time within `older_than` (and, for readers that are still at work, within `grace`). The newest
state is always kept; so are tags, the states at which branches began, every state that a later
merge or rebase between any two branches compares with, and whatever a pending recovery names.

Guarantees: reads only; a version that is not reported here can be removed without anybody noticing
but those who ask for a state that the policy gives up.
Deliberately absent: removing (`cleanup`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.commit import journal
from omnigraph.errors import InvalidArgumentError
from omnigraph.history.ancestry import Place, head_of, junctions
from omnigraph.history.log import BranchLog, commit_at, lines
from omnigraph.history.manifestrows import whole_commit
from omnigraph.history.refs import Branch, list_branches, list_tags
from omnigraph.model.commit import Commit
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import owner_of

DAY_S = 86_400.0
GRACE_S = 3_600.0
# Lance keeps files that no version names for as long, in case their writer is still at work.
LITTER_S = 7 * DAY_S

LineKey = tuple[str, str | None]  # path and fork


@dataclass(frozen=True, slots=True)
class Policy:
    """How much history stays readable. A state is given up when neither rule keeps it.

    `grace_s`: what was current so recently stays whatever the rules say, for readers that are still
    at work. `litter_s`: what no commit ever named is left alone for so long, for its writer.
    """

    keep: int | None = None
    older_than_s: float | None = None
    grace_s: float = GRACE_S
    litter_s: float = LITTER_S

    def check(self) -> Policy:
        if self.keep is None and self.older_than_s is None:
            raise InvalidArgumentError(
                "Cleanup needs a policy.",
                hint="Give the number of commits to keep, or their age, or both.",
            )
        if self.keep is not None and self.keep < 1:
            raise InvalidArgumentError("At least the newest commit of a branch must be kept.")
        if min(self.older_than_s or 0, self.grace_s, self.litter_s) < 0:
            raise InvalidArgumentError("A length of time cannot be negative.")
        return self


@dataclass
class Needs:
    """Versions by line, the heads that writers stand on, and the branches whose manifests count.
    `seen` are the branches as they were read: what they published later is not in here."""

    versions: dict[LineKey, set[int]] = field(default_factory=lambda: defaultdict(set))
    heads: dict[LineKey, int] = field(default_factory=dict)
    branch_ids: set[str] = field(default_factory=set)
    seen: list[BranchLog] = field(default_factory=list)

    def add(self, tables: Iterable[TableVersion]) -> None:
        for version in tables:
            self.versions[version.path, version.fork].add(version.version)

    def needs_path(self, path: str) -> bool:
        return any(key[0] == path for key, kept in self.versions.items() if kept)

    def forks(self, path: str) -> set[str | None]:
        return {key[1] for key, kept in self.versions.items() if key[0] == path and kept}


def needs_of(root: GraphRoot, policy: Policy, now_us: int | None = None) -> Needs:
    """All that must stay under a policy."""
    now = time.time_ns() // 1000 if now_us is None else now_us
    needs = Needs()
    # Records first: a writer puts its own away only after its commit is visible.
    _keep_recoveries(root, needs)
    branches = list_branches(root)
    for branch in branches:
        _keep_branch(root, branch, policy, now, needs)
    _keep_bases(root, branches, needs)
    for tag in list_tags(root):
        line = BranchLog(root, tag.branch_id)
        needs.add(line.tables_after(tag.sequence).values())
        _keep_manifests(line, needs)
    return needs


def _keep_branch(root: GraphRoot, branch: Branch, policy: Policy, now: int, needs: Needs) -> None:
    line = BranchLog(root, branch.id)
    needs.seen.append(line)
    _keep_manifests(line, needs)
    for version in line.state.tables.values():
        if owner_of(version) == branch.id:
            needs.heads.setdefault((version.path, version.fork), version.version)
    needs.add(_kept_states(root, branch.id, policy, now))
    if line.state.fork is not None:
        needs.add(line.tables_after(line.state.fork.sequence).values())


def _keep_bases(root: GraphRoot, branches: Sequence[Branch], needs: Needs) -> None:
    """What merges and rebases between any branches, and branches that begin at tags, compare
    with."""
    heads = [head_of(BranchLog(root, branch.id)) for branch in branches]
    for tag in list_tags(root):
        line = BranchLog(root, tag.branch_id)
        heads.append(Place(commit_at(line, tag.sequence), line))
    for place in junctions(root, heads):
        needs.add(place.tables().values())


def _kept_states(
    root: GraphRoot, branch_id: str, policy: Policy, now_us: int
) -> Iterator[TableVersion]:
    """The table versions of the states of a branch that a policy keeps: those of the oldest, and
    whatever the commits after it changed."""
    age_s = max(policy.older_than_s or 0.0, policy.grace_s)
    oldest_us = now_us - int(age_s * 1_000_000)
    left = policy.keep or 1
    replaced_us = now_us
    last: tuple[BranchLog, Commit] | None = None
    for line, newest in lines(root, branch_id):
        for commit in line.own_commits(newest):
            if left <= 0 and replaced_us <= oldest_us:
                break
            if last is not None:
                yield from whole_commit(last[1]).changes
            left, replaced_us, last = left - 1, commit.created_at_us, (line, commit)
        else:
            continue
        break
    assert last is not None
    yield from last[0].tables_after(last[1].sequence).values()


def _keep_manifests(line: BranchLog, needs: Needs) -> None:
    fork = line.state.fork
    elders = (fork.branch_id, *fork.elders) if fork else ()
    needs.branch_ids.update((line.branch_id, *elders))


def _keep_recoveries(root: GraphRoot, needs: Needs) -> None:
    for sidecar in journal.pending(root):
        for commit in sidecar.commits:
            needs.add(commit.changes)
        for table in sidecar.tables:
            key = (table.path, table.fork)
            needs.versions[key].add(table.expected)
            needs.heads[key] = table.expected


def published_lines(branches: Iterable[BranchLog]) -> set[LineKey]:
    """Every line that a commit of these branches named, up to the state that was read."""
    found: set[LineKey] = set()
    for line in branches:
        for commit in line.own_commits(line.state.head.sequence):
            changes = whole_commit(commit).changes
            found.update((version.path, version.fork) for version in changes)
    return found


def superfluous(existing: Iterable[int], key: LineKey, needs: Needs) -> list[int]:
    """The versions of a line that nothing needs. What lies above a branch's head is not cleanup's
    to judge: a writer is at work there, or it has to be repaired."""
    ceiling = needs.heads.get(key)
    kept: Mapping[LineKey, set[int]] = needs.versions
    wanted = kept.get(key, set())
    return [v for v in existing if v not in wanted and (ceiling is None or v < ceiling)]
