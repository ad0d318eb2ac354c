"""The verdict over long runs notices leaks, lost rows and rows that nobody wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.soak.gauges import Sample
from tests.soak.verdict import expected, growth

STEADY = {
    "memory of anna MiB": 300.0,
    "threads of anna": 20.0,
    "open files of anna": 60.0,
    "disk MiB": 40.0,
    "files in __locks": 8.0,
}


def run(**leaks: float) -> list[Sample]:
    """Samples of a run in which a gauge grows by so much per sample."""
    grown = {name.replace("_", " "): each for name, each in leaks.items()}
    return [
        Sample(60.0 * n, {name: value + n * grown.get(name, 0.0) for name, value in STEADY.items()})
        for n in range(60)
    ]


def test_a_steady_run_passes() -> None:
    assert growth(run()) == []


@pytest.mark.parametrize(
    ("gauge", "each"),
    [("memory of anna MiB", 8), ("threads of anna", 1), ("open files of anna", 1), ("disk MiB", 3)],
)
def test_a_leak_is_found(gauge: str, each: float) -> None:
    found = growth(run(**{gauge: each}))
    assert [words.split(":")[0] for words in found] == [gauge]


def test_what_grows_during_warm_up_only_is_no_leak() -> None:
    samples = [
        Sample(60.0 * n, {"memory of anna MiB": min(400.0, 100.0 + 30 * n)}) for n in range(60)
    ]
    assert growth(samples) == []


def test_a_fast_leak_is_found_in_a_short_run() -> None:
    samples = [Sample(n, {"open files of anna": 60.0 + 4 * n}) for n in range(60)]
    assert growth(samples) == ["open files of anna: 178 to 258"]


def test_too_few_samples_give_no_verdict() -> None:
    with pytest.raises(ValueError, match="too few"):
        growth(run()[:6])


def log_of(folder: Path, *entries: tuple[str, str]) -> Path:
    log = folder / "a.log"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return log


def test_the_logs_say_what_the_graph_must_and_may_hold(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        ("+", "kept"), ("done", "kept"),
        ("+", "deleted"), ("done", "deleted"), ("-", "deleted"), ("done", "deleted"),
        ("+", "refused"), ("refused", "refused"),
        ("+", "unclear"), ("unclear", "unclear"),
        ("+", "killed"),
    )  # fmt: skip
    wanted = expected([log])
    assert (wanted.must, wanted.may) == ({"kept"}, {"unclear", "killed"})
    assert wanted.differences({"kept", "killed"}) == []
    assert wanted.differences({"unclear", "deleted"}) == [
        "lost: kept",
        "not written by anyone: deleted",
    ]
