"""Random values of every kind: few different ones, so that rows meet, and the ends of ranges."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from tests.lives.blueprint import DIMENSION, ENUM, INTEGERS, Prop

# Each word with its stem, so that no stemmer is needed here.
STEMS = {
    "river": "river", "rivers": "river", "stone": "stone", "stones": "stone", "lamp": "lamp",
    "lamps": "lamp", "cafe": "cafe", "café": "cafe", "running": "run", "run": "run",
    "green": "green", "moss": "moss", "window": "window", "windows": "window",
}  # fmt: skip
STOPS = ("the", "of", "and")
WORDS = tuple(STEMS)
TEXTS = (
    "",
    "a",
    "A",
    "b",
    "ab",
    "Ärger",
    "ärger",
    "naïve",
    "x y",
    " pad ",
    "日本",
    'a"b\\c',
    "line\nend",
    "😀",
)
FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
FIRST_TIME = datetime(1, 1, 1, tzinfo=UTC)
LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)


def narrow(value: float) -> float:
    """A float as F32 keeps it."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def scalar(random: Random, kind: str) -> Any:
    if kind in INTEGERS:
        return integer(random, kind)
    return _SCALARS[kind](random)


def integer(random: Random, kind: str) -> int:
    low, high = INTEGERS[kind]
    chance = random.random()
    if chance < 0.15:
        return random.choice((low, high, high - 1, low + 1))
    if chance < 0.25:
        middle = (2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 5)
        return random.choice([n for n in middle if low <= n <= high] or [0])
    return random.randint(max(low, -5), 9)


def _double(random: Random) -> float:
    return random.choice((0.0, 0.1, 0.25, 1.0, -2.5, 3.75, -0.5, 1e10, 7.0, 100.125))


def _day(random: Random) -> date:
    ends = (FIRST_DAY, LAST_DAY, date(1970, 1, 1), date(1969, 12, 31), date(2000, 2, 29))
    if random.random() < 0.5:
        return random.choice(ends)
    return date(2024, 1, 1) + timedelta(days=random.randint(0, 5))


def _instant(random: Random) -> datetime:
    ends = (FIRST_TIME, LAST_TIME, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC))
    if random.random() < 0.4:
        return random.choice(ends)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return start + timedelta(milliseconds=random.choice((0, 1, 500, 3_600_000, 86_399_999)))


def sentence(random: Random) -> str:
    words = [
        random.choice(WORDS if random.random() < 0.8 else STOPS)
        for _ in range(random.randint(1, 5))
    ]
    if random.random() < 0.3:
        words = [word.capitalize() for word in words]
    return random.choice((" ", " ", " ", ", ", "-")).join(words)


_SCALARS = {
    "String": lambda random: random.choice(TEXTS),
    "text": sentence,
    "Bool": lambda random: random.random() < 0.5,
    "F32": lambda random: narrow(_double(random)),
    "F64": _double,
    "Date": _day,
    "DateTime": _instant,
    "enum": lambda random: random.choice(ENUM),
    "vector": lambda random: [float(random.randint(-2, 2)) for _ in range(DIMENSION)],
}


def of(random: Random, prop: Prop) -> Any:
    """A value of a property; null now and then where that is allowed."""
    if prop.optional and random.random() < 0.25:
        return None
    if prop.many:
        return [scalar(random, prop.kind) for _ in range(random.randint(0, 3))]
    return scalar(random, prop.kind)


def key(random: Random, kind: str) -> Any:
    """One of a handful of keys."""
    place = random.randint(0, 6)
    return {
        "String": ("a", "b", "c", "Ä", "d d", "10", 'z"q')[place],
        "I64": (-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1, 10)[place],
        "U64": (0, 1, 2, 2**63, 2**64 - 1, 10, 2**53 + 1)[place],
        "I32": (-(2**31), -1, 0, 1, 2, 10, 2**31 - 1)[place],
        "Date": (FIRST_DAY, LAST_DAY, date(1970, 1, 1), date(1969, 12, 31), *_DAYS)[place],
    }[kind]


_DAYS = (date(2024, 1, 1), date(2024, 1, 2), date(2000, 2, 29))


def identify(value: Any) -> str:
    """How a key spells an id."""
    if isinstance(value, date):
        return str((value - date(1970, 1, 1)).days)
    return str(value)


def to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return [to_json(item) for item in value]
    return value
