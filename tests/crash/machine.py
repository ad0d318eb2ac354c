"""A machine whose power can be cut: a file system in a file, mounted by loop.

    with Machine(folder) as machine:
        ...                      files below machine.place
        machine.cut()            what was not forced to the medium is lost, nothing more is written
        machine.restart()        and the file system is mounted again

The cut is the shutdown ioctl of ext4 without flushing its log, as after a loss of power: files that
were not forced are missing, or empty, or have old content. Needs Linux, root, loop devices and
`mkfs.ext4`; `why_not` says what is missing, and then the campaign is skipped and not counted.

Guarantees: a mount is taken away at the end of the block, and one that a killed test left is taken
away by the next machine.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from omnigraph.storage.durability import native_sync

_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, 2
_SIZE, _INODES = "192M", "65536"
_MARK = "omnigraph-machine"
_BUSY_S = 10.0


class Machine:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._image = folder / f"{uuid4().hex}.img"
        self.place = folder / f"{_MARK}-{os.getpid()}-{uuid4().hex[:8]}"
        self.starts = 0

    def __enter__(self) -> Machine:
        _take_away_leftovers()
        _run("truncate", "-s", _SIZE, str(self._image))
        _run("mkfs.ext4", "-q", "-F", "-N", _INODES, str(self._image))
        self.place.mkdir()
        self._mount()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unmount()
        self._image.unlink(missing_ok=True)
        self.place.rmdir()

    def force(self) -> None:
        """Everything so far is on the medium."""
        sync = native_sync()
        assert sync is not None
        descriptor = os.open(self.place, os.O_RDONLY)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)

    def cut(self, *, torn: bool) -> None:
        cut_power(str(self.place), torn=torn)

    def restart(self) -> None:
        """Mount again what the cut has left."""
        self._unmount()
        if _is_attached(self._image):
            self._change_disk()
        self._mount()

    def _change_disk(self) -> None:
        """Continue on a copy of the image. A process that was started in a mount namespace of its
        own holds a copy of every mount; until it ends, the file system stays in the kernel, and a
        mount of the same image would give the one that was shut down."""
        copy = self._image.with_name(f"{uuid4().hex}.img")
        _run("cp", "--sparse=always", str(self._image), str(copy))
        self._image.unlink()
        self._image = copy

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.place))
        self.starts += 1

    def _unmount(self) -> None:
        deadline = time.monotonic() + _BUSY_S
        while os.path.ismount(self.place):
            done = subprocess.run(["umount", str(self.place)], capture_output=True, check=False)
            if done.returncode and time.monotonic() > deadline:
                _run("umount", "-l", str(self.place))
                raise AssertionError(f"the disk stays busy: {done.stderr.decode()}")
            if done.returncode:
                time.sleep(0.02)


def cut_power(place: str, *, torn: bool) -> None:
    """Lose what was not forced. `torn`: the journal was written just before, without the data that
    it speaks of, as happens every few seconds; so new files are there, and empty."""
    if torn:
        descriptor = os.open(f"{place}/journal-{uuid4().hex}", os.O_WRONLY | os.O_CREAT)
        os.fsync(descriptor)
        os.close(descriptor)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
    finally:
        os.close(descriptor)


@cache
def why_not() -> str | None:
    """Why power cannot be cut here, or None."""
    if sys.platform != "linux":
        return "needs Linux"
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("mkfs.ext4", "mount", "umount") if shutil.which(name) is None]
    if missing:
        return f"needs {missing[0]}"
    folder = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path("/tmp")
    try:
        with Machine(folder / f"{_MARK}-try-{uuid4().hex[:8]}") as machine:
            (machine.place / "kept").write_text("x")
            machine.force()
            (machine.place / "lost").write_text("x")
            machine.cut(torn=False)
            machine.restart()
            lost = not (machine.place / "lost").exists() or not (machine.place / "lost").read_text()
            kept = (machine.place / "kept").read_text() == "x"
            return None if kept and lost else "a cut loses something else here"
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no loop device can be mounted: {error}"


def _is_attached(image: Path) -> bool:
    """Whether a loop device still uses the image."""
    files = Path("/sys/block").glob("loop*/loop/backing_file")
    return any(_content(file).rstrip("\n") == str(image.resolve()) for file in files)


def _content(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # detached in the meantime
        return ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _take_away_leftovers() -> None:
    """Mounts of tests that were killed."""
    for line in Path("/proc/mounts").read_text().splitlines():
        place = line.split()[1]
        name = place.rpartition("/")[2]
        if name.startswith(f"{_MARK}-") and not _is_alive(name.split("-")[2]):
            subprocess.run(["umount", "-l", place], check=False, capture_output=True)


def _is_alive(process: str) -> bool:
    return Path(f"/proc/{process}").exists()
