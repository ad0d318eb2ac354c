"""Lives of a graph of texts and vectors, with every search compared with a plain evaluation.

A life is a random sequence of writes, branches, merges, maintenance and cleanup. After each step,
every branch is searched for every word, by every function, and for the nearest vectors. The
expected rows are computed from a plain read of the same branch: words by a table of stems that is
written down here, fuzzy matches by edit distance, distances by numpy.
"""

from __future__ import annotations

import random
import re
from datetime import timedelta
from typing import Any

import numpy as np

import omnigraph
from omnigraph.errors import InvalidDataError, MergeConflictError
from omnigraph.graph import Graph

SCHEMA = """
node Doc {
    key: String @key
    body: String? @index
    place: Vector(4)? @index
}
"""
# Words and their English stems; a stop word has none.
STEMS = {
    "harness": "har",
    "harnesses": "har",
    "hair": "hair",
    "coding": "code",
    "codes": "code",
    "cod": "cod",
    "running": "run",
    "Runs": "run",
    "rune": "rune",
    "Café": "cafe",
    "quickly": "quick",
    "quick": "quick",
    "apples": "appl",
    "the": None,
}
WORDS = tuple(STEMS)
KEYS = tuple(f"k{number}" for number in range(12))
STEPS = {
    "put": 5,
    "update": 6,
    "delete": 4,
    "branch": 1,
    "split": 2,
    "merge": 2,
    "optimize": 4,
    "cleanup": 1,
    "reopen": 1,
}
MOST_BRANCHES = 5
_ALL = "query q() { match { $d: Doc } return { $d.key as k, $d.body as b, $d.place as p } }"


def plain(word: str) -> str:
    """A word without case and accents."""
    return word.lower().replace("é", "e")


def distance(one: str, other: str) -> int:
    """The edit distance of two words."""
    row = list(range(len(other) + 1))
    for at, left in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, right in enumerate(other, 1):
            before, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, before + (left != right)),
            )
    return row[-1]


def stems_of(text: str | None) -> list[str | None]:
    return [STEMS[word] for word in re.findall(r"\w+", text or "")]


def matches(function: str, text: str | None, query: str, edits: int = 0) -> bool:
    """Whether a text matches, by the definitions of the guide."""
    held, asked = stems_of(text), stems_of(query)
    if function == "match_text":
        while asked and asked[0] is None:
            asked.pop(0)
        while asked and asked[-1] is None:
            asked.pop()
        starts = range(len(held) - len(asked) + 1)
        return bool(asked) and any(
            all(stem is None or held[at + i] == stem for i, stem in enumerate(asked))
            for at in starts
        )
    terms = {stem for stem in asked if stem is not None}
    if function == "fuzzy" and edits:
        terms |= {plain(w) for w in query.split() if STEMS[w] is not None}
    return any(
        stem is not None and distance(term, stem) <= edits for stem in held for term in terms
    )


class Life:
    """One graph and the steps of its life, all from a seed."""

    def __init__(self, seed: int, address: str) -> None:
        self.chance = random.Random(seed)
        self.graph = omnigraph.init(address, SCHEMA)
        self.branches = ["main"]
        self.story: list[str] = []
        self._put("main")

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
            self.look()

    def step(self) -> None:
        kind = self.chance.choices(list(STEPS), list(STEPS.values()))[0]
        branch = self.chance.choice(self.branches)
        self.story.append(f"{kind} on {branch}")
        getattr(self, f"_{kind}")(branch)

    # Steps

    def _text(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randrange(1, 4)))

    def _vector(self) -> list[float]:
        return [self.chance.uniform(-1, 1) for _ in range(4)]

    def _put(self, branch: str) -> None:
        keys = self.chance.sample(KEYS, self.chance.randrange(2, 7))
        rows = [
            {
                "key": key,
                "body": None if self.chance.random() < 0.1 else self._text(),
                "place": None if self.chance.random() < 0.1 else self._vector(),
            }
            for key in keys
        ]
        self.graph.on(branch).ingest(rows, "merge", type="Doc")

    def _update(self, branch: str) -> None:
        low = self.chance.choice(KEYS)
        text = self._text()
        self._mutate(branch, f'update Doc set {{ body: "{text}" }} where key >= "{low}"')

    def _delete(self, branch: str) -> None:
        for key in self.chance.sample(KEYS, self.chance.choice([1, 1, 2, 3])):
            self._mutate(branch, f'delete Doc where key = "{key}"')

    def _mutate(self, branch: str, statement: str) -> None:
        self.graph.on(branch).mutate(f"query q() {{ {statement} }}")

    def _branch(self, branch: str) -> None:
        if len(self.branches) < MOST_BRANCHES:
            name = f"b{len(self.branches)}"
            self.graph.on(branch).create_branch(name)
            self.branches.append(name)

    def _split(self, branch: str) -> None:
        """A branch and its fork each lose a row of the files that they share."""
        self._branch(branch)
        here = [row["k"] for row in self.graph.on(branch).query(_ALL).rows()]
        if len(here) > 1:
            ours, theirs = self.chance.sample(here, 2)
            self._mutate(branch, f'delete Doc where key = "{ours}"')
            self._mutate(self.branches[-1], f'delete Doc where key = "{theirs}"')

    def _merge(self, branch: str) -> None:
        source = self.chance.choice(self.branches)
        if source == branch:
            return
        try:
            self.graph.on(branch).merge(source, strategy="theirs")
        except (MergeConflictError, InvalidDataError):
            self.story.append("(refused)")

    def _optimize(self, branch: str) -> None:
        self.graph.on(branch).optimize()

    def _cleanup(self, branch: str) -> None:
        self.graph.cleanup(keep=1, grace=timedelta(0), confirm=True)

    def _reopen(self, branch: str) -> None:
        self.graph = omnigraph.open(self.graph.uri)

    # Looking

    def look(self) -> None:
        for branch in self.branches:
            graph = self.graph.on(branch)
            rows = {row["k"]: row for row in graph.query(_ALL).rows()}
            for word in WORDS:
                self._compare(graph, rows, "search", word)
            for function in ("bm25", "match_text"):
                self._compare(graph, rows, function, self._text())
            for edits in (0, 1, 2):
                self._compare(graph, rows, "fuzzy", self.chance.choice(WORDS), edits)
            self._compare(graph, rows, "fuzzy", self._text(), 1)
            self._compare_best(graph, rows, self.chance.choice(WORDS))
            self._compare_nearest(graph, rows, self._vector())

    def _compare(
        self, graph: Graph, rows: dict[str, Any], function: str, query: str, edits: int = 0
    ) -> None:
        extra = f", {edits}" if function == "fuzzy" else ""
        text = (
            f"query q($q: String) {{ match {{ $d: Doc  {function}($d.body, $q{extra}) }} "
            "return { $d.key as k } }"
        )
        found = sorted(row["k"] for row in graph.query(text, params={"q": query}).rows())
        expected = sorted(k for k, row in rows.items() if matches(function, row["b"], query, edits))
        assert found == expected, self._said(graph, f"{function} {query!r} {edits}")

    def _compare_best(self, graph: Graph, rows: dict[str, Any], query: str) -> None:
        """The best of a ranking are rows that match, as many as there are or were asked for."""
        text = (
            "query q($q: String) { match { $d: Doc } "
            "return { $d.key as k, bm25($d.body, $q) as s } order { s desc } limit 2 }"
        )
        found = graph.query(text, params={"q": query}).rows()
        scored = {row["k"] for row in found if row["s"] is not None}
        expected = {k for k, row in rows.items() if matches("search", row["b"], query)}
        assert scored <= expected, self._said(graph, f"bm25 {query!r}")
        assert len(scored) == min(2, len(expected)), self._said(graph, f"bm25 {query!r}")

    def _compare_nearest(self, graph: Graph, rows: dict[str, Any], query: list[float]) -> None:
        text = (
            "query q($v: Vector(4)) { match { $d: Doc  $d.place is not null } "
            "return { $d.key as k, nearest($d.place, $v) as s } order { s asc } limit 3 }"
        )
        found = [row["k"] for row in graph.query(text, params={"v": query}).rows()]
        target = np.array(query, np.float32)
        known = {k: np.array(row["p"], np.float32) for k, row in rows.items() if row["p"]}
        order = sorted(known, key=lambda k: (-_cosine(known[k], target), k))
        assert found == order[:3], self._said(graph, f"nearest {query}")

    def _said(self, graph: Graph, what: str) -> str:
        return f"{what} on {graph.branch_name} after: " + "; ".join(self.story)


def _cosine(one: Any, other: Any) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
