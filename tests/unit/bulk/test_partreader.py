"""Cutting texts at bytes loses no line and reads none twice, wherever the cuts fall."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.bulk.partreader import lines_between, read_split
from omnigraph.bulk.splits import Split, cut
from omnigraph.errors import InvalidArgumentError, InvalidDataError
from omnigraph.intake.sources import (
    Assigned,
    Rule,
    Source,
    SourceFormat,
    assign,
    name_columns,
    parse_mapping,
)
from omnigraph.lang import pg
from omnigraph.storage.inputs import InputFile, list_inputs

CATALOG = pg.compile_schema(
    """
node Person {
    name: String @key
    age: I32?
    tags: [String]?
    ok: Bool?
}
edge Knows: Person -> Person {
    since: Date?
}
"""
)


@given(
    st.lists(st.sampled_from([b"", b"a", b"bc", b"d" * 20, b"\r"]), max_size=30),
    st.booleans(),
    st.integers(1, 40),
    st.integers(1, 50),
)
def test_parts_own_the_lines_that_begin_in_them(
    lines: list[bytes], ends: bool, part: int, block: int
) -> None:
    data = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    found = b""
    for start in range(0, len(data), part):
        end = min(start + part, len(data))
        pieces = list(lines_between(io.BytesIO(data), start, end, block))
        joined = b"".join(pieces)
        assert data.find(joined) >= 0
        for piece in pieces[:-1]:
            assert piece.endswith(b"\n")
        found += joined
    assert found == data


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    data = b'\xef\xbb\xbf{"a": 1}\n'
    assert list(lines_between(io.BytesIO(data), 0, None)) == [b'{"a": 1}\n']


def person(number: int) -> str:
    return json.dumps({"type": "Person", "data": {"name": f"p{number}", "age": number}}) + "\n"


def test_compressed_lines_are_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl.gz"
    file.write_bytes(gzip.compress("".join(person(n) for n in range(50)).encode()))
    (split,) = cut([(InputFile(str(file), 10), assign(str(file), Source(), CATALOG))], 2)
    blocks = list(read_split(CATALOG, split))
    assert sum(block.records for block, _ in blocks) == 50
    assert blocks[0][0].parsed[0].rows.num_rows == 50


def test_cells_of_text_are_read_as_their_types(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text('name,age,tags,ok\nAda,36,"[""x"", ""y""]",true\n"",,,\nBo,oops,,\nCy,4,no,1\n')
    how = Assigned(SourceFormat.CSV, table_id=CATALOG.nodes[0].id)
    ((block, _),) = read_split(CATALOG, Split(0, str(file), how))
    assert block.parsed[0].rows.to_pylist() == [
        {"name": "Ada", "age": 36, "tags": ["x", "y"], "ok": True},
        {"name": "", "age": None, "tags": None, "ok": None},
    ]
    assert [(v.line, v.property, v.message) for v in block.findings.violations] == [
        (4, "age", "expected a whole number"),
        (5, "tags", "expected a list such as [1, 2]"),
    ]


def test_large_parquet_is_cut_at_row_groups(tmp_path: Path) -> None:
    file = tmp_path / "Person.parquet"
    names = [f"p{n:07d}" for n in range(400_000)]
    pq.write_table(pa.table({"name": names}), file, row_group_size=50_000, compression="none")
    how = assign(str(file), Source(), CATALOG)
    splits = cut([(InputFile(str(file), 1 << 30), how)], 1_000_000)
    assert [(s.place, s.start, s.end) for s in splits] == [(0, 0, 7), (1, 7, 8)]
    tiny = Split(0, str(file), how, 2, 4)
    read = [b.parsed[0].rows.column("name").to_pylist() for b, _ in read_split(CATALOG, tiny)]
    assert [name for batch in read for name in batch] == names[100_000:200_000]


def test_a_file_that_is_not_what_it_says_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "Person.parquet"
    file.write_bytes(b"no parquet at all, but long enough")
    with pytest.raises(InvalidDataError, match="cannot be read"):
        list(read_split(CATALOG, Split(0, str(file), assign(str(file), Source(), CATALOG))))


@pytest.mark.parametrize(
    "address", ["Person.csv", "person-0.parquet", "x/Person/part-00.parquet", "PERSON_12.arrow"]
)
def test_names_tell_types(address: str) -> None:
    assert assign(address, Source(), CATALOG).table_id == CATALOG.nodes[0].id


def test_rules_tell_types_where_names_do_not() -> None:
    mapping = [
        {"file": "people-*.csv", "type": "Person", "columns": {"full name": "name"}},
        {"file": "links/*.tsv", "edge": "Knows"},
    ]
    source = Source(rules=parse_mapping(mapping))
    people = assign("/a/people-7.csv", source, CATALOG)
    assert (people.table_id, people.columns) == (CATALOG.nodes[0].id, (("full name", "name"),))
    links = assign("/a/links/z.tsv", source, CATALOG)
    assert (links.table_id, links.delimiter) == (CATALOG.edges[0].id, "\t")
    with pytest.raises(InvalidArgumentError, match="not known"):
        assign("/a/else.csv", source, CATALOG)


@pytest.mark.parametrize(
    "mapping",
    ["text", {"type": "A", "edge": "B"}, {}, {"type": 3}, {"type": "A", "more": 1}],
)
def test_a_mapping_that_makes_no_sense_is_refused(mapping: object) -> None:
    with pytest.raises(InvalidArgumentError, match="mapping cannot be read"):
        parse_mapping(mapping)


def test_types_that_the_schema_lacks_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="does not have"):
        assign("x.csv", Source(rules=(Rule("*", "Nobody", False),)), CATALOG)
    with pytest.raises(InvalidArgumentError, match="form of"):
        assign("x.bin", Source(), CATALOG)
    with pytest.raises(InvalidArgumentError, match="compressed as a whole"):
        assign("Person.parquet.gz", Source(), CATALOG)


def test_folders_and_patterns_give_their_files_in_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "_SUCCESS", ".hidden", "sub/c.jsonl"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}")
    found = [Path(f.address).name for f in list_inputs([str(tmp_path)])]
    assert found == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert [Path(f.address).name for f in list_inputs([f"{tmp_path}/*.jsonl"])] == found[:2]
    with pytest.raises(InvalidArgumentError, match="There is no file"):
        list_inputs([f"{tmp_path}/*.csv"])


def test_a_column_that_is_mapped_to_nothing_is_left_out() -> None:
    (rule,) = parse_mapping({"type": "Person", "columns": {"full": "name", ":LABEL": None}})
    rows = pa.table({":LABEL": ["Actor"], "full": ["Ada"], "age": [36]})
    assert name_columns(rows, rule.columns).to_pylist() == [{"name": "Ada", "age": 36}]
    assert name_columns(rows, ()) == rows
    with pytest.raises(InvalidArgumentError, match="`columns` maps"):
        parse_mapping({"type": "Person", "columns": {"full": 3}})
