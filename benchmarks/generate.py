"""A social graph as Arrow tables, from a seed: people who follow each other, live in cities and
have interests; cities lie in states, states in countries.

At `scale` 1: 100,000 people, 2.3 million follows, 250,000 interests. Followers are spread unevenly,
as they are in life: a few people have thousands. The tables are what a graph ingests, and what
other databases are loaded from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

SCHEMA = """
node Person {
    handle: String @key
    name: String
    gender: enum(female, male)
    age: I32 @index
    married: Bool
}
node City {
    name: String @key
    label: String @index
    population: I32
}
node State { name: String @key }
node Country { name: String @key }
node Interest { name: String @key }
edge Follows: Person -> Person
edge LivesIn: Person -> City
edge HasInterest: Person -> Interest
edge CityIn: City -> State
edge StateIn: State -> Country
"""

PEOPLE = 100_000
FOLLOWS = 2_300_000
INTERESTS_HELD = 250_000
CITIES = 7_000
STATES = 270
COUNTRIES = ("Canada", "United Kingdom", "United States")
INTERESTS = (
    "Acting", "Anime", "Bicycling", "Biology", "Birdwatching", "Camping", "Chess", "Cooking",
    "Cricket", "Dancing", "Drawing", "Fine Dining", "Fishing", "Football", "Gardening", "Golf",
    "Hiking", "History", "Jazz", "Judo", "Karate", "Knitting", "Mathematics", "Movies", "Opera",
    "Painting", "Philosophy", "Photography", "Piano", "Poetry", "Pottery", "Reading", "Rugby",
    "Running", "Sailing", "Skiing", "Swimming", "Tennis", "Theatre", "Travelling", "Writing",
)  # fmt: skip
_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gwen", "Hugo", "Iris", "Jon", "Kim", "Leo")
_LAST = (
    "Adams",
    "Brown",
    "Clark",
    "Davis",
    "Evans",
    "Fox",
    "Green",
    "Hill",
    "King",
    "Lee",
    "Moore",
)

Array = np.ndarray[Any, Any]


def social_graph(scale: float = 1.0, seed: int = 20261116) -> dict[str, pa.Table]:
    """Tables by type. Nodes have their properties, edges `from` and `to`."""
    rng = np.random.default_rng(seed)
    people, follows = int(PEOPLE * scale), int(FOLLOWS * scale)
    handles = pa.array([f"p{number:07d}" for number in rng.permutation(people)])
    cities, places = _cities(rng, max(20, int(CITIES * scale)))
    return {
        "Person": _people(rng, handles),
        "Interest": pa.table({"name": pa.array(INTERESTS)}),
        **places,
        "Follows": _pairs(handles, handles, *_followers(rng, people, follows)),
        "LivesIn": _pairs(handles, cities, np.arange(people), rng.integers(0, len(cities), people)),
        "HasInterest": _interests(rng, handles, int(INTERESTS_HELD * scale)),
    }


def _people(rng: np.random.Generator, handles: pa.Array) -> pa.Table:
    count = len(handles)
    first, last = rng.integers(0, len(_FIRST), count), rng.integers(0, len(_LAST), count)
    names = [
        f"{_FIRST[f]} {_LAST[n]} {i}" for i, (f, n) in enumerate(zip(first, last, strict=True))
    ]
    return pa.table(
        {
            "handle": handles,
            "name": pa.array(names),
            "gender": pa.array(np.array(["female", "male"])[rng.integers(0, 2, count)]),
            "age": pa.array(rng.integers(18, 60, count), pa.int32()),
            "married": pa.array(rng.random(count) < 0.5),
        }
    )


def _cities(rng: np.random.Generator, count: int) -> tuple[pa.Array, dict[str, pa.Table]]:
    names = pa.array([f"city-{number:05d}" for number in range(count)])
    labels = [f"Town {number}" for number in range(count)]
    labels[0] = "London"
    states = pa.array([f"state-{number:03d}" for number in range(STATES)])
    countries = pa.array(COUNTRIES)
    homes = rng.integers(0, STATES, count)
    homes[0] = 1  # London lies in a state of the United Kingdom
    tables = {
        "City": pa.table(
            {
                "name": names,
                "label": pa.array(labels),
                "population": pa.array(rng.integers(1_000, 9_000_000, count), pa.int32()),
            }
        ),
        "State": pa.table({"name": states}),
        "Country": pa.table({"name": countries}),
        "CityIn": _pairs(names, states, np.arange(count), homes),
        "StateIn": _pairs(states, countries, np.arange(STATES), np.arange(STATES) % 3),
    }
    return names, tables


def _followers(rng: np.random.Generator, people: int, follows: int) -> tuple[Array, Array]:
    """Distinct pairs, without anybody following themselves; the followed by a power law."""
    keys = np.empty(0, np.int64)
    while len(keys) < follows:
        missing = int((follows - len(keys)) * 1.2) + 100
        src = rng.integers(0, people, missing)
        dst = (people * rng.random(missing) ** 1.6).astype(np.int64)
        fresh = src * people + dst
        keys = np.unique(np.concatenate([keys, fresh[src != dst]]))
    chosen = rng.permutation(keys)[:follows]
    return chosen // people, chosen % people


def _interests(rng: np.random.Generator, handles: pa.Array, count: int) -> pa.Table:
    keys = rng.integers(0, len(handles), 2 * count) * len(INTERESTS)
    keys = np.unique(keys + rng.integers(0, len(INTERESTS), 2 * count))
    chosen = rng.permutation(keys)[:count]
    names = pa.array(INTERESTS)
    return _pairs(handles, names, chosen // len(INTERESTS), chosen % len(INTERESTS))


def _pairs(near: pa.Array, far: pa.Array, src: Array, dst: Array) -> pa.Table:
    return pa.table({"from": near.take(pa.array(src)), "to": far.take(pa.array(dst))})
