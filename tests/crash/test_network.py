"""A network that fails, on two implementations of S3: every request of an operation meets faults.

Whatever happens: only errors of ours are raised; an acknowledged operation is there; one that
failed for certain is not; nothing half-done is visible; and afterwards the graph opens, recovers
and takes writes. In `make test` every fourth request of a few operations meets one fault, in
`make crash` each request of all of them two, which rotate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.crash.network import NOT_MET, NetworkStage, from_nth, nth_only
from tests.crash.nursery import Nursery, open_nursery
from tests.crash.sizes import FULL, note
from tests.support.faultproxy import FaultProxy, NetworkFault
from tests.support.s3 import BUCKET

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.s3, pytest.mark.timeout(3600)]

SERVERS = {"SeaweedFS": "s3_server", "moto": "second_s3_server"}
SCENES = ["three tables", "branch create", "deed merge"]
SWEPT = [*SCENES, "first rows", "tag", "branch delete", "deed schema apply", "verb optimize"]
# What one server is noted for: each operation, two with expired credentials, and stale lists.
PARTS = len(SWEPT if FULL else SCENES) + 3
ONCE = [fault for fault in NetworkFault if fault is not NetworkFault.EXPIRED]
LEASES = {"OMNIGRAPH_LEASE_TTL_MS": "3000"}


@pytest.fixture(scope="module", params=SERVERS)
def network(request: pytest.FixtureRequest) -> Iterator[tuple[str, Nursery, FaultProxy]]:
    """A server, a proxy before it, and a nursery whose children reach the one through the other."""
    server: Any = request.getfixturevalue(SERVERS[request.param])
    proxy = FaultProxy(server.endpoint)
    environ = {**server.environ(), "AWS_ENDPOINT_URL": proxy.endpoint, **LEASES}
    with open_nursery(**environ) as nursery:
        yield request.param, nursery, proxy
    proxy.close()


@pytest.fixture
def place() -> str:
    return f"s3://{BUCKET}/{uuid4().hex}"


def faults_at(nth: int, scene: str) -> list[NetworkFault]:
    """Faults rotate, so that neighbouring requests meet different ones."""
    first = (nth + len(scene)) % len(ONCE)
    return [ONCE[first], ONCE[(first + 3) % len(ONCE)]] if FULL else [ONCE[first]]


def _keep(server: str, what: str, raised: Counter[str]) -> None:
    """Count the cases. Nearly all must have met their fault, or the campaign shows nothing."""
    met = raised.total() - raised[NOT_MET]
    assert met > 0.6 * raised.total(), raised
    note("network", server=server, what=what, met=met, raised=dict(raised))


# ledger: R10 S02
@pytest.mark.parametrize("scene", SWEPT if FULL else SCENES)
def test_one_failed_request(
    network: tuple[str, Nursery, FaultProxy], place: str, scene: str
) -> None:
    server, nursery, proxy = network
    stage = NetworkStage(nursery, proxy, scene, place)
    raised: Counter[str] = Counter()
    step = 1 if FULL else 8
    for nth in range(1, len(stage.requests) + 1, step):
        for fault in faults_at(nth, scene):
            where = f"request {nth} ({stage.requests[nth - 1]})"
            raised[str(stage.meet(fault, nth_only(nth), where))] += 1
    _keep(server, f"one request of {scene}", raised)


# ledger: R10 S02
@pytest.mark.parametrize("scene", ["three tables", "deed merge"])
def test_credentials_that_expire_in_the_middle(
    network: tuple[str, Nursery, FaultProxy], place: str, scene: str
) -> None:
    """From some request on the server refuses everything, until new credentials are there."""
    server, nursery, proxy = network
    stage = NetworkStage(nursery, proxy, scene, place)
    raised: Counter[str] = Counter()
    step = max(1, len(stage.requests) // (24 if FULL else 3))
    for nth in range(1, len(stage.requests) + 1, step):
        where = f"request {nth} ({stage.requests[nth - 1]}) and all after it"
        raised[str(stage.meet(NetworkFault.EXPIRED, from_nth(nth), where))] += 1
    _keep(server, f"expired in {scene}", raised)
    assert raised.keys() - {NOT_MET, "None"}, "no request was refused"


# ledger: S02
def test_listings_that_are_stale_throughout(
    network: tuple[str, Nursery, FaultProxy], place: str
) -> None:
    """Every listing shows the state before the last operations. Writes are conditional on what they
    read, so they notice; nothing is lost or half-visible."""
    server, nursery, proxy = network
    raised: Counter[str] = Counter()
    for scene in SWEPT if FULL else SCENES:
        if scene != "branch create":
            stage = NetworkStage(nursery, proxy, scene, place)
            raised[str(stage.meet(NetworkFault.STALE_LIST, from_nth(1), "every listing"))] += 1
    _keep(server, "stale lists", raised)


# ledger: S02
def test_a_branch_made_from_a_stale_listing_starts_at_a_whole_commit(
    network: tuple[str, Nursery, FaultProxy], place: str
) -> None:
    """A reader of a stale listing sees an older commit, and may make a branch of it."""
    _, nursery, proxy = network
    uri = f"{place}/stale"
    nursery.run("prepare", "branch create", uri).result()
    main = nursery.run("look", uri).result()["view"]["branches"]["main"]
    proxy.fail(NetworkFault.STALE_LIST, from_nth(1))
    said = nursery.run("attempt", "branch create", uri).result()
    proxy.heal()
    assert proxy.met
    assert said["error"] is None, said
    branches = nursery.run("look", uri).result()["view"]["branches"]
    assert branches["main"] == main
    assert branches["f"] in ({}, main), "the branch shows a part of a commit"
