"""Letters to the holder of a lock: taken or withdrawn, never of the dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from omnigraph.storage.mailbox import Letter, Letters


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lock.letters"


@pytest.fixture
def letters(folder: Path) -> Letters:
    return Letters(str(folder))


def post(letters: Letters, id: str, data: bytes = b"please") -> Letter:
    letter = letters.post(id, data)
    assert letter is not None
    return letter


def left(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_letter_is_taken_answered_and_cleared_away(letters: Letters, folder: Path) -> None:
    letter = post(letters, "B", b"do this")
    other = post(letters, "A", b"do that")
    assert letter.answer() is None
    assert letter.note() is None
    assert letters.take(note=7, most=9) == [("A", b"do that"), ("B", b"do this")]
    assert letters.take(note=8, most=9) == []
    assert letter.note() == 7
    letters.answer("B", b"done")
    assert letter.answer() == b"done"
    assert other.answer() is None
    letter.close()
    other.close()
    assert left(folder) == []


def test_no_more_are_taken_than_there_is_room_for(letters: Letters) -> None:
    waiting = [post(letters, f"{n:02}") for n in range(5)]
    assert [id for id, _ in letters.take(1, 2)] == ["00", "01"]
    assert [id for id, _ in letters.take(1, 9)] == ["02", "03", "04"]
    for letter in waiting:
        letter.close()


def test_a_letter_that_was_withdrawn_is_not_taken(letters: Letters, folder: Path) -> None:
    letter = post(letters, "A")
    assert letter.withdraw()
    assert letters.take(1, 9) == []
    assert not letter.withdraw()
    letter.close()
    assert left(folder) == []


def test_a_letter_that_was_taken_cannot_be_withdrawn(letters: Letters) -> None:
    letter = post(letters, "A")
    assert len(letters.take(1, 9)) == 1
    assert not letter.withdraw()
    letter.close()


def test_taking_and_withdrawing_at_once_has_one_winner(letters: Letters, folder: Path) -> None:
    for turn in range(200):
        letter = post(letters, f"{turn:03}")
        begin = threading.Barrier(2)
        withdrawn: list[bool] = []

        def withdraw(
            letter: Letter = letter, begin: threading.Barrier = begin, out: list[bool] = withdrawn
        ) -> None:
            begin.wait()
            out.append(letter.withdraw())

        worker = threading.Thread(target=withdraw)
        worker.start()
        begin.wait()
        taken = letters.take(1, 9)
        worker.join()
        assert withdrawn == [not taken]
        letter.close()
    assert left(folder) == []


def test_letters_of_the_dead_are_buried(letters: Letters, folder: Path) -> None:
    script = (
        "import sys, time; from omnigraph.storage.mailbox import Letters\n"
        "box = Letters(sys.argv[1])\n"
        "kept = [box.post(id, b'late') for id in 'AB']\n"
        "print('posted', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True
    ) as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == "posted\n"
        assert letters.take(1, 1) == [("A", b"late")]
        dying.send_signal(signal.SIGKILL)
    letters.answer("A", b"done")  # to somebody who is not there any more
    living = post(letters, "C")
    assert letters.take(2, 9) == [("C", b"please")]
    assert left(folder) == ["C.taken.2"]
    living.close()


def test_an_answer_without_a_letter_is_buried(letters: Letters, folder: Path) -> None:
    letter = post(letters, "A")
    letters.take(1, 9)
    letter.close()
    letters.answer("A", b"too late")
    assert left(folder) == ["A.answer"]
    assert letters.take(2, 9) == []
    assert left(folder) == []


def test_where_nothing_can_be_written_there_is_no_letter(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    letters = Letters(str(tmp_path / "taken"))
    assert letters.post("A", b"please") is None
