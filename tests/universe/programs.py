"""Random programs: lists of operations that mean something whatever came before them.

Everything follows from the seed. Names come from small sets, so that operations meet; commits are
named by how far back they lie. So any operation can be left out and the rest still makes sense,
which is what shrinking needs.
"""

from __future__ import annotations

import random
from typing import Any

from tests.universe.model import Op

PEOPLE = ("ann", "bob", "cy", "dee")
CITIES = ("rome", "oslo")
BRANCHES = ("main", "main", "main", "main", "f", "f", "f", "g", "g", "f/x")
TAGS = ("v1", "v2")

# How often each kind of operation is chosen.
CONTENT = {"put": 6, "append": 3, "replace": 1, "set": 5, "grow": 2, "remove": 3, "unlink": 1}
OTHER = {
    "branch": 5,
    "unbranch": 1,
    "rename": 1,
    "merge": 6,
    "revert": 2,
    "pick": 1,
    "tag": 1,
    "untag": 1,
    "past": 1,
    "evolve": 1,
    "optimize": 1,
    "cleanup": 1,
    "reopen": 1,
}
# How an operation is carried out: by a handle here, beside another, or by another process.
WAYS = {"here": 20, "race": 4, "kill": 2, "child": 1}
MAY_RACE = frozenset({*CONTENT, "merge", "revert"})


LENGTH = 24


def program(seed: int, length: int = LENGTH) -> list[Op]:
    chance = random.Random(seed)
    return [*_beginning(chance), *(_op(chance) for _ in range(length))]


def _beginning(chance: random.Random) -> list[Op]:
    """Something to change, and branches to change it on."""
    people = [["Person", key, {"name": key, "age": 7, "email": None}] for key in PEOPLE[:3]]
    cities = [["City", key, {"name": key, "size": None}] for key in CITIES]
    edge = ["Knows", "k0", {"src": PEOPLE[0], "dst": PEOPLE[1], "weight": None}]
    return [
        {"do": "put", "by": 0, "on": "main", "rows": [*people, *cities, edge]},
        {"do": "branch", "by": 0, "on": "main", "name": "f"},
        {"do": "branch", "by": 1, "on": chance.choice(["main", "f"]), "name": "g"},
    ]


def _pick(chance: random.Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


def _op(chance: random.Random) -> Op:
    kind = _pick(chance, CONTENT | OTHER)
    op: Op = {"do": kind, "by": chance.randrange(2), **_arguments(kind, chance)}
    way = _pick(chance, WAYS)
    if way == "race" and chance.random() < 0.4:
        return _skewed(chance, op["on"])
    if way == "race" and kind in MAY_RACE:
        rival = _pick(chance, CONTENT)
        other = {"do": rival, "by": 1 - op["by"], **_arguments(rival, chance), "on": op["on"]}
        return {"do": "race", "first": op, "second": other}
    if way == "kill" and kind not in ("past", "reopen"):
        steps = {"nth": chance.randrange(1, 8), "when": chance.choice(["before", "after"])}
        return {"do": "kill", "op": op, **steps}
    if way == "child" and kind not in ("past", "reopen"):
        return {"do": "child", "op": op}
    return op


def _skewed(chance: random.Random, on: str) -> Op:
    """An edge, while the node that it needs is taken away: they meet in no table."""
    name = chance.choice(["Knows", "Lives"])
    row = _row(chance, name)
    end = ("Person", row[2]["src"]) if name == "Lives" else ("Person", row[2]["dst"])
    first = {"do": chance.choice(["put", "append"]), "by": 0, "on": on, "rows": [row]}
    second = {"do": "remove", "by": 1, "on": on, "type": end[0], "key": end[1]}
    return {"do": "race", "first": first, "second": second}


def _arguments(kind: str, chance: random.Random) -> dict[str, Any]:
    on = {"on": chance.choice(BRANCHES)}
    match kind:
        case "put" | "append":
            return {**on, "rows": [_row(chance) for _ in range(chance.randrange(1, 4))]}
        case "replace":
            name = chance.choice(["Person", "City", "Knows", "Lives"])
            rows = [_row(chance, name) for _ in range(chance.randrange(4))]
            return {**on, "type": name, "rows": rows}
        case "set":
            return {**on, **_assignment(chance)}
        case "grow":
            return {**on, "low": chance.choice([0, 50, 99])}
        case "remove":
            name = chance.choice(["Person", "Person", "City"])
            return {**on, "type": name, "key": _key(chance, name)}
        case "unlink":
            name = chance.choice(["Knows", "Lives"])
            return {**on, "type": name, "key": chance.choice(PEOPLE)}
        case _:
            return {**on, **_elsewhere(kind, chance)}


def _elsewhere(kind: str, chance: random.Random) -> dict[str, Any]:
    match kind:
        case "branch" | "rename":
            return {"name": chance.choice(BRANCHES[4:])}
        case "merge":
            return {"source": chance.choice(BRANCHES)}
        case "revert" | "past":
            return {"back": chance.randrange(4)}
        case "pick":
            return {"source": chance.choice(BRANCHES), "back": chance.randrange(3)}
        case "tag" | "untag":
            return {"name": chance.choice(TAGS)}
        case "evolve":
            return {"extra": chance.choice(["extra", "more"])}
        case "cleanup":
            return {"keep": chance.randrange(1, 4)}
        case _:
            return {}


def _key(chance: random.Random, name: str) -> str:
    return chance.choice(PEOPLE if name == "Person" else CITIES)


def _row(chance: random.Random, name: str = "") -> list[Any]:
    name = name or chance.choice(["Person", "Person", "City", "Knows", "Lives"])
    if name == "Person":
        key = _key(chance, name)
        age = chance.choice([None, 1, 50, 99, 100, 101 if chance.random() < 0.2 else 7])
        return [name, key, {"name": key, "age": age, "email": chance.choice([None, "x", "y", "z"])}]
    if name == "City":
        key = _key(chance, name)
        return [name, key, {"name": key, "size": chance.choice([None, 1, 2])}]
    target = chance.choice(PEOPLE if name == "Knows" else CITIES)
    extra = {"weight" if name == "Knows" else "since": chance.choice([None, 1, 2])}
    key = f"{name[0].lower()}{chance.randrange(3)}"
    return [name, key, {"src": chance.choice(PEOPLE), "dst": target, **extra}]


def _assignment(chance: random.Random) -> dict[str, Any]:
    choices: list[tuple[str, str, list[Any]]] = [
        ("Person", "age", [None, 0, 30, 100, 101]),
        ("Person", "email", [None, "x", "y", "z"]),
        ("City", "size", [None, 5, 6]),
    ]
    name, property, values = chance.choice(choices)
    value = chance.choice(values)
    return {"type": name, "key": _key(chance, name), "property": property, "value": value}
