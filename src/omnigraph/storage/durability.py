"""Durability: flushes files to the disk, so that acknowledged commits survive a power failure.

    power      before a commit is published, everything that it references is on the disk; before
               it is acknowledged, the publish is too
    process    the operating system decides when to write: killing a process loses nothing, a power
               failure may lose the last seconds

`Medium.force` is one `syncfs` per file system, which covers data, deletion, index and transaction
files, manifests, control objects and directory entries, written by any process of this machine.
Where there is no `syncfs` (macOS), files and folders that changed are forced one by one.

Guarantees: a failed sync is an error, and is never repeated: after one the kernel may have dropped
the pages, and a second sync would succeed without them. So the file system counts as failed for the
rest of the process. A table that is a link to another file system is forced there.
Deliberately absent: object stores, whose answer to a write means that it is durable; and file
systems that acknowledge too early, such as some network mounts.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cache

from omnigraph.errors import DurabilityError, InvalidArgumentError
from omnigraph.model.location import Location

VARIABLE = "OMNIGRAPH_DURABILITY"
# File times have a coarser resolution than our clock.
_CLOCK_S = 2.0


class Durability(StrEnum):
    POWER = "power"
    PROCESS = "process"


def check_durability(text: str) -> Durability:
    try:
        return Durability(text)
    except ValueError:
        raise InvalidArgumentError(
            f"{text!r} is not a durability.",
            hint="Use `power` (a power cut loses nothing acknowledged) or `process` (a killed "
            "process loses nothing, a power cut may lose the last seconds).",
        ) from None


class Medium:
    """The disk below one graph. Safe to share between threads; does nothing for object stores."""

    def __init__(self, location: Location) -> None:
        self._root = location.path if location.scheme == "file" else None
        self._guard = threading.Lock()
        self._descriptors: dict[int, int] = {}
        self._process = os.getpid()
        self._forced_at: dict[str, float] = {}
        weakref.finalize(self, _close_all, self._descriptors)

    def force_all(self, tables: Iterable[str] = ()) -> None:
        """Wait until all files of the graph are on the disk. `tables` are folders that may be links
        to other file systems."""
        if self._root is not None:
            self.force(*_top_folders(self._root), *tables)

    def force(self, *paths: str) -> None:
        """The same for these folders, given relative to the root; absent ones are left out."""
        if self._root is None:
            return
        folders = {path: f"{self._root}/{path}" if path else self._root for path in paths}
        if native_sync() is None:
            self._force_files(folders)
            return
        for device, folder in _devices(folders.values()).items():
            _refuse_failed(device, folder)
            self._force_device(device, folder)

    def _force_device(self, device: int, folder: str) -> None:
        sync = native_sync()
        assert sync is not None
        try:
            sync(self._descriptor(device, folder))
        except OSError as error:
            raise _failed(device, folder, error) from error

    def _descriptor(self, device: int, folder: str) -> int:
        """A descriptor of the file system that stays open: the kernel reports write errors only to
        descriptors that were open at the time of the error."""
        with self._guard:
            if self._process != os.getpid():  # a child would take errors from its parent
                self._process = os.getpid()
                _close_all(self._descriptors)
            descriptor = self._descriptors.get(device)
            if descriptor is None:
                descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                self._descriptors[device] = descriptor
            return descriptor

    def _force_files(self, folders: dict[str, str]) -> None:
        """Without `syncfs`: each file and folder that changed since they were last forced."""
        begun, last = time.time(), ""
        for path, top in folders.items():
            oldest = self._forced_at.get(path, 0.0) - _CLOCK_S
            for place in _changed(top, oldest):
                _refuse_failed(_device(place), place)
                _force_file(place)
                last = place
            self._forced_at[path] = begun
        if last:
            _flush_cache(last)


@cache
def native_sync() -> Callable[[int], None] | None:
    """`syncfs` of the C library, or None where there is none."""
    if sys.platform == "darwin":
        return None
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, "syncfs", None)
    if function is None:
        return None

    def sync(descriptor: int) -> None:
        if function(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return sync


# File systems on which a sync has failed in this process.
_broken: dict[int, str] = {}


def _refuse_failed(device: int, folder: str) -> None:
    why = _broken.get(device)
    if why is not None:
        raise DurabilityError(
            f"An earlier write to the file system of {folder} could not be forced to the medium "
            f"({why}); until the program is restarted, no write to it counts as durable.",
            path=folder,
        )


def _failed(device: int, folder: str, error: OSError) -> DurabilityError:
    _broken[device] = error.strerror or str(error)
    return DurabilityError(
        f"The file system of {folder} could not store the written data: {_broken[device]}.",
        path=folder,
        errno=error.errno,
    )


def _devices(folders: Iterable[str]) -> dict[int, str]:
    """The file systems of these folders, each with one folder on it."""
    found: dict[int, str] = {}
    for folder in folders:
        try:
            found.setdefault(os.stat(folder).st_dev, folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return found


def _device(place: str) -> int:
    try:
        return os.stat(place).st_dev
    except OSError:
        return -1


def _top_folders(root: str) -> list[str]:
    try:
        with os.scandir(root) as found:
            return ["", *(entry.name for entry in found if entry.is_dir())]
    except (FileNotFoundError, NotADirectoryError):
        return [""]


def _changed(top: str, oldest: float) -> Iterator[str]:
    """Files and folders at and below `top` that changed, the files of a folder before it."""
    for folder, _folders, names in os.walk(top, topdown=False, followlinks=True):
        places = (*(f"{folder}/{name}" for name in names), folder)
        for place in places:
            try:
                if os.stat(place).st_ctime >= oldest:
                    yield place
            except FileNotFoundError:
                continue


def _force_file(place: str) -> None:
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # removed by its owner in the meantime
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno == errno.EINVAL:  # not a file that could be forced
            return
        raise _failed(os.fstat(descriptor).st_dev, place, error) from error
    finally:
        os.close(descriptor)


def _flush_cache(place: str) -> None:
    """On macOS `fsync` leaves bytes in the disk's cache; one full sync empties all of it."""
    import fcntl

    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        return
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.fcntl(descriptor, full)
    except OSError as error:
        raise _failed(os.fstat(descriptor).st_dev, place, error) from error
    finally:
        os.close(descriptor)


def _close_all(descriptors: dict[int, int]) -> None:
    while descriptors:
        _, descriptor = descriptors.popitem()
        os.close(descriptor)
