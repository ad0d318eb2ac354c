"""A load in a process of its own, to be killed: `python -m tests.spark.writer GRAPH FILE HOW`.

HOW is `here` (the tasks in this process) or a Spark master. Prints what it did as one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import omnigraph
from omnigraph.engines.spark.settings import read_settings
from omnigraph.operations.load import LoadOptions
from omnigraph.operations.requests import Load
from omnigraph.operations.verbs import run

# Asked on the executors: a join of both tables with groups, a walk from one node, a count.
QUESTIONS = (
    """query q() {
        match { $p: Person $p.age > 97 $p knows $q }
        return { $p.age as age, count($q) as known, max($q.name) as last }
        order { age }
    }""",
    """query q() {
        match { $p: Person $p.name = "p3" $p knows{1,3} $q }
        return { $q.name as name } order { name }
    }""",
    "query q() { match { $p: Person } return { count($p) as n, sum($p.age) as years } }",
)


def executors() -> list[int]:
    """The executor processes of this very driver."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "CoarseGrainedExecutorBackend" in line and f":{port()}" in line:
                found.append(int(entry.name))
    return found


def port() -> str:
    from omnigraph.engines.spark.session import get_session

    return str(get_session().conf.get("spark.driver.port"))


def kill_one(said: list[int]) -> None:
    """Kill an executor once the load has begun to write, however late a starved machine is."""
    graph = Path(sys.argv[1])
    while True:
        if any(graph.glob("nodes/*/data/*.lance")):
            victims = executors()
            if victims:
                os.kill(victims[0], signal.SIGKILL)
                said.append(victims[0])
                return
        time.sleep(0.02)


def main() -> None:
    uri, file, how = sys.argv[1:4]
    settings = None if how == "here" else read_settings(how)
    killed: list[int] = []
    if settings is not None:
        from omnigraph.engines.spark.session import get_session

        get_session(settings)
        if "--kill" in sys.argv:
            threading.Thread(target=kill_one, args=(killed,), daemon=True).start()
    graph = omnigraph.open(uri)
    options = LoadOptions(mode="merge", spark=settings, here=how == "here")
    result = run(graph._context, Load(file, options=options))
    said: dict[str, object] = {
        "commit": result.commit_id,
        "killed": len(killed),
        "rows": result.nodes + result.edges,
    }
    if "--more" in sys.argv:
        out = f"{uri}-out"
        said["exported"] = graph.export(out, engine="spark", format="parquet").rows
        said["degrees"] = graph.algorithm("degree").count()
        said["asked"] = [graph.query(text, engine="spark").rows() for text in QUESTIONS]
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
