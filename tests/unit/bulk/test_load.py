"""The load pipeline of the spark engine with its tasks run in this process, against `ingest`.

Parts, ranges and shares are made tiny, so that small inputs cross every border that large ones do.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from tests.spark.inputs import SCHEMA, content, knows, note, owns, person, write_lines

import omnigraph
from omnigraph.bulk import partwriter, splits, stagedkeys
from omnigraph.errors import InvalidDataError, KeyConflictError
from omnigraph.graph import Graph
from omnigraph.operations.load import LoadOptions
from omnigraph.operations.requests import Load
from omnigraph.operations.verbs import run

_MADE = re.compile(r"'[0-9A-Z]{26}'")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "LEAST_BYTES", 300)
    monkeypatch.setattr(splits, "MOST_BYTES", 300)
    monkeypatch.setattr(stagedkeys, "MOST_KEYS", 5)
    monkeypatch.setattr("omnigraph.bulk.integrity.MOST_KEYS", 5)
    monkeypatch.setattr(partwriter, "ROWS_PER_FILE", 4)


def outcome(graph: Graph, file: str, mode: str, *, here: bool) -> Any:
    engine = "spark" if here else "embedded"
    try:
        found = run(
            graph._context, Load(file, options=LoadOptions(mode=mode, engine=engine, here=here))
        )
    except InvalidDataError as error:
        # Ids that were made differ between two graphs.
        return [_MADE.sub("…", str(v)) for v in error.violations], error.total
    except KeyConflictError:
        return "taken"  # of several types with taken ids either may be named
    counts = {name: (a.inserted, a.updated, a.deleted) for name, a in found.affected.items()}
    return {name: each for name, each in counts.items() if any(each)}


def random_records(chance: random.Random) -> list[Any]:
    names = [f"p{number:02d}" for number in range(chance.choice([8, 40]))]
    careless = chance.random() < 0.3
    records: list[Any] = []
    for name in chance.sample(names, chance.randrange(len(names))):
        more: dict[str, Any] = {"age": chance.randrange(99)}
        if chance.random() < 0.4:
            more["email"] = f"{chance.randrange(60 if careless else 10_000)}@x"
        records.append(person(name, **more))
        if careless and chance.random() < 0.1:
            records.append(person(name))
    records += [note(f"n{number}") for number in chance.sample(range(30), chance.randrange(9))]
    ends = names if careless else [r["data"]["name"] for r in records if r["type"] == "Person"]
    for _ in range(chance.randrange(30) if ends else 0):
        extra = {"id": f"k{chance.randrange(400)}"} if chance.random() < 0.5 else {}
        records.append(knows(chance.choice(ends), chance.choice(ends), **extra))
    texts = [r["data"]["id"] for r in records if r.get("type") == "Note"]
    for _ in range(chance.randrange(6) if ends and texts else 0):
        records.append(owns(chance.choice(ends), chance.choice(texts)))
    if careless:
        records.append(chance.choice(["{", "", '{"type": "Person", "data": {}}']))
    chance.shuffle(records)
    return records


@pytest.mark.parametrize("seed", range(6))
def test_tasks_and_ingest_agree(seed: int, tmp_path: Path) -> None:  # ledger: C09 T04 T05
    chance = random.Random(seed)
    graphs = [omnigraph.init(str(tmp_path / name), SCHEMA) for name in ("tasks", "ingest")]
    for number in range(5):
        mode = chance.choice(["append", "merge", "merge", "overwrite"])
        records = random_records(chance)
        file = write_lines(tmp_path / f"{number}.jsonl", records)
        if mode == "overwrite" and not any(records):
            continue
        said = [outcome(g, file, mode, here=h) for g, h in zip(graphs, (True, False), strict=True)]
        assert said[0] == said[1], (seed, number, mode)
        assert content(graphs[0]) == content(graphs[1]), (seed, number, mode)


def test_lines_are_exact_across_parts(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    records: list[Any] = [person(f"p{number:03d}") for number in range(200)]
    records[57] = "nonsense"
    records[140] = ""
    records[141] = person("x", age=-3)
    records[199] = '{"type": "Person"}'
    first = write_lines(tmp_path / "a.jsonl", [note(f"n{number}") for number in range(50)])
    second = write_lines(tmp_path / "b.jsonl", records)
    with pytest.raises(InvalidDataError) as caught:
        run(graph._context, Load([first, second], options=LoadOptions(here=True)))
    found = [(Path(v.file or "").name, v.line, v.record) for v in caught.value.violations]
    assert found == [("b.jsonl", 58, 107), ("b.jsonl", 142, 190), ("b.jsonl", 200, 248)]
    assert caught.value.details["rules"] == {"json": 1, "range": 1, "required": 1}
    records[57] = records[141] = ""
    records[199] = person("p000")
    records += [knows("p001", "nobody")]
    with pytest.raises(InvalidDataError) as caught:
        run(
            graph._context,
            Load(
                write_lines(tmp_path / "c.jsonl", records),
                options=LoadOptions(here=True),
            ),
        )
    (only,) = caught.value.violations
    assert (only.line, only.rule) == (200, "key")
    assert "record 0" in only.message


def test_rows_that_lean_on_refused_ones_are_refused_too(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    records: list[Any] = []
    for number in range(30):
        age = -1 if number % 10 == 3 else 5
        records += [person(f"p{number}", age=age), knows(f"p{number}", "p1")]
    records.append(person("p1"))
    file = write_lines(tmp_path / "in.jsonl", records)
    place = tmp_path / "aside"
    result = run(
        graph._context,
        Load(
            file,
            options=LoadOptions(here=True, on_error="quarantine", rejects=str(place)),
        ),
    )
    assert (result.nodes, result.edges, result.rejected) == (27, 27, 7)
    lines = [line for each in sorted(place.iterdir()) for line in each.read_text().splitlines()]
    assert len(lines) == 7
    reasons = [reason for line in lines for reason in json.loads(line)["reasons"]]
    assert "the id 'p1' is that of record 2 too" in reasons
