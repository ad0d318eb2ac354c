"""Refused rows as lines: grouped by property and rule, with counts and a few examples."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli import main
from omnigraph.cli.refusals import refusals
from omnigraph.errors import CommitNotFoundError, InvalidDataError, MergeConflictError, Violation

SCHEMA = """
node Person {
    name: String @key
    age: I32? @range(0..150)
    email: String? @unique
}
edge Knows: Person -> Person
"""


def violations(count: int, name: str = "age", rule: str = "range") -> list[Violation]:
    return [
        Violation(rule, f"{n} is too much", "Person", name, n, n, "p.jsonl", n + 1)
        for n in range(count)
    ]


def test_18_30_groups_with_three_examples() -> None:
    found = [*violations(40), *violations(1, "email", "unique")]
    error = InvalidDataError("The rows break rules.", violations=found)
    assert list(refusals(error, quiet=False)) == [
        "  Person.age: range, 40 values",
        "    p.jsonl:1: 0 is too much",
        "    p.jsonl:2: 1 is too much",
        "    p.jsonl:3: 2 is too much",
        "  p.jsonl:1: Person.email: 0 is too much",
    ]


def test_18_30_quiet_prints_counts() -> None:
    found = [*violations(40), *violations(1, "email", "unique")]
    error = InvalidDataError("The rows break rules.", violations=found, total=45)
    assert list(refusals(error, quiet=True)) == [
        "  Person.age: range, 40 values",
        "  Person.email: unique, 1 value",
        "  and 4 more",
    ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    omnigraph.init("g", SCHEMA)
    return tmp_path


def refuse(place: Path, *options: str) -> None:
    lines = [
        f'{{"type": "Person", "data": {{"name": "p{n}", "age": -{n + 1}}}}}' for n in range(300)
    ]
    lines += ['{"type": "Person", "data": {"name": "q", "age": "x"}}']
    (place / "p.jsonl").write_text("\n".join(lines))
    assert main.run(["ingest", "g", "--data", "p.jsonl", *options]) == 8


def test_18_30_all_refusals_are_counted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refuse(place)
    said = capsys.readouterr().err.splitlines()
    assert "  Person.age: range, 300 values" in said
    assert len(said) < 12
    refuse(place, "--quiet")
    said = capsys.readouterr().err.splitlines()
    assert "  Person.age: range, 300 values" in said
    assert not [line for line in said if line.startswith("    ")]


def test_18_30_a_tag_is_no_snapshot(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = omnigraph.open("g")
    for name in ("v1", "release-2026"):
        graph.create_tag(name)
        with pytest.raises(CommitNotFoundError, match=f"'{name}' is a tag, not a commit"):
            graph.snapshot(commit=name)
    ask = "query q() { match { $p: Person } return { $p.name } }"
    assert main.run(["query", "--store", "g", "--snapshot", "v1", "-e", ask]) == 3
    assert "--tag v1" in capsys.readouterr().err


def test_18_30_ends_of_edges_are_from_and_to(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = omnigraph.open("g")
    graph.create_tag("v1")
    people = [{"type": "Person", "data": {"name": name}} for name in ("ann", "bob")]
    graph.ingest([*people, {"edge": "Knows", "from": "ann", "to": "bob", "data": {}}])
    assert main.run(["diff", "g", "v1"]) == 0
    said = capsys.readouterr().out
    assert 'from: "ann", to: "bob"' in said
    assert "src" not in said


def test_18_30_a_unique_conflict_names_both_and_the_value(place: Path) -> None:
    graph = omnigraph.open("g")
    side = graph.create_branch("side")
    graph.ingest([{"name": "ann", "email": "a@x"}], type="Person")
    side.ingest([{"name": "bob", "email": "a@x"}], type="Person")
    with pytest.raises(MergeConflictError) as caught:
        graph.merge("side")
    message = str(caught.value)
    assert "'ann'" in message
    assert "'bob'" in message
    assert "'a@x'" in message
    with pytest.raises(InvalidDataError, match="Person 'ann' has 'a@x' too"):
        graph.ingest([{"name": "cy", "email": "a@x"}], type="Person")


def test_18_30_a_unique_conflict_within_one_side_of_a_merge(place: Path) -> None:
    """Two rows of the same delta clash: both are named by their ids, not by record numbers."""
    graph = omnigraph.open("g")
    graph.ingest([{"name": "ann", "email": "a@x"}, {"name": "bob", "email": "b@x"}], type="Person")
    side = graph.create_branch("side")
    graph.mutate('query q() { update Person set { email: "c@x" } where name = "ann" }')
    side.mutate('query q() { update Person set { email: "c@x" } where name = "bob" }')
    with pytest.raises(MergeConflictError) as caught:
        graph.merge("side")
    message = str(caught.value)
    assert "'ann'" in message
    assert "'bob'" in message
    assert "'c@x'" in message
    assert "record" not in message
