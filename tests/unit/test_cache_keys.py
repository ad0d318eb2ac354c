"""Two different contents never share a key of a cache."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from omnigraph.embedding.config import EmbeddingConfig, Provider
from omnigraph.engines.embedded import adjacency_store, lookupcache
from omnigraph.engines.spark.queries import querysession
from omnigraph.engines.spark.settings import read_settings
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import NodeType, Property
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.types import I64, STRING
from omnigraph.plan.planner import Planner
from omnigraph.plan.statistics import from_counts
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableschema import physical_schema

VERSION = TableVersion(1, "nodes/1", None, 3, 2, 10)
OTHERS = [
    replace(VERSION, path="nodes/2"),
    replace(VERSION, fork="b"),
    replace(VERSION, version=4),
    replace(VERSION, epoch=1),
    replace(VERSION, incarnation="other"),
]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("place", range(3))
def test_18_12_kept_adjacency_is_named_by_all_three_versions(
    other: TableVersion, place: int
) -> None:
    versions = [VERSION] * 3
    changed = [other if at == place else VERSION for at in range(3)]
    assert adjacency_store._name(versions) != adjacency_store._name(changed)


def test_18_12_lookups_are_held_by_line_and_columns() -> None:
    one, two = GraphRoot.at("memory://one"), GraphRoot.at("memory://two")
    lines = [VERSION, *(other for other in OTHERS if other.version == 3 and other.epoch == 0)]
    keys = {
        lookupcache._key(root, version, columns)
        for root in (one, two)
        for version in lines
        for columns in (("id",), ("id", "name"))
    }
    assert len(keys) == 2 * len(lines) * 2


def test_18_12_spark_sessions_are_held_by_their_settings() -> None:
    class Session:
        def __init__(self) -> None:
            self.told: dict[str, str] = {}
            self.conf: Any = self

        def set(self, name: str, value: str) -> None:
            self.told[name] = value

        def newSession(self) -> Session:  # noqa: N802 - Spark's name
            return Session()

    plain = read_settings(environ={})
    other = read_settings(config={"spark.sql.shuffle.partitions": "77"}, environ={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(querysession, "is_classic", lambda spark: True)
        patch.setattr(querysession, "_activate", lambda spark: None)
        caller: Any = Session()
        found = []
        for settings in (plain, other, plain):
            with querysession.own_session(caller, settings, small=False) as made:
                found.append(made)
    assert found[0] is found[2] is not found[1]
    assert found[1].told["spark.sql.shuffle.partitions"] == "77"  # type: ignore[attr-defined]


def test_18_12_schemas_of_types_differ_with_the_types() -> None:
    one = NodeType(1, "A", (Property(1, "x", STRING, "x"),))
    others = [
        NodeType(1, "A", (Property(1, "x", I64, "x"),)),
        NodeType(1, "A", (Property(2, "x", STRING, "x"),)),
        NodeType(1, "A", (Property(1, "x", STRING, "y"),)),
    ]
    for other in others:
        assert not physical_schema(one).equals(physical_schema(other), check_metadata=True)


def test_18_12_every_setting_of_embedding_is_part_of_its_key() -> None:
    config = EmbeddingConfig(Provider.MOCK)
    for field in fields(config):
        value = getattr(config, field.name)
        other: Any = Provider.LOCAL if field.name == "provider" else f"{value}x"
        if isinstance(value, int):
            other = value + 1
        assert replace(config, **{field.name: other}) != config, field.name


def test_18_12_compiled_queries_and_plans_follow_schema_and_statistics() -> None:
    texts = ("node A { x: I64 }", "node A { x: String }")
    catalogs = [compile_schema(text) for text in texts]
    query = "query q() { match { $a: A } return { $a.x as x } }"
    compiled = [gq.compile_query(query, catalog).query for catalog in catalogs]
    assert compiled[0] is not compiled[1]
    planner, read = Planner(), compiled[0]
    few, many = (from_counts({"A": rows}, {}) for rows in (1, 10**6))
    plans = [planner.plan(read, catalogs[0], found) for found in (few, many, few)]  # type: ignore[arg-type]
    assert plans[0] is plans[2] is not plans[1]
    assert np.unique([id(plan) for plan in plans]).size == 2
