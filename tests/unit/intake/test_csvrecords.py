"""CSV: records are cut where Python's own strict reader ends them, whatever the blocks."""

from __future__ import annotations

import csv
import io
import random

import pytest

from omnigraph.errors import InvalidDataError
from omnigraph.intake.csvrecords import whole_records
from omnigraph.intake.delimited import read_header, read_records
from omnigraph.rows.findings import Findings, Origin

PIECES = [
    "a",
    "b",
    ",",
    ",",
    '"',
    '"',
    '""',
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "é",
    '"x",',
    '\n"y"',
    ";",
]


def blocks(data: bytes, chance: random.Random):
    at = 0
    while at < len(data):
        size = chance.choice([1, 2, 3, 7, 100])
        yield data[at : at + size]
        at += size


def cut(data: bytes, chance: random.Random, delimiter: str = ",") -> list[tuple[int, list[str]]]:
    """Line and cells of every record."""
    found = []
    for stretch in whole_records(blocks(data, chance), delimiter):
        ends = [*stretch.starts[1:].tolist(), len(stretch.data)]
        for line, start, end in zip(
            stretch.lines.tolist(), stretch.starts.tolist(), ends, strict=True
        ):
            record = stretch.data[start:end].rstrip(b"\r\n")
            found.append((line, read_header(record, delimiter, None)))
    return found


def expected(text: str) -> list[tuple[int, list[str]]] | None:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    found, before = [], 0
    try:
        for cells in reader:
            if cells:
                found.append((before + 1, cells))
            before = reader.line_num
    except csv.Error:
        return None
    return found


@pytest.mark.parametrize("seed", range(40))
def test_18_24_records_are_those_of_a_strict_reader(seed):
    chance = random.Random(seed)
    refused = 0
    for _ in range(150):
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 25)))
        wanted = expected(text)
        try:
            found = cut(text.encode(), chance)
        except InvalidDataError:
            found = None
            refused += 1
        assert found == wanted, repr(text)
    assert 0 < refused < 150


def test_18_24_an_unclosed_quote_is_refused_with_its_line():
    text = b'name,n\na,1\n"b,2\nc,3\nd,4\n'
    with pytest.raises(InvalidDataError) as caught:
        cut(text, random.Random(1))
    (violation,) = caught.value.violations
    assert violation.line == 3
    assert "never closed" in violation.message


def test_18_24_an_unclosed_quote_before_others_is_found_where_it_opens():
    text = b'name,n\n"a",1\n"b,2\n"c",3\n'
    with pytest.raises(InvalidDataError) as caught:
        cut(text, random.Random(1))
    (violation,) = caught.value.violations
    assert violation.line == 3
    assert "line 4" in violation.message


def test_18_24_a_record_may_be_larger_than_a_block_but_not_endless():
    big = b'name\n"' + b"x" * 50_000 + b'"\n'
    header, stretch = whole_records([big[:100], big[100:]], ",")
    assert header.first() == b"name"
    assert stretch.longest > 50_000
    with pytest.raises(InvalidDataError, match="more than 1,000 bytes"):
        list(whole_records([big[:100], big[100:9_000], big[9_000:]], ",", most_bytes=1_000))


def test_18_24_records_with_too_many_or_too_few_cells_are_told_by_line():
    (stretch,) = whole_records([b'1,"x\ny"\n\n2\n3,4,5\n6,7\n'], ",")
    findings = Findings()
    rows, good = read_records("T", ["a", "b"], stretch, ",", Origin(lines=stretch.lines), findings)
    assert rows.to_pydict() == {"a": ["1", "6"], "b": ["x\ny", "7"]}
    assert good.tolist() == [0, 3]
    assert [(v.line, v.message) for v in findings.violations] == [
        (4, "expected 2 cells, found 1"),
        (5, "expected 2 cells, found 3"),
    ]
