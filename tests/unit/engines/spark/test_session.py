from __future__ import annotations

import socket
from pathlib import Path

import pytest

from omnigraph.engines.spark import session
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.errors import EngineUnavailableError


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_active", lambda: None)


def test_a_missing_java_is_said_clearly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EngineUnavailableError, match="needs Java 17") as caught:
        session.get_session(SparkSettings())
    assert "--engine embedded" in str(caught.value)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineUnavailableError, match="none on the PATH"):
        session.get_session(SparkSettings())


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_cluster_that_does_not_answer_is_named_at_once(scheme: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = f"{scheme}://127.0.0.1:{port}"
    settings = SparkSettings(remote=place) if scheme == "sc" else SparkSettings(master=place)
    with pytest.raises(EngineUnavailableError) as caught:
        session._require_reachable(settings)
    assert f"127.0.0.1:{port}" in caught.value.message


def test_executors_elsewhere_get_the_package_along() -> None:
    import zipfile

    with zipfile.ZipFile(session._package()) as packed:
        names = packed.namelist()
    assert "omnigraph/__init__.py" in names
    assert "omnigraph/bulk/partwriter.py" in names


def test_an_endpoint_that_goes_away_is_said_clearly() -> None:
    import grpc

    from omnigraph.engines.spark.sparkerrors import translated

    said = "ended during the job to count"
    with pytest.raises(EngineUnavailableError, match=said), translated("count"):
        raise grpc.RpcError("StatusCode.UNAVAILABLE")


def test_a_server_that_refuses_the_token_is_said_clearly() -> None:
    settings = SparkSettings(remote="sc://localhost:1/;token=secret", resident=True)
    told = session._not_connected(settings, RuntimeError("status = StatusCode.UNAUTHENTICATED"))
    assert "refused the token" in told.message
    assert "secret" not in str(told)
    assert "omnigraph spark stop" in str(told)
