"""Rankings spread over rows: by a table of the whole space or by sorting, with the same result."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.engines.embedded.asked import ask, graph, people

from omnigraph.engines.embedded import EmbeddedEngine, matchsearch

NEAREST = "rank(nearest($b.vec, [1.0, 7.0])) as place"


@pytest.mark.parametrize("dense", [0, 1_000_000], ids=["sorted", "table"])
@pytest.mark.parametrize(
    "pattern",
    [
        "$b: Person",
        "$a: Person $a knows $b",
        "$a: Person optional { $a knows $b $b.age < 20 }",
        '$a: Person { name: "p00007" } $a knows $b',
        '$a: Person { name: "nobody" } $a knows $b',
    ],
)
def test_every_row_of_a_node_has_its_rank(
    pattern: str, dense: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matchsearch, "_DENSE", dense)
    snapshot = graph(tmp_path, people(60, 3))
    returned = f"return {{ $b.name as b, $b.big as n, {NEAREST} }}"
    rows = ask(EmbeddedEngine(), snapshot, f"match {{ {pattern} }} {returned}").rows()
    # Vectors are (1, n): the nearer n is to 7 as an angle, the nearer the vector.
    seen = {row["n"] for row in rows if row["n"] is not None}
    order = sorted(seen, key=lambda n: (-(1 + 7 * n) / (1 + n * n) ** 0.5, n))
    for row in rows:
        place = None if row["n"] is None else order.index(row["n"]) + 1
        assert row["place"] == place, row
