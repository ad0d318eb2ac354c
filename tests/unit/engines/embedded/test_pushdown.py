"""Filters reach storage structured, in the column's type, so that its index is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.querygraphs import Shape
from tests.unit.engines.embedded.asked import SCHEMA, graph, people

from omnigraph.caches import Cache
from omnigraph.engines.base import DEFAULT_OPTIONS
from omnigraph.engines.embedded.pushdown import push
from omnigraph.engines.embedded.run import Run
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.model.snapshot import Snapshot

CATALOG = compile_schema(SCHEMA)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path: Path = tmp_path_factory.mktemp("pushdown")
    return graph(path, people(200), Shape(indexed=True))


def pushed(snapshot: Snapshot, condition: str) -> tuple[Any, int, Any]:
    """The filter, how many predicates are left over, and the table."""
    text = f"query q() {{ match {{ $p: Person {condition} }} return {{ $p.name }} }}"
    query = gq.compile_query(text, CATALOG).query
    assert isinstance(query, ReadQuery)
    run = Run(snapshot, {}, Cache(0), DEFAULT_OPTIONS)
    found = push(query.stages[0].pattern.predicates, run.node("Person"), run)
    return found.filter, len(found.rest), run.node("Person").resident.table


def index_of(table: Any, filter: Any) -> str:
    plan = table.dataset.scanner(columns=["id"], filter=filter).explain_plan()
    return str(plan)


# ledger: I01, I03
@pytest.mark.parametrize(
    ("condition", "index", "rows"),
    [
        ("$p.age = 7", "age_idx", 3),
        ("$p.age = 7.0", "age_idx", 3),
        ("$p.age < 2.5", "age_idx", 9),
        ("$p.big = 7", "big_idx", 1),
        ("$p.big > 197", "big_idx", 2),
        ("$p.age in [7, 8, 3000000000]", "age_idx", 6),
        ("$p.name = 'p00007'".replace("'", '"'), "name_idx", 1),
        ('$p.name starts_with "p0019"', "name_idx", 10),
        ('$p.id = "p00003"', "id_idx", 1),
        ("$p.score = 3.5", "score_idx", 1),
        ("$p.score >= 99", "score_idx", 2),
    ],
)
def test_the_index_answers(snapshot: Snapshot, condition: str, index: str, rows: int) -> None:
    filter, _, table = pushed(snapshot, condition)
    plan = index_of(table, filter)
    assert "ScalarIndexQuery" in plan
    assert index in plan
    assert table.read(["id"], filter=filter).num_rows == rows


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("$p.age = 7", 0),
        ("$p.age = 7 and $p.big < 5", 0),
        ("$p.age = 7 or $p.big < 5", 0),
        ("not ($p.age = 7)", 0),
        ("$p.age is null", 0),
        ('$p.name contains "_"', 0),
        ("$p.score > 3.5", 1),
        ("$p.age + 1 = 8", 1),
        ("$p.age = 7 or $p.age + 1 = 8", 1),
        ("not ($p.score > 3.5)", 1),
        ('$p.name ends_with "7"', 1),
        ("$p.age = $p.big", 1),
        ("$p.age = 3000000000", 1),
        ("$p.age < 3000000000", 0),
    ],
)
def test_what_is_left_to_test(snapshot: Snapshot, condition: str, left: int) -> None:
    assert pushed(snapshot, condition)[1] == left


def test_a_prefix_is_a_range_without_wildcards(snapshot: Snapshot) -> None:
    filter, _, table = pushed(snapshot, '$p.name starts_with "p0019"')
    assert ">=" in str(filter)
    assert table.count(filter) == 10
    filter, _, table = pushed(snapshot, '$p.name starts_with "p_"')
    assert table.count(filter) == 0


def written(snapshot: Snapshot, condition: str) -> int:
    """The size of a filter as storage gets it."""
    filter, _, table = pushed(snapshot, condition)
    flat = pa.schema([field for field in table.schema if field.type.num_fields == 0])
    return 0 if filter is None else len(bytes(filter.to_substrait(flat)))


@pytest.mark.parametrize(
    ("term", "joined"),
    [
        ("$p.age != #", " and "),
        ("$p.age = #", " or "),
        ("# = $p.age", " or "),
        ("($p.age = # or $p.big < #)", " and "),
        ("($p.age < # and $p.big != #)", " or "),
        ("not ($p.age < # or $p.big != #)", " and "),
        ('$p.name contains "a#"', " or "),
        ("$p.age != #", "\n"),
    ],
)
def test_18_17_what_storage_is_asked_does_not_explode(
    snapshot: Snapshot, term: str, joined: str
) -> None:
    sizes = {
        terms: written(snapshot, joined.join(term.replace("#", str(n)) for n in range(terms)))
        for terms in (1, 12, 24, 48, 300)
    }
    assert max(sizes.values()) < 200_000, sizes  # 12 MB for 16 terms if nested one in another


def test_18_17_nested_negations_do_not_explode(snapshot: Snapshot) -> None:
    deep = "not (" * 25 + "$p.age = 7" + ")" * 25
    assert written(snapshot, deep) < 1_000_000


def test_18_17_equal_tests_of_one_column_become_a_list(snapshot: Snapshot) -> None:
    condition = " or ".join(f'$p.name = "p{n:05d}"' for n in range(0, 100, 2))
    filter, left, table = pushed(snapshot, condition)
    assert left == 0
    assert "name_idx" in index_of(table, filter)
    assert table.read(["id"], filter=filter).num_rows == 50


@pytest.mark.parametrize("terms", [5, 31, 33, 64, 200])
def test_18_17_a_part_of_a_conjunction_never_drops_rows(snapshot: Snapshot, terms: int) -> None:
    condition = " and ".join(f"$p.big != {n}" for n in range(terms))
    filter, left, table = pushed(snapshot, condition)
    found = table.read(["big"], filter=filter).column("big").to_pylist()
    assert set(range(terms, 200)) <= set(found)
    assert left == (terms > 32)
