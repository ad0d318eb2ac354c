"""Fault points: named, counted, silent unless armed. ledger: R14 (the names and their actions)"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from omnigraph import faults
from omnigraph.errors import (
    InvalidArgumentError,
    OmniGraphError,
    StorageTransientError,
    VersionConflictError,
)

POINT = "commit.before_publish"
OTHER = "commit.after_publish"


def run_with(variable: str | None, code: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != faults.VARIABLE}
    if variable is not None:
        environment[faults.VARIABLE] = variable
    return subprocess.run(
        [sys.executable, "-c", "from omnigraph import faults\n" + code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_unarmed_point_does_nothing() -> None:
    faults.hit(POINT)


def test_raise_a_class_and_name_the_point() -> None:
    with (
        faults.armed(POINT, faults.Raise(StorageTransientError)),
        pytest.raises(StorageTransientError, match=POINT),
    ):
        faults.hit(POINT)
    faults.hit(POINT)


def test_raise_a_given_error() -> None:
    error = VersionConflictError("m", table="t", expected=1, actual=2)
    with faults.armed(POINT, faults.Raise(error)), pytest.raises(VersionConflictError) as caught:
        faults.hit(POINT)
    assert caught.value is error


def test_a_point_leaves_other_points_alone() -> None:
    with faults.armed(POINT, faults.Raise(OSError)) as entry:
        faults.hit(OTHER)
    assert entry.hits == 0


def hits_that_raise(action: faults.Raise, passes: int) -> list[int]:
    raised = []
    with faults.armed(POINT, action):
        for number in range(1, passes + 1):
            try:
                faults.hit(POINT)
            except OSError:
                raised.append(number)
    return raised


def test_only_the_nth_time() -> None:
    assert hits_that_raise(faults.Raise(OSError, nth=3), 7) == [3]


def test_every_nth_time() -> None:
    assert hits_that_raise(faults.Raise(OSError, every=3), 7) == [3, 6]


@pytest.mark.parametrize("counts", [{"nth": 1, "every": 1}, {"nth": 0}, {"every": -1}])
def test_counts_that_make_no_sense(counts: dict[str, int]) -> None:
    with pytest.raises(InvalidArgumentError):
        faults.Kill(**counts)


def test_two_actions_on_one_point_both_count() -> None:
    with (
        faults.armed(POINT, faults.Raise(OSError, nth=2)) as late,
        faults.armed(POINT, faults.Delay(0)) as always,
    ):
        faults.hit(POINT)
        with pytest.raises(OSError, match=POINT):
            faults.hit(POINT)
    assert (late.hits, always.hits) == (2, 2)


def test_delay_waits() -> None:
    begin = time.monotonic()
    with faults.armed(POINT, faults.Delay(30)):
        faults.hit(POINT)
    assert time.monotonic() - begin >= 0.03


def test_pause_until_an_event() -> None:
    release, passed = threading.Event(), threading.Event()

    def work() -> None:
        faults.hit(POINT)
        passed.set()

    with faults.armed(POINT, faults.Pause(release)) as entry:
        worker = threading.Thread(target=work)
        worker.start()
        assert entry.reached.wait(60)
        faults.hit(OTHER)  # a paused point holds nobody else up
        assert not passed.is_set()
        release.set()
        worker.join(60)
    assert passed.is_set()


def test_pause_until_a_file(tmp_path: Path) -> None:
    release = tmp_path / "go"
    with faults.armed(POINT, faults.Pause(release)):
        worker = threading.Thread(target=faults.hit, args=(POINT,))
        worker.start()
        while not (tmp_path / "go.reached").exists():
            time.sleep(0.001)
        assert worker.is_alive()
        release.touch()
        worker.join(60)
    assert not worker.is_alive()


def test_a_pause_does_not_last_for_ever(tmp_path: Path) -> None:
    for release in (threading.Event(), tmp_path / "never"):
        with (
            faults.armed(POINT, faults.Pause(release, limit_s=0.01)),
            pytest.raises(TimeoutError, match=POINT),
        ):
            faults.hit(POINT)


def test_kill_leaves_no_time_for_finally() -> None:
    done = run_with(
        f"{POINT}=kill@2",
        f"try:\n  faults.hit('{POINT}'); print('first', flush=True); faults.hit('{POINT}')\n"
        "finally:\n  print('finally', flush=True)",
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == "first\n"


def test_the_variable_arms_several_points() -> None:
    done = run_with(
        f"{POINT}=raise:StorageTransientError@2; {OTHER}=delay:1",
        f"faults.hit('{OTHER}'); faults.hit('{POINT}')\n"
        f"try:\n  faults.hit('{POINT}')\nexcept Exception as e:\n  print(type(e).__name__)",
    )
    assert (done.returncode, done.stdout) == (0, "StorageTransientError\n"), done.stderr


def test_every_form_of_the_variable() -> None:
    assert faults.parse(
        f"{POINT}=kill;{POINT}=kill@3;{POINT}=kill@every:4;{POINT}=raise:OSError;"
        f"{POINT}=delay:2.5@1;{POINT}=pause:/tmp/a@b/go@2;;"
    ) == [
        (POINT, faults.Kill()),
        (POINT, faults.Kill(nth=3)),
        (POINT, faults.Kill(every=4)),
        (POINT, faults.Raise(OSError)),
        (POINT, faults.Delay(2.5, nth=1)),
        (POINT, faults.Pause(Path("/tmp/a@b/go"), nth=2)),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("commit.before_publsh=kill", "Did you mean 'commit.before_publish'"),
        ("zebra=kill", "no fault point 'zebra'"),
        (POINT, "point=action"),
        (f"{POINT}=explode", "the action must be"),
        (f"{POINT}=kill:now", "the action must be"),
        (f"{POINT}=pause", "the action must be"),
        (f"{POINT}=raise:Nonsense", "no error class 'Nonsense'"),
        (f"{POINT}=raise:Diagnostic", "no error class 'Diagnostic'"),
        (f"{POINT}=raise:VersionConflictError", "arm it in process"),
        (f"{POINT}=delay:soon", "a number of milliseconds"),
        (f"{POINT}=kill@0", "count from 1"),
    ],
)
def test_a_malformed_variable_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        faults.parse(text)
    assert says in str(caught.value)


def test_an_unknown_name_in_the_variable_stops_the_program() -> None:
    done = run_with("zebra=kill", "print('ran')")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "no fault point 'zebra'" in done.stderr


def test_an_unknown_name_cannot_be_armed() -> None:
    with (
        pytest.raises(InvalidArgumentError, match="no fault point"),
        faults.armed("zebra", faults.Kill()),
    ):
        pass


def test_an_unknown_name_cannot_be_hit_while_names_are_checked() -> None:
    # tests/conftest.py sets the variable, so this holds in the whole test run.
    with pytest.raises(OmniGraphError, match="no fault point"):
        faults.hit("zebra")


def test_in_production_a_hit_looks_at_one_flag() -> None:
    done = run_with(None, "faults.hit('zebra'); print(faults._watching)")
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_disarming_turns_the_check_off_again() -> None:
    done = run_with(
        None,
        f"with faults.armed('{POINT}', faults.Delay(0)): print(faults._watching)\n"
        "print(faults._watching)",
    )
    assert done.stdout == "True\nFalse\n", done.stderr


def test_concurrent_hits_are_counted_once_each() -> None:
    raised: list[int] = []

    def work() -> None:
        for number in range(200):
            try:
                faults.hit(POINT)
            except OSError:
                raised.append(number)

    with faults.armed(POINT, faults.Raise(OSError, every=8)) as entry:
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert entry.hits == 800
    assert len(raised) == 100
