"""Translation of exceptions of obstore, Lance and the operating system.

    with translated("read", path):
        ...

converts exceptions raised inside to a class of `errors.Storage*Error`; callers depend on the class
only. `is_commit_conflict` recognises all forms in which Lance reports a conflict.

Guarantees: a permission problem never reads as "absent"; an unknown exception becomes
`StorageUnknownError` if it may have taken effect and `StoragePermanentError` if it only read;
damaged data is such an error, in whichever class Lance or Arrow report it; errors of OmniGraph,
exceptions that are not storage errors, and Ctrl-C are not converted. A failed allocation is never
taken for damage: it is `LimitExceededError`, or `StorageUnknownError` where it interrupted a
change. Messages are one line and carry no secret.

Retries are the responsibility of the caller.
"""

from __future__ import annotations

import errno
import re
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from obstore import exceptions as obstore

from omnigraph.errors import (
    ConflictError,
    InvariantViolationError,
    OmniGraphError,
    StorageConfigurationError,
    StorageError,
    StorageNotFoundError,
    StoragePermanentError,
    StoragePreconditionError,
    StorageTransientError,
    StorageUnknownError,
)
from omnigraph.exhaustion import exhausted, is_exhaustion

_READS = frozenset({"read", "look up", "list", "open", "scan"})
# These actions change nothing visible.
_INVISIBLE = frozenset(
    {"stage", "plan", "lay the rows down", "answer the query", "compare the tables", "look at"}
)

_CONFLICT = re.compile(
    r"commit conflict for version|transaction was preempted"
    r"|incompatible with concurrent transaction|too many concurrent writers"
    r"|concurrently (created|modified) by another operation"
    r"|version conflict error|ref conflict error|concurrent modification"
    r"|was (removed|dropped) by (a )?concurrent",
    re.IGNORECASE,
)
_EXISTS = re.compile(r"dataset already exists", re.IGNORECASE)
_NOT_FOUND = re.compile(
    r"\bwas not found\b|\bnot found:|\bnot found error\b|does not exist|\bNoSuchKey\b",
    re.IGNORECASE,
)
_MISCONFIGURED = re.compile(
    r"NoSuchBucket|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|InvalidBucketName"
    r"|AuthorizationHeaderMalformed|ExpiredToken|InvalidToken|PermanentRedirect"
    r"|\b40[13] (Unauthorized|Forbidden)|permission denied|read-only file system"
    r"|URL scheme is not allowed|builder error|missing.{0,20}(credential|region|bucket)"
    r"|no credentials|CredentialsNotLoaded|unable to load (credentials|region)"
    r"|unable to find bucket|instance metadata|failed to lookup address|dns error",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"timed? ?out|connection (refused|reset|closed|error)|error trying to connect|tcp connect"
    r"|error sending request|SlowDown|ServiceUnavailable|InternalError|RequestTimeout"
    r"|TooManyRequests|ThrottlingException|\b(429|500|502|503|504)\b",
    re.IGNORECASE,
)
# Refused before anything was sent: even a write certainly did not happen.
_NEVER_SENT = re.compile(r"connection refused|tcp connect|error trying to connect", re.IGNORECASE)

# What native code says in the class of a caller's mistake. Callers here are we, and so it is about
# the bytes that it read.
_FROM_LANCE = re.compile(
    r"^(LanceError\(|External error: |Invalid user input: |Schema error: )"
    r"|, /\S+\.rs:\d+:\d+"
)
_INTERRUPT = re.compile(r"^(\S+ error: )*KeyboardInterrupt\b")
# A column that we asked for is not in the table: a mistake of ours, or its name is another by now.
_NO_COLUMN = re.compile(r"does not exist in schema|No field named")
_DAMAGED = "The file is probably damaged: run `omnigraph fsck`, or restore a backup."

_S3_ANSWER = re.compile(
    r"<Code>(?P<code>[^<]*)</Code>(?:\s*<Message>(?P<message>[^<]*)</Message>)?"
)
_RUST_PLACE = re.compile(r", /\S+\.rs:\d+:\d+")

_OS_TRANSIENT = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ENFILE, errno.EMFILE, errno.ENOLCK, errno.ESTALE}
)
_OS_CONFIGURATION = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENODEV, errno.ELOOP, errno.ENAMETOOLONG}
)


@contextmanager
def translated(action: str, path: str) -> Iterator[None]:
    """Run a block and raise its storage failures as ours; `action` is a verb such as `read`."""
    try:
        yield
    except Exception as error:  # Classification is the purpose; the rest is raised again.
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        ours = classify(error, action, path)
        if ours is error:
            raise
        raise ours from error
    except BaseException as error:
        if not is_panic(error):
            raise
        if is_exhaustion(error):
            raise _exhausted(error, action, path) from error
        kind = StoragePermanentError if action in _READS else StorageUnknownError
        raise kind(
            f"Could not {action} {path!r}: its bytes make no sense ({one_line(error)}).",
            path=path,
            action=action,
            hint=_DAMAGED,
        ) from error


def is_interrupt(error: Exception) -> bool:
    """Whether it is a Ctrl-C, which Arrow reports as an error of the read."""
    return not isinstance(error, OmniGraphError) and _INTERRUPT.search(str(error)) is not None


def is_panic(error: BaseException) -> bool:
    """Whether native code panicked, as it does on damaged data. Such an exception is no
    `Exception`, and its class can be identified only by name."""
    return type(error).__name__ == "PanicException"


def classify(error: Exception, action: str, path: str) -> Exception:
    """The OmniGraph error for an exception, or the exception itself if it is no storage error."""
    if isinstance(error, OmniGraphError):
        return error
    if is_exhaustion(error):
        return _exhausted(error, action, path)
    if is_commit_conflict(error):
        return ConflictError(
            f"Could not {action} {path!r}: a concurrent write succeeded first.",
            retryable=is_retryable(error),
            cause=one_line(error),
        )
    if isinstance(error, KeyError | ValueError) and _NO_COLUMN.search(str(error)):
        return InvariantViolationError(f"Could not {action} {path!r}: {one_line(error)}", path=path)
    kind = _kind(error, action)
    if kind is None:
        return error
    damaged = kind is StoragePermanentError and action in _READS and _is_senseless(error)
    hint = _DAMAGED if damaged else None
    return kind(
        f"Could not {action} {path!r}: {one_line(error)}", path=path, action=action, hint=hint
    )


def _exhausted(error: BaseException, action: str, path: str) -> OmniGraphError:
    """A failed allocation says nothing about the file. What it interrupted may have happened if it
    was more than a read."""
    if action in _READS or action in _INVISIBLE:
        return exhausted(error)
    return StorageUnknownError(
        f"Could not {action} {path!r}: there is not enough memory ({one_line(error)}).",
        path=path,
        action=action,
        hint="Give the process more memory, and check whether the write happened.",
    )


def is_commit_conflict(error: BaseException) -> bool:
    """Whether Lance says that a commit lost against another, in whichever shape it says so."""
    commit = sys.modules.get("lance.commit")  # If Lance was never loaded, it raised nothing.
    if commit is not None and isinstance(error, commit.CommitConflictError):
        return True
    return isinstance(error, OSError | RuntimeError) and bool(_CONFLICT.search(str(error)))


def is_retryable(error: BaseException) -> bool:
    """Whether a lost Lance commit may win when it is prepared again on the newer version."""
    flag = getattr(error, "retryable", None)
    if isinstance(flag, bool):
        return flag
    return "incompatible" not in str(error).lower()


def is_unclear(error: Exception) -> bool:
    """Whether a write that failed with this error may have taken effect."""
    return _kind(error, "write") is StorageUnknownError


def is_misconfigured(error: Exception) -> bool:
    """Whether a request could not have worked with these credentials, bucket or address."""
    return _kind(error, "write") is StorageConfigurationError


def one_line(error: BaseException) -> str:
    """The text of an exception, without XML and internal dumps."""
    text = str(error).split("\n\nDebug source:")[0]
    if answer := _S3_ANSWER.search(text):
        return f"{answer['message'] or 'the store refused'} ({answer['code']})"
    line = " ".join(_RUST_PLACE.sub("", text).split()) or type(error).__name__
    return line if len(line) <= 400 else line[:397] + "..."


def _kind(error: Exception, action: str) -> type[StorageError] | None:
    if isinstance(error, obstore.AlreadyExistsError | obstore.PreconditionError):
        return StoragePreconditionError
    if isinstance(error, obstore.PermissionDeniedError | obstore.UnauthenticatedError):
        return StorageConfigurationError
    if isinstance(error, obstore.NotFoundError | FileNotFoundError):
        # A missing bucket also arrives as "not found"; it must not read as a missing object.
        bucket = _MISCONFIGURED.search(str(error))
        return StorageConfigurationError if bucket else StorageNotFoundError
    if isinstance(error, obstore.UnknownConfigurationKeyError):
        return StorageConfigurationError
    if isinstance(error, obstore.NotSupportedError | obstore.InvalidPathError):
        return StoragePermanentError
    if isinstance(error, OSError) and error.errno is not None:
        return _by_number(error.errno)
    if isinstance(error, obstore.BaseError | OSError):
        return _by_text(str(error), action)
    return _of_lance(error, action)


def _by_number(number: int) -> type[StorageError]:
    if number == errno.EEXIST:
        return StoragePreconditionError
    if number in _OS_CONFIGURATION:
        return StorageConfigurationError
    return StorageTransientError if number in _OS_TRANSIENT else StoragePermanentError


def _by_text(text: str, action: str) -> type[StorageError]:
    if _MISCONFIGURED.search(text):
        return StorageConfigurationError
    if _TRANSIENT.search(text):
        sure = action in _READS or _NEVER_SENT.search(text)
        return StorageTransientError if sure else StorageUnknownError
    if _NOT_FOUND.search(text):
        return StorageNotFoundError
    if _EXISTS.search(text):
        return StoragePreconditionError
    return StoragePermanentError if action in _READS else StorageUnknownError


def _of_lance(error: Exception, action: str) -> type[StorageError] | None:
    """Lance also says `ValueError` for a missing dataset, and `RuntimeError` for a version of it
    that a delta would have to begin with; others of these are bugs of ours, unless native code
    says that it cannot make sense of what it read."""
    if isinstance(error, ValueError | RuntimeError) and _NOT_FOUND.search(str(error)):
        return StorageNotFoundError
    if _is_senseless(error):
        return _by_text(str(error), action)
    if action in _READS and _is_unreadable(error):
        return StoragePermanentError
    return None


def _is_senseless(error: Exception) -> bool:
    """Whether native code complains of bytes, in a class that is meant for arguments."""
    native = isinstance(error, ValueError | RuntimeError | NotImplementedError)
    return native and _FROM_LANCE.search(str(error)) is not None


def _is_unreadable(error: Exception) -> bool:
    """Whether a read failed over bytes that nothing could have written."""
    if isinstance(error, UnicodeDecodeError | struct.error):
        return True
    arrow = sys.modules.get("pyarrow")  # if it was never loaded, it raised nothing
    return arrow is not None and isinstance(error, arrow.ArrowException)
