"""A function over a list of values: in this process, or on the executors of Spark.

    sizes = LocalRunner().run(measure, files, "measure the files")

Everything in `bulk` takes a `Runner`; `engines.spark.sparkrunner` has the one that runs on Spark.

Answers come in the order of the values; an error of a call fails the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from omnigraph.errors import OmniGraphError

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Measure:
    """How to tell progress from values and answers. `bytes` are of a value, or without a value's
    own of its answer."""

    rows: Callable[[Any], int]
    bytes: Callable[[Any], int]
    of_answers: bool = False

    def of(self, item: object, answer: object) -> tuple[int, int]:
        if isinstance(answer, OmniGraphError):
            return 0, 0
        return self.rows(answer), self.bytes(answer if self.of_answers else item)


class Runner(Protocol):
    """Runs a function over values, somewhere."""

    @property
    def width(self) -> int:
        """How many run side by side."""
        ...

    def run(
        self,
        function: Callable[[Item], Answer],
        items: Sequence[Item],
        what: str,
        measure: Measure | None = None,
    ) -> list[Answer]:
        """`function` of every item, in the order of the items."""
        ...


class LocalRunner:
    """Each item in this process, one after another."""

    width = 1

    def run(
        self,
        function: Callable[[Item], Answer],
        items: Sequence[Item],
        what: str,
        measure: Measure | None = None,
    ) -> list[Answer]:
        return [function(item) for item in items]
