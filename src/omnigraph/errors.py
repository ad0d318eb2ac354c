"""The exception tree: every failure that OmniGraph raises on purpose.

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
    │   └── HistoryReclaimedError        it existed, and cleanup removed it
    │       └── ChangeFeedGapError       a feed cannot go on; take a new baseline
    ├── AlreadyExistsError
    ├── DeniedError
    ├── InvalidArgumentError
    │   ├── ChangeCursorError            a cursor or page token that does not fit the request
    │   └── ExternalBlobError            a blob refers to a place that is not allowed
    ├── InvalidDataError                 rows that break the schema; carries violations
    ├── ConflictError                    somebody else was faster; `retryable` says what helps
    │   ├── VersionConflictError
    │   ├── KeyConflictError
    │   ├── ReadSetChangedError
    │   ├── GraphReplacedError           another graph lies at the address now
    │   ├── LockTimeoutError
    │   └── MergeConflictError
    ├── PreconditionFailedError          the caller's own condition did not hold
    ├── CommitOutcomeUnknownError        look before retrying
    ├── RecoveryRequiredError
    ├── LimitExceededError
    ├── CancelledError
    ├── FormatError                      files of a newer or older OmniGraph
    ├── InvariantViolationError          a promise of ours is broken; nothing was repaired
    ├── StorageError
    │   ├── StorageTransientError        try again later
    │   ├── StorageConfigurationError    credentials, bucket, region, path
    │   ├── StorageNotFoundError
    │   ├── StoragePreconditionError     compare-and-set lost
    │   ├── StoragePermanentError        trying again will not help
    │   ├── StorageUnknownError          it may or may not have happened
    │   └── GraphMovedError              branches look for files where the graph once lay
    ├── DurabilityError                  the disk did not take what was written
    ├── EmbeddingError
    └── EngineUnavailableError           an engine's own needs are missing (Java, an extra)

Guarantees: every class has a `code` that stays the same across releases and is unique in the
tree; every error turns into plain JSON values with `to_dict()`, and survives pickling (errors
cross process borders inside Spark tasks).

Absent on purpose: HTTP statuses and exit codes. The surfaces decide those from the class.
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
    """One value that breaks one rule. `record` counts input records from 0, `line` from 1."""

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
    """Root of the tree. Catch this to catch everything OmniGraph raises on purpose."""

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
    """What the caller named does not exist."""

    code = "not_found"


class GraphNotFoundError(NotFoundError):
    """No graph lives at this address."""

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
    """The version existed, and `cleanup` has removed it since."""

    code = "history_reclaimed"
    default_hint = "Choose a newer commit, and tag a commit that must stay readable."


class ChangeFeedGapError(HistoryReclaimedError):
    """The change feed cannot go on without a gap: `cleanup` removed what a commit changed."""

    code = "change_feed_gap"
    default_hint = "Take a new baseline and go on from its cursor; repeating this cannot succeed."

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
    """The name is taken."""

    code = "already_exists"


class DeniedError(OmniGraphError):
    """Policy forbids this actor to do this."""

    code = "denied"
    default_hint = "Ask whoever keeps the policy of this graph for the permission."


class InvalidArgumentError(OmniGraphError):
    """An argument makes no sense, whatever the state of the graph."""

    code = "invalid_argument"


class ChangeCursorError(InvalidArgumentError):
    """A cursor or page token of the change feed does not belong to this request."""

    code = "change_cursor_rejected"
    default_hint = "Use it with the graph, branch and filters that it was given out for."


class ExternalBlobError(InvalidArgumentError):
    """A blob refers to a place outside of the graph that is not allowed, or not there."""

    code = "external_blob_refused"
    default_hint = (
        "Name the place among the graph's external blobs when you open it, or hand in the bytes."
    )


class InvalidDataError(OmniGraphError):
    """Rows break the schema. `violations` may be cut short; `total` counts all of them."""

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
    """Somebody else changed the graph first. `retryable`: the same call may succeed again."""

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
    """A table moved from the version that this write was based on."""

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
    """A strict insert met ids that exist already."""

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
    """A concurrent commit changed what this write's validation had read."""

    code = "read_set_changed"
    default_hint = "Repeat the write; it will be validated against the new state."


class GraphReplacedError(ConflictError):
    """The graph at the address was restored, or deleted and made anew, since this was begun."""

    code = "graph_replaced"
    default_retryable = False
    default_hint = (
        "Nothing was written. Look at the graph that is there now, and repeat this if it still "
        "makes sense."
    )


class LockTimeoutError(ConflictError):
    """The writer lock stayed taken. `holder` says who has it, where that is known."""

    code = "lock_timeout"
    default_hint = "Wait for the other writer to finish, or allow a longer lock timeout."

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
    """Two branches changed the same thing in ways that do not combine."""

    code = "merge_conflict"
    default_retryable = False
    default_hint = "Resolve the listed conflicts on one of the branches, then merge again."

    # All of them, also those beyond what `conflicts` lists, for whoever writes them to a file.
    every: Sequence[Any] = ()

    @property
    def conflicts(self) -> Sequence[dict[str, Any]]:
        """What could not be combined, as plain values."""
        found: Sequence[dict[str, Any]] = self.details.get("conflicts", ())
        return found


class PreconditionFailedError(OmniGraphError):
    """A condition that the caller attached to the call did not hold; nothing was done."""

    code = "precondition_failed"
    default_hint = "Look at the current state and decide anew."

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
    """The publish was sent and its answer lost: the commit may or may not be visible."""

    code = "commit_outcome_unknown"
    default_hint = "Look the commit up in the branch's history before you repeat the write."

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
    """An interrupted write must be recovered before this call can go on."""

    code = "recovery_required"
    default_hint = "Open the graph read-write; that recovers it."

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
    """A bound on memory, time, rows or size was reached."""

    code = "limit_exceeded"
    default_hint = "Ask for less, or raise the limit."

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
    """The caller cancelled; no visible state was left."""

    code = "cancelled"


class FormatError(OmniGraphError):
    """The files were written by a newer or an unsupported older OmniGraph."""

    code = "format_error"
    default_hint = "Upgrade OmniGraph to a release that knows this format."


class InvariantViolationError(OmniGraphError):
    """The graph on disk breaks a promise that OmniGraph keeps. Nothing was changed."""

    code = "invariant_violation"
    default_hint = "Keep the files as they are and report this; do not write to the graph."


class StorageError(OmniGraphError):
    """The storage below failed."""

    code = "storage_error"


class StorageTransientError(StorageError):
    """The storage was busy or unreachable for the moment."""

    code = "storage_transient"
    default_hint = "Try again in a moment."


class StorageConfigurationError(StorageError):
    """Credentials, bucket, region, permission or path are wrong."""

    code = "storage_configuration"
    default_hint = "Check the address, the credentials and their permissions."


class StorageNotFoundError(StorageError):
    """The object does not exist."""

    code = "storage_not_found"


class StoragePreconditionError(StorageError):
    """A compare-and-set or create-if-absent lost against another writer."""

    code = "storage_precondition"
    default_hint = "Read the object again and decide anew."


class StoragePermanentError(StorageError):
    """The storage refused, and would refuse again: disk full, corrupt object, unsupported."""

    code = "storage_permanent"


class StorageUnknownError(StorageError):
    """The request may or may not have taken effect."""

    code = "storage_unknown"
    default_hint = "Read the object before you repeat the request."


class GraphMovedError(StorageError):
    """The graph was copied or moved, and its branches still look for files in the old place."""

    code = "graph_moved"
    default_hint = "Run `omnigraph repair --confirm` on the graph where it lies now."


class DurabilityError(OmniGraphError):
    """The operating system could not force what was written onto the medium."""

    code = "durability"
    default_hint = (
        "Look for disk errors in the system's log and for free space; then start the program "
        "again, which recovers the graph, and look whether the commit is there."
    )


class EmbeddingError(OmniGraphError):
    """A text could not be turned into a vector."""

    code = "embedding_error"


class EngineUnavailableError(OmniGraphError):
    """An engine's own needs are missing: Java, or the packages of an extra."""

    code = "engine_unavailable"
