"""Conformance cases of merges on Spark: the rows and conflicts of the embedded engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_merges import CASES, check
from tests.support.casesteps import Case


# ledger: B02
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_merge_on_spark(case: Case, spark: Any, tmp_path: Path) -> None:
    check(case, "spark", tmp_path)
