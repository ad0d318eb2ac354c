"""How an error ends the program: the text and the exit code."""

from __future__ import annotations

import pytest

from omnigraph import errors
from omnigraph.cli.failure import exit_code, print_failure


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.StoragePermanentError("m"), 1),
        (errors.StorageTransientError("m"), 1),
        (errors.InvalidArgumentError("m"), 2),
        (errors.BranchNotFoundError("m"), 3),
        (errors.PreconditionFailedError("m"), 4),
        (errors.AlreadyExistsError("m"), 5),
        (errors.MergeConflictError("m"), 5),
        (errors.ReadSetChangedError("m"), 5),
        (errors.CommitOutcomeUnknownError("m"), 6),
        (errors.RecoveryRequiredError("m"), 6),
        (errors.DeniedError("m"), 7),
        (errors.QueryError("m"), 8),
        (errors.InvalidDataError("m"), 8),
        (errors.LimitExceededError("m", resource="rows", limit=1, actual=2), 9),
        (errors.CancelledError("m"), 130),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_codes(error: errors.OmniGraphError, code: int) -> None:
    assert exit_code(error) == code


def test_findings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    finding = errors.Diagnostic(
        "Q001", "No such type.", file="a.gq", line=2, column=5, excerpt="x\n^", hint="Try Person."
    )
    print_failure(errors.QueryError("It does not compile.", diagnostics=[finding]), as_json=False)
    assert capsys.readouterr().err == (
        "a.gq:2:5: error[Q001]: No such type.\n    x\n    ^\n    hint: Try Person.\n"
    )


def test_a_source_error_without_findings_still_says_something(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_failure(errors.QueryError("It does not compile."), as_json=False)
    assert capsys.readouterr().err == "error[query_error]: It does not compile.\n"


def test_violations_are_listed_and_the_rest_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    one = errors.Violation("range", "9 is above 5.", type_name="Person", property="age")
    error = errors.InvalidDataError("Rows break the schema.", violations=[one], total=3)
    print_failure(error, as_json=False)
    told = capsys.readouterr().err.splitlines()
    assert told[1:3] == ["  Person.age: 9 is above 5.", "  and 2 more"]
    assert told[-1].startswith("hint: ")
