"""A run that did less than a full one promises is noticed, whatever its tests say."""

from __future__ import annotations

import pytest
from tests.crash import test_lying_disk, test_read_errors
from tests.crash.errands import Fault
from tests.crash.figures import LEAST_CUTS, shortfalls, summarize
from tests.crash.powercuts import SPOILED
from tests.crash.sizes import KILL_CYCLES, LINEAGES, UNIVERSES
from tests.crash.test_crowds import FEW, MANY
from tests.crash.test_isolation import LEAST
from tests.crash.test_network import PARTS, SERVERS
from tests.crash.test_soak import SECONDS
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
        "power cuts": [
            *({"operation": name, "cuts": LEAST_CUTS} for name in SWEPT),
            *({"operation": name, "cuts": 1, "in_recovery": 1} for name in SWEPT),
        ],
        "lying disk": [{"kind": kind, "tried": 8} for kind in test_lying_disk.KINDS],
        "read errors": [{"kind": kind} for kind in test_read_errors.KINDS],
        "network": [{"server": name, "met": 9} for name in SERVERS for _ in range(PARTS)],
        "isolation": [{"where": name, "histories": n} for name, n in LEAST.items()],
        "soak": [{"seconds": SECONDS, "killed": 2}],
        "crowds": [{"cycles": FEW + MANY}],
        "missing syncs": [{"kind": kind} for kind in SPOILED],
        "planted bugs": [{"name": name} for name in MUTANTS],
    }


def test_a_full_run_falls_short_of_nothing() -> None:
    assert shortfalls(summarize(full_run())) == []


def test_what_is_missing_is_listed() -> None:
    found = full_run()
    found["crash sweep"][0]["crossed"] = 3
    found["planted bugs"].pop()
    del found["kill loop"]
    listed = " ".join(shortfalls(summarize(found)))
    assert "windows crossed" in listed
    assert "planted bugs" in listed
    assert "kill cycles" in listed
    assert "universes" not in listed


@pytest.mark.parametrize(
    "campaign", ["lying disk", "network", "isolation", "soak", "crowds", "lineage", "lives"]
)
def test_19_a_campaign_that_was_skipped_is_a_shortfall(campaign: str) -> None:
    found = full_run()
    del found[campaign]
    assert shortfalls(summarize(found)) != []


def test_19_a_server_that_was_skipped_is_a_shortfall() -> None:
    found = full_run()
    found["network"] = [each for each in found["network"] if each["server"] == "moto"]
    assert "parts on SeaweedFS: 0" in " ".join(shortfalls(summarize(found)))
