"""Inputs and outputs in an S3-like store: the same names, order and bytes as on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import InvalidArgumentError
from omnigraph.storage.inputs import (
    list_inputs,
    open_input,
    output_address,
    output_exists,
    write_output,
)


def check_place(place: str) -> None:
    for name in ("b/2.jsonl", "a.jsonl", "b/1.jsonl", "b/_SUCCESS", "bc/3.jsonl"):
        write_output(f"{place}/{name}", name.encode())
    found = [file.address.removeprefix(f"{place}/") for file in list_inputs([f"{place}/b"])]
    assert found == ["b/1.jsonl", "b/2.jsonl"]
    wild = [file.address.removeprefix(f"{place}/") for file in list_inputs([f"{place}/*.jsonl"])]
    assert "a.jsonl" in wild
    (one,) = list_inputs([f"{place}/a.jsonl"])
    assert one.size == len("a.jsonl")
    with open_input(one.address) as handle:
        handle.seek(2)
        assert bytes(handle.read(3)) == b"jso"
    write_output(f"{place}/a.jsonl", b"again")
    with open_input(one.address) as handle:
        assert bytes(handle.read()) == b"again"
    assert output_exists(f"{place}/b")
    assert not output_exists(f"{place}/nothing")
    with pytest.raises(InvalidArgumentError, match="There is no file"):
        list_inputs([f"{place}/none.csv"])


def test_on_disk(tmp_path: Path) -> None:
    check_place(str(tmp_path / "in"))
    assert output_address(f"file://{tmp_path}/x") == str(tmp_path / "x")


def test_in_a_bucket(s3_root: str) -> None:
    check_place(s3_root.rstrip("/"))
