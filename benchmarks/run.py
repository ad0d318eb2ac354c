"""Run the benchmark: `make bench`, or `python -m benchmarks.run [suite …] [--scale 1] [--quick]`.

Suites run one after the other, so that they do not disturb each other. Each prints its table and
leaves a record in `benchmarks/records/`; the page `docs/reference/performance.md` and its plots are
written from the records, those of suites that did not run now included.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks import page, records, tables
from benchmarks.suites import NAMES, SEED, Setting


def main(arguments: Sequence[str]) -> int:
    given = _parse(arguments)
    unknown = sorted(set(given.suites) - set(NAMES))
    if unknown:
        print(f"There is no suite {', '.join(unknown)}; there are {', '.join(NAMES)}.")
        return 2
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        setting = Setting(given.folder or Path(scratch), given.scale, given.seed)
        for name in given.suites or NAMES:
            if not _run(name, setting, keep=not given.dry):
                failed.append(name)
    if not given.dry:
        page.write()
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


def _run(name: str, setting: Setting, *, keep: bool) -> bool:
    """Run a suite, print its table, keep its record; whether all answers were the same."""
    begun = time.perf_counter()
    findings = import_module(f"benchmarks.suites.{name}").run(setting)
    took = time.perf_counter() - begun
    record = records.record(name, setting.scale, setting.seed, took, findings)
    print(tables.show(record), f"({took:.0f} s)\n", flush=True)
    if keep:
        record.write()
    return all(measure.same is not False for measure in findings.measures)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure OmniGraph beside its peers.")
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="1: 100,000 people")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, help="keep the data here, to run again sooner")
    parser.add_argument("--dry", action="store_true", help="write no records and no page")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
