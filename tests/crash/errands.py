"""What a store may do to a durable step besides carrying it out.

Faults are raised where the store would raise them, below the place that classifies them, in the
shapes that disks, object stores and Lance give them.

    transient      it did not happen, and may the next time
    permission     it is not allowed
    not found      what it is about is not there
    precondition   somebody else was faster, says the store
    disk full      there was no room for it
    torn           half of the bytes were written, under no name
    lost answer    it happened, and the store's answer never arrived
    slow           it happened, after a while
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from unittest.mock import patch

from obstore import exceptions as obstore
from tests.crash.steps import Act, Step

from omnigraph.storage import disk

SLOW_S = 0.05


class Fault(StrEnum):
    TRANSIENT = "transient"
    PERMISSION = "permission"
    NOT_FOUND = "not found"
    PRECONDITION = "precondition"
    DISK_FULL = "disk full"
    TORN = "torn"
    LOST = "lost answer"
    SLOW = "slow"


@dataclass
class Faulty:
    """Meets the nth step, counted from 1, with a fault; all others are carried out."""

    nth: int
    fault: Fault
    passed: int = 0
    met: bool = False

    def __call__(self, step: Step, act: Act) -> Any:
        self.passed += 1
        if self.passed != self.nth:
            return act()
        self.met = True
        return self._meet(step, act)

    def _meet(self, step: Step, act: Act) -> Any:
        of_lance = step.kind.startswith("lance")
        if self.fault is Fault.SLOW:
            time.sleep(SLOW_S)
            return act()
        if self.fault is Fault.LOST:
            act()
            raise _lost(of_lance)
        if self.fault is Fault.TORN and step.kind in ("put", "create", "replace"):
            with torn_writes():
                act()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        raise _of_lance(self.fault) if of_lance else _of_disk(self.fault)


def _of_disk(fault: Fault) -> Exception:
    numbers = {
        Fault.TRANSIENT: errno.EBUSY,
        Fault.PERMISSION: errno.EACCES,
        Fault.NOT_FOUND: errno.ENOENT,
        Fault.DISK_FULL: errno.ENOSPC,
        Fault.TORN: errno.EIO,
    }
    if fault is Fault.PRECONDITION:
        return obstore.PreconditionError("injected: the precondition did not hold")
    return OSError(numbers[fault], os.strerror(numbers[fault]))


def _of_lance(fault: Fault) -> Exception:
    """Lance says everything with OSError and a text."""
    texts = {
        Fault.TRANSIENT: "LanceError(IO): Generic S3 error: 503 Service Unavailable: SlowDown",
        Fault.PERMISSION: "LanceError(IO): Unable to open file: Permission denied (os error 13)",
        Fault.NOT_FOUND: "LanceError(IO): Object at location x not found: No such file",
        Fault.PRECONDITION: "Commit conflict for version 2: This Append transaction was preempted",
        Fault.DISK_FULL: "LanceError(IO): Unable to copy: No space left on device (os error 28)",
        Fault.TORN: "LanceError(IO): Input/output error (os error 5)",
    }
    return OSError(texts[fault])


def _lost(of_lance: bool) -> Exception:
    if of_lance:
        return OSError(
            "LanceError(IO): Generic S3 error: error sending request: operation timed out"
        )
    return obstore.GenericError("Generic S3 error: error sending request: operation timed out")


@contextmanager
def torn_writes() -> Iterator[None]:
    """Let the disk take half of what is written, and then fail."""

    def half(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with patch.object(disk, "_write_all", half):
        yield
