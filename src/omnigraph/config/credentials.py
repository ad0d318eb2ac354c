"""Tokens of servers, by the server's name.

    ~/.omnigraph/credentials
    [prod]
    token = …

Guarantees: the file is made readable by its owner alone, and one that others can read is refused;
it is replaced whole, so that a crash leaves the old one; other sections stay as they were written.
Deliberately absent: sending a token anywhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from omnigraph.config.operator import OperatorConfig, home
from omnigraph.errors import DeniedError, InvalidArgumentError

FILE = "credentials"
ANY_SERVER = "OMNIGRAPH_BEARER_TOKEN"


def credentials_path() -> Path:
    return home() / FILE


def token_variable(server: str) -> str:
    """The variable that holds a server's token: `prod-eu` has OMNIGRAPH_TOKEN_PROD_EU."""
    return "OMNIGRAPH_TOKEN_" + server.replace("-", "_").upper()


def find_token(server: str | None) -> str | None:
    """A server's token: its own variable, its section of the file, the variable for any server.
    A server without a name has no token but the last."""
    if server is not None:
        own = os.environ.get(token_variable(server), "").strip() or read_token(server)
        if own:
            return own
    return os.environ.get(ANY_SERVER, "").strip() or None


def server_of(url: str, config: OperatorConfig) -> str | None:
    """The name of the server that an address belongs to: the longest one that it begins with."""
    wanted = url.rstrip("/")
    fitting = [
        (len(base), name)
        for name, base in ((name, known.rstrip("/")) for name, known in config.servers.items())
        if wanted == base or wanted.startswith(base + "/")
    ]
    return max(fitting)[1] if fitting else None


def read_token(server: str) -> str | None:
    """The token that the file holds for a server."""
    section = None
    for line in _lines():
        text = line.strip()
        section = _section(text) or section
        name, equals, value = text.partition("=")
        if section == server and equals and name.strip() == "token":
            return value.strip().strip("\"'") or None
    return None


def write_token(server: str, token: str | None) -> Path:
    """Keep a server's token, or with None forget it. Returns the file's path."""
    _check(server, token)
    kept: list[str] = []
    section = None
    for line in _lines():
        section = _section(line.strip()) or section
        if section != server:
            kept.append(line)
    if token is not None:
        gap = [""] if kept and kept[-1].strip() else []
        kept += [*gap, f"[{server}]", f"token = {token}"]
    path = credentials_path()
    if kept or path.exists():
        _replace(path, "".join(f"{line}\n" for line in kept))
    return path


def _check(server: str, token: str | None) -> None:
    if not server or any(letter in server for letter in "[]\n\r"):
        raise InvalidArgumentError(f"{server!r} is not the name of a server.")
    if token is not None and (not token or any(letter.isspace() for letter in token)):
        raise InvalidArgumentError("A token is one non-empty word.")


def _lines() -> list[str]:
    path = credentials_path()
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise DeniedError(
            f"Others can read the credentials in {path} (mode {stat.S_IMODE(mode):o}).",
            hint=f"Restrict its permissions: chmod 600 {path}",
        )
    return text.splitlines()


def _section(text: str) -> str | None:
    return text[1:-1].strip() if text.startswith("[") and text.endswith("]") else None


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = path.with_name(f"{path.name}.{os.getpid()}")
    half.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
