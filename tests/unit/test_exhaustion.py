"""Failed allocations become `LimitExceededError`, and are never taken for damage."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph import headroom
from omnigraph.cli.main import run
from omnigraph.engines.base import Limits
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.errors import LimitExceededError, StorageUnknownError
from omnigraph.exhaustion import is_exhaustion, reports_exhaustion
from omnigraph.storage.failures import translated
from omnigraph.storage.wholeness import DAMAGE

FAILURES = (
    MemoryError("Unable to allocate 313. KiB"),
    pa.lib.ArrowMemoryError("malloc of size 64 failed"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    OSError("LanceError(IO): Cannot allocate memory (os error 12), /x/y.rs:1:2"),
    RuntimeError("can't start new thread"),
)


class PanicException(BaseException):  # as the bindings of Rust call it
    pass


@pytest.mark.parametrize("failure", [*FAILURES, PanicException("capacity overflow")])
def test_each_kind_is_reported(failure: BaseException) -> None:
    @reports_exhaustion
    def work() -> None:
        raise failure

    @reports_exhaustion
    def batches() -> Iterator[int]:
        yield 1
        raise failure

    with pytest.raises(LimitExceededError) as told:
        work()
    assert told.value.resource == "memory"
    with pytest.raises(LimitExceededError):
        list(batches())


@pytest.mark.parametrize("failure", FAILURES)
def test_storage_does_not_take_it_for_damage(failure: Exception) -> None:
    for action in ("read", "open", "stage"):
        with pytest.raises(LimitExceededError) as told, translated(action, "nodes/1"):
            raise failure
        assert not isinstance(told.value, DAMAGE)
    with pytest.raises(StorageUnknownError), translated("publish", "nodes/1"):
        raise failure


def test_other_errors_pass() -> None:
    for error in (ValueError("x"), OSError(errno.EIO, "x"), KeyboardInterrupt(), StopIteration()):
        assert not is_exhaustion(error)


def test_a_query_asks_for_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headroom, "_FRESH_S", -1.0)
    monkeypatch.setattr(headroom, "free_bytes", lambda: headroom.RESERVE_BYTES + (64 << 20))
    bounds = Bounds(Limits())
    bounds.allocate(60 << 20)
    with pytest.raises(LimitExceededError, match="112 MiB are free"):
        bounds.allocate(65 << 20)
    Bounds(Limits(memory_bytes=None)).allocate(65 << 20)


def test_the_smallest_limit_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert 0 < headroom.free_bytes() < 1 << 50
    limit, used = tmp_path / "memory.max", tmp_path / "memory.current"
    limit.write_text(str(100 << 20))
    used.write_text(str(90 << 20))
    (tmp_path / "memory.stat").write_text(f"anon 5\ninactive_file {4 << 20}\n")
    monkeypatch.setattr(headroom, "_CGROUPS", ((limit, used),))
    assert headroom.free_bytes() == 14 << 20
    limit.write_text("max")
    assert headroom.free_bytes() > 14 << 20


def test_the_program_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("omnigraph.cli.main.get_command", fail)
    assert run(["version"]) == 9
    assert "not enough memory" in capsys.readouterr().err
