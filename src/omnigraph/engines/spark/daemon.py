"""Spark's Python daemon, with this package imported before it forks its workers.

Each worker would otherwise import it again, which takes longer than a small task. Used where
workers run on this machine; elsewhere the package is only sent along with a job.

    OMNIGRAPH_SPARK_PANDAS=false    do without pandas, as the command line does: pyarrow would
                                    import it, which takes as long as all the rest here

Imports and nothing else. Lance must not be used before the fork. Sessions of other people's
programs keep pandas, for their functions.
"""

from __future__ import annotations

import os
import sys


class _Hidden:
    """The method of a module finder that reports pandas as not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden from this task", name=fullname)


if os.environ.get("OMNIGRAPH_SPARK_PANDAS") == "false":
    sys.meta_path.insert(0, _Hidden())

# For the workers; only now, that pandas may be hidden from them.
import omnigraph.bulk.export  # noqa: E402
import omnigraph.bulk.load  # noqa: E402
import omnigraph.engines.spark.tableframes  # noqa: E402, F401

if __name__ == "__main__":
    from pyspark.daemon import manager

    from omnigraph.engines.spark.workergc import spare_collector

    spare_collector()
    manager()
