"""Splitting text into the word pieces of an uncased BERT vocabulary.

Guarantees: the same numbers as the reference tokenizer gives for text without special tokens; text
is cut at the longest input that the model takes.
Deliberately absent: pairs of texts, and vocabularies that keep case.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
_LONGEST_WORD = 100
# Scripts that write without spaces: each character is a word.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A vocabulary, one piece per line of its file."""

    def __init__(self, vocabulary: list[str], longest: int) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self._longest = longest

    @staticmethod
    def read(path: Path, longest: int) -> WordPiece:
        return WordPiece(path.read_text("utf-8").rstrip("\n").split("\n"), longest)

    def numbers(self, text: str) -> list[int]:
        """The pieces of a text as numbers, between the marks of start and end."""
        found = [number for word in _words(text) for number in self._pieces(word)]
        cut = found[: self._longest - 2]
        return [self._numbers[_START], *cut, self._numbers[_END]]

    def _pieces(self, word: str) -> list[int]:
        """The longest known pieces from left to right, or "unknown" for the whole word."""
        pieces: list[int] = []
        start = 0
        while start < len(word) <= _LONGEST_WORD:
            number, start = self._longest_piece(word, start)
            if number is None:
                break
            pieces.append(number)
        else:
            if pieces:
                return pieces
        return [self._numbers[_UNKNOWN]]

    def _longest_piece(self, word: str, start: int) -> tuple[int | None, int]:
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            number = self._numbers.get(prefix + word[start:end])
            if number is not None:
                return number, end
        return None, start


def _words(text: str) -> Iterator[str]:
    spaced = "".join(_spaced(letter) for letter in text)
    for word in spaced.split():
        # Letter by letter, as the reference does: Python would write a last sigma differently.
        plain = unicodedata.normalize("NFD", "".join(letter.lower() for letter in word))
        stripped = "".join(c for c in plain if unicodedata.category(c) != "Mn")
        yield from _at_punctuation(stripped)


def _spaced(letter: str) -> str:
    code = ord(letter)
    if letter in "\t\n\r" or unicodedata.category(letter) == "Zs":
        return " "
    if code in (0, 0xFFFD) or unicodedata.category(letter) in ("Cc", "Cf", "Cn", "Co"):
        return ""
    return f" {letter} " if any(low <= code <= high for low, high in _IDEOGRAPHS) else letter


def _at_punctuation(word: str) -> Iterator[str]:
    start = 0
    for place, letter in enumerate(word):
        if _is_punctuation(letter):
            if place > start:
                yield word[start:place]
            yield letter
            start = place + 1
    if start < len(word):
        yield word[start:]


def _is_punctuation(letter: str) -> bool:
    # ASCII symbols such as "$" count, though Unicode calls them otherwise.
    ascii_symbol = "!" <= letter <= "~" and not letter.isalnum()
    return ascii_symbol or unicodedata.category(letter).startswith("P")
