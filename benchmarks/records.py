"""Run records: what was measured, of what, on what, as JSON that pages and plots are made from.

Guarantees: a record describes the machine without naming it; it holds every sample, so that a page
can be written again from it.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.measure import Findings, Measure, noise_floor

FOLDER = Path(__file__).parent / "records"
_PACKAGES = ("pylance", "pyarrow", "numpy", "datafusion", "pyspark")


@dataclass(frozen=True)
class Record:
    """One run of one suite."""

    suite: str
    scale: float
    seed: int
    day: str
    seconds: float
    floor: float
    machine: dict[str, str]
    versions: dict[str, str]
    skipped: dict[str, str]
    measures: list[Measure]

    def write(self, folder: Path = FOLDER) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.suite}.json"
        content = asdict(self)
        for measure in content["measures"]:
            measure["samples"] = {
                s: [_short(v) for v in vs] for s, vs in measure["samples"].items()
            }
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return path


def record(suite: str, scale: float, seed: int, seconds: float, found: Findings) -> Record:
    return Record(
        suite,
        scale,
        seed,
        datetime.now(UTC).strftime("%Y-%m-%d"),
        round(seconds, 1),
        round(noise_floor(found.measures), 3),
        machine(),
        {**_versions(), **found.versions},
        found.skipped,
        found.measures,
    )


def read(suite: str, folder: Path = FOLDER) -> Record | None:
    path = folder / f"{suite}.json"
    if not path.exists():
        return None
    content: dict[str, Any] = json.loads(path.read_text())
    measures = [Measure(**measure) for measure in content.pop("measures")]
    return Record(measures=measures, **content)


def folder_of(scale: float) -> Path:
    """Where records of a scale are kept: those of the promises' apart from trials."""
    return FOLDER if scale == 1 else FOLDER / f"scale-{scale:g}"


def machine() -> dict[str, str]:
    """The machine in general words."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": _processor(),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[1]:.0f}",  # our own processes included
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def _versions() -> dict[str, str]:
    from omnigraph import __version__

    found = {"omnigraph": __version__}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _short(value: float) -> float:
    return float(f"{value:.4g}")
