"""The resident session: a Spark Connect server on this machine that outlives the commands using it.

Where it listens, and the token that it asks for, stand in a file that its user alone can read.

    OMNIGRAPH_SPARK_RESIDENT    that file, if it is not in the user's cache folder; `off`: use none

Guarantees: a server is used only if it is there, was started by this very version of the package
and of Python, and reaches object stores with the same settings as the command does; why one is not
used is reported. Files of a server that has ended are recognised.
Deliberately absent: starting and stopping one (`residentserver`), and talking to it (`session`).
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

from omnigraph.engines.spark.archive import cache_folder

RESIDENT_VARIABLE = "OMNIGRAPH_SPARK_RESIDENT"
SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
# Spark's client sends a token over a channel without encryption to this name only.
HOST = "localhost"
_OFF = frozenset({"0", "false", "no", "off"})
_ANSWERS_S = 1.0
# Tasks read inputs with the environment of the server, not with that of the command.
_SEEN_BY_TASKS = ("AWS_", "OMNIGRAPH_FAULTS")


@dataclass(frozen=True)
class Resident:
    """A server as its file describes it."""

    pid: int
    port: int
    token: str
    session: str  # which commands share, and with it the workers that are warm
    master: str
    started_at: str
    build: str  # which package and which Python it was started by
    environment: str  # a digest of what its tasks see

    @property
    def url(self) -> str:
        """Where it listens, without the token."""
        return f"sc://{HOST}:{self.port}"

    def endpoint(self, *, shared: bool = True) -> str:
        """The settings of Spark's client. Other settings need a separate session."""
        session = f";session_id={self.session}" if shared else ""
        return f"{self.url}/;token={quote(self.token, safe='')}{session}"

    def to_json(self) -> dict[str, Any]:
        """What may be shown."""
        return {
            "pid": self.pid,
            "url": self.url,
            "master": self.master,
            "started_at": self.started_at,
        }


@dataclass(frozen=True)
class Found:
    """What a look at the file gave. `resident` without `unusable`: it can be used. `stale`: the
    file speaks of a server that is gone."""

    resident: Resident | None = None
    unusable: str | None = None
    stale: bool = False

    @property
    def usable(self) -> Resident | None:
        return self.resident if self.unusable is None else None


def state_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """The file that describes the server; None: there shall be none."""
    given = os.environ if environ is None else environ
    named = given.get(RESIDENT_VARIABLE, "").strip()
    if named.lower() in _OFF:
        return None
    return Path(named) if named else cache_folder(given) / "resident" / "spark.json"


def find_resident(environ: Mapping[str, str] | None = None) -> Found:
    """The server of this user, if one runs that this command can use."""
    file = state_file(environ)
    if file is None:
        return Found()
    resident = read_state(file)
    if resident is None:
        return Found()
    if not is_server(resident.pid) or not _listens(resident.port):
        return Found(resident, "its server is gone", stale=True)
    if resident.build != build():
        return Found(resident, "it was started by another version of OmniGraph or Python")
    if resident.environment != environment_digest(environ):
        return Found(resident, "it was started with other settings for storage (AWS_…)")
    return Found(resident)


def read_state(file: Path) -> Resident | None:
    """What the file says; None: it does not exist, or cannot be read."""
    try:
        raw = json.loads(file.read_bytes())
        return Resident(**{field.name: raw[field.name] for field in fields(Resident)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_state(file: Path, resident: Resident) -> None:
    """Put the file in place whole, for its owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as out:
        json.dump(asdict(resident), out)
    part.replace(file)


def is_server(pid: int) -> bool:
    """Whether a process is a Connect server, and has not ended or been replaced by another
    process."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        line = _command_line(pid)
    except OSError:
        return False
    return SERVER_CLASS in line


def _command_line(pid: int) -> str:
    """The same on systems without /proc."""
    asked = ["ps", "-ww", "-p", str(pid), "-o", "command="]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), _ANSWERS_S):
            return True
    except OSError:
        return False


def build() -> str:
    """This package as it lies on disk, and the Python that runs it: tasks must have the same."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.blake2b(f"{sys.executable} {sys.version} {package}".encode(), digest_size=16)
    for file in sorted(package.rglob("*.py")):
        stat = file.stat()
        digest.update(f"{file} {stat.st_mtime_ns} {stat.st_size}".encode())
    return digest.hexdigest()


def environment_digest(environ: Mapping[str, str] | None = None) -> str:
    given = os.environ if environ is None else environ
    seen = sorted(item for item in given.items() if item[0].startswith(_SEEN_BY_TASKS))
    return hashlib.blake2b(repr(seen).encode(), digest_size=16).hexdigest()
