"""How an error ends the program: the text and the exit code."""

from __future__ import annotations

import pytest

from omnigraph import errors
from omnigraph.cli.failure import exit_code, from_system, print_failure, wants_json


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


def test_a_violation_that_was_told_is_not_listed_again(capsys: pytest.CaptureFixture[str]) -> None:
    one = errors.Violation("range", "9 is above 5.", type_name="Person", property="age")
    print_failure(errors.InvalidDataError(f"{one}", violations=[one], total=1), as_json=False)
    assert capsys.readouterr().err.count("9 is above 5") == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (IsADirectoryError(21, "Is a directory", "half", None, "whole"), 2, "whole: Is a dir"),
        (PermissionError(13, "Permission denied", "a.gq"), 2, "a.gq: Permission denied."),
        (OSError(28, "No space left on device"), 1, "No space left on device."),
    ],
)
def test_what_the_system_refuses_is_told_in_a_sentence(
    error: OSError, code: int, said: str
) -> None:
    failure = from_system(error)
    assert exit_code(failure) == code
    assert failure.message.startswith(said)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--json"], True),
        (["--format", "json"], True),
        (["--format=json"], True),
        (["--format", "jsonl"], False),
        ([], False),
    ],
)
def test_who_wants_json(arguments: list[str], expected: bool) -> None:
    assert wants_json(arguments) is expected
