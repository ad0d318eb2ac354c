"""Spark's Python daemon, with this package imported before it forks its workers.

Each worker would otherwise import it anew, which takes longer than a small task. Used where workers
run on this machine; elsewhere the package is only sent along with a job.

Guarantees: imports and nothing else. Lance must not be used before the fork.
Deliberately absent: the daemon itself, which is PySpark's.
"""

from __future__ import annotations

import omnigraph.engines.spark.export
import omnigraph.engines.spark.load
import omnigraph.engines.spark.tables  # noqa: F401 - for the workers

if __name__ == "__main__":
    from pyspark.daemon import manager

    manager()
