"""Looking things up in a catalog."""

from __future__ import annotations

import pytest

from omnigraph.lang import pg
from omnigraph.model.catalog import Cardinality, Catalog, TableKind


@pytest.fixture
def catalog() -> Catalog:
    return pg.compile_schema(
        """
        interface Named { name: String }
        node Person implements Named { photo: Blob? }
        node Company {}
        edge WorksAt: Person -> Company
        edge Knows: Person -> Person
        """
    )


def test_lookups(catalog: Catalog) -> None:
    person, works_at = catalog.node("Person"), catalog.edge("worksat")
    assert person is not None
    assert works_at is not None
    assert works_at.name == "WorksAt"
    assert catalog.node("person") is None
    assert catalog.interface("Named") is not None
    assert catalog.implementers("Named") == (person,)
    assert catalog.table(person.id) is person
    assert [e.name for e in catalog.edges_of("Company")] == ["WorksAt"]
    assert len(catalog.edges_of("Person")) == 2
    assert [t.kind for t in catalog.tables()].count(TableKind.EDGE) == 2


def test_properties_of_a_table(catalog: Catalog) -> None:
    person = catalog.node("Person")
    assert person is not None
    assert [p.name for p in person.blob_properties] == ["photo"]
    assert person.get("name") is person.by_name["name"]
    assert person.get("nothing") is None


def test_the_usual_cardinality() -> None:
    assert Cardinality().is_default
    assert not Cardinality(0, 1).is_default
