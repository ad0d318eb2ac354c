"""Run the benchmark: `make bench`, or `python -m benchmarks.run [suite …] [--scale 1] [--full]`.

Suites run one after the other, so that they do not disturb each other. Each prints its table and
leaves a record in `benchmarks/records/`; the page `docs/reference/performance.md` and its plots are
written from the records, those of suites that did not run now included. Records of another scale
than 1 go into a folder of their own and not onto the page, whose promises are about that one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks import page, records, tables
from benchmarks.processes import cpu_seconds
from benchmarks.records import Record
from benchmarks.suites import NAMES, SEED, Setting


def main(arguments: Sequence[str]) -> int:
    given = _parse(arguments)
    unknown = sorted(set(given.suites) - set(NAMES))
    if unknown:
        print(f"There is no suite {', '.join(unknown)}; there are {', '.join(NAMES)}.")
        return 2
    begun = time.perf_counter()
    made: list[Record] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        setting = Setting(folder, given.scale, given.seed, given.full)
        for name in given.suites or NAMES:
            print(f"{name} …", flush=True)
            record = _run(name, setting, keep=not given.dry)
            if record is None or not _agreed(record):
                failed.append(name)
            if record is not None:
                made.append(record)
    print(tables.summary(made))
    if not given.dry and given.scale == 1:
        page.write()
        print(f"written: {page.REFERENCE / 'performance.md'}")
    print(f"{time.perf_counter() - begun:.0f} s in all")
    if failed:
        print(f"failed, or gave other answers than the peers: {', '.join(failed)}")
    return int(bool(failed))


def _run(name: str, setting: Setting, *, keep: bool) -> Record | None:
    """Run a suite, print its table, keep its record; None if it failed."""
    begun, used = time.perf_counter(), cpu_seconds(os.getpid())
    try:
        findings = import_module(f"benchmarks.suites.{name}").run(setting)
    except Exception:  # noqa: BLE001 - the other suites have figures to give all the same
        traceback.print_exc()
        print(f"{name} failed\n", flush=True)
        return None
    took = time.perf_counter() - begun
    record = records.record(name, setting.scale, setting.seed, took, findings)
    busy = cpu_seconds(os.getpid()) - used
    print(f"{tables.show(record)}  ({took:.0f} s; {busy:.0f} s of processor time)\n", flush=True)
    if keep:
        record.write(records.folder_of(setting.scale))
    return record


def _agreed(record: Record) -> bool:
    return all(measure.same is not False for measure in record.measures)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure OmniGraph beside its peers.")
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="1: 100,000 people")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, help="keep the data here, to run again sooner")
    parser.add_argument("--full", action="store_true", help="longest histories, largest loads")
    parser.add_argument("--dry", action="store_true", help="write no records and no page")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
