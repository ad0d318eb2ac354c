"""The resident session without Spark: its file, and words for everything that can be amiss."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.cli.main import run
from omnigraph.cli.pipeline import OnSpark
from omnigraph.engines.spark import resident, residentserver
from omnigraph.engines.spark.resident import RESIDENT_VARIABLE, Resident, find_resident
from omnigraph.engines.spark.settings import SparkSettings, read_settings
from omnigraph.errors import AlreadyExistsError, EngineUnavailableError, InvalidArgumentError

# Waits on a port as a server would, under its name.
_SERVER = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        server.accept()[0].close()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OMNIGRAPH_SPARK_MASTER", "OMNIGRAPH_SPARK_REMOTE", "OMNIGRAPH_SPARK_CONF"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "run" / "spark.json"
    monkeypatch.setenv(RESIDENT_VARIABLE, str(file))
    return file


@pytest.fixture
def server() -> Iterator[tuple[int, int]]:
    """A process that looks like a server: its id and its port."""
    command = [sys.executable, "-c", _SERVER, resident.SERVER_CLASS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.kill()


def made(pid: int, port: int) -> Resident:
    return Resident(
        pid=pid,
        port=port,
        token="a/b;c",
        session="0d7d9d2e-6a2c-4b7e-8f43-1d1d7a8c9b10",
        master="local[2]",
        started_at="2026-11-16T00:00:00+00:00",
        build=resident.build(),
        environment=resident.environment_digest(),
    )


def test_without_a_file_there_is_none(file: Path) -> None:
    assert find_resident().usable is None
    assert OnSpark(None, None, None).settings().remote is None
    file.parent.mkdir()
    for text in ("", "{", "[]", '{"pid": 1}'):
        file.write_text(text)
        assert find_resident().resident is None


def test_a_server_is_found_and_its_token_is_not_shown(file: Path, server: tuple[int, int]) -> None:
    resident.write_state(file, made(*server))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = find_resident().usable
    assert found is not None
    settings = OnSpark(None, None, None).settings()
    assert settings.resident
    endpoint = f"sc://localhost:{server[1]}/;token=a%2Fb%3Bc"
    assert settings.remote == f"{endpoint};session_id={found.session}"
    # With settings of its own a command gets a session of its own.
    own = OnSpark(None, None, ["spark.sql.shuffle.partitions=4"]).settings()
    assert (own.remote, own.resident) == (endpoint, True)
    assert settings.shown == found.url == f"sc://localhost:{server[1]}"
    assert "a/b" not in json.dumps(found.to_json())


def test_what_is_named_wins_over_it(file: Path, server: tuple[int, int]) -> None:
    resident.write_state(file, made(*server))
    assert OnSpark("local[1]", None, None).settings().remote is None
    assert OnSpark(None, "sc://there:1", None).settings().remote == "sc://there:1"
    assert not OnSpark(None, None, ["spark.executor.memory=4g"]).settings().resident


def test_it_can_be_switched_off(
    file: Path, server: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    resident.write_state(file, made(*server))
    monkeypatch.setenv(RESIDENT_VARIABLE, "off")
    assert find_resident().resident is None
    with pytest.raises(InvalidArgumentError, match="switched off"):
        residentserver.start_resident(SparkSettings())


def test_one_of_another_build_or_environment_is_not_used(
    file: Path, server: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    resident.write_state(file, replace(made(*server), build="older"))
    assert not OnSpark(None, None, None).settings().resident
    assert "another version" in capsys.readouterr().err
    with pytest.raises(AlreadyExistsError, match="another version"):
        residentserver.start_resident(SparkSettings())
    resident.write_state(file, replace(made(*server), environment="other"))
    assert "AWS_" in str(find_resident().unusable)


def test_a_dead_server_is_recognised_and_cleared_away(
    file: Path, server: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    # The process is somebody else's by now, or it does not listen any more.
    for one in (made(os.getpid(), server[1]), made(2**22 - 1, server[1]), made(server[0], 1)):
        resident.write_state(file, one)
        found = find_resident()
        assert found.stale
        assert found.usable is None
    resident.write_state(file, made(os.getpid(), server[1]))
    assert run(["spark", "status"]) == 1
    assert "not running: its server is gone" in capsys.readouterr().out
    assert run(["spark", "stop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"running": False, "stopped": False}
    assert not file.exists()


def test_started_twice_it_is_the_same(file: Path, server: tuple[int, int]) -> None:
    resident.write_state(file, made(*server))
    found, is_new = residentserver.start_resident(SparkSettings())
    assert (found.pid, is_new) == (server[0], False)
    with pytest.raises(AlreadyExistsError, match=r"on local\[2\] and not on local\[1\]"):
        residentserver.start_resident(SparkSettings("local[1]"))
    stopped = residentserver.stop_resident()
    assert stopped is not None
    assert stopped.pid == server[0]
    assert residentserver.stop_resident() is None


def test_a_server_that_does_not_come_up_is_told(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(EngineUnavailableError, match="needs Java 17"):
        residentserver.start_resident(SparkSettings("local[1]"))
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho no such thing >&2\nexit 3\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(EngineUnavailableError, match="its server ended") as caught:
        residentserver.start_resident(SparkSettings("local[1]"))
    assert "no such thing" in caught.value.details["log"]
    assert not file.exists()


def test_an_endpoint_may_be_given_as_a_master() -> None:
    assert read_settings("sc://there:15002", environ={}).remote == "sc://there:15002"
    found = read_settings(environ={"OMNIGRAPH_SPARK_MASTER": "sc://there"})
    assert (found.master, found.remote) == (None, "sc://there")
    with pytest.raises(InvalidArgumentError, match="cannot be an endpoint"):
        residentserver.start_resident(SparkSettings(remote="sc://there"))
