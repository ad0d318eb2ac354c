"""Starting and stopping the resident session.

    start_resident(read_settings(master="local[4]"))
    stop_resident()

The server is Spark's own, `SparkConnectServer`, which comes with PySpark. It listens on this
machine only and requires a token that is generated at each start.

Guarantees: one server for each state file, also when two are started at once; a server that does
not start is ended and its error reported; files of a server that has ended are removed; only a
process that is a Connect server is ever stopped.
Deliberately absent: use of the session.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from omnigraph.engines.spark import resident as state
from omnigraph.engines.spark.archive import archive_options
from omnigraph.engines.spark.resident import Found, Resident
from omnigraph.engines.spark.session import find_java, jars_folder, require_pyspark
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.errors import AlreadyExistsError, EngineUnavailableError, InvalidArgumentError
from omnigraph.storage.flock import FileLock

_READY_S = 180.0
_GONE_S = 20.0
_POLL_S = 0.1
_LOG_TAIL = 4000
# Other tokens and addresses in the environment would lead Spark elsewhere.
_CONFUSING = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


def start_resident(settings: SparkSettings) -> tuple[Resident, bool]:
    """The running server, and whether it was started just now."""
    file = _file()
    if settings.remote is not None:
        raise InvalidArgumentError(
            "A resident session runs on this machine; it cannot be an endpoint elsewhere.",
            hint="Name a master, or give --remote to the command that uses it.",
        )
    with _alone(file):
        found = state.find_resident()
        if found.usable is not None:
            _require_same(found.usable, settings)
            return found.usable, False
        if found.resident is not None and not found.stale:
            raise AlreadyExistsError(
                f"A resident session runs already (process {found.resident.pid}), "
                f"but {found.unusable}.",
                hint="Stop it first: omnigraph spark stop.",
            )
        return _start(file, settings), True


def resident_status() -> Found:
    """What is there."""
    return state.find_resident()


def stop_resident() -> Resident | None:
    """Stop the server; returns what was stopped, None: there was none."""
    file = _file()
    with _alone(file):
        found = state.read_state(file)
        if found is not None and state.is_server(found.pid):
            _end(found.pid)
        else:
            found = None
        file.unlink(missing_ok=True)
        return found


def _file() -> Path:
    file = state.state_file()
    if file is None:
        raise InvalidArgumentError(
            f"Resident sessions are switched off by {state.RESIDENT_VARIABLE}.",
            hint="Unset it, or let it name a file.",
        )
    return file


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(f"{file}.lock")
    if not lock.acquire(_READY_S, poll_s=0.05, limit_s=0.2):
        raise EngineUnavailableError("Another process starts or stops the resident session now.")
    try:
        yield
    finally:
        lock.release()


def _require_same(found: Resident, settings: SparkSettings) -> None:
    if settings.master not in (None, found.master):
        raise AlreadyExistsError(
            f"A resident session runs already, on {found.master} and not on {settings.master}.",
            hint="Stop it first: omnigraph spark stop.",
        )


def _start(file: Path, settings: SparkSettings) -> Resident:
    require_pyspark()
    java = find_java()
    port, token = _free_port(), secrets.token_urlsafe(32)
    log = file.with_suffix(".log")
    log.unlink(missing_ok=True)
    with _properties(file.parent, settings, java, port) as properties:
        process = _launch(settings, properties, token, log)
        try:
            _await(process, port, log)
        except BaseException:
            if process.poll() is None:
                _end(process.pid)
            raise
    made = Resident(
        pid=process.pid,
        port=port,
        token=token,
        session=str(uuid4()),
        master=settings.place,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        build=state.build(),
        environment=state.environment_digest(),
    )
    state.write_state(file, made)
    return made


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _properties(folder: Path, settings: SparkSettings, java: str, port: int) -> Iterator[str]:
    """Settings in a file: on a command line other users would see them."""
    from pyspark import __version__ as version

    told = {
        **settings.spark_config(),
        "spark.app.name": "omnigraph resident",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # Commands come back to their session, however late.
        "spark.connect.session.manager.defaultSessionTimeout": "3650d",
        # The client cannot ask how wide a server is.
        "spark.default.parallelism": settings.config.get(
            "spark.default.parallelism", str(_width(settings.place))
        ),
    }
    archive = archive_options(java, version, jars_folder())
    options = (told.get("spark.driver.extraJavaOptions", ""), *archive)
    told["spark.driver.extraJavaOptions"] = " ".join(options).strip()
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".properties") as out:
        for name, value in told.items():
            escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
            out.write(f"{name}={escaped}\n")
        out.flush()
        yield out.name


def _width(master: str) -> int:
    """How many tasks `local[…]` runs side by side; of others Spark decides."""
    inside = master.partition("[")[2].partition("]")[0].split(",")[0]
    return int(inside) if inside.isdigit() else os.cpu_count() or 1


def _launch(
    settings: SparkSettings, properties: str, token: str, log: Path
) -> subprocess.Popen[bytes]:
    from pyspark.find_spark_home import _find_spark_home

    home = _find_spark_home()
    command = [os.path.join(home, "bin", "spark-submit"), "--master", settings.place]
    command += ["--properties-file", properties, "--class", state.SERVER_CLASS]
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        # A session of its own: Ctrl-C and the end of the terminal are not for the server.
        return subprocess.Popen(
            [*command, "spark-internal"],
            env=_environment(token),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            start_new_session=True,
        )
    finally:
        os.close(handle)


def _environment(token: str) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _CONFUSING}
    return {
        **kept,
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with socket.create_connection((state.HOST, port), 1.0):
                return
        except OSError:
            time.sleep(_POLL_S)
    said = log.read_text(errors="replace")[-_LOG_TAIL:] if log.exists() else ""
    how = "ended" if process.poll() is not None else f"did not answer within {_READY_S:.0f} s"
    raise EngineUnavailableError(
        f"The resident session did not start: its server {how}.",
        hint=f"The output of Spark is in {log}.",
        log=said,
    )


def _end(pid: int) -> None:
    """Ask, wait, and insist."""
    for step in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, step)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + _GONE_S
        while time.monotonic() < deadline:
            if not state.is_server(pid):
                return
            time.sleep(_POLL_S)
