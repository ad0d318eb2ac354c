"""A real S3 server for tests: SeaweedFS, from a wheel, started on loopback with its own directory.

`s3_server` starts one per test process on first use; `s3_root` gives each test a fresh
`s3://bucket/prefix` and points the `AWS_*` variables at the server, also for child processes.
Two keys exist: one that may do everything, and one that may only read.

Nothing leaves the machine: the server binds to 127.0.0.1 and its telemetry is off.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

BUCKET = "graphs"
KEYS = {"writer": ("writer-key", "writer-secret"), "reader": ("reader-key", "reader-secret")}
_PORTS = ("master", "master_grpc", "volume", "volume_grpc", "filer", "filer_grpc", "s3", "s3_grpc")
_START_LIMIT_S = 60.0


class S3Server:
    """One running server. Its data is gone with its directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3']}"

    def environ(self, key: str = "writer") -> dict[str, str]:
        """The variables by which a process reaches this server."""
        return environ_of(self.endpoint, key)

    def start(self) -> None:
        for _ in range(3):  # A port that was free a moment ago may be taken by now.
            self._ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
            self._launch()
            if self._is_up():
                self._make_bucket()
                return
            self.stop()
        raise RuntimeError(f"The S3 server did not start; see {self._folder / 'log'}.")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop answering, as a network partition would."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _launch(self) -> None:
        config = self._folder / "identities.json"
        config.write_text(json.dumps(_identities()))
        data = self._folder / uuid4().hex[:8]
        data.mkdir()
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_launcher(), "-logtostderr=true", "server", *self._options(data, config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=data,
                process_group=0,  # Ctrl-C is for pytest, which then stops the server itself.
            )

    def _options(self, data: Path, config: Path) -> list[str]:
        ports = self._ports
        return [
            f"-dir={data}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-master.telemetry=false",
            f"-master.port={ports['master']}",
            f"-master.port.grpc={ports['master_grpc']}",
            "-master.peers=none",  # Alone: no election to wait for.
            "-master.volumeSizeLimitMB=256",
            f"-volume.port={ports['volume']}",
            f"-volume.port.grpc={ports['volume_grpc']}",
            "-volume.max=64",
            f"-filer.port={ports['filer']}",
            f"-filer.port.grpc={ports['filer_grpc']}",
            f"-filer.localSocket={self._folder / 'filer.sock'}",
            "-s3",
            f"-s3.port={ports['s3']}",
            f"-s3.port.grpc={ports['s3_grpc']}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-s3.autoCreateBucket=false",
            f"-s3.config={config}",
            f"-s3.localSocket={self._folder / 's3.sock'}",
        ]

    def _is_up(self) -> bool:
        """Wait until the server answers and has room to write to, or has given up."""
        room = f"http://127.0.0.1:{self._ports['master']}/dir/assign?collection={BUCKET}"
        assert self._process is not None
        deadline = time.monotonic() + _START_LIMIT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.endpoint}/status", timeout=5).close()
                urllib.request.urlopen(room, timeout=5).close()
                return True
            time.sleep(0.05)
        return False

    def _make_bucket(self) -> None:
        address = f"http://127.0.0.1:{self._ports['filer']}/buckets/{BUCKET}/"
        request = urllib.request.Request(address, method="POST")
        urllib.request.urlopen(request, timeout=10).close()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """The server of this test process."""
    server = S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def s3_root(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh address on the server; this process and its children can reach it."""
    for name, value in s3_server.environ().items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid4().hex}"


# Asks Linux to kill the server when its starter dies, then becomes the server. A `preexec_fn` would
# fork for real, which Lance in this process does not survive.
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def _launcher() -> list[str]:
    binary = Path(sys.executable).with_name("weed")
    return [sys.executable, "-c", _DIE_WITH_PARENT, str(binary)]


def environ_of(endpoint: str, key: str = "writer") -> dict[str, str]:
    """The variables by which a process reaches the server at an endpoint."""
    name, secret = KEYS[key]
    return {
        "AWS_ACCESS_KEY_ID": name,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_FORCE_PATH_STYLE": "true",
    }


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _identities() -> dict[str, object]:
    actions = {"writer": ["Admin", "Read", "Write", "List"], "reader": ["Read", "List"]}
    return {
        "identities": [
            {
                "name": name,
                "credentials": [{"accessKey": key, "secretKey": secret}],
                "actions": actions[name],
            }
            for name, (key, secret) in KEYS.items()
        ]
    }
