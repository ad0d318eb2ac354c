"""What tasks must know of the driver's environment: how to reach object stores.

Where a graph lies, with its keys, travels with the work; inputs and outputs are opened by their
addresses, with the variables of the process that opens them.

Variables that a worker has itself count; what was lent is gone when the task ends, for the next
task in the same process may belong to another user.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_LENT = "AWS_"


def carried() -> dict[str, str]:
    """The driver's part."""
    return {name: value for name, value in os.environ.items() if name.startswith(_LENT)}


@contextmanager
def lent(variables: Mapping[str, str]) -> Iterator[None]:
    """A worker's part: for the length of a task it has what it lacks."""
    new = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)
