"""Fast startup: modules that a command does not need are not imported.

pyarrow looks for pandas as soon as it converts a Python list, and pandas takes longer to import
than everything else together. The program handles no frames of pandas except on Spark, so it hides
pandas: an import of it fails as if it were not installed.

Only in the process of the program, never when imported as a library; never once pandas or PySpark
is imported, so that Spark finds what it needs also where a command decides late to use it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_is_program = False


class _Hidden:
    """Finds nothing under one name, before anybody else can find something. A finder by its method;
    the base class that it could have brings a dozen modules."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == self._name and "pyspark" not in sys.modules:
            raise ModuleNotFoundError(f"{fullname} is hidden from this command", name=fullname)
        return None


def as_program() -> None:
    """Declare that this process is the command line and nothing else."""
    global _is_program
    _is_program = True


def without_pandas() -> None:
    """Hide pandas from pyarrow and lance."""
    hidden = any(isinstance(finder, _Hidden) for finder in sys.meta_path)
    if _is_program and not hidden and "pandas" not in sys.modules:
        sys.meta_path.insert(0, _Hidden("pandas"))
