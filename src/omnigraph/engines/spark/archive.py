"""A class-data archive for Spark's virtual machine: it halves the time that Spark takes to start.

The first session of a version writes the archive when its machine ends, which is after our
program has ended; later sessions load it. It lies in the user's cache folder and may be deleted
at any time.

    OMNIGRAPH_SPARK_ARCHIVE=false    do without

Guarantees: never required; a half-written file is never used, because it only gets its final name
once its writer is gone.
Deliberately absent: archives on other machines; executors of a cluster start once and stay.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

ARCHIVE_VARIABLE = "OMNIGRAPH_SPARK_ARCHIVE"
_OFF = frozenset({"0", "false", "no", "off"})
# Smaller files are what a machine leaves that was stopped while it wrote.
_LEAST_BYTES = 20 << 20
# The machine writes when its parent is gone already; it is done when the file rests.
_SETTLED_S = 20.0
# Environments come and go; what none of them loaded for so long is removed.
_UNUSED_S = 30 * 86_400.0


def archive_options(
    java: str, version: str, jars: Path, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """What to tell the virtual machine: load the archive, or write one when it ends. `jars`: the
    folder of Spark's classes."""
    given = os.environ if environ is None else environ
    if given.get(ARCHIVE_VARIABLE, "").strip().lower() in _OFF:
        return ()
    folder = cache_folder(given)
    name = f"spark-{version}-{_fingerprint(java, jars)}"
    final = folder / f"{name}.jsa"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _adopt(folder, name, final)
    except OSError:
        return ()  # no place for a cache
    if final.exists():
        _mark_used(folder, final)
        return (f"-XX:SharedArchiveFile={final}", "-Xshare:auto", "-Xlog:disable")
    return (f"-XX:ArchiveClassesAtExit={folder / f'{name}.{os.getpid()}.part'}", "-Xlog:disable")


def is_recording(options: tuple[str, ...]) -> bool:
    """Whether the machine with these options writes an archive when it ends."""
    return any(option.startswith("-XX:ArchiveClassesAtExit=") for option in options)


def cache_folder(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "omnigraph"


def _fingerprint(java: str, jars: Path) -> str:
    """An archive fits one build of one Java only, and the very files that its classes came from:
    with those of another environment the machine silently does without."""
    real = Path(java).resolve()
    release = real.parent.parent / "release"
    text = release.read_text(errors="replace") if release.exists() else ""
    found = sorted(jars.glob("*.jar"))
    stated = [f"{jar.name} {(stat := jar.stat()).st_size} {stat.st_mtime_ns}" for jar in found]
    parts = [str(real), text, str(jars), *stated]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _adopt(folder: Path, name: str, final: Path) -> None:
    """Give a finished archive its name; remove what dead writers left."""
    for part in folder.glob(f"{name}.*.part"):
        if time.time() - part.stat().st_mtime < _SETTLED_S or _alive(part.name.split(".")[-2]):
            continue
        if not final.exists() and part.stat().st_size >= _LEAST_BYTES:
            part.rename(final)
        else:
            part.unlink(missing_ok=True)


def _mark_used(folder: Path, final: Path) -> None:
    """Set its access time, and remove archives that were not used for a long time."""
    try:
        os.utime(final)
        for other in folder.glob("spark-*.jsa"):
            if time.time() - other.stat().st_mtime > _UNUSED_S:
                other.unlink(missing_ok=True)
    except OSError:
        return  # another user's cache, or one that is read-only: it serves as it is


def _alive(pid: str) -> bool:
    """Whether the Python process is still there that started the writer."""
    if not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
