"""A run that did less than a full one promises is noticed, whatever its tests say."""

from __future__ import annotations

from tests.crash.errands import Fault
from tests.crash.figures import LEAST_CUTS, shortfalls, summarize
from tests.crash.powercuts import SPOILED
from tests.crash.sizes import KILL_CYCLES, LINEAGES, UNIVERSES
from tests.crash.test_sweep import SWEPT
from tests.lives.sizes import ALL_QUERIES
from tests.mutants.catalogue import MUTANTS


def full_run() -> dict[str, list[dict[str, object]]]:
    swept = {"steps": 2, "known": 4, "crossed": 4, "in_recovery": 1}
    return {
        "crash sweep": [{"operation": name, **swept} for name in SWEPT],
        "fault sweep": [{"operation": name, "met": 2 * len(Fault), "raised": {}} for name in SWEPT],
        "universes": [{"played": UNIVERSES, "first": 0, "last": UNIVERSES - 1}],
        "lives": [{"queries": ALL_QUERIES, "first": 0, "last": 9}],
        "lineage": [{"played": LINEAGES, "first": 0, "last": LINEAGES - 1}],
        "kill loop": [{"cycles": KILL_CYCLES}],
        "power cuts": [{"operation": name, "cuts": LEAST_CUTS} for name in SWEPT],
        "missing syncs": [{"kind": kind} for kind in SPOILED],
        "planted bugs": [{"name": name} for name in MUTANTS],
    }


def test_a_full_run_falls_short_of_nothing() -> None:
    assert shortfalls(summarize(full_run())) == []


def test_what_is_missing_is_told() -> None:
    found = full_run()
    found["crash sweep"][0]["crossed"] = 3
    found["planted bugs"].pop()
    del found["kill loop"]
    told = " ".join(shortfalls(summarize(found)))
    assert "windows crossed" in told
    assert "planted bugs" in told
    assert "kill cycles" in told
    assert "universes" not in told
