"""Figures of a reliability run: gathered from its tests, printed, and kept for the docs.

    python -m tests.crash.figures <folder> [--keep]

`make crash` runs the tests with OMNIGRAPH_FIGURES=<folder> and then this; with `--keep` (a full run
that ended green) the sums go to `tests/crash/figures.json`, from which `make docs` writes
`docs/reference/reliability.md`. A green run that did less than promised fails and is not kept.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.crash.errands import Fault
from tests.crash.sizes import (
    FULL,
    KILL_CYCLES,
    LINEAGES,
    UNIVERSES,
    USUAL_CYCLES,
    USUAL_LINEAGES,
    USUAL_UNIVERSES,
)
from tests.lives.sizes import ALL_QUERIES

LEAST_CUTS = 1_000
DISK_OUTCOMES = (
    "tried", "harmless", "reported", "errors", "found_by_fsck_only", "unnoticed",
)  # fmt: skip
KEPT = Path(__file__).with_name("figures.json")
Entry = Mapping[str, Any]
Figures = dict[str, Any]


def gather(folder: Path) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = defaultdict(list)
    for file in sorted(folder.glob("*.json")):
        entry = json.loads(file.read_text())
        found[entry.pop("campaign")].append(entry)
    return found


def total(entries: Sequence[Entry], key: str) -> int:
    return sum(int(entry.get(key, 0)) for entry in entries)


def summarize(found: Mapping[str, Sequence[Entry]]) -> Figures:
    """The sums of each campaign, in plain values."""
    sweep = found.get("crash sweep", [])
    faults = found.get("fault sweep", [])
    raised: Counter[str] = Counter()
    for entry in faults:
        raised.update(entry["raised"])
    universes, kills = found.get("universes", []), found.get("kill loop", [])
    crowds, lineage = found.get("crowds", []), found.get("lineage", [])
    lives = found.get("lives", [])
    network, soak = found.get("network", []), found.get("soak", [])
    cuts, spoiled = found.get("power cuts", []), found.get("missing syncs", [])
    isolation, damage = found.get("isolation", []), found.get("damaged objects", [])
    return {
        "crash sweep": {
            "operations": len(sweep),
            "steps": total(sweep, "steps"),
            "windows known": total(sweep, "known"),
            "windows crossed": total(sweep, "crossed"),
            "second kills in recovery": total(sweep, "in_recovery"),
        },
        "fault sweep": {
            "operations": len(faults),
            "faults met": total(faults, "met"),
            "raised": dict(sorted(raised.items())),
        },
        "universes": {
            "played": total(universes, "played"),
            "seeds": _span(universes),
            "operations": total(universes, "operations"),
            "killed processes": total(universes, "killed"),
        },
        "lives": {
            "played": total(lives, "lives"),
            "seeds": _span(lives),
            "queries": total(lives, "queries"),
            "operations": total(lives, "operations"),
            "refused": total(lives, "refused"),
        },
        "lineage": {
            "played": total(lineage, "played"),
            "seeds": _span(lineage),
            "operations": total(lineage, "operations"),
            "merges": total(lineage, "merges"),
            "criss-cross merges": total(lineage, "crossed"),
            "rebases": total(lineage, "rebases"),
            "cleanups": total(lineage, "cleanups"),
        },
        "kill loop": {
            "cycles": total(kills, "cycles"),
            "acknowledged commits": total(kills, "acknowledged"),
            "published commits": total(kills, "published"),
        },
        "power cuts": {
            "cuts": total(cuts, "cuts"),
            "operations": len({e["operation"] for e in cuts if "in_recovery" not in e}),
            "operations cut in recovery": len({e["operation"] for e in cuts if "in_recovery" in e}),
            "cuts in recovery": total(cuts, "in_recovery"),
            "cuts at random": total(_of(cuts, "at random"), "cuts"),
            "acknowledged commits": total(cuts, "acknowledged"),
            "states gone back": total(cuts, "undone"),
            "missing syncs noticed": len({e["kind"] for e in spoiled}),
        },
        "crowds": {
            "cycles": total(crowds, "cycles"),
            "acknowledged commits": total(crowds, "acknowledged"),
            "written by another process": total(crowds, "shared"),
        },
        "isolation": {
            "histories": total(isolation, "histories"),
            "transactions": total(isolation, "transactions"),
            "by place": {
                where: total([e for e in isolation if e["where"] == where], "histories")
                for where in sorted({e["where"] for e in isolation})
            },
        },
        "network": {
            server: total([e for e in network if e["server"] == server], "met")
            for server in sorted({e["server"] for e in network})
        },
        "network parts": {
            server: len([e for e in network if e["server"] == server])
            for server in sorted({e["server"] for e in network})
        },
        "soak": {key: total(soak, key) for key in ("seconds", "activities", "killed")},
        "read errors": sorted({e["kind"] for e in found.get("read errors", [])}),
        "damaged objects": {entry["kind"]: entry["tried"] for entry in _by(damage, "kind")},
        "lying disk": {
            entry["kind"]: {name: entry.get(name, 0) for name in DISK_OUTCOMES}
            for entry in _by(found.get("lying disk", []), "kind")
        },
        "resources": [dict(entry) for entry in _by(found.get("resources", []), "what")],
        "planted bugs": [dict(entry) for entry in _by(found.get("planted bugs", []), "name")],
        "by operation": [dict(entry) for entry in _by(sweep, "operation")],
    }


def _of(entries: Sequence[Entry], operation: str) -> list[Entry]:
    return [entry for entry in entries if entry["operation"] == operation]


def _by(entries: Sequence[Entry], key: str) -> list[Entry]:
    return sorted(entries, key=lambda entry: str(entry[key]))


def _span(entries: Sequence[Entry]) -> str:
    if not entries:
        return "none"
    return f"{min(e['first'] for e in entries)} to {max(e['last'] for e in entries)}"


def show(figures: Figures) -> None:
    """What `make crash` prints at its end."""
    for campaign, sums in figures.items():
        if isinstance(sums, dict):
            shown = ", ".join(f"{key}: {value}" for key, value in sums.items() if value)
            print(f"{campaign:16} {shown}")
    sweep = figures["crash sweep"]
    share = 100 * sweep["windows crossed"] / max(1, sweep["windows known"])
    print(f"windows crossed / known: {sweep['windows crossed']} / {sweep['windows known']}", end="")
    print(f" = {share:.0f} %")
    for bug in figures["planted bugs"]:
        print(f"  caught by {bug['check']:16} at seed {bug['seed']:2}: {bug['name']}")


def shortfalls(figures: Figures) -> list[str]:
    """What a full run promises and this one did not do."""
    from tests.crash.test_sweep import SWEPT
    from tests.mutants.catalogue import MUTANTS

    sweep, faults = figures["crash sweep"], figures["fault sweep"]
    promised = {
        "windows crossed": (sweep["windows crossed"], max(1, sweep["windows known"])),
        "operations swept": (sweep["operations"], len(SWEPT)),
        "operations that met faults": (faults["operations"], len(SWEPT)),
        "faults met": (faults["faults met"], sweep["steps"] * len(Fault)),
        "second kills in recovery": (sweep["second kills in recovery"], 1),
        "universes": (figures["universes"]["played"], UNIVERSES),
        "queries of lives": (figures["lives"]["queries"], ALL_QUERIES),
        "histories of the model": (figures["lineage"]["played"], LINEAGES),
        "kill cycles": (figures["kill loop"]["cycles"], KILL_CYCLES),
        "planted bugs caught": (len(figures["planted bugs"]), len(MUTANTS)),
    }
    promised |= _of_disks(figures) | _of_networks(figures) | _of_isolation(figures)
    return [f"{what}: {n} of {wanted}" for what, (n, wanted) in promised.items() if n < wanted]


Promised = dict[str, tuple[int, int]]


def _of_disks(figures: Figures) -> Promised:
    """Where power cannot be cut or reads do not fail, the campaign is skipped and not counted."""
    from tests.crash import badsectors, machine, test_lying_disk, test_read_errors
    from tests.crash.powercuts import SPOILED
    from tests.crash.test_sweep import SWEPT

    kinds = [kind for kind, counts in figures["lying disk"].items() if counts["tried"]]
    promised = {"kinds of damaged files": (len(kinds), len(test_lying_disk.KINDS))}
    if machine.why_not() is None:
        power = figures["power cuts"]
        promised["power cuts"] = (power["cuts"], LEAST_CUTS)
        promised["operations cut"] = (power["operations"], len(SWEPT))
        promised["operations cut in recovery"] = (power["operations cut in recovery"], len(SWEPT))
        promised["missing syncs noticed"] = (power["missing syncs noticed"], len(SPOILED))
    if badsectors.why_not() is None:
        promised["kinds of files that cannot be read"] = (
            len(figures["read errors"]),
            len(test_read_errors.KINDS),
        )
    return promised


def _of_networks(figures: Figures) -> Promised:
    from tests.crash.test_network import PARTS, SERVERS

    parts, met = figures["network parts"], figures["network"]
    promised = {f"parts on {name}": (parts.get(name, 0), PARTS) for name in SERVERS}
    return promised | {f"faults of the network on {n}": (met.get(n, 0), PARTS) for n in SERVERS}


def _of_isolation(figures: Figures) -> Promised:
    from tests.crash.test_crowds import FEW, MANY
    from tests.crash.test_isolation import LEAST
    from tests.crash.test_soak import SECONDS

    found = figures["isolation"]["by place"]
    promised = {
        f"histories of {name}": (found.get(name, 0), least) for name, least in LEAST.items()
    }
    soak = figures["soak"]
    return promised | {
        "seconds of everything at once": (soak["seconds"], SECONDS),
        "processes killed in it": (soak["killed"], 1),
        "cycles of crowds": (figures["crowds"]["cycles"], FEW + MANY),
    }


def main(arguments: list[str]) -> int:
    figures = summarize(gather(Path(arguments[0])))
    show(figures)
    if "--keep" in arguments:
        if missing := shortfalls(figures):
            print("less than was promised: " + "; ".join(missing))
            return 1
        sizes = ((UNIVERSES, USUAL_UNIVERSES), (KILL_CYCLES, USUAL_CYCLES))
        if any(size < usual for size, usual in (*sizes, (LINEAGES, USUAL_LINEAGES))):
            print("smaller than usual, as was asked for: not kept")
            return 0
        figures["run"] = {
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "full": FULL,
            "minutes": round(float(os.environ.get("CRASH_SECONDS") or 0) / 60, 1),
        }
        KEPT.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
        print(f"kept in {KEPT.name}; `make docs` writes docs/reference/reliability.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
