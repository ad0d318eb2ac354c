"""One nursery for all tests of a worker: it keeps no state, and to start one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.crash.nursery import Nursery, open_nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with open_nursery() as nursery:
        yield nursery
