"""Pages of documentation with blocks that need Spark, run from their top to their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.docpages import PAGES, Page, title
from tests.support.pagerunner import Reader

SLOW = [page for page in PAGES if any("slow" in block.marks for block in page.blocks)]


@pytest.mark.parametrize("page", SLOW, ids=title)
def test_the_page_runs(page: Page, spark: Any, folder: Path, shop: Path) -> None:
    Reader(page, shop, spark=spark).read(slow=True)
