"""One list-append history of several processes, recorded and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.crash.listappend import KINDS, SESSIONS, final_read, new_lists, recorded
from tests.crash.nursery import Nursery, call
from tests.isolation.checker import find_anomalies, find_snapshot_anomalies
from tests.isolation.history import Anomaly, Transaction

import omnigraph

COUNT = 10
Check = Callable[[Sequence[Transaction]], list[Anomaly]]


def judge(
    nursery: Nursery, folder: Path, seed: int, kinds: Sequence[str] = KINDS, *, uri: str = ""
) -> tuple[list[Transaction], list[Anomaly]]:
    """A history of several processes, and what is wrong with it."""
    uri = uri or str(folder / "graph")
    logs = logs_in(folder)
    new_lists(uri, COUNT)
    calls = [
        call("append_to_lists", uri, str(log), number, seed, COUNT, list(kinds))
        for number, log in enumerate(logs)
    ]
    for ending in nursery.run_all(calls):
        ending.result()
    history = [*recorded(logs), final_read(uri)]
    assert omnigraph.open(uri).verify().findings == []
    return history, _check_for(kinds)(history)


def logs_in(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [folder / f"s{number}.jsonl" for number in range(SESSIONS)]


def _check_for(kinds: Sequence[str]) -> Check:
    return find_snapshot_anomalies if "fork" in kinds else find_anomalies
