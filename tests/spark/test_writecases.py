"""Conformance cases of loads on Spark: the rows, counts and errors of the other ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_writes import CASES, check, is_of_data
from tests.support import casesteps
from tests.support.casesteps import Case

from omnigraph.engines.spark.session import has_session


# ledger: C09, T01, T04, T05
@pytest.mark.parametrize("case", [case for case in CASES if is_of_data(case)], ids=str)
def test_a_load_on_spark(case: Case, spark: Any, tmp_path: Path) -> None:
    assert has_session()  # otherwise the tasks of small files run in this process
    check(case, casesteps.by_load, tmp_path)
