"""Lookups against a dict, and how they follow a table."""

from __future__ import annotations

import random

import pyarrow as pa

from omnigraph.engines.embedded.keylookup import Lookup


def test_a_lookup_holds_what_a_dict_would():
    chance = random.Random(3)
    for _ in range(60):
        model: dict[str, str | None] = {}
        lookup = Lookup()
        for _ in range(chance.randrange(1, 60)):
            put = {
                f"i{chance.randrange(20)}": None
                if chance.random() < 0.1
                else f"k{chance.randrange(6)}"
                for _ in range(chance.randrange(4))
            }
            gone = {f"i{chance.randrange(20)}" for _ in range(chance.randrange(3))} - put.keys()
            lookup = lookup.changed(
                [*gone, *put],
                pa.array(list(put), pa.string()),
                pa.array(list(put.values()), pa.string()),
            )
            for id_ in gone:
                model.pop(id_, None)
            model.update(put)
            keys = [f"k{number}" for number in range(7)]
            found = sorted((keys[place], id_) for place, id_ in lookup.find(keys))
            assert found == sorted((key, id_) for id_, key in model.items() if key is not None)


def test_earlier_lookups_stay_as_they_were():
    ids = pa.array([f"p{n}" for n in range(100)])
    before = Lookup.of(ids, ids)
    after = before.changed(["p1"], pa.array(["q"]), pa.array(["q"]))
    assert before.holds(["p1", "q"]).tolist() == [True, False]
    assert after.holds(["p1", "q"]).tolist() == [False, True]


def test_growth_keeps_few_segments():
    lookup = Lookup()
    for number in range(500):
        one = pa.array([f"p{number}"])
        lookup = lookup.changed([], one, one)
    assert len(lookup._segments) < 12
    assert lookup.holds([f"p{n}" for n in range(500)]).all()
