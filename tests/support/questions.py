"""Random small graphs and random questions about them, as query texts, from one seed.

The schema is fixed and has one of everything; sizes are small, values collide often, and ends of
edges repeat, so that ties, nulls, parallel edges, self-loops and empty results are common.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

SCHEMA = """
interface Named {
    name: String
}

node Person implements Named {
    name: String @key
    age: I32?
    score: F64?
    ratio: F32?
    big: I64?
    huge: U64?
    born: Date?
    seen: DateTime?
    nick: String?
    active: Bool?
    status: enum(new, open, done)?
    tags: [String]?
    marks: [I64]?
}

node Company implements Named {
    name: String @key
    size: U32?
    city: String?
}

node City {
    name: String @key
    people: I64?
}

edge Knows: Person -> Person {
    since: I32?
    close: Bool?
}
edge WorksAt: Person -> Company {
    role: String?
}
edge Owns: Company -> Company
edge LivesIn: Person -> City
edge In: Company -> City
"""

WORDS = ["ann", "Ann", "bo", "b_", "b%", "ça", "zoë", "a b", "", "x'y"]
EDGES = {
    "knows": ("Person", "Person"),
    "worksAt": ("Person", "Company"),
    "owns": ("Company", "Company"),
    "livesIn": ("Person", "City"),
    "in": ("Company", "City"),
}
NUMBERS = {
    "Person": ["age", "score", "ratio", "big", "huge"],
    "Company": ["size"],
    "City": ["people"],
}
TEXTS = {"Person": ["name", "nick", "status"], "Company": ["name", "city"], "City": ["name"]}
EDGE_NUMBERS = {"knows": ["since"]}
EDGE_TEXTS = {"worksAt": ["role"]}
TESTS = ["contains", "starts_with", "ends_with", "icontains", "ieq", "istarts_with"]
LIMITS = [
    "0",
    "1",
    "2",
    "$n",
    "30",
    "3000000000",
    "0.1",
    "0.5",
    "1.5",
    "-1",
    "9007199254740993",
    "9223372036854775808",
    "0.0",
]

Rows = list[dict[str, Any]]


def random_data(rng: random.Random) -> dict[str, Rows]:
    """Rows by type."""
    data: dict[str, Rows] = {
        "Person": [_person(rng, i) for i in range(rng.choice([0, 2, 4, 5, 5, 6, 6, 7, 7]))],
        "Company": [_company(rng, i) for i in range(rng.choice([0, 1, 2, 2, 3, 3]))],
        "City": [
            {"name": f"t{i}", "people": _maybe(rng, lambda: rng.randint(0, 5))}
            for i in range(rng.choice([1, 2, 3]))
        ],
    }
    for edge, (src, dst) in EDGES.items():
        data[edge[0].upper() + edge[1:]] = _edges(rng, edge, data[src], data[dst])
    return data


def _edges(rng: random.Random, edge: str, near: Rows, far: Rows) -> Rows:
    if not near or not far:
        return []
    found: Rows = []
    for _ in range(rng.choice([0, 4, 8, 12, 16] if edge == "knows" else [0, 3, 6, 9])):
        row: dict[str, Any] = {"from": rng.choice(near)["name"], "to": rng.choice(far)["name"]}
        if edge == "knows":
            row["since"] = _maybe(rng, lambda: rng.randint(1, 4))
            row["close"] = _maybe(rng, lambda: rng.random() < 0.5)
        if edge == "worksAt":
            row["role"] = _maybe(rng, lambda: rng.choice(WORDS))
        found.append(row)
    return found


def _company(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "name": f"co{number}",
        "size": _maybe(rng, lambda: rng.randint(0, 3)),
        "city": _maybe(rng, lambda: rng.choice(WORDS)),
    }


def _person(rng: random.Random, number: int) -> dict[str, Any]:
    day, hour = date(2000, 1, 1), datetime(2024, 5, 6, tzinfo=UTC)
    return {
        "name": f"p{number}",
        "age": _maybe(rng, lambda: rng.choice([-1, 0, 1, 2, 30, 2**31 - 1])),
        "score": _maybe(rng, lambda: rng.choice([-0.0, 0.0, 0.5, 2.0, -1.25])),
        "ratio": _maybe(rng, lambda: rng.choice([0.5, 0.0, 1.5, 0.10000000149011612])),
        "big": _maybe(rng, lambda: rng.choice([0, 1, 2, 2**53 + 1, -(2**62)])),
        "huge": _maybe(rng, lambda: rng.choice([0, 1, 2, 2**63, 2**64 - 1])),
        "born": _maybe(rng, lambda: day + timedelta(days=rng.randint(0, 2))),
        "seen": _maybe(rng, lambda: hour + timedelta(hours=rng.randint(0, 2))),
        "nick": _maybe(rng, lambda: rng.choice(WORDS)),
        "active": _maybe(rng, lambda: rng.random() < 0.5),
        "status": _maybe(rng, lambda: rng.choice(["new", "open", "done"])),
        "tags": _maybe(rng, lambda: rng.sample(["a", "b", "c"], rng.randint(0, 3))),
        "marks": _maybe(rng, lambda: rng.choices([1, 2, 3], k=rng.randint(0, 3))),
    }


def _maybe(rng: random.Random, make: Callable[[], Any]) -> Any:
    return None if rng.random() < 0.2 else make()


class Writer:
    """Writes one random query."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.vars: dict[str, str] = {}  # node variables and their type, interface or "?"
        self.edge_vars: dict[str, str] = {}
        self.hops: list[str] = []
        self.values: list[str] = []  # numeric columns that an earlier stage hands on
        self.count = 0

    def query(self) -> str:
        stages = [self._with()] if self.rng.random() < 0.2 else []
        stages.append(self._return())
        body = "\n".join(stages)
        return f"query q($n: I64, $w: String, $ids: [String]) {{\n{body}\n}}"

    # Patterns

    def _match(self) -> str:
        clauses: list[str] = []
        for _ in range(self.rng.choice([1, 1, 2, 2, 3])):
            if not self.vars or self.rng.random() < 0.15:
                clauses.append(self._binding())
            if self.rng.random() < 0.75:
                clauses.append(self._traversal())
        for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2])):
            clauses.append(self._condition())
        for keyword, chance in (("not", 0.25), ("optional", 0.2)):
            if self.rng.random() < chance:
                clauses.append(self._block(keyword))
        if not any(clauses):
            clauses.append(self._binding())
        return "match {\n  " + "\n  ".join(c for c in clauses if c) + "\n}"

    def _fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _binding(self) -> str:
        var = self._fresh()
        kind = self.rng.choice(["Person", "Person", "Company", "City", "Named"])
        self.vars[var] = kind
        if kind == "Person" and self.rng.random() < 0.2:
            return f'${var}: Person {{ name: "p{self.rng.randint(0, 6)}" }}'
        return f"${var}: {kind}"

    def _traversal(self) -> str:
        rng = self.rng
        near = rng.choice(list(self.vars))
        kind = self.vars[near]
        if kind == "?":
            return ""
        if kind == "Named" or rng.random() < 0.12:
            return self._loose_traversal(near, kind)
        edge = rng.choice([e for e, ends in EDGES.items() if kind in ends])
        src, dst = EDGES[edge]
        far_kind = dst if kind == src else src
        known = [v for v, k in self.vars.items() if k == far_kind]
        far = rng.choice(known) if known and rng.random() < 0.25 else self._fresh()
        self.vars.setdefault(far, far_kind)
        word = edge
        if src == dst:
            word = rng.choice([edge, edge, edge, f"<{edge}>", f"<-{edge}"])
        return f"${near} {self._walked(word, edge)} ${far}"

    def _walked(self, word: str, edge: str) -> str:
        """The edge with an edge variable, or with bounds and perhaps a count of hops."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.2:
            var = self._fresh("w")
            self.edge_vars[var] = edge
            return f"${var}:{word}"
        if roll > 0.45:
            return word
        low = rng.randint(1, 2)
        bounds = f"{{{low},{rng.choice(['', str(low + rng.randint(0, 2))])}}}"
        if rng.random() < 0.2:
            word = f"shortest {word}"
        if rng.random() > 0.4:
            return word + bounds
        name = self._fresh("h")
        self.hops.append(name)
        return f"{word}{bounds} as ${name}"

    def _loose_traversal(self, near: str, kind: str) -> str:
        """Over any edge, or an alternation, to a far end of several types or of one."""
        far = self._fresh()
        self.vars[far] = "?"
        options = (
            ["_"] if kind in ("Company", "City") else ["_", "knows|worksAt", "worksAt|livesIn"]
        )
        bounds = self.rng.choice(["", "", "{1,2}", "{2,3}", "{1,3}", "{1,}"])
        if bounds:
            options += ["knows|worksAt|in", "worksAt|owns", "livesIn|in", "<-_", "<_>"]
        label = ""
        if bounds and self.rng.random() < 0.5:
            self.vars[far] = self.rng.choice(["Person", "Company", "City", "Named"])
            label = f"\n  ${far}: {self.vars[far]}"
        return f"${near} {self.rng.choice(options)}{bounds} ${far}{label}"

    def _block(self, keyword: str) -> str:
        """`not { … }` or `optional { … }` around a small pattern on known variables."""
        if not self.vars:
            return ""
        outer = (dict(self.vars), dict(self.edge_vars), list(self.hops))
        clauses = [self._traversal()]
        if self.rng.random() < 0.3:
            clauses.append(self._traversal())
        if self.rng.random() < 0.5:
            clauses.append(self._atom())
        if self.rng.random() < 0.2:
            clauses.append(self._block("not"))
        elif keyword == "optional" and self.rng.random() < 0.2:
            clauses.append(self._block("optional"))
        if keyword == "not":
            self.vars, self.edge_vars, self.hops = outer
        body = "\n    ".join(c for c in clauses if c)
        return f"{keyword} {{ {body} }}" if body else ""

    # Conditions

    def _condition(self) -> str:
        roll = self.rng.random()
        if roll < 0.12:
            return f"{self._atom()} or {self._atom()}"
        if roll < 0.2:
            return f"not ({self._atom()} and {self._atom()})"
        return f"not ({self._atom()})" if roll < 0.26 else self._atom()

    def _atom(self) -> str:
        rng = self.rng
        number, text = self._number(), self._text()
        choices: list[Callable[[], str]] = [
            lambda: f"{number} {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {self._limit()}",
            lambda: f"{number} {rng.choice(['=', '<', '>='])} {self._number()}",
            lambda: f"{text} {rng.choice(['=', '!=', '<', '>='])} {self._word()}",
            lambda: f"{text} {rng.choice(TESTS)} {self._word()}",
            lambda: f"{text} {rng.choice(['contains', 'starts_with'])} {self._text()}",
            lambda: f"{text} in [{self._word()}, {self._word()}]",
            lambda: f"{number} in [{self._limit()}, {self._limit()}]",
            lambda: f"{self._any()} is {rng.choice(['', 'not '])}null",
            self._special,
            lambda: f"{text} = {self._text()}",
        ]
        return rng.choice(choices)()

    def _special(self) -> str:
        rng = self.rng
        people = [v for v, kind in self.vars.items() if kind == "Person"]
        if not people:
            return f"{self._number()} >= 0"
        var = rng.choice(people)
        return rng.choice(
            [
                f'${var}.tags contains "{rng.choice("abc")}"',
                f"${var}.marks contains {rng.randint(1, 4)}",
                f"${var}.active = {rng.choice(['true', 'false'])}",
                f'${var}.status = "{rng.choice(["new", "open"])}"',
                f'${var}.born {rng.choice(["<", "=", ">="])} date("2000-01-02")',
                f'${var}.seen {rng.choice(["<", "=", ">="])} datetime("2024-05-06T01:00:00Z")',
                f"year(${var}.born) = 2000",
                f"hour(${var}.seen) >= 1",
                f"${var}.name in $ids",
                f"${var}.id in $ids",
                f"length(${var}.nick) >= {rng.randint(0, 3)}",
                f"coalesce(${var}.age, 1) + 1 > {rng.randint(0, 3)}",
                f"${var}.score / {rng.choice(['0', '2', '0.5'])} > 0.2",
                f"${var}.big % 2 = 1",
                f"abs(${var}.score) >= 0.5",
            ]
        )

    def _number(self) -> str:
        nodes = [(v, name) for v, kind in self.vars.items() for name in NUMBERS.get(kind, [])]
        edges = [(v, name) for v, e in self.edge_vars.items() for name in EDGE_NUMBERS.get(e, [])]
        options = [f"${v}.{name}" for v, name in nodes + edges]
        options += [f"${h}" for h in self.hops] + self.values
        return self.rng.choice(options) if options else "1"

    def _text(self) -> str:
        nodes = [(v, name) for v, kind in self.vars.items() for name in TEXTS.get(kind, [])]
        nodes += [(v, "name") for v, kind in self.vars.items() if kind == "Named"]
        edges = [(v, name) for v, e in self.edge_vars.items() for name in EDGE_TEXTS.get(e, [])]
        options = [f"${v}.{name}" for v, name in nodes + edges]
        return self.rng.choice(options) if options else '"a"'

    def _any(self) -> str:
        return self.rng.choice([self._number(), self._text()])

    def _lists(self) -> list[str]:
        """Now and then a column of lists."""
        people = [v for v, kind in self.vars.items() if kind == "Person"]
        if not people or self.rng.random() > 0.15:
            return []
        return [f"${self.rng.choice(people)}.{self.rng.choice(['tags', 'marks'])} as list"]

    def _limit(self) -> str:
        return self.rng.choice(LIMITS)

    def _word(self) -> str:
        word = self.rng.choice([*WORDS, "p1", "co0", "n", "p"])
        return "$w" if self.rng.random() < 0.15 else f'"{word}"'

    # Stages

    def _with(self) -> str:
        matched = self._match()
        kept = self.rng.sample(list(self.vars), min(len(self.vars), self.rng.randint(1, 2)))
        kinds = {v: self.vars[v] for v in kept}
        total = "count(*)" if self.rng.random() < 0.5 else self._number()
        items = [*(f"${v}" for v in kept), f"{total} as total"]
        tail = "\nhaving { total >= 1 }" if self.rng.random() < 0.3 else ""
        if self.rng.random() < 0.3:
            tail += f"\norder {{ total desc }}\nlimit {self.rng.randint(1, 4)}"
        self.vars, self.edge_vars, self.hops, self.values = kinds, {}, [], ["total"]
        distinct = "distinct " if self.rng.random() < 0.2 else ""
        return f"{matched}\nwith {distinct}{{ {', '.join(items)} }}{tail}"

    def _return(self) -> str:
        matched = self._match()
        roll = self.rng.random()
        body = self._grouped() if roll < 0.4 else self._rows(distinct=roll < 0.6)
        cut = ""
        if self.rng.random() < 0.3:
            cut = f"\nlimit {self.rng.randint(0, 4)}"
            if self.rng.random() < 0.4:
                cut += f"\noffset {self.rng.randint(0, 2)}"
        return f"{matched}\n{body}{cut}"

    def _rows(self, distinct: bool) -> str:
        items = [f"{self._any()} as c{i}" for i in range(self.rng.randint(1, 3))]
        if self.vars and self.rng.random() < 0.2:
            items.append(f"${self.rng.choice(list(self.vars))} as whole")
        if self.rng.random() < 0.15:
            items.append(f"{self._number()} * 2 + 1 as sum")
        items += self._lists()
        order = ""
        if self.rng.random() < 0.5:
            key = "c0" if distinct else self.rng.choice(["c0", self._any()])
            order = f"\norder {{ {key} {self.rng.choice(['asc', 'desc'])} }}"
        return f"return {'distinct ' if distinct else ''}{{ {', '.join(items)} }}{order}"

    def _grouped(self) -> str:
        rng = self.rng
        keys = [f"{self._any()} as k{i}" for i in range(rng.choice([0, 1, 1, 2]))]
        order = f"\norder {{ k0 {rng.choice(['asc', 'desc'])} }}" if keys else ""
        if self.vars and rng.random() < 0.3:
            keys.append(f"${rng.choice(list(self.vars))} as who")
        keys += self._lists()
        calls = [
            "count(*)",
            f"count({self._any()})",
            f"count(distinct {self._any()})",
            f"sum({self._number()})",
            f"avg({self._number()})",
            f"min({self._any()})",
            f"max({self._any()})",
            f"collect({self._any()})",
            f"collect(distinct {self._text()})",
        ]
        if self.vars:
            var = rng.choice(list(self.vars))
            calls += [f"count(${var})", f"count(distinct ${var})"] * 2
            calls += [f"count(distinct ${var}.tags)"] if self.vars[var] == "Person" else []
        items = [f"{rng.choice(calls)} as a{i}" for i in range(rng.choice([1, 1, 2]))]
        tail = "\nhaving { a0 is not null }" if rng.random() < 0.15 else ""
        tail += order if rng.random() < 0.3 else ""
        return f"return {{ {', '.join([*keys, *items])} }}{tail}"


def random_query(rng: random.Random) -> str:
    return Writer(rng).query()


def random_params(rng: random.Random) -> dict[str, Any]:
    return {
        "n": rng.choice([0, 1, 2, 2**40]),
        "w": rng.choice(WORDS),
        "ids": rng.choice([[], ["p1"], ["p0", "p3", "p3", "zz"]]),
    }


def edge_filters(text: str) -> dict[str, str]:
    """Filters on edges for every third query, by edge type; the same for the same text."""
    rng = random.Random(f"edges {text}")
    if rng.random() > 1 / 3:
        return {}
    found = {"Knows": rng.choice(["$e.since >= 3", "$e.since != 2", "$e.since in [1, 2, 3]"])}
    if rng.random() < 0.5:
        found["WorksAt"] = f'$e.role {rng.choice(["=", "!="])} "{WORDS[0]}"'
    return found
