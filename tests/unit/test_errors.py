"""The exception tree: stable codes, plain values, what to do next."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from typing import Any

import pytest

from omnigraph import errors
from omnigraph.errors import Diagnostic, OmniGraphError, Violation

# What some classes cannot be made without.
REQUIRED: dict[str, dict[str, Any]] = {
    "VersionConflictError": {"table": "nodes/1", "expected": 3, "actual": 4},
    "KeyConflictError": {"type_name": "Person", "ids": ["a", "b"]},
    "LimitExceededError": {"resource": "rows", "limit": 10, "actual": 11},
}

CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, OmniGraphError)
]


def make(kind: type[OmniGraphError], **details: Any) -> OmniGraphError:
    return kind("It went wrong.", **REQUIRED.get(kind.__name__, {}), **details)


def test_codes_are_unique_and_spelled_alike() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


def test_every_class_has_a_code_of_its_own() -> None:
    assert [kind.__name__ for kind in CLASSES if "code" not in vars(kind)] == []


def test_codes_do_not_change() -> None:
    # Callers and stored logs know these. Add; never edit or remove.
    assert {kind.__name__: kind.code for kind in CLASSES} == {
        "AlreadyExistsError": "already_exists",
        "BranchNotFoundError": "branch_not_found",
        "CancelledError": "cancelled",
        "ChangeCursorError": "change_cursor_rejected",
        "ChangeFeedGapError": "change_feed_gap",
        "CommitNotFoundError": "commit_not_found",
        "CommitOutcomeUnknownError": "commit_outcome_unknown",
        "ConflictError": "conflict",
        "DeniedError": "denied",
        "EmbeddingError": "embedding_error",
        "EngineUnavailableError": "engine_unavailable",
        "ExternalBlobError": "external_blob_refused",
        "FormatError": "format_error",
        "GraphMovedError": "graph_moved",
        "GraphNotFoundError": "graph_not_found",
        "HistoryReclaimedError": "history_reclaimed",
        "InvalidArgumentError": "invalid_argument",
        "InvalidDataError": "invalid_data",
        "InvariantViolationError": "invariant_violation",
        "KeyConflictError": "key_conflict",
        "LimitExceededError": "limit_exceeded",
        "LockTimeoutError": "lock_timeout",
        "MergeConflictError": "merge_conflict",
        "NotFoundError": "not_found",
        "OmniGraphError": "omnigraph_error",
        "PreconditionFailedError": "precondition_failed",
        "QueryError": "query_error",
        "ReadSetChangedError": "read_set_changed",
        "GraphReplacedError": "graph_replaced",
        "DurabilityError": "durability",
        "RecoveryRequiredError": "recovery_required",
        "SchemaError": "schema_error",
        "SourceError": "source_error",
        "StorageConfigurationError": "storage_configuration",
        "StorageError": "storage_error",
        "StorageNotFoundError": "storage_not_found",
        "StoragePermanentError": "storage_permanent",
        "StoragePreconditionError": "storage_precondition",
        "StorageTransientError": "storage_transient",
        "StorageUnknownError": "storage_unknown",
        "TagNotFoundError": "tag_not_found",
        "TypeNotFoundError": "type_not_found",
        "VersionConflictError": "version_conflict",
    }


def test_the_docstring_draws_the_whole_tree() -> None:
    """Each class stands in the picture, indented below its base."""
    stack: list[str] = []
    drawn: dict[str, str | None] = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^ {4}((?:│   |    )*)(?:[├└]── )?(\w+Error)\b", line)
        if not found:
            continue
        depth = len(found[1]) // 4 + ("──" in line)
        stack[depth:] = [found[2]]
        drawn[found[2]] = stack[depth - 1] if depth else None
    real = {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}
    assert drawn == real | {"OmniGraphError": None}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_carries_message_hint_and_details(kind: type[OmniGraphError]) -> None:
    error = make(kind, hint="Do this.", branch="main")
    assert error.message == "It went wrong."
    assert str(error) == "It went wrong. Do this."
    assert error.details["branch"] == "main"
    told = json.loads(json.dumps(error.to_dict()))
    assert told["code"] == kind.code
    assert told["message"] == "It went wrong."
    assert told["hint"] == "Do this."
    assert told["details"]["branch"] == "main"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling(kind: type[OmniGraphError]) -> None:
    error = make(kind, hint="Do this.", branch="main")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)
    assert copy.args == error.args


def test_without_a_hint_the_class_speaks() -> None:
    assert "Wait for the other writer" in str(errors.LockTimeoutError("The lock is taken."))
    assert str(errors.AlreadyExistsError("Taken.")) == "Taken."


def test_a_version_conflict_names_table_and_versions() -> None:
    error = errors.VersionConflictError("m", table="nodes/1", expected=3, actual=4)
    assert (error.table, error.expected, error.actual, error.retryable) == ("nodes/1", 3, 4, True)


def test_what_a_retry_can_help() -> None:
    assert make(errors.ReadSetChangedError).details["retryable"] is True
    assert make(errors.MergeConflictError).details["retryable"] is False
    assert make(errors.KeyConflictError).details["retryable"] is False
    assert errors.ConflictError("m", retryable=False).retryable is False


def test_source_errors_carry_findings() -> None:
    finding = Diagnostic("Q001", "No such type.", file="a.gq", line=2, column=5)
    error = errors.QueryError("One finding.", diagnostics=[finding])
    assert error.diagnostics == (finding,)
    assert str(finding) == "a.gq:2:5: error[Q001]: No such type."
    assert error.to_dict()["details"]["diagnostics"][0]["column"] == 5


def test_a_finding_without_a_place_has_none() -> None:
    assert str(Diagnostic("Q001", "No such type.")) == "error[Q001]: No such type."


def test_invalid_data_counts_what_it_does_not_list() -> None:
    one = Violation(
        "range",
        "9 is above 5.",
        type_name="Person",
        property="age",
        value=9,
        file="p.jsonl",
        line=4,
    )
    error = errors.InvalidDataError("Rows break the schema.", violations=[one], total=70)
    assert (len(error.violations), error.total) == (1, 70)
    assert str(one) == "p.jsonl:4: Person.age: 9 is above 5."
    assert errors.InvalidDataError("m", violations=[one]).total == 1


def test_details_of_any_kind_become_plain() -> None:
    error = OmniGraphError("m", seen={"b", "a"}, raw=b"x", nested={"k": (1, 2.5, None)}, kind=int)
    assert error.to_dict()["details"] == {
        "seen": ["a", "b"],
        "raw": "b'x'",
        "nested": {"k": [1, 2.5, None]},
        "kind": "<class 'int'>",
    }
