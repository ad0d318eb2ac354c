"""Which edges and types a walk of several hops keeps."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from omnigraph.errors import QueryError
from omnigraph.ir.query import Direction, ReadQuery, Traversal
from omnigraph.lang import gq
from omnigraph.lang.gq.check.paths import Option, ways
from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import EdgeType

SCHEMA = """
node Person { name: String @key }
node Car { name: String @key }
node Plant { name: String @key }
node City { name: String @key }
node Pet { name: String @key }
edge Knows: Person -> Person
edge Drives: Person -> Car
edge MadeIn: Car -> Plant
edge Stands: Plant -> City
edge Keeps: Person -> Pet
"""


def walked(clauses: str) -> tuple[Traversal, dict[str, tuple[str, ...]]]:
    text = f"query q() {{ match {{ {clauses} }} return {{ count(*) as n }} }}"
    query = gq.compile_query(text, compile_schema(SCHEMA)).query
    assert isinstance(query, ReadQuery)
    pattern = query.stages[0].pattern
    return pattern.traversals[-1], {node.var: node.types for node in pattern.nodes}


def steps(clauses: str) -> dict[str, str]:
    return {step.edge: step.direction.value for step in walked(clauses)[0].steps}


def test_18_13_an_alternation_keeps_the_edges_on_its_way() -> None:
    assert steps("$p: Person $x: Car $p knows|drives{1,3} $x") == {"Knows": "out", "Drives": "out"}
    assert steps("$p: Person $x: Car $x knows|drives{1,3} $p") == {"Knows": "out", "Drives": "in"}
    assert steps("$p: Person $x: Car $p knows|drives $x") == {"Drives": "out"}
    assert steps("$p: Person $x: Car $p knows|drives{1,1} $x") == {"Drives": "out"}


def test_18_13_any_edge_passes_types_that_neither_end_has() -> None:
    to_city = {"Knows": "out", "Drives": "out", "MadeIn": "out", "Stands": "out"}
    assert steps("$p: Person $c: City $p _{1,4} $c") == to_city
    assert steps("$p: Person $c: City $p _{1,} $c") == to_city
    assert steps("$p: Person $c: City $p _{1,1000000} $c") == to_city
    # Without a hop to spare nobody can be visited on the way.
    assert "Knows" not in steps("$p: Person $c: City $p _{1,3} $c")
    assert steps("$p: Person $p _{1,2} $x").keys() == {"Knows", "Drives", "MadeIn", "Keeps"}


def test_18_13_types_of_the_far_end_follow_from_the_bounds() -> None:
    _, types = walked("$p: Person $p drives|madeIn|stands{2,3} $x")
    assert set(types["x"]) == {"Plant", "City"}
    _, types = walked("$c: City $x drives|madeIn|stands{3,} $c")
    assert types["x"] == ("Person",)


def test_18_13_what_no_way_connects_is_an_error() -> None:
    with pytest.raises(QueryError, match="does not lead from"):
        walked("$p: Person $c: City $p _{1,2} $c")
    with pytest.raises(QueryError, match="does not lead from"):
        walked("$p: Person $c: City $p <-_{1,} $c")


def test_a_walk_far_from_the_types_of_its_ends_is_short_work() -> None:
    traversal, _ = walked("$p: Person $c: City $p _{1000000,} $c")
    assert traversal.min_hops == 1_000_000


def naive(
    options: list[Option], src: set[str], dst: set[str], low: int, high: int
) -> tuple[set[Option], set[str], set[str]]:
    """Every way by its hops."""
    used: set[Option] = set()
    first: set[str] = set()
    last: set[str] = set()
    stack: list[tuple[Option, ...]] = [(o,) for o in options if o.src in src]
    while stack:
        way = stack.pop()
        if len(way) >= low and way[-1].dst in dst:
            used.update(way)
            first.add(way[0].src)
            last.add(way[-1].dst)
        if len(way) < high:
            stack += [(*way, o) for o in options if o.src == way[-1].dst]
    return used, first, last


@pytest.mark.parametrize("seed", range(60))
def test_18_13_ways_are_those_that_listing_them_finds(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"T{n}" for n in range(rng.randint(1, 4))]
    options = [
        Option(EdgeType(n, f"E{n}", (), src_type=a, dst_type=b), Direction.OUT, a, b)
        for n in range(rng.randint(1, 4))
        for a, b in [(rng.choice(names), rng.choice(names))]
    ]
    src = set(rng.sample(names, rng.randint(1, len(names))))
    dst = set(rng.sample(names, rng.randint(1, len(names))))
    low = rng.randint(1, 3)
    high = low + rng.randint(0, 3)
    found = ways(options, src, dst, low, high)
    assert (set(found.options), set(found.src), set(found.dst)) == naive(
        options, src, dst, low, high
    )


ORDERED = """
interface Named { name: String }
node A implements Named { name: String @key }
node B implements Named { name: String @key }
node C { name: String @key }
edge Holds: A -> B
edge Likes: B -> B
edge Needs: B -> C
edge Sees: C -> A
"""
PATTERNS = (
    "$a: Named; $a <likes> $b; $b holds $c",
    "$a <likes> $b; $b holds $c",
    "$a holds $b; $c holds $b; $b needs $d",
    "$b holds $a; $c likes $b; $c needs $d; $d sees $a",
    "$a: A; $a holds|needs{1,2} $x; $x needs $c; $y holds $x; $y sees $c",
    "$a: A; $a _{1,3} $x; $x _{1,2} $y; $y <likes> $z",
    "$c: C; $x needs $c; $a holds|likes{1,2} $x; $a sees $c",
    "$a $k:holds $b; $b $l:likes $c; $d $m:holds $c",
)


def in_order(clauses: list[str]) -> tuple[object, ...]:
    text = f"query q() {{ match {{ {' '.join(clauses)} }} return {{ count(*) as n }} }}"
    query = gq.compile_query(text, compile_schema(ORDERED)).query
    assert isinstance(query, ReadQuery)
    pattern = query.stages[0].pattern
    return (
        {(w.src, w.dst, frozenset(w.steps)) for w in pattern.traversals},
        {(node.var, frozenset(node.types)) for node in pattern.nodes},
    )


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_order_of_clauses_has_no_meaning(pattern: str) -> None:
    clauses = [clause.strip() for clause in pattern.split(";")]
    first = in_order(clauses)
    for order in permutations(clauses):
        assert in_order(list(order)) == first, order


def test_walks_that_nothing_directs_are_refused_in_every_order() -> None:
    for order in permutations(["$a holds $b", "$b holds $c"]):
        with pytest.raises(QueryError, match="nothing says in which direction") as caught:
            in_order(list(order))
        assert [each.code for each in caught.value.diagnostics] == ["T5"]
    for order in permutations(["$a holds $b", "$b holds $c", "$b: B"]):
        in_order(list(order))


def test_an_edge_variable_is_no_end_in_any_order() -> None:
    for order in permutations(["$a: A", "$a $k:holds $b", "$k likes $c"]):
        with pytest.raises(QueryError) as caught:
            in_order(list(order))
        assert [each.code for each in caught.value.diagnostics] == ["T23"]
