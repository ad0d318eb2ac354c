"""A second implementation of S3 for tests: moto, in Python, on loopback with its own process.

It shares no code with SeaweedFS, so that nothing of ours depends on one server's habits. Requests
are served one at a time, because moto does not check conditions of concurrent writes atomically.
Its data is in memory and is gone with the process.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.support.s3 import BUCKET, environ_of, free_ports

_START_LIMIT_S = 60.0
_PROGRAM = """
import ctypes, logging, signal, sys, threading
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
logging.getLogger("werkzeug").setLevel(logging.ERROR)
moto, one = DomainDispatcherApplication(create_backend_app), threading.Lock()
def serve(environ, start_response):
    with one:
        return list(moto(environ, start_response))
run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True)
"""


class SecondS3Server:
    """One running server."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.endpoint = ""

    def environ(self) -> dict[str, str]:
        """The variables by which a process reaches this server."""
        return environ_of(self.endpoint)

    def start(self) -> None:
        for _ in range(3):  # A port that was free a moment ago may be taken by now.
            (port,) = free_ports(1)
            self.endpoint = f"http://127.0.0.1:{port}"
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(port)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
            if self._is_up():
                return
            self.stop()
        raise RuntimeError("The second S3 server did not start.")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_up(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + _START_LIMIT_S
        bucket = urllib.request.Request(f"{self.endpoint}/{BUCKET}", method="PUT")
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(bucket, timeout=5).close()
                return True
            time.sleep(0.05)
        return False


@pytest.fixture(scope="session")
def second_s3_server() -> Iterator[SecondS3Server]:
    """The second server of this test process."""
    server = SecondS3Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def second_s3_root(second_s3_server: SecondS3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh address on the second server; this process and its children can reach it."""
    for name, value in second_s3_server.environ().items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid4().hex}"
