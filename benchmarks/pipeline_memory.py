"""How much memory a large load takes, on two executors of 2 GB and a driver of 1 GB.

    python -m benchmarks.pipeline_memory [--megabytes 500]

Prints one JSON line: the input, the time, and the most memory that a process of each kind held. The
target is an input of 5,000 MB: that takes some minutes on two cores and 15 GB of disk, so
the default is a tenth of it. What a process holds does not grow with the input, except for the
keys of the checks, which are bounded.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import omnigraph
from benchmarks.pipeline import SCHEMA, write_jsonl
from benchmarks.processes import PeakMemory
from omnigraph.engines.spark.settings import read_settings

_BYTES_PER_EDGE = 68
_EDGES_PER_NODE = 23
_EXECUTOR_MB = 1024  # of 2 GB, half is for the Python worker beside it


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=500)
    given = parser.parse_args()
    edges = given.megabytes * 1_000_000 // _BYTES_PER_EDGE
    settings = read_settings(
        f"local-cluster[2,1,{_EXECUTOR_MB}]",
        config={
            "spark.driver.memory": "1g",
            "spark.executor.memory": f"{_EXECUTOR_MB}m",
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "in.jsonl"
        write_jsonl(file, edges // _EDGES_PER_NODE, edges)
        graph = omnigraph.init(str(Path(folder) / "graph"), SCHEMA)
        began = time.perf_counter()
        with PeakMemory(os.getpid()) as memory:
            done = graph.load(str(file), spark=settings)
        seconds = time.perf_counter() - began
        size = file.stat().st_size / 1e6
    peaks = {kind: round(size) for kind, size in sorted(memory.peaks.items()) if kind != "gone"}
    found = {
        "input_mb": round(size),
        "records": done.records,
        "seconds": round(seconds, 1),
        "peak_mb": peaks,
        "target": "executor and worker together ≤ 2048, driver ≤ 1024 each",
    }
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
