"""ULIDs: shape, order, threads and forks."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

from omnigraph.model import ulid
from omnigraph.model.ulid import new_ulid, new_ulids, ulid_array

ALPHABET = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def read(text: str) -> int:
    value = 0
    for letter in text:
        value = value * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
    return value


def test_shape_and_time() -> None:
    before = time.time_ns() // 1_000_000
    made = new_ulid()
    assert len(made) == 26
    assert set(made) <= ALPHABET
    assert read(made) >> 80 >= before


def test_each_is_greater_than_the_one_before() -> None:
    made = [new_ulid() for _ in range(1000)]
    made += new_ulids(1000)
    made += ulid_array(1000).to_pylist()
    made += [new_ulid()]
    assert made == sorted(set(made))


def test_batches_spell_the_same_as_single_ones() -> None:
    first, *rest = new_ulids(5)
    assert [read(r) - read(first) for r in rest] == [1, 2, 3, 4]


def test_a_batch_over_the_border_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    start = (123 << 80) | (7 << 64) | (2**64 - 2)
    monkeypatch.setattr(ulid._clock, "reserve", lambda count: start)
    assert [read(made) - start for made in new_ulids(4)] == [0, 1, 2, 3]


def test_no_ids_at_all() -> None:
    assert new_ulids(0) == []
    assert ulid_array(0).to_pylist() == []
    assert ulid_array(3).type == pa.string()


def test_a_clock_that_steps_back_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_ulid()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert new_ulid() > first


def test_a_full_millisecond_borrows_from_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ulid._Clock()
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
    first = clock.reserve(1)
    clock.next_random = 2**80 - 1
    assert clock.reserve(2) >> 80 == (first >> 80) + 1


def test_threads_share_one_order() -> None:
    made: list[list[str]] = [[] for _ in range(4)]

    def work(mine: list[str]) -> None:
        mine.extend(new_ulid() for _ in range(500))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in made)
    assert len({one for mine in made for one in mine}) == 2000


FORK = """
import os
from omnigraph.model.ulid import new_ulid, new_ulids

new_ulid()
child = os.fork()
# One write each: both have the same pipe, and parts of two lines could mix.
os.write(1, (" ".join(new_ulids(20)) + "\\n").encode())
if child:
    os.waitpid(child, 0)
"""


def test_a_forked_child_does_not_repeat_its_parent() -> None:
    # In a process of its own: what other tests have loaded here may not like to be forked.
    said = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    made = said.stdout.split()
    assert len(made) == len(set(made)) == 40
