"""Render docs/reference/reliability.md from the figures of the last full run of `make crash`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parent.parent / "tests" / "crash" / "figures.json"
Figures = Mapping[str, Any]

INTRODUCTION = """\
The tests of `make crash` and their results. Every campaign is a set
of ordinary tests in `tests/crash`; `make test` runs all planted bugs, universes and kill cycles,
and a part of the rest. A failure names its seed, and the seed gives the same failure again:
`python -m tests.universe 17` runs one universe, `python -m tests.lives 17` one life.

Processes are killed, and power failures are simulated: data that was written and not yet flushed to
the disk is lost. Not tested: a disk that acknowledges a flush and loses the data (only its
symptoms, as damaged files), file systems other than ext4 with an ordered journal, a power
failure of several machines that share a network file system, and power failures of an S3 server.
"""

MEMORY = """\
### Memory

Queries, exports, loads, mutations and merges run in processes whose address space is limited. A
failed allocation of Python, NumPy or Arrow, and one that Lance reports, becomes `limit_exceeded`
(`storage_unknown` if it interrupted a change); the graph is as before, and the handle can be used.

Native code does not allow this everywhere: Rust, in which Lance is written, ends the process when
an allocation fails (SIGABRT), and so does the C library when a new thread gets no thread-local
data. Large operations therefore check the free memory first and leave a reserve of 48 MiB. Writes
with less than about 200 MB to spare can still be ended in this way; the next open recovers the
graph. Linux overcommits memory by default and kills a process later (the OOM killer): set a limit
of the container or `ulimit -v`, which are both respected, and keep 200 MB above what the process
uses when idle.
"""

LYING_DISK = """\
## A disk that lies

Every kind of file of a graph is damaged: one flipped bit, a page of zeros, cut to half, empty,
missing, older content, the content of another file of its kind, and not readable at all. Then the
graph is checked, queried and exported read-only, opened for writing, queried and written to. Each
of these must give the right answer or an error of OmniGraph; an older state counts as right only if
opening reported the loss. *Harmless*: all answers were right and nothing was reported.
*Reported*: all answers were right, and `fsck` or opening reported damage.

Lance keeps no checksums of its data, and OmniGraph adds none. A changed value in a data file, or
a data file in the place of another one of the same shape, can be returned as if it were right,
and `fsck` finds it only if it breaks the file, an index or a constraint. Of 40 single flipped
bits in data files of a small graph, 5 changed an answer: `fsck` reported 1 of these and missed 4.
Use a file system or an object store that has checksums of its own (ZFS, Btrfs, S3), or compare
with a backup. Derived files have checksums and are built again.

`fsck` names every file that is missing, empty or cut, as far as something refers to it: files of
heads, tags and older commits, branch references, idempotency keys, merge records, the schema's
text, and Lance's records of transactions and forks. It cannot know of these:

- a tag or `_settings.json` that is missing; the settings are then the default ones;
- the reference of a branch that has no commits of its own, or none since it was rebased;
- the idempotency key of a commit that was made before a branch was renamed for the second time;
- a version of a table that is missing as a whole and that no head or tag needs: it looks like one
  that cleanup removed.

It does not examine `__schema/ids.json`, data files that only older versions of a manifest need, and
schemas that no commit of a branch uses.

Read errors are real ones where the tests run as root and have loop devices: a file lies on a small
file system whose image ends before the blocks of the file, so that each read of it fails with EIO.
The error and `fsck` name the file (a data file of Lance, if its first or last bytes cannot be
read), and the same process continues to answer what does not need it.

Not played: a medium on which only some blocks of a file cannot be read, and slow disks other than
by delays in the fault sweep.
"""


def render(note: str, figures: Figures) -> str:
    parts = [note, "# Reliability", INTRODUCTION.rstrip(), _run(figures), *_sections(figures)]
    return "\n\n".join(parts) + "\n"


def _lineage(figures: Figures) -> list[tuple[str, str]]:
    found = figures.get("lineage")
    if not found:
        return []
    what = (
        "random histories of branches (criss-cross merges, rebases, reverts, picks, deleted "
        "branches, cleanup) against a model of the commit graph"
    )
    size = (
        f"{found['played']} histories, seeds {found['seeds']}, {found['operations']} operations, "
        f"{found['merges']} merges, {found['criss-cross merges']} of them both ways, "
        f"{found['rebases']} rebases, {found['cleanups']} cleanups"
    )
    return [(what, size)]


def load() -> Figures:
    found: Figures = json.loads(FIGURES.read_text())
    return found


def _run(figures: Figures) -> str:
    run = figures["run"]
    where = f"{run['date']}, Python {run['python']}, {run['cores']} cores"
    if not run["full"]:
        return (
            f"No full run has been kept yet. These figures ({where}) were put together from "
            "separate runs of the parts, at the sizes of `make test` or below: the universes were "
            "stopped early, and operations that failed at first were run again after a fix."
        )
    took = f", {run['minutes']} minutes" if run["minutes"] else ""
    return f"Last full run: {where}{took}, no failure."


def _sections(figures: Figures) -> Iterator[str]:
    sweep = figures["crash sweep"]
    yield "## Crash sweep"
    yield (
        "Every durable step of every operation (a control object written or removed, a Lance "
        "commit, fork, restore or cleanup, a publish) is recorded; then the operation is killed "
        "with SIGKILL just before and just after each step, recovered by another process, and "
        "checked by a third. Recording fails when a visible file changes outside of a step. In "
        "the second round the recovery itself is killed after each of its own steps."
    )
    yield (
        f"{sweep['windows crossed']} of {sweep['windows known']} windows crossed "
        f"({100 * sweep['windows crossed'] // max(1, sweep['windows known'])} %), and "
        f"{sweep['second kills in recovery']} second kills inside a recovery."
    )
    yield _table(
        ("operation", "steps", "windows", "crossed", "second kills"),
        [
            (e["operation"], e["steps"], e["known"], e["crossed"], e["in_recovery"])
            for e in figures["by operation"]
        ],
    )
    yield from _power(figures.get("power cuts"))
    yield "## Fault sweep"
    faults = figures["fault sweep"]
    yield (
        "The same steps, met by every fault: transient, permission, not found, precondition, disk "
        "full, torn write, slow, and done with its answer lost. Only errors of ours may come out; "
        "an operation that succeeded is there, and one that failed for certain left nothing."
    )
    yield f"{faults['faults met']} faults met. What the operations answered:"
    yield _table(
        ("answer", "times"),
        [("done" if name == "None" else f"`{name}`", n) for name, n in faults["raised"].items()],
    )
    yield "## Model universes, kills, isolation"
    universes, kills = figures["universes"], figures["kill loop"]
    crowds, isolation = figures["crowds"], figures["isolation"]
    yield _table(
        ("campaign", "size"),
        [
            (
                "random programs by two handles and other processes against an in-memory model",
                f"{universes['played']} universes, seeds {universes['seeds']}, "
                f"{universes['operations']} operations, {universes['killed processes']} killed",
            ),
            *_lives(figures),
            *_lineage(figures),
            (
                "writers killed at random times; every acknowledged commit is there, whole, once",
                f"{kills['cycles']} cycles, {kills['acknowledged commits']} acknowledged commits",
            ),
            (
                "crowds of processes that insert for each other, killed at random times; each "
                "insert is there once or never, and once if it was acknowledged",
                f"{crowds['cycles']} cycles, {crowds['acknowledged commits']} acknowledged "
                f"commits, {crowds['written by another process']} written by another process",
            ),
            (
                "concurrent list-append histories under an isolation checker (G0, G1a-c, G-single, "
                "G2, lost updates, session guarantees, real time)",
                f"{isolation['histories']} histories, {isolation['transactions']} transactions"
                + _places(isolation.get("by place", {})),
            ),
        ],
    )
    if figures.get("network"):
        yield "## A network that fails"
        yield (
            "Requests of operations on S3 that a proxy delays, resets, throttles, refuses with "
            "expired credentials, answers by half, not at all or with an error after the server "
            "has carried them out; and listings that show an older state."
        )
        yield _table(("server", "cases"), list(figures["network"].items()))
    soak = figures.get("soak")
    if soak and soak["seconds"]:
        yield "## Everything at once"
        yield (
            f"Writers, readers, maintenance and kills side by side for {soak['seconds']} seconds, "
            "with memory, open files, threads, disk and locks watched: "
            f"{soak['activities']} activities, {soak['killed']} processes killed. `make soak` runs "
            "the same for an hour."
        )
    yield "## Damaged objects and scarce resources"
    yield _table(("damaged", "tries"), list(figures["damaged objects"].items()))
    yield _table(("scarce", "what came of it"), [_resource(e) for e in figures["resources"]])
    yield MEMORY.rstrip()
    yield from _lying_disk(figures.get("lying disk"))
    yield "## Planted bugs"
    bugs = figures["planted bugs"]
    yield (
        f"{len(bugs)} mutants of the code that keeps data safe, each switched on by name "
        "(`tests/mutants`). Each must be caught within 50 seeds."
    )
    yield _table(
        ("bug", "room", "what it does", "caught by", "seed"),
        [(b["name"], b["room"], b["what"], b["check"], b["seed"]) for b in bugs],
    )


def _power(power: Mapping[str, Any] | None) -> Iterator[str]:
    yield "## Power cuts"
    yield (
        "A graph lies on an ext4 file system in a file. Its shutdown ioctl, without a flush of the "
        "journal, ends it as a power cut would; in half of the cuts the journal was written just "
        "before, so that new files are there and empty. Then it is mounted again, the graph is "
        "opened read-only, opened for writing, and checked: every acknowledged commit is there, "
        "whole and once, and the graph can be written to. Where there is no root or no loop device "
        "the campaign is skipped and not counted."
    )
    if not power or not power["cuts"]:
        yield "Not part of the last full run."
        return
    yield _table(
        ("power cuts", "size"),
        [
            ("all", power["cuts"]),
            ("at random instants, with one or two writers", power["cuts at random"]),
            ("operations cut at every durable step and after the end", power["operations"]),
            ("at a durable step of a recovery, or after it", power.get("cuts in recovery", 0)),
            ("acknowledged commits", power["acknowledged commits"]),
            ("unacknowledged states that were gone back on", power["states gone back"]),
            ("kinds of files whose missing sync is noticed", power["missing syncs noticed"]),
        ],
    )


def _lying_disk(kinds: Mapping[str, Mapping[str, int]] | None) -> Iterator[str]:
    yield LYING_DISK.rstrip()
    if not kinds:
        yield "Not part of the last full run."
        return
    names = ("tried", "harmless", "reported", "errors", "found_by_fsck_only", "unnoticed")
    yield _table(
        ("kind of file", *(name.replace("_", " ") for name in names)),
        [(kind, *(counts[name] for name in names)) for kind, counts in kinds.items()],
    )


def _places(counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    return " (" + ", ".join(f"{where}: {count}" for where, count in counts.items()) + ")"


def _lives(figures: Figures) -> list[tuple[str, str]]:
    """None before the first full run that has them."""
    lives = figures.get("lives")
    if not lives:
        return []
    size = (
        f"{lives['played']} lives, seeds {lives['seeds']}, {lives['queries']} queries, "
        f"{lives['operations']} other operations, {lives['refused']} of them rightly refused"
    )
    return [
        (
            "lives of random graphs, with queries that a second evaluator answers from their text",
            size,
        )
    ]


def _resource(entry: Mapping[str, Any]) -> tuple[str, str]:
    rest = {key: value for key, value in entry.items() if key != "what"}
    return entry["what"], ", ".join(f"{key.replace('_', ' ')}: {v}" for key, v in rest.items())


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)
