"""What a graph's address means: its scheme, its place, and the options that reach it.

    data/shop, /data/shop, file:///data/shop     a directory on local disk
    s3://bucket/prefix                           an S3-compatible store
    memory://name                                this process's memory, shared by name

After `s3://` and `memory://` every character stands for itself; only `file://` is percent-decoded.

Guarantees: two spellings of one address give equal locations; a location never prints or logs a
secret. S3 settings come from the usual `AWS_*` variables at the moment of parsing, so that a
location is a plain value that can be handed to another process.

Absent on purpose: any access to storage, and profiles of `~/.aws` (the libraries below find
instance and container credentials by themselves when no keys are given).
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from omnigraph.errors import InvalidArgumentError, StorageConfigurationError

Scheme = Literal["file", "s3", "memory"]

# Environment variable → option that Lance takes (and, without `aws_`, obstore). First set one wins.
_S3_VARIABLES: tuple[tuple[str, str], ...] = (
    ("AWS_REGION", "aws_region"),
    ("AWS_DEFAULT_REGION", "aws_region"),
    ("AWS_ACCESS_KEY_ID", "aws_access_key_id"),
    ("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key"),
    ("AWS_SESSION_TOKEN", "aws_session_token"),
    ("AWS_ENDPOINT_URL_S3", "aws_endpoint"),
    ("AWS_ENDPOINT_URL", "aws_endpoint"),
    ("AWS_ENDPOINT", "aws_endpoint"),
)
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
# In the path of an object: control characters, and what Windows takes for a slash.
_FORBIDDEN = re.compile(r"[\x00-\x1f\\\x7f]")


@dataclass(frozen=True, slots=True)
class Location:
    """A place for a graph or a part of one.

    `path` is an absolute path for `file`, the key prefix in `bucket` for `s3` and the path below
    `bucket` (the name) for `memory`. `storage_options` is what Lance takes; it may hold secrets
    and is therefore left out of `repr`.
    """

    uri: str
    scheme: Scheme
    path: str
    bucket: str = ""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def child(self, path: str) -> Location:
        """The location of `path` below this one, with the same options."""
        relative = check_path(path)
        below = posixpath.join(self.path, relative) if self.path else relative
        return replace(self, uri=_join(self.uri, relative), path=below)

    def lance_uri(self, subpath: str = "") -> str:
        """The address that Lance understands for `subpath` below this location."""
        place = self.child(subpath) if subpath else self
        if place.scheme == "file":
            return place.path
        # Lance's own `memory://` is private to one dataset handle; this one is shared by name.
        scheme = "shared-memory" if place.scheme == "memory" else "s3"
        # Lance decodes the path of a URL; unquoted, `a%41` or `a#b` would end up elsewhere.
        return _join(f"{scheme}://{place.bucket}", quote(place.path))

    def __str__(self) -> str:
        return self.uri


def parse_location(
    text: str | os.PathLike[str], environ: Mapping[str, str] | None = None
) -> Location:
    """Read an address. A relative path is taken from the working directory."""
    address = os.fspath(text)
    if not address:
        raise InvalidArgumentError("The address of a graph may not be empty.")
    if address != address.encode("utf-8", "replace").decode():
        raise InvalidArgumentError(f"The address {address!r} holds bytes that are no text.")
    scheme, separator, rest = address.partition("://")
    if not separator:
        return _local(address)
    match scheme.lower():
        case "file":
            return _from_file_uri(address)
        case "memory":
            name, path = _split(address, rest, "name")
            return Location(_join(f"memory://{name}", path), "memory", path, name)
        case "s3":
            bucket, path = _split(address, rest, "bucket")
            options = s3_options(os.environ if environ is None else environ)
            return Location(_join(f"s3://{bucket}", path), "s3", path, bucket, options)
        case _:
            raise StorageConfigurationError(
                f"The address {address!r} has the unknown scheme {scheme!r}.",
                hint="Use a path, file://, s3:// or memory://.",
            )


def s3_options(environ: Mapping[str, str]) -> dict[str, str]:
    """The options that reach S3, from the `AWS_*` variables."""
    options: dict[str, str] = {}
    for variable, option in _S3_VARIABLES:
        if value := environ.get(variable, "").strip():
            options.setdefault(option, value)
    if (allow := _flag(environ, "AWS_ALLOW_HTTP")) is not None:
        options["allow_http"] = str(allow).lower()
    if (path_style := _flag(environ, "AWS_S3_FORCE_PATH_STYLE")) is not None:
        options["aws_virtual_hosted_style_request"] = str(not path_style).lower()
    return options


def _flag(environ: Mapping[str, str], variable: str) -> bool | None:
    text = environ.get(variable, "").strip().lower()
    if not text:
        return None
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise StorageConfigurationError(
        f"The variable {variable} is {text!r}, which is neither true nor false.",
        hint=f"Set {variable} to true or false.",
    )


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


def _local(path: str) -> Location:
    if "\0" in path:
        raise InvalidArgumentError(f"The path {path!r} has a forbidden character.")
    absolute = os.path.abspath(os.path.expanduser(path))
    return Location(absolute, "file", absolute)


def _from_file_uri(address: str) -> Location:
    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        raise StorageConfigurationError(
            f"The address {address!r} names the host {parts.netloc!r}.",
            hint="A file address has three slashes: file:///path.",
        )
    if not parts.path:
        raise InvalidArgumentError(f"The address {address!r} names no path.")
    return _local(unquote(parts.path))


def _split(address: str, rest: str, what: str) -> tuple[str, str]:
    """`bucket/a//b/` → (`bucket`, `a/b`)."""
    head, _, tail = rest.partition("/")
    if not head or "@" in head or "?" in rest or "#" in head:
        raise StorageConfigurationError(
            f"The address has no plain {what} after its scheme.",
            hint="Write s3://bucket/prefix or memory://name; settings come from AWS_* variables.",
        )
    path = "/".join(segment for segment in tail.split("/") if segment)
    return head, check_path(path) if path else ""


def _join(base: str, relative: str) -> str:
    return f"{base.rstrip('/')}/{relative}" if relative else base
