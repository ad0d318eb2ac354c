"""The files of a load's sources, each listed once.

Guarantees: a source is listed when its files are first asked for and not again, so that everything
that a load does, also when it is prepared a second time, is about the same set of files.
Deliberately absent: reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.intake.sources import ENDINGS, Source
from omnigraph.storage.inputs import InputFile, list_inputs


class SourceFiles:
    """Sources, and the files that they name."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        self._listed: dict[int, tuple[InputFile, ...]] = {}

    def __iter__(self) -> Iterator[tuple[int, Source]]:
        return enumerate(self._sources)

    @property
    def have_frames(self) -> bool:
        """Whether a source is a frame, which has no files."""
        return any(source.frame is not None for source in self._sources)

    def of(self, number: int) -> tuple[InputFile, ...]:
        """The files of the source with that number; none for a frame.

        Raises:
            InvalidArgumentError: A path of the source names no file.
        """
        if number not in self._listed:
            self._listed[number] = tuple(list_inputs(self._sources[number].paths, ENDINGS))
        return self._listed[number]

    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for number, _ in self for file in self.of(number))
