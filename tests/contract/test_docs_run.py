"""What the documentation prints runs as it is printed.

Every page is run from its top to its end in a folder of its own. `tests/support/docpages.py` tells
what a page may say about its blocks; a block that neither runs nor says why not is a failure.
Blocks that need Spark are run by `tests/spark/test_docs.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.docpages import KINDS, PAGES, Page, read_page, title
from tests.support.pagerunner import Reader

from omnigraph.errors import QueryError, SchemaError


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_the_page_runs(page: Page, folder: Path, shop: Path) -> None:
    Reader(page, shop).read()


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_every_block_is_of_a_kind_that_is_tested(page: Page) -> None:
    assert [block.place for block in page.blocks if block.kind not in KINDS] == []


BROKEN = [
    ("```sh\nomnigraph fsck nowhere\n```", AssertionError, "graph_not_found"),
    ("```sh\nls nowhere\n```", AssertionError, "No such file"),
    (
        "```sh\nomnigraph version\n```\n\n```text\nsomething else\n```",
        AssertionError,
        "something else",
    ),
    ("```python\n1 / 0\n```", ZeroDivisionError, "zero"),
    ("```pg\nnode Person { name: Strng }\n```", SchemaError, "Strng"),
    (
        "```pg\nnode A { n: String }\n```\n```gq\nquery q() { match { $x: B } return { $x } }\n```",
        QueryError,
        "B",
    ),
    ("```json\n{]\n```", ValueError, "Expecting"),
]


@pytest.mark.parametrize(
    ("text", "kind", "reason"), BROKEN, ids=[text.split()[0][3:] for text, *_ in BROKEN]
)
def test_a_block_that_does_not_run_is_seen(
    text: str, kind: type[Exception], reason: str, folder: Path, shop: Path
) -> None:
    page = folder / "page.md"
    page.write_text(text)
    with pytest.raises(kind, match=reason):
        Reader(read_page(page), shop).read()
    page.write_text(text.replace("```", "<!-- not run: because -->\n```", 1))
    broken = read_page(page).blocks[0]
    assert (broken.runs, broken.marks) == (False, {"not run": "because"})
