"""Arguments checked against annotations: what fits, what is converted, what the refusal says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnigraph.arguments import checked, microseconds, shown
from omnigraph.errors import InvalidArgumentError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@checked
def take(
    text: str = "",
    *rest: int,
    count: int | None = None,
    share: float = 0.0,
    words: Iterable[str] = (),
    pair: tuple[int, int | None] = (1, None),
    colours: frozenset[Colour] = frozenset(),
    params: Mapping[str, int] | None = None,
    place: str | Path = "",
    report: Callable[[str], None] | None = None,
    **others: str,
) -> dict[str, Any]:
    """What a function with every kind of parameter is given."""
    return {**locals(), **others}


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("text", "é", "é"),
        ("count", None, None),
        ("count", np.int32(7), 7),
        ("share", 1, 1),
        ("words", (each for each in "ab"), ("a", "b")),
        ("words", {"a"}, ("a",)),
        ("pair", [2, 3], (2, 3)),
        ("colours", ["red", Colour.BLUE], frozenset({Colour.RED, Colour.BLUE})),
        ("params", {"a": 1}, {"a": 1}),
        ("place", Path("x"), Path("x")),
        ("another", "x", "x"),
    ],
)
def test_what_fits_is_passed_on(name: str, value: Any, taken: Any) -> None:
    assert take(**{name: value})[name] == taken


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("text", 7, "`text` takes a text, not 7."),
        ("text", "a\ud800", "`text` is not valid Unicode"),
        ("count", True, "`count` takes a whole number of 64 bits, not True."),
        ("count", 2**63, "`count` takes a whole number of 64 bits, not 9223372036854775808."),
        ("count", 10**4000, "not a huge number."),
        ("share", float("nan"), "`share` takes a finite number, not nan."),
        ("share", 10**400, "`share` takes a finite number"),
        ("words", "Person", "`words` takes several values in a list, each a text, not 'Person'."),
        ("words", ["a", 1], "`words` takes several values"),
        ("words", ["a\ud800"], "not valid Unicode"),
        ("pair", (1, 2, 3), "`pair` takes a pair of"),
        ("colours", ["green"], "each one of red, blue"),
        ("params", {1: 1}, "`params` takes a mapping"),
        ("params", {"\ud800": 1}, "not valid Unicode"),
        ("report", "print", "`report` takes a function, not 'print'."),
        ("another", 1, "`another` takes a text, not 1."),
    ],
)
def test_what_does_not_fit_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        take(**{name: value})
    assert message in str(caught.value)
    assert caught.value.code == "invalid_argument"


def test_by_position_and_beyond() -> None:
    assert take("x", 1, 2)["rest"] == (1, 2)
    with pytest.raises(InvalidArgumentError, match="`rest` takes a whole number"):
        take("x", "y")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="`text` takes a text"):
        take(1)  # type: ignore[arg-type]


@checked
@dataclass(frozen=True, slots=True)
class Settings:
    size: int = 1
    names: tuple[str, ...] = ()
    inner: Settings | None = field(default=None)


def test_the_fields_of_a_dataclass() -> None:
    assert Settings(2, ["a"], Settings()) == Settings(2, ("a",), Settings())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="`inner` takes a value of the class Settings"):
        Settings(inner=7)  # type: ignore[arg-type]


@checked
class Shop:
    def sell(self, count: int) -> int:
        return count

    def _hidden(self, count: int) -> int:
        return count


def test_the_public_methods_of_a_class() -> None:
    shop = Shop()
    assert (shop.sell(1), shop._hidden("x")) == (1, "x")  # type: ignore[arg-type, comparison-overlap]
    with pytest.raises(InvalidArgumentError, match="`count`"):
        shop.sell("x")  # type: ignore[arg-type]


def test_moments_are_exact() -> None:
    moment = datetime(2026, 11, 16, 9, 30, 0, 123_457, tzinfo=UTC)
    exact = 1_794_821_400_123_457
    assert microseconds(moment, "at") == exact
    assert microseconds(moment.astimezone(timezone(timedelta(hours=5))), "at") == exact
    east = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    with pytest.raises(InvalidArgumentError, match="outside the years"):
        microseconds(east, "at")


def test_values_in_messages_are_short() -> None:
    assert len(shown("x" * 10_000)) < 70
    assert shown("\x1b[31m") == r"'\x1b[31m'"
    assert shown(object()) == "a value of type object"
