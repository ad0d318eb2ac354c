"""Work that needs more memory than there is, in a process whose address space is limited.

starve_on(uri, "sort", 60)     do it with 60 MB to spare; how it ended, and whether the handle
                               works afterwards
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.engines.base import Limits, Options
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph

SCHEMA = """
node Item {
    key: String @key
    text: String?
    n: I64?
}
edge Next: Item -> Item
"""
ITEMS, LINKS = 40_000, 80_000
_large: list[dict[str, Any]] = []
_LONG = Options(Limits(rows_returned=None))


def make_large(uri: str) -> None:
    """A graph whose rows fit, and whose products do not."""
    graph = omnigraph.init(uri, SCHEMA, actor="act-anna", durability="process")
    graph.ingest(_items(0, ITEMS), type="Item")
    graph.ingest(
        [{"from": f"k{n % 50}", "to": f"k{n * 7 % ITEMS}"} for n in range(LINKS)], type="Next"
    )
    other = graph.create_branch("other")
    other.mutate("query q() { update Item set { n: n + 1 } where n >= 0 }")
    graph.ingest([{"key": "extra", "n": 1}], type="Item")
    lines = (
        f'{{"type":"Item","data":{{"key":"f{n}","text":"{"x" * 90}"}}}}' for n in range(60_000)
    )
    Path(f"{uri}.jsonl").write_text("\n".join(lines))


def _items(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"key": f"k{n}", "text": f"{n} " + "x" * 90, "n": n} for n in range(first, first + count)
    ]


def _query(text: str) -> Callable[[Graph, str], Any]:
    return lambda graph, _: graph.query(f"query q() {{ {text} }}", options=_LONG).to_arrow()


WORK: dict[str, Callable[[Graph, str], Any]] = {
    "sort": _query(
        "match { $a: Item $a next $b } return { $a.text as s, $b.text as t } order { $b.text desc }"
    ),
    "aggregate": _query(
        "match { $a: Item } return { $a.text as t, count($a) as n, max($a.key) as m }"
    ),
    "collect": _query("match { $a: Item } return { collect($a.text) as t }"),
    "cross product": _query("match { $a: Item $b: Item $a.n < $b.n } return { $a.key, $b.key }"),
    "walk": _query("match { $a: Item $a next{1,4} $b } return { $a.key as a, $b.text as t }"),
    "export": lambda graph, _: sum(len(line) for line in graph.export_lines()),
    "ingest": lambda graph, _: graph.ingest(_large, type="Item", message="large"),
    "load": lambda graph, uri: graph.load(f"{uri}.jsonl", engine="embedded", message="large"),
    "mutate": lambda graph, _: graph.mutate(
        'query q() { update Item set { text: "y" } where n >= 0 }', message="large"
    ),
    "merge": lambda graph, _: graph.merge("other", message="large"),
}


def starve_on(uri: str, what: str, megabytes: int) -> dict[str, Any]:
    graph = omnigraph.open(uri, actor="act-anna", durability="process")
    graph.query("query q() { match { $a: Item $a.n < 5 $a next $b } return { $b.key } }").to_arrow()
    graph.ingest([{"key": "warm", "n": 1}], "merge", type="Item")
    if what == "ingest":
        _large.extend(_items(ITEMS, 100_000))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 1_000_000, before[1]))
    outcome = "done"
    try:
        WORK[what](graph, uri)
    except OmniGraphError as error:
        outcome = f"{error.code}: {error.message}"
    except BaseException as error:  # noqa: BLE001  # also what Rust raises
        outcome = f"!{type(error).__name__}: {str(error)[:200]}"
    resource.setrlimit(resource.RLIMIT_AS, before)
    rows = graph.query("query q() { match { $a: Item } return { count(*) as n } }").rows()
    return {"outcome": outcome, "rows": rows[0]["n"], "threads": threading.active_count()}
