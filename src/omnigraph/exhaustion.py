"""Failed allocations as errors of ours.

    @reports_exhaustion
    def to_arrow(self) -> pa.Table: ...     # MemoryError becomes LimitExceededError

Python and NumPy raise `MemoryError`, Arrow a subclass of it, the operating system `ENOMEM`, and
Lance an error or a panic with a text. All of them mean the same.

Guarantees: what is decorated raises `LimitExceededError` with the resource `memory` for each of
them; iterators that it returns do too. Everything else passes unchanged.
Deliberately absent: code that ends the process when an allocation fails, as Rust's allocator and
thread-local data of the C library do. `headroom` refuses work before it comes to that.
"""

from __future__ import annotations

import errno
import inspect
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from types import GeneratorType
from typing import Any, TypeVar, cast

from omnigraph.errors import LimitExceededError, OmniGraphError

T = TypeVar("T", bound=Callable[..., Any])

_NATIVE = re.compile(
    r"cannot allocate memory|out of memory|memory allocation|capacity overflow|\(os error 12\)"
    r"|(malloc|realloc) of size \d+ failed|can't start new thread|spawn (worker )?thread"
    r"|ResourcesExhausted|Resources exhausted",
    re.IGNORECASE,
)
_HINT = (
    "Request less data at once, or give the process more memory. "
    "Before a write is repeated, check whether its commit exists."
)


def is_exhaustion(error: BaseException) -> bool:
    """Whether an exception means that there was not enough memory."""
    if isinstance(error, OmniGraphError):
        return False
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    native = isinstance(error, OSError | RuntimeError | ValueError)
    panic = type(error).__name__ == "PanicException"
    return (native or panic) and _NATIVE.search(str(error)) is not None


def exhausted(error: BaseException) -> LimitExceededError:
    """Our error for one of these."""
    cause = " ".join(str(error).split())[:200]
    detail = f": {cause}" if cause else "."
    return LimitExceededError(f"There is not enough memory{detail}", resource="memory", hint=_HINT)


@contextmanager
def exhaustion_reported() -> Iterator[None]:
    """Run a block; a failed allocation in it becomes an error of ours."""
    try:
        yield
    except BaseException as error:
        if not is_exhaustion(error):
            raise
        raise exhausted(error) from error


def reports_exhaustion(target: T) -> T:
    """The same function or class, with failed allocations reported as errors of ours."""
    if not isinstance(target, type):
        return cast("T", _wrapped(target))
    for name, member in list(vars(target).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(target, name, _wrapped(member))
    return target


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            made = function(*args, **kwargs)
        except BaseException as error:
            if not is_exhaustion(error):
                raise
            raise exhausted(error) from error
        return _iterated(made) if isinstance(made, GeneratorType) else made

    return call


def _iterated(made: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    with exhaustion_reported():
        return (yield from made)
