"""Foreign exceptions become the right class of ours, whatever shape they come in."""

from __future__ import annotations

import errno
import pickle
import struct
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from lance.optimize import Compaction
from obstore import exceptions as obstore

from omnigraph.errors import (
    ConflictError,
    InvalidArgumentError,
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
from omnigraph.storage.failures import (
    classify,
    is_commit_conflict,
    is_retryable,
    one_line,
    translated,
)

NO_BUCKET = (
    "Object at location x not found: Server returned non-2xx status code: 404 Not Found: "
    '<?xml version="1.0"?>\n<Error><Code>NoSuchBucket</Code><Message>The specified bucket does '
    "not exist</Message></Error>\n\nDebug source:\nNotFound { path: secret }"
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file"), StorageNotFoundError),
        (PermissionError(errno.EACCES, "Permission denied"), StorageConfigurationError),
        (OSError(errno.EROFS, "Read-only file system"), StorageConfigurationError),
        (OSError(errno.ENOSPC, "No space left on device"), StoragePermanentError),
        (OSError(errno.EIO, "Input/output error"), StoragePermanentError),
        (OSError(errno.ENOTDIR, "Not a directory"), StoragePermanentError),
        (OSError(errno.EMFILE, "Too many open files"), StorageTransientError),
        (OSError(errno.ESTALE, "Stale file handle"), StorageTransientError),
        (obstore.AlreadyExistsError("exists"), StoragePreconditionError),
        (obstore.PreconditionError("412"), StoragePreconditionError),
        (obstore.PermissionDeniedError("403"), StorageConfigurationError),
        (obstore.UnauthenticatedError("401"), StorageConfigurationError),
        (obstore.UnknownConfigurationKeyError("x"), StorageConfigurationError),
        (obstore.NotSupportedError("x"), StoragePermanentError),
        (FileNotFoundError(NO_BUCKET), StorageConfigurationError),
        (obstore.GenericError("500 InternalError, after 4 retries"), StorageUnknownError),
        (obstore.GenericError("operation timed out"), StorageUnknownError),
        (obstore.GenericError("tcp connect error: Connection refused"), StorageTransientError),
        (obstore.GenericError("something new"), StorageUnknownError),
        (OSError("LanceError(IO): Generic S3 error: 503 SlowDown"), StorageUnknownError),
        (OSError("Dataset already exists: /x"), StoragePreconditionError),
        (ValueError("Dataset at path /x was not found"), StorageNotFoundError),
        (RuntimeError("Dataset at path /x/1.manifest was not found"), StorageNotFoundError),
        (ValueError("LanceError(Schema): Field 'n' has no parent"), StorageUnknownError),
    ],
)
def test_each_failure_of_a_write_has_its_class(
    error: Exception, expected: type[OmniGraphError]
) -> None:
    assert type(classify(error, "write", "a")) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (obstore.GenericError("operation timed out"), StorageTransientError),
        (obstore.GenericError("something new"), StoragePermanentError),
        (OSError("LanceError(IO): Generic S3 error: 503 SlowDown"), StorageTransientError),
        (
            ValueError("LanceError(Schema): Field 'n' has no parent, /x/y.rs:1:2"),
            StoragePermanentError,
        ),
        (
            ValueError("Invalid user input: Unknown Lance storage version: 2.10"),
            StoragePermanentError,
        ),
        (pa.ArrowInvalid("Schema error: Field 'id' has no parent"), StoragePermanentError),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), StoragePermanentError),
        (struct.error("unpack requires a buffer of 4 bytes"), StoragePermanentError),
    ],
)
def test_a_failed_read_is_never_of_unknown_outcome(
    error: Exception, expected: type[OmniGraphError]
) -> None:
    assert type(classify(error, "read", "a")) is expected


@pytest.mark.parametrize(
    "error", [InvalidArgumentError("x"), ValueError("bad batch"), KeyError("x"), RuntimeError("x")]
)
def test_what_is_no_storage_failure_passes_untouched(error: Exception) -> None:
    assert classify(error, "write", "a") is error
    with pytest.raises(type(error)) as caught, translated("write", "a"):
        raise error
    assert caught.value is error


def test_interrupts_pass_untouched() -> None:
    with pytest.raises(KeyboardInterrupt), translated("write", "a"):
        raise KeyboardInterrupt


def test_the_message_names_action_and_path_in_one_line() -> None:
    with pytest.raises(StorageConfigurationError) as caught, translated("read", "a/b"):
        raise FileNotFoundError(NO_BUCKET)
    assert caught.value.message == (
        "Could not read 'a/b': The specified bucket does not exist (NoSuchBucket)"
    )
    assert caught.value.details == {"path": "a/b", "action": "read"}
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert type(pickle.loads(pickle.dumps(caught.value))) is StorageConfigurationError


def test_long_messages_are_cut() -> None:
    assert len(one_line(ValueError("x" * 5000))) == 400
    assert one_line(ValueError()) == "ValueError"
    assert one_line(OSError("broken, /home/runner/lance/rust/io.rs:12:5")) == "broken"


# Real Lance errors, so that an upgrade which changes them is noticed here.


def rows(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def overwrite(dataset: lance.LanceDataset, value: int) -> lance.Transaction:
    return lance.fragment.write_fragments(
        rows(value), dataset, mode="overwrite", return_transaction=True
    )


def test_a_staged_overwrite_that_lost(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(1), tmp_path / "t")
    first, second = overwrite(dataset, 2), overwrite(dataset, 3)
    lance.LanceDataset.commit(dataset, first, read_version=1, max_retries=0)
    with pytest.raises(OSError, match="conflict") as caught:
        lance.LanceDataset.commit(dataset, second, read_version=1, max_retries=0)
    assert isinstance(caught.value, CommitConflictError)
    assert is_commit_conflict(caught.value)
    with pytest.raises(ConflictError) as ours, translated("commit", "t"):
        raise caught.value
    assert ours.value.retryable is is_retryable(caught.value)


def test_an_inline_merge_that_lost(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(1, 2), tmp_path / "t", enable_stable_row_ids=True)
    other = lance.dataset(tmp_path / "t")
    dataset.delete("id = 1")
    with pytest.raises(OSError, match=r"(?i)conflict|concurrent") as caught:
        other.merge_insert("id").when_matched_update_all().conflict_retries(0).execute(rows(1))
    assert is_commit_conflict(caught.value)


def test_a_compaction_that_lost(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(1, 2, 3), tmp_path / "t", max_rows_per_file=1)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 100})
    results = [task.execute(dataset) for task in plan.tasks]
    lance.dataset(tmp_path / "t").delete("id = 1")
    with pytest.raises(OSError, match=r"(?i)conflict|concurrent|preempted") as caught:
        Compaction.commit(dataset, results)
    assert is_commit_conflict(caught.value)


def test_a_missing_dataset_and_version(tmp_path: Path) -> None:
    with pytest.raises(StorageNotFoundError), translated("open", "t"):
        lance.dataset(tmp_path / "absent")
    lance.write_dataset(rows(1), tmp_path / "t")
    with pytest.raises(StorageNotFoundError), translated("open", "t"):
        lance.dataset(tmp_path / "t", version=99)


def test_a_dataset_that_exists_already(tmp_path: Path) -> None:
    lance.write_dataset(rows(1), tmp_path / "t")
    with pytest.raises(StoragePreconditionError), translated("create", "t"):
        lance.write_dataset(rows(1), tmp_path / "t", mode="create")


def test_a_column_that_is_not_there_is_a_broken_promise(tmp_path: Path) -> None:
    """Whether we asked for the wrong one or a damaged file names another, nobody can tell here."""
    dataset = lance.write_dataset(rows(1), tmp_path / "t")
    with pytest.raises(InvariantViolationError, match="nonsense"), translated("read", "t"):
        dataset.to_table(filter="nonsense > 1")
    with pytest.raises(InvariantViolationError, match="nonsense"), translated("read", "t"):
        dataset.to_table().select(["nonsense"])


@pytest.mark.parametrize(
    "text",
    [
        "LanceError(IO): Generic LocalFileSystem error: Unable to walk dir: Not a directory",
        "External error: LanceError(Arrow): Invalid argument error: Last offset 4098 of Utf8",
    ],
)
def test_a_damaged_file_is_a_permanent_failure(text: str) -> None:
    found = classify(ValueError(text), "scan", "nodes/1")
    assert isinstance(found, StoragePermanentError)
    assert "damaged" in str(found)
    assert isinstance(classify(ValueError("no such option"), "scan", "x"), ValueError)


def test_a_file_that_may_not_be_read_is_not_called_damaged() -> None:
    text = "LanceError(IO): Unable to walk dir: Permission denied (os error 13)"
    found = classify(OSError(text), "read", "nodes/1")
    assert isinstance(found, StorageConfigurationError)
    assert "damaged" not in str(found)


@pytest.mark.parametrize(
    ("action", "kind"), [("scan", StoragePermanentError), ("stage", StorageUnknownError)]
)
def test_native_code_that_gives_up_over_damaged_bytes(action: str, kind: type[Exception]) -> None:
    panic = type("PanicException", (BaseException,), {})  # what PyO3 raises cannot be imported
    with pytest.raises(kind, match="make no sense"), translated(action, "data/x"):
        raise panic("range start must not be greater than end")


def test_ctrl_c_is_no_storage_failure() -> None:
    with pytest.raises(KeyboardInterrupt), translated("scan", "data/x"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("text", ["External error: KeyboardInterrupt: ", "KeyboardInterrupt: "])
def test_ctrl_c_that_arrow_tells_as_an_error_stays_ctrl_c(text: str) -> None:
    with pytest.raises(KeyboardInterrupt), translated("read", "data/x"):
        raise pa.ArrowInvalid(text)


def test_an_error_that_only_names_ctrl_c_is_an_error() -> None:
    with pytest.raises(StorageError), translated("read", "data/x"):
        raise pa.ArrowInvalid("External error: no file data/KeyboardInterrupt: it is gone")
