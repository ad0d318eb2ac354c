"""Make `.venv` from the lock, or find that it is there already.

`setup.py` prepares the environment, `setup.py --java` also asks for Java 17, `setup.py --bench`
also installs what the benchmark compares against. Standard library only: nothing is there yet.

Guarantees: the stamp is written last, so an interrupted run is simply repeated; two runs at once
wait for each other; what is missing is told in one sentence, and the installer's own words are
kept in `.venv/setup.log`.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "setup.log"
LOCKS = ROOT / "requirements"
JAVA_NEEDED = 17

_UNREACHABLE = re.compile(
    r"connection (error|refused|reset|broken)|failed to establish a new connection|name resolution"
    r"|dns error|error sending request|network is unreachable|timed? ?out|max retries|proxyerror"
    r"|failed to fetch|newconnectionerror",
    re.IGNORECASE,
)


class MissingError(Exception):
    """Something the reader has to install or change; the message is one sentence."""


def main() -> int:
    options = _parse_arguments()
    try:
        with (ROOT / "pyproject.toml").open() as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            install("dev")
            if options.bench:
                install("bench")
        if options.java:
            require_java()
    except MissingError as missing:
        print(missing, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; run it again to go on.", file=sys.stderr)
        return 130
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Prepare .venv from the lock.")
    parser.add_argument("--java", action="store_true", help="also require Java 17 or newer")
    parser.add_argument("--bench", action="store_true", help="also install the benchmark's peers")
    return parser.parse_args()


def install(group: str) -> None:
    """Install one lock file and, with the first one, the package itself."""
    stamp = VENV / f"setup-{group}.stamp"
    wanted = _fingerprint(group)
    if stamp.exists() and stamp.read_text() == wanted and _works(PYTHON):
        return
    begin = time.monotonic()
    print(f"Installing {group} packages into .venv (once per lock) ...", flush=True)
    if not _works(PYTHON):
        _create_venv()
    if group == "dev":
        _run("pip", "install", "--retries", "2", "--require-hashes", "-r", LOCKS / "build.txt")
    _install_locked(LOCKS / f"{group}.txt")
    if group == "dev":
        _run("pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "-e", ROOT)
    stamp.write_text(wanted)
    print(f"Installed in {time.monotonic() - begin:.0f} s.", flush=True)


def _fingerprint(group: str) -> str:
    digest = hashlib.sha256()
    for path in (ROOT / "pyproject.toml", LOCKS / "build.txt", LOCKS / f"{group}.txt"):
        digest.update(path.read_bytes())
    # A virtual environment holds absolute paths: a moved checkout needs a new one.
    return f"{digest.hexdigest()} {ROOT}"


def _works(python: Path) -> bool:
    try:
        probe = subprocess.run([python, "-c", ""], capture_output=True, check=False)
    except OSError:
        return False
    return probe.returncode == 0


def _create_venv() -> None:
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", VENV], capture_output=True, text=True, check=False
    )
    if made.returncode:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise MissingError(
            f"Python {version} at {sys.executable} cannot make virtual environments: install its"
            f" venv module (for example `apt install python{version}-venv`)."
        )


def _install_locked(lock: Path) -> None:
    """With uv, which is three times as fast; else with pip, which knows the reader's mirrors."""
    locked = ["--no-build-isolation", "--require-hashes", "-r", str(lock)]
    uv = ["uv", "pip", "install", "--python", str(PYTHON), "--compile-bytecode", *locked]
    try:
        _run(*uv)
    except MissingError:
        _run("pip", "install", "--retries", "2", "--no-deps", *locked)


def _run(module: str, *arguments: str | Path) -> None:
    """Run a module of the environment; its words go to the log."""
    VENV.mkdir(exist_ok=True)
    # Bytecode is written whatever the shell says: without it every start costs twice as much.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with LOG.open("a") as log:
        begin = log.tell()
        done = subprocess.run(
            [PYTHON, "-m", module, *arguments],
            stdout=log,
            stderr=log,
            check=False,
            cwd=ROOT,
            env=environment,
        )
    if done.returncode:
        raise MissingError(_explain(LOG.read_text()[begin:]))


def _explain(words: str) -> str:
    if _UNREACHABLE.search(words):
        return (
            "The package index cannot be reached: connect to the network (or configure pip for"
            " your mirror) and run the command again."
        )
    last = next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "")
    return f"Installing failed, and {LOG} tells why; its last line is: {last}"


def require_java() -> None:
    """Spark runs on the JVM; everything else does without."""
    found = _java_version()
    if found is None or found < JAVA_NEEDED:
        have = "no Java was found" if found is None else f"Java {found} was found"
        raise MissingError(
            f"OmniGraph's Spark pipeline needs Java {JAVA_NEEDED} or newer and {have}: install it"
            f" (for example `apt install openjdk-{JAVA_NEEDED}-jre-headless`) or set JAVA_HOME."
        )


def _java_version() -> int | None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match[1]) if match and told.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
