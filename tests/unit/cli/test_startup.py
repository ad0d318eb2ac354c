"""Hiding pandas: in the program alone, and not from Spark."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from types import ModuleType
from omnigraph.cli import startup

startup.without_pandas()
assert not any(type(f).__name__ == "_Hidden" for f in sys.meta_path)  # not the program

startup.as_program()
startup.without_pandas()
startup.without_pandas()
import pyarrow as pa
table = pa.table({"a": [1, 2]})
assert "pandas" not in sys.modules
try:
    import pandas
except ModuleNotFoundError as error:
    assert "hidden" in str(error)
else:
    raise AssertionError("pandas was found")

sys.modules["pyspark"] = ModuleType("pyspark")
assert list(table.to_pandas()["a"]) == [1, 2]
"""


def test_pandas_is_hidden_until_spark_is_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
