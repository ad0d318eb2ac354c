"""Files that are read into a graph or written out of one: on local disk and in S3-like stores.

    for file in list_inputs(["data/*.jsonl", "s3://bucket/people/"]): ...
    with open_input(file.address) as handle: ...

Guarantees: a pattern or folder gives its files in the order of their names; hidden files and
markers (`_SUCCESS`) are left out; `write_output` makes a file visible whole or not at all, and
writing the same file again replaces it.
Deliberately absent: what is inside.
"""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import NotFoundError
from obstore.store import S3Store

from omnigraph.errors import InvalidArgumentError
from omnigraph.model.location import Location
from omnigraph.storage.failures import translated
from omnigraph.storage.location import parse_location

_WILD = "*?["
_READ_AHEAD = 8 << 20


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file. A Lance dataset is a folder that counts as one file."""

    address: str
    size: int


def list_inputs(paths: Iterable[str], endings: Iterable[str] = ()) -> list[InputFile]:
    """The files that addresses, patterns and folders name. A path that names none is refused;
    `endings`: how files are called that would have been taken."""
    found: list[InputFile] = []
    for path in paths:
        files = _list_s3(path) if path.startswith("s3://") else _list_disk(path)
        if not files and os.path.isdir(os.path.expanduser(path)):
            raise InvalidArgumentError(
                f"The folder {path} holds no file that can be loaded.",
                hint=f"Files are looked for that end in {', '.join(endings)}." if endings else None,
                file=path,
            )
        if not files:
            raise InvalidArgumentError(
                f"There is no file {path}.", hint="Check the path.", file=path
            )
        found += files
    return found


def _list_disk(path: str) -> list[InputFile]:
    plain = parse_location(path).path if path.startswith("file://") else os.path.expanduser(path)
    if os.path.exists(plain):
        matches = [plain]
    else:
        matches = sorted(glob.glob(plain, recursive=True)) if _is_wild(plain) else []
    files: list[InputFile] = []
    for match in matches:
        if match.rstrip("/").endswith(".lance") or os.path.isfile(match):
            files.append(InputFile(os.path.abspath(match), _size(match)))
        else:
            files += _walk(match)
    return files


def _walk(folder: str) -> list[InputFile]:
    files: list[InputFile] = []
    for current, folders, names in os.walk(folder):
        datasets = sorted(name for name in folders if name.endswith(".lance"))
        folders[:] = sorted(name for name in folders if name not in datasets and not _hidden(name))
        for name in [*datasets, *sorted(n for n in names if not _hidden(n))]:
            whole = os.path.join(current, name)
            files.append(InputFile(os.path.abspath(whole), _size(whole)))
    return sorted(files, key=lambda file: file.address)


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.isfile(path) else 0


def _list_s3(path: str) -> list[InputFile]:
    bucket, _, key = path.removeprefix("s3://").partition("/")
    store = _s3_store(parse_location(f"s3://{bucket}"))
    with translated("list", path):
        if not _is_wild(key):
            found = _head(store, key)
            if found is not None:
                return [InputFile(path, found)]
        fixed = _fixed_part(key) if _is_wild(key) else key.rstrip("/")
        objects = [meta for page in obstore.list(store, fixed or None) for meta in page]
        if _is_wild(key):
            objects = [meta for meta in objects if fnmatchcase(meta["path"], key)]
    names = sorted(
        (meta["path"], meta["size"])
        for meta in objects
        if not _hidden(meta["path"].rsplit("/", 1)[-1])
    )
    return [InputFile(f"s3://{bucket}/{name}", size) for name, size in names]


def _head(store: S3Store, key: str) -> int | None:
    """The size of an object, None if there is none."""
    try:
        return int(obstore.head(store, key)["size"]) if key else None
    except (FileNotFoundError, NotFoundError):
        return None


def _fixed_part(key: str) -> str:
    first = min((key.find(mark) for mark in _WILD if mark in key), default=len(key))
    return key[:first].rpartition("/")[0]


def _is_wild(path: str) -> bool:
    return any(mark in path for mark in _WILD)


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


@contextmanager
def open_input(address: str) -> Iterator[Any]:
    """A file to read and seek in."""
    with translated("open", address):
        opened = _open_s3(address) if address.startswith("s3://") else _open_disk(address)
    with closing(opened) as handle:
        yield handle


def _open_disk(address: str) -> Any:
    return Path(address).open("rb")


def _open_s3(address: str) -> Any:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    store = _s3_store(parse_location(f"s3://{bucket}"))
    return _ObjectFile(obstore.open_reader(store, key, buffer_size=_READ_AHEAD))


class _ObjectFile(io.RawIOBase):
    """An object as a file of Python's kind, which Arrow and its readers take."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        return bytes(self._reader.read(None if size is None or size < 0 else size))

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())


def write_output(address: str, data: bytes) -> None:
    """Put a whole file in place."""
    with open_output(address) as out:
        out.write(data)


@contextmanager
def open_output(address: str) -> Iterator[Any]:
    """A file to write to, piece by piece. It is in place, whole, at the end of the block; if the
    block fails there is none."""
    with translated("write", address):
        if address.startswith("s3://"):
            bucket, _, key = address.removeprefix("s3://").partition("/")
            writer = obstore.open_writer(_s3_store(parse_location(f"s3://{bucket}")), key)
            yield writer
            writer.close()  # without this the object never comes to be
            return
        target = Path(_disk_path(address))
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                yield file
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def output_exists(address: str) -> bool:
    """Whether a file or a folder with anything in it is there."""
    if address.startswith("s3://"):
        return bool(_list_s3(address))
    path = Path(_disk_path(address))
    with translated("look at", address):
        return path.is_file() or (path.is_dir() and any(path.iterdir()))


def output_address(address: str) -> str:
    """The same place, as any process of this machine understands it."""
    if not address.strip() or "\0" in address:
        raise InvalidArgumentError(f"{address!r} is no address of a file or a folder.")
    return address if address.startswith("s3://") else os.path.abspath(_disk_path(address))


def _disk_path(address: str) -> str:
    if address.startswith("file://"):
        return parse_location(address).path
    return os.path.expanduser(address)


def _s3_store(location: Location) -> S3Store:
    options = dict(location.storage_options)
    allow_http = options.pop("allow_http", "false") == "true"
    config: dict[str, Any] = {name.removeprefix("aws_"): value for name, value in options.items()}
    return S3Store(location.bucket, client_options={"allow_http": allow_http}, **config)
