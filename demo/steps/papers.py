"""The data of the tour: a literature, made on the spot and the same every time.

Few people write much and few papers are cited often, as in life. Edges come before the nodes that
they join, because a load takes them in any order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

PEOPLE, PAPERS, CITATIONS = 12_000, 40_000, 300_000
TOPICS = ("graph", "vector", "storage", "query", "branch", "stream", "index", "schema")


def _words(text: str) -> list[str]:
    return text.split()


_FIRST = _words(
    "Ada Alan Amira Anna Barbara Chen Claude Donald Edsger Emmy Farah Frances Grace Hedy Ida Ivan "
    "Jean Joan John Karen Katherine Kurt Leslie Linus Lynn Margaret Maria Mary Mei Michael Niklaus "
    "Noor Olga Priya Radia Raj Sofia Tim Vint Yukihiro"
)
_LAST = _words(
    "Abe Adler Bauer Berg Brandt Castro Cohen Costa Dahl Diaz Evans Fischer Fontaine Garcia Haas "
    "Hansen Hoare Ito Ivanova Jansen Jones Kaur Keller Khan Kim Kovacs Lamport Larsen Lee Liu "
    "Lopez Mensah Meyer Moreau Nakamura Novak Okafor Olsen Park Patel Perlman Petrov Rossi Sato "
    "Silva Singh Tanaka Virtanen Wang Zuse"
)
_WAYS = _words(
    "Adaptive Approximate Bounded Cheap Columnar Concurrent Declarative Deterministic Distributed "
    "Durable Exact Fast Incremental Lazy Optimistic Parallel Persistent Robust Scalable Typed"
)
_THINGS = _words(
    "adjacency aggregation branching caching checkpoints commits compaction compression "
    "constraints deduplication embedding filtering hashing indexing joins merging migration paths "
    "planning ranking recovery replication sampling snapshots traversal"
)
_ENDS = ("", ", revisited", ": a survey", " in practice")


def write_papers(path: Path) -> int:
    """People, papers, who wrote them and what they cite, as JSONL envelopes. Returns the count."""
    with path.open("w", encoding="utf-8") as out:
        return sum(1 for line in _lines(random.Random(7)) if out.write(line))


def person(number: int) -> str:
    """The name of a person; no two are the same."""
    mixed = number * 7919 % 52_000
    first, rest = _FIRST[mixed % 40], mixed // 40
    return f"{first} {chr(65 + rest % 26)}. {_LAST[rest // 26]}"


def title(number: int) -> str:
    """The title of a paper; no two are the same."""
    mixed = number * 7919 % 80_000
    way, thing, rest = _WAYS[mixed % 20], _THINGS[mixed // 20 % 25], mixed // 500
    return f"{way} {thing} for {_topic(number)} engines{_ENDS[rest % 4]} ({rest // 4 + 1})"


def _topic(number: int) -> str:
    return TOPICS[number % len(TOPICS)]


def _lines(chance: random.Random) -> Iterator[str]:
    titles = [title(number) for number in range(PAPERS)]
    for _ in range(CITATIONS):
        later = chance.randrange(1, PAPERS)
        earlier = int(later * chance.random() ** 2)  # the old ones are cited most
        yield f'{{"edge": "Cites", "from": "{titles[later]}", "to": "{titles[earlier]}"}}\n'
    for number in range(PEOPLE):
        role = "editor" if number % 10 == 0 else "author"
        yield f'{{"type": "Person", "data": {{"name": "{person(number)}", "role": "{role}"}}}}\n'
    for number, name in enumerate(titles):
        yield _paper(number, name, chance)
        author = person(int(PEOPLE * chance.random() ** 2))
        yield f'{{"edge": "Wrote", "from": "{author}", "to": "{name}"}}\n'


def _paper(number: int, name: str, chance: random.Random) -> str:
    topic = number % len(TOPICS)
    point = [round(chance.gauss(1.0 if place == topic else 0.0, 0.3), 3) for place in range(8)]
    about = f"on {TOPICS[topic]} and {chance.choice(TOPICS)}, with {chance.choice(_THINGS)}"
    year = 1990 + number * 36 // PAPERS
    return (
        f'{{"type": "Paper", "data": {{"title": "{name}", "year": {year}, '
        f'"abstract": "{about}", "embedding": {point}}}}}\n'
    )
