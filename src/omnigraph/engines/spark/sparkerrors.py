"""What Spark raises, as errors of ours.

An error of ours that a task raised comes out as what it was; a job that was cancelled reads as
cancelled; everything else names the job's own first line rather than a page of Java.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from omnigraph import errors
from omnigraph.errors import CancelledError, EngineUnavailableError, OmniGraphError

_OURS = re.compile(r"omnigraph\.errors\.(\w+Error): (.*)")
_LAST_PYTHON = re.compile(r"^(\w[\w.]*(?:Error|Exception)): (.*)$", re.MULTILINE)
_LONGEST = 500
# What a task may say to the caller; other errors of ours in a task are our own mistakes.
_MEANT = (errors.StorageError, errors.InvalidArgumentError)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Run a Spark job; `what` says what it was for."""
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, import_module("py4j.protocol").Py4JError, *rpc_errors()) as error:
        raise translate(error, what) from error


def rpc_errors() -> tuple[type[Exception], ...]:
    """What a Connect endpoint raises that goes away, or never lets us in."""
    grpc = sys.modules.get("grpc")
    return () if grpc is None else (grpc.RpcError,)


def translate(error: Exception, what: str) -> OmniGraphError:
    text = str(error)
    found = _OURS.findall(text)
    if found:
        name, message = found[-1]
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, _MEANT):
            return kind(message)
    if "cancelled" in text and ("Job " in text or "OPERATION_CANCELED" in text):
        return CancelledError(f"The Spark job to {what} was cancelled.")
    if isinstance(error, rpc_errors()):
        return EngineUnavailableError(
            f"The Spark session ended during the job to {what}.",
            hint="Nothing was committed. See `omnigraph spark status`, and try again.",
            log=text[-4000:],
        )
    return EngineUnavailableError(
        f"The Spark job to {what} failed: {_shortest(text)}",
        hint="Nothing was committed. Set OMNIGRAPH_SPARK_LOG=true to see the log of Spark.",
        log=text[-4000:],
    )


def _shortest(text: str) -> str:
    raised = _LAST_PYTHON.findall(text)
    line = ": ".join(raised[-1]) if raised else (text.strip().splitlines() or ["no reason"])[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
