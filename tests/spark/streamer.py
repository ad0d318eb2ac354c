"""A stream in a process of its own, to be killed: `-m tests.spark.streamer FROM TO PLACE HOW`.

Copies the changes of one graph to another: `on` until it is killed, or `once` until it has caught
up. Prints the process ids of driver and virtual machine.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import omnigraph
from omnigraph.engines.spark.session import get_session, stop_session
from omnigraph.engines.spark.settings import read_settings


def copy(spark: Any, source: str, target: str, place: str) -> Any:
    changes = (
        spark.readStream.format("omnigraph")
        .options(graph=source, startingAt="beginning", maxCommits="3")
        .load()
    )
    return (
        changes.writeStream.format("omnigraph")
        .options(graph=target, mode="changes", stream="copy", checkpointLocation=place)
        .queryName("copy")
    )


def main() -> None:
    source, target, place, how = sys.argv[1:5]
    settings = read_settings(
        "local[2]",
        config={
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.shuffle.partitions": "1",
        },
    )
    spark: Any = get_session(settings)
    omnigraph.spark.register(spark)
    sys.stdout.write(f"{os.getpid()} {spark.sparkContext._gateway.proc.pid}\n")
    sys.stdout.flush()
    writer = copy(spark, source, target, place)
    trigger = {"availableNow": True} if how == "once" else {"processingTime": "50 milliseconds"}
    query = writer.trigger(**trigger).start()
    query.awaitTermination()
    stop_session()


if __name__ == "__main__":
    main()
