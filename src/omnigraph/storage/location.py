"""Graph addresses: scheme, path and storage options.

    data/shop, /data/shop, file:///data/shop     a directory on local disk
    s3://bucket/prefix                           an S3-compatible store
    memory://name                                this process's memory, shared by name

After `s3://` and `memory://` every character stands for itself; only `file://` is percent-decoded.

Guarantees: two spellings of one address give equal locations; a location never prints or logs a
secret. S3 settings come from the storage options of the caller, else from the usual `AWS_*`
variables at the moment of parsing; a location is a plain value that can be sent to other processes.

Absent on purpose: any access to storage, and profiles of `~/.aws` (the libraries below find
instance and container credentials by themselves when no keys are given).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from omnigraph.errors import InvalidArgumentError, StorageConfigurationError
from omnigraph.model.location import Location, check_path, join_path

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
# Options that only make sense together: one that is given excludes the environment's others.
_CREDENTIALS = frozenset({"aws_access_key_id", "aws_secret_access_key", "aws_session_token"})
_FLAGS = frozenset({"allow_http", "aws_virtual_hosted_style_request"})
_S3_OPTIONS = _FLAGS | {option for _, option in _S3_VARIABLES}
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def parse_location(
    text: str | os.PathLike[str],
    environ: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Location:
    """Read an address. A relative path is taken from the working directory. `storage_options`
    override what the environment says about S3."""
    address = os.fspath(text)
    location = _parsed(address, os.environ if environ is None else environ, storage_options or {})
    if storage_options and location.scheme != "s3":
        raise StorageConfigurationError(
            f"The address {address!r} takes no storage options.",
            hint="Storage options are for s3:// addresses; leave them out.",
        )
    return location


def _parsed(address: str, environ: Mapping[str, str], given: Mapping[str, str]) -> Location:
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
            return Location(join_path(f"memory://{name}", path), "memory", path, name)
        case "s3":
            bucket, path = _split(address, rest, "bucket")
            options = _merged(s3_options(environ), check_options(given))
            return Location(join_path(f"s3://{bucket}", path), "s3", path, bucket, options)
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


def check_options(given: Mapping[str, str]) -> dict[str, str]:
    """Storage options under the names that Lance uses; the prefix `aws_` may be left out."""
    options: dict[str, str] = {}
    for name, value in given.items():
        lowered = name.lower()
        known = next((o for o in (lowered, f"aws_{lowered}") if o in _S3_OPTIONS), None)
        if known is None:
            raise StorageConfigurationError(
                f"The storage option {name!r} is not known.",
                hint=f"Known options: {', '.join(sorted(_S3_OPTIONS))}.",
            )
        options[known] = _as_flag(value, name) if known in _FLAGS else str(value)
    return options


def _as_flag(value: str, name: str) -> str:
    text = str(value).strip().lower()
    if text not in _TRUE | _FALSE:
        raise StorageConfigurationError(
            f"The storage option {name!r} is {value!r}, which is neither true nor false.",
            hint=f"Set {name} to true or false.",
        )
    return str(text in _TRUE).lower()


def _merged(defaults: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    has_credentials = not _CREDENTIALS.isdisjoint(given)
    kept = {
        name: value
        for name, value in defaults.items()
        if not (has_credentials and name in _CREDENTIALS)
    }
    return {**kept, **given}


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
