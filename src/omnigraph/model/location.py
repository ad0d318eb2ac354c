"""Where a graph is stored: scheme, path and the options that reach the storage.

A `Location` never prints a secret. Two graphs with one address and different storage options have
different keys, so that caches keep them apart.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal
from urllib.parse import quote

from omnigraph.errors import InvalidArgumentError

Scheme = Literal["file", "s3", "memory"]

# In the path of an object: control characters, and what Windows takes for a slash.
_FORBIDDEN = re.compile(r"[\x00-\x1f\\\x7f]")


@dataclass(frozen=True, slots=True)
class Location:
    """A place for a graph or a part of one.

    `path` is an absolute path for `file`, the key prefix in `bucket` for `s3` and the path below
    `bucket` (the name) for `memory`. `storage_options` is what Lance takes; it may hold secrets
    and is therefore left out of `repr`. `key` identifies the location in caches: the address, and
    a digest of the options if there are any.
    """

    uri: str
    scheme: Scheme
    path: str
    bucket: str = ""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    key: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _key(self.uri, self.storage_options))

    def child(self, path: str) -> Location:
        """The location of `path` below this one, with the same options."""
        relative = check_path(path)
        below = posixpath.join(self.path, relative) if self.path else relative
        return replace(self, uri=join_path(self.uri, relative), path=below)

    def lance_uri(self, subpath: str = "") -> str:
        """The address that Lance understands for `subpath` below this location."""
        place = self.child(subpath) if subpath else self
        if place.scheme == "file":
            return place.path
        # Lance's own `memory://` is private to one dataset handle; this one is shared by name.
        scheme = "shared-memory" if place.scheme == "memory" else "s3"
        # Lance decodes the path of a URL; unquoted, `a%41` or `a#b` would end up elsewhere.
        return join_path(f"{scheme}://{place.bucket}", quote(place.path))

    def __str__(self) -> str:
        return self.uri


def check_path(path: str) -> str:
    """`path` itself, if it is a relative path that every store reads the same way."""
    segments = path.split("/")
    if any(segment in ("", ".", "..") for segment in segments):
        raise InvalidArgumentError(
            f"The object path {path!r} is not a plain relative path.",
            hint="Use segments joined by single slashes, without '.' and '..'.",
        )
    if _FORBIDDEN.search(path):
        raise InvalidArgumentError(f"The object path {path!r} has a forbidden character.")
    return path


def join_path(base: str, relative: str) -> str:
    return f"{base.rstrip('/')}/{relative}" if relative else base


def _key(uri: str, options: Mapping[str, str]) -> str:
    if not options:
        return uri
    listed = json.dumps(sorted(options.items()))
    return f"{uri}#{sha256(listed.encode()).hexdigest()[:16]}"
