"""`Request`: the base class of what verbs take.

    result = run(context, Query("query q() { … }"))     # typed: Result

A request is a frozen dataclass without behaviour. Its type parameter names the result of the verb,
so that `run` is typed, and its class finds the verb in the list (`operations.verbs`).
"""

from __future__ import annotations

from typing import Generic, TypeVar

R_co = TypeVar("R_co", covariant=True)


class Request(Generic[R_co]):
    """What a caller asks a verb to do. `R_co` is the type of the result."""

    __slots__ = ()
