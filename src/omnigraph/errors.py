"""The exception tree: every error that OmniGraph raises deliberately.

::

    OmniGraphError
    ├── SourceError                      text that does not compile; carries diagnostics
    │   ├── SchemaError
    │   └── QueryError
    ├── NotFoundError
    │   ├── GraphNotFoundError
    │   ├── BranchNotFoundError
    │   ├── CommitNotFoundError
    │   ├── TagNotFoundError
    │   ├── TypeNotFoundError
    │   └── HistoryReclaimedError        the data was removed by cleanup
    │       └── ChangeFeedGapError       the feed has a gap; take a new baseline
    ├── AlreadyExistsError
    ├── DeniedError
    ├── InvalidArgumentError
    │   ├── ChangeCursorError            a cursor or page token that does not fit the request
    │   └── ExternalBlobError            a blob refers to a place that is not allowed
    ├── InvalidDataError                 rows that break the schema; carries violations
    ├── ConflictError                    a concurrent change won; see `retryable`
    │   ├── VersionConflictError
    │   ├── KeyConflictError
    │   ├── ReadSetChangedError
    │   ├── GraphReplacedError           the address now has another graph
    │   ├── LockTimeoutError
    │   └── MergeConflictError
    ├── PreconditionFailedError          a condition of the caller was not met
    ├── CommitOutcomeUnknownError        check the outcome before retrying
    ├── RecoveryRequiredError
    ├── LimitExceededError
    ├── CancelledError
    ├── FormatError                      files of a newer or older OmniGraph
    ├── InvariantViolationError          the stored data is inconsistent; not repaired
    ├── StorageError
    │   ├── StorageTransientError        try again later
    │   ├── StorageConfigurationError    credentials, bucket, region, path
    │   ├── StorageNotFoundError
    │   ├── StoragePreconditionError     compare-and-set lost
    │   ├── StoragePermanentError        retrying does not help
    │   ├── StorageUnknownError          the request may have succeeded
    │   └── GraphMovedError              branches reference files at the old address
    ├── DurabilityError                  the disk failed to store a write
    ├── EmbeddingError
    └── EngineUnavailableError           a requirement is missing (Java, an extra)

Guarantees: every class has a `code` that stays the same across releases and is unique in the
tree; every error turns into plain JSON values with `to_dict()`, and survives pickling (errors
cross process borders inside Spark tasks).

HTTP statuses and exit codes are not defined here; the surfaces derive them from the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding in a source text. Lines and columns count from 1; `end_column` is exclusive."""

    code: str
    message: str
    severity: Severity = "error"
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    excerpt: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        text = f"{self.severity}[{self.code}]: {self.message}"
        return f"{place}: {text}" if place else text


@dataclass(frozen=True, slots=True)
class Violation:
    """One value that violates one constraint. `record` counts from 0, `line` from 1."""

    rule: str
    message: str
    type_name: str | None = None
    property: str | None = None
    value: Any = None
    record: int | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        where = ".".join(part for part in (self.type_name, self.property) if part)
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        return ": ".join(part for part in (place, where, self.message) if part)


class OmniGraphError(Exception):
    """Root of the tree. Catch this to catch every error of OmniGraph."""

    code: ClassVar[str] = "omnigraph_error"
    default_hint: ClassVar[str | None] = None

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint if hint is not None else self.default_hint
        self.details: dict[str, Any] = details

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with `args` alone and so lose required keywords.
        return _rebuild, (type(self), self.args, self.__dict__.copy())

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: what `--json` prints and what the server answers with."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "details": {name: _plain(value) for name, value in self.details.items()},
        }


def _rebuild(
    cls: type[OmniGraphError], args: tuple[Any, ...], state: dict[str, Any]
) -> OmniGraphError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Diagnostic | Violation):
        return {name: _plain(field) for name, field in asdict(value).items()}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=str)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [_plain(item) for item in value]
    return str(value)


class SourceError(OmniGraphError):
    """A text does not compile. `diagnostics` holds every finding, in order of position."""

    code = "source_error"

    def __init__(
        self,
        message: str,
        *,
        diagnostics: Sequence[Diagnostic] = (),
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message, hint=hint, diagnostics=tuple(diagnostics), **details)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


class SchemaError(SourceError):
    """A `.pg` schema does not compile."""

    code = "schema_error"


class QueryError(SourceError):
    """A `.gq` query does not compile."""

    code = "query_error"


class NotFoundError(OmniGraphError):
    """The named object does not exist."""

    code = "not_found"


class GraphNotFoundError(NotFoundError):
    """There is no graph at this address."""

    code = "graph_not_found"
    default_hint = "Check the address, or create a graph there first."


class BranchNotFoundError(NotFoundError):
    """The graph has no branch of this name."""

    code = "branch_not_found"
    default_hint = "List the branches to see which names exist."


class CommitNotFoundError(NotFoundError):
    """The graph has no such commit."""

    code = "commit_not_found"
    default_hint = "List the commits of the branch to see which exist."


class TagNotFoundError(NotFoundError):
    """The graph has no tag of this name."""

    code = "tag_not_found"
    default_hint = "List the tags to see which names exist."


class TypeNotFoundError(NotFoundError):
    """The schema has no node, edge or interface type of this name."""

    code = "type_not_found"
    default_hint = "Show the schema to see which types exist."


class HistoryReclaimedError(NotFoundError):
    """The version was removed by `cleanup`."""

    code = "history_reclaimed"
    default_hint = "Choose a newer commit, and tag a commit that must stay readable."


class ChangeFeedGapError(HistoryReclaimedError):
    """The change feed has a gap: `cleanup` removed the data of a commit."""

    code = "change_feed_gap"
    default_hint = "Write a new baseline and continue from its cursor; a retry fails again."

    def __init__(
        self,
        message: str,
        *,
        commit_id: str | None = None,
        cursor: str | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(
            message, hint=hint, first_unreadable_commit_id=commit_id, cursor=cursor, **details
        )
        self.commit_id = commit_id
        self.cursor = cursor


class AlreadyExistsError(OmniGraphError):
    """The name exists already."""

    code = "already_exists"


class DeniedError(OmniGraphError):
    """The policy does not allow this operation for this actor."""

    code = "denied"
    default_hint = "Ask the administrator of this graph for the permission."


class InvalidArgumentError(OmniGraphError):
    """An argument is invalid, independent of the state of the graph."""

    code = "invalid_argument"


class ChangeCursorError(InvalidArgumentError):
    """A cursor or page token of the change feed does not belong to this request."""

    code = "change_cursor_rejected"
    default_hint = "Use it with the graph, branch and filters that it was created for."


class ExternalBlobError(InvalidArgumentError):
    """A blob references an external address that is not allowed or does not exist."""

    code = "external_blob_refused"
    default_hint = "Add the address to `external_blobs` when you open the graph, or pass the bytes."


class InvalidDataError(OmniGraphError):
    """Rows violate the schema. `violations` may be truncated; `total` counts all of them."""

    code = "invalid_data"
    default_hint = "Correct the listed values and send the data again; nothing was written."

    def __init__(
        self,
        message: str,
        *,
        violations: Sequence[Violation] = (),
        total: int | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        count = len(violations) if total is None else total
        super().__init__(message, hint=hint, violations=tuple(violations), total=count, **details)
        self.violations: tuple[Violation, ...] = tuple(violations)
        self.total = count


class ConflictError(OmniGraphError):
    """A concurrent change prevents this one. `retryable`: the same call may succeed later."""

    code = "conflict"
    default_retryable: ClassVar[bool] = True

    def __init__(
        self,
        message: str,
        *,
        retryable: bool | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        self.retryable = self.default_retryable if retryable is None else retryable
        super().__init__(message, hint=hint, retryable=self.retryable, **details)


class VersionConflictError(ConflictError):
    """A table has changed since the version that this write is based on."""

    code = "version_conflict"
    default_hint = "Read the branch again and repeat the write."

    def __init__(
        self,
        message: str,
        *,
        table: str,
        expected: int | None,
        actual: int | None,
        retryable: bool | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(
            message,
            retryable=retryable,
            hint=hint,
            table=table,
            expected=expected,
            actual=actual,
            **details,
        )
        self.table = table
        self.expected = expected
        self.actual = actual


class KeyConflictError(ConflictError):
    """A strict insert contains ids that exist already."""

    code = "key_conflict"
    default_retryable = False
    default_hint = "Use other ids, or write in merge mode to update the existing rows."

    def __init__(
        self,
        message: str,
        *,
        type_name: str,
        ids: Sequence[str] = (),
        retryable: bool | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(
            message,
            retryable=retryable,
            hint=hint,
            type_name=type_name,
            ids=tuple(ids),
            **details,
        )
        self.type_name = type_name
        self.ids: tuple[str, ...] = tuple(ids)


class ReadSetChangedError(ConflictError):
    """A concurrent commit changed data that the validation of this write had read."""

    code = "read_set_changed"
    default_hint = "Repeat the write; it is validated against the new state."


class GraphReplacedError(ConflictError):
    """The graph at the address was restored, or deleted and created again, during the call."""

    code = "graph_replaced"
    default_retryable = False
    default_hint = (
        "Nothing was written. Check the graph that exists now, and repeat the call if it still "
        "makes sense."
    )


class LockTimeoutError(ConflictError):
    """The writer lock was not released in time. `holder` is its owner, if known."""

    code = "lock_timeout"
    default_hint = "Wait for the other writer to finish, or increase the lock timeout."

    def __init__(
        self,
        message: str,
        *,
        holder: str | None = None,
        retryable: bool | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message, retryable=retryable, hint=hint, holder=holder, **details)
        self.holder = holder


class MergeConflictError(ConflictError):
    """Two branches contain changes that cannot be combined."""

    code = "merge_conflict"
    default_retryable = False
    default_hint = "Resolve the listed conflicts on one of the branches, then merge again."

    # All conflicts, including those beyond the limit of `conflicts`, for writing them to a file.
    every: Sequence[Any] = ()

    @property
    def conflicts(self) -> Sequence[dict[str, Any]]:
        """The conflicts, as plain values."""
        found: Sequence[dict[str, Any]] = self.details.get("conflicts", ())
        return found


class PreconditionFailedError(OmniGraphError):
    """A condition of the call was not met; nothing was changed."""

    code = "precondition_failed"
    default_hint = "Read the current state before repeating the call."

    def __init__(
        self,
        message: str,
        *,
        expected: Any = None,
        actual: Any = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message, hint=hint, expected=expected, actual=actual, **details)
        self.expected = expected
        self.actual = actual


class CommitOutcomeUnknownError(OmniGraphError):
    """The response to the publish was lost: the commit may or may not be visible."""

    code = "commit_outcome_unknown"
    default_hint = (
        "Check whether the history of the branch has the commit before you repeat the write."
    )

    def __init__(
        self,
        message: str,
        *,
        commit_id: str | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message, hint=hint, commit_id=commit_id, **details)
        self.commit_id = commit_id


class RecoveryRequiredError(OmniGraphError):
    """An interrupted write must be recovered before this call can continue."""

    code = "recovery_required"
    default_hint = "Open the graph read-write, which runs the recovery."

    def __init__(
        self,
        message: str,
        *,
        operation_id: str | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message, hint=hint, operation_id=operation_id, **details)
        self.operation_id = operation_id


class LimitExceededError(OmniGraphError):
    """A limit on memory, time, rows or size was exceeded."""

    code = "limit_exceeded"
    default_hint = "Request less data, or raise the limit."

    def __init__(
        self,
        message: str,
        *,
        resource: str,
        limit: float | None = None,
        actual: float | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(
            message, hint=hint, resource=resource, limit=limit, actual=actual, **details
        )
        self.resource = resource
        self.limit = limit
        self.actual = actual


class CancelledError(OmniGraphError):
    """The call was cancelled; nothing was changed."""

    code = "cancelled"


class FormatError(OmniGraphError):
    """The files were written by a newer or an unsupported older OmniGraph."""

    code = "format_error"
    default_hint = "Upgrade OmniGraph to a release that supports this format."


class InvariantViolationError(OmniGraphError):
    """The stored graph violates an invariant of OmniGraph. Nothing was changed."""

    code = "invariant_violation"
    default_hint = "Do not write to the graph or change its files, and report this error."


class StorageError(OmniGraphError):
    """The storage failed."""

    code = "storage_error"


class StorageTransientError(StorageError):
    """The storage was temporarily busy or unreachable."""

    code = "storage_transient"
    default_hint = "Retry later."


class StorageConfigurationError(StorageError):
    """Credentials, bucket, region, permission or path are wrong."""

    code = "storage_configuration"
    default_hint = "Check the address, the credentials and their permissions."


class StorageNotFoundError(StorageError):
    """The object does not exist."""

    code = "storage_not_found"


class StoragePreconditionError(StorageError):
    """A compare-and-set or create-if-absent failed because of another writer."""

    code = "storage_precondition"
    default_hint = "Read the object again before repeating the request."


class StoragePermanentError(StorageError):
    """A storage error that a retry does not solve: disk full, corrupt object, unsupported."""

    code = "storage_permanent"


class StorageUnknownError(StorageError):
    """The request may or may not have taken effect."""

    code = "storage_unknown"
    default_hint = "Read the object before you repeat the request."


class GraphMovedError(StorageError):
    """The graph was copied or moved, and its branches still reference files at the old address."""

    code = "graph_moved"
    default_hint = "Run `omnigraph repair --confirm` on the graph at its new address."


class DurabilityError(OmniGraphError):
    """The operating system could not flush the written data to the disk."""

    code = "durability"
    default_hint = (
        "Check the system log for disk errors, and the free space; then restart the program, "
        "which recovers the graph, and check whether the commit exists."
    )


class EmbeddingError(OmniGraphError):
    """A text could not be converted to a vector."""

    code = "embedding_error"


class EngineUnavailableError(OmniGraphError):
    """A requirement of an engine is missing: Java, or the packages of an extra."""

    code = "engine_unavailable"
