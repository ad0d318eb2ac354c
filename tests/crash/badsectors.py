"""Read errors of a real medium: a file whose blocks cannot be read (EIO).

    with BadSectors(folder) as bad:
        bad.take(file)      the file is there, with its size, and every read of it fails

The file moves to a small ext4 file system in an image, and a link takes its place. The image is
then cut where the blocks of the file begin, so that the loop device has nothing to return for them.
Needs root and loop devices; `why_not` says what is missing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from types import TracebackType

from tests.crash import machine

_FIBMAP = 1
_BLOCK = 4096
_FREE = 8 << 20


class BadSectors:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mounts: list[Path] = []

    def __enter__(self) -> BadSectors:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for place in self._mounts:
            _run("umount", "-l", str(place))

    def take(self, file: Path) -> None:
        """Make every read of a file fail."""
        self._folder.mkdir(parents=True, exist_ok=True)
        number = len(self._mounts)
        image = self._folder / f"{number}.img"
        place = self._folder / f"{number}"
        place.mkdir()
        size = _FREE + file.stat().st_size
        _run("truncate", "-s", str(size // _BLOCK * _BLOCK), str(image))
        _run("mkfs.ext4", "-q", "-F", "-b", str(_BLOCK), "-O", "^has_journal", str(image))
        _run("mount", "-o", "loop", str(image), str(place))
        target = place / file.name
        shutil.copyfile(file, target)
        first = _first_block(target)
        _run("umount", str(place))
        _run("mount", "-o", "loop,ro", str(image), str(place))
        self._mounts.append(place)
        os.truncate(image, first * _BLOCK)
        file.unlink()
        file.symlink_to(target)


@cache
def why_not() -> str | None:
    """Why reads cannot be made to fail here, or None."""
    missing = machine.why_not()
    if missing is not None:
        return missing
    with tempfile.TemporaryDirectory() as folder, BadSectors(Path(folder, "bad")) as bad:
        file = Path(folder, "file")
        file.write_bytes(bytes(range(256)) * 64)
        bad.take(file)
        try:
            file.read_bytes()
        except OSError as error:
            return None if error.errno == errno.EIO else f"a read fails differently: {error}"
        return "reads beyond the end of an image succeed"


def _first_block(file: Path) -> int:
    """The least number of a block of the file, after it was written to the medium."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        count = -(-os.fstat(descriptor).st_size // _BLOCK)
        asked = (fcntl.ioctl(descriptor, _FIBMAP, struct.pack("I", n)) for n in range(count))
        return min(block for each in asked if (block := struct.unpack("I", each)[0]))
    finally:
        os.close(descriptor)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
