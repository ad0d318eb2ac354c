"""Random expressions over the variables of a pattern, each of a wanted kind."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.lives import values
from tests.lives.blueprint import INTEGERS, NUMBERS, SHARED, Blueprint, Prop
from tests.lives.parser import lit
from tests.lives.syntax import Expr

Scope = dict[str, tuple[str, ...]]
PATTERNS = ("^a", "b$", "[ab]", "^$", "n.me", "r+g")
FRAGMENTS = ("a", "A", "b", "ä", "y", " ", "", "日", "rger")
PARAMETERS = {"text": "String", "enum": "String"}


class Phrases:
    """Properties are written as `Type.name`, so that renames can find them."""

    def __init__(self, random: Random, blueprint: Blueprint) -> None:
        self.random, self.blueprint = random, blueprint
        self.params: dict[str, tuple[str, Any]] = {}

    # Properties.

    def props(self, scope: Scope) -> list[tuple[Expr, Prop]]:
        found: list[tuple[Expr, Prop]] = []
        for var, types in scope.items():
            if len(types) == 1:
                type_ = self.blueprint.type(types[0])
                found += [(("prop", var, f"{type_.name}.{p.name}"), p) for p in type_.props]
            elif all(self.blueprint.node(t).named for t in types):
                found += [(("prop", var, name), p) for name, p in SHARED.items()]
        return found

    def pick(
        self, scope: Scope, kinds: tuple[str, ...], many: bool = False
    ) -> tuple[Expr, Prop] | None:
        fits = [(e, p) for e, p in self.props(scope) if p.kind in kinds and p.many == many]
        return self.random.choice(fits) if fits else None

    def constant(self, kind: str, value: Any) -> Expr:
        """A value as it stands, or as a parameter."""
        if self.random.random() < 0.25 and value is not None:
            name = f"v{len(self.params)}"
            self.params[name] = (PARAMETERS.get(kind, kind), value)
            return ("param", name)
        return lit(value)

    # Conditions.

    def condition(self, scope: Scope, depth: int = 0) -> Expr:
        chance = self.random.random()
        if depth < 2 and chance < 0.35:
            op = self.random.choice(("and", "or"))
            return ("bin", op, self.condition(scope, depth + 1), self.condition(scope, depth + 1))
        if depth < 2 and chance < 0.45:
            return ("not", self.condition(scope, depth + 1))
        if chance < 0.52:
            flag = self.pick(scope, ("Bool",))
            if flag:
                return flag[0]
        if chance < 0.62:
            return self._calculated(scope)
        return self.test(scope)

    def _calculated(self, scope: Scope) -> Expr:
        number = self.number(scope)
        op = self.random.choice(("=", "!=", "<", "<=", ">", ">="))
        return ("bin", op, number, lit(self.random.randint(-3, 9)))

    def test(self, scope: Scope) -> Expr:
        """One comparison of a property."""
        found = self.props(scope)
        if not found or self.random.random() < 0.05:
            var = self.random.choice(list(scope))
            return ("null", ("prop", var, "id"), True)
        expr, prop = self.random.choice(found)
        chance = self.random.random()
        if chance < 0.12 or prop.kind == "vector":
            return ("null", expr, self.random.random() < 0.5)
        if prop.many:
            return self._list_test(expr, prop)
        if chance < 0.27 and prop.kind != "Bool":
            return self._membership(expr, prop)
        if prop.kind in ("String", "text", "enum") and chance < 0.6:
            return self._text_test(expr)
        return self._comparison(expr, prop, scope)

    def _comparison(self, expr: Expr, prop: Prop, scope: Scope) -> Expr:
        ops = ("=", "!=") if prop.kind in ("Bool", "enum") else ("=", "!=", "<", "<=", ">", ">=")
        op = self.random.choice(ops)
        kinds = NUMBERS if prop.kind in NUMBERS else (prop.kind,)
        other = self.pick(scope, kinds)
        if other and other[0] != expr and self.random.random() < 0.25 and prop.kind != "enum":
            return ("bin", op, expr, other[0])
        value = self._near(prop)
        return ("bin", op, expr, self.constant(prop.kind, value))

    def _near(self, prop: Prop) -> Any:
        return values.scalar(self.random, prop.kind)

    def _membership(self, expr: Expr, prop: Prop) -> Expr:
        items = [values.scalar(self.random, prop.kind) for _ in range(self.random.randint(1, 3))]
        negated = self.random.random() < 0.3
        if self.random.random() < 0.25:
            name = f"v{len(self.params)}"
            self.params[name] = (f"[{PARAMETERS.get(prop.kind, prop.kind)}]", items)
            return ("in", expr, ("param", name), negated)
        return ("in", expr, ("list", tuple(lit(item) for item in items)), negated)

    def _list_test(self, expr: Expr, prop: Prop) -> Expr:
        if self.random.random() < 0.5:
            return ("bin", ">", ("call", "length", (expr,)), lit(self.random.randint(0, 2)))
        return ("bin", "contains", expr, lit(values.scalar(self.random, prop.kind)))

    def _text_test(self, expr: Expr) -> Expr:
        if self.random.random() < 0.2:
            return ("bin", "matches", expr, lit(self.random.choice(PATTERNS)))
        ops = (
            "contains",
            "starts_with",
            "ends_with",
            "icontains",
            "istarts_with",
            "iends_with",
            "ieq",
        )
        return ("bin", self.random.choice(ops), expr, lit(self.random.choice(FRAGMENTS)))

    # Values.

    def number(self, scope: Scope, depth: int = 0) -> Expr:
        """A number: a property, a part of a date, a length, or arithmetic over them."""
        leaf = self._leaf(scope)
        if depth > 1 or self.random.random() < 0.4:
            return leaf
        chance = self.random.random()
        if chance < 0.15:
            return ("call", self.random.choice(("abs", "floor", "ceil")), (leaf,))
        if chance < 0.25 and leaf[0] != "lit":
            return ("neg", leaf)
        if chance < 0.4 and leaf[0] == "prop":
            return ("call", "coalesce", (leaf, self._spare(leaf, scope)))
        op = self.random.choice(("+", "-", "*", "/", "%"))
        return ("bin", op, leaf, self.number(scope, depth + 1))

    def _spare(self, leaf: Expr, scope: Scope) -> Expr:
        """What stands in for a null: a number of the same kind."""
        kind = next(prop.kind for expr, prop in self.props(scope) if expr == leaf)
        number = self.random.randint(0, 5)
        return lit(float(number) if kind in ("F32", "F64") else number)

    def _leaf(self, scope: Scope) -> Expr:
        chance = self.random.random()
        if chance < 0.5 and (found := self.pick(scope, NUMBERS)):
            return found[0]
        if chance < 0.65 and (found := self.pick(scope, ("Date", "DateTime"))):
            parts: tuple[str, ...] = ("year", "month", "day")
            if found[1].kind == "DateTime":
                parts += ("hour", "minute", "second")
            return ("call", self.random.choice(parts), (found[0],))
        if chance < 0.75 and (found := self.pick(scope, ("String", "text"))):
            return ("call", "length", (found[0],))
        return lit(self.random.randint(-4, 9))

    def plain(self, scope: Scope) -> Expr:
        """A value to return or to group by: scalar, and of a type that has an order."""
        chance = self.random.random()
        if chance < 0.15:
            return ("prop", self.random.choice(list(scope)), "id")
        found = self.pick(scope, values_kinds())
        if found is None:
            return ("prop", self.random.choice(list(scope)), "id")
        expr, prop = found
        if chance < 0.25 and prop.kind in ("String", "text"):
            return ("call", self.random.choice(("lower", "upper", "trim")), (expr,))
        if chance < 0.35 and prop.kind not in ("F32", "F64", "text", "enum"):
            return ("call", "to_string", (expr,))
        return expr

    def constant_of(self, prop: Prop) -> Expr:
        return self.constant(prop.kind, values.scalar(self.random, prop.kind))


def values_kinds() -> tuple[str, ...]:
    return ("String", "Bool", *NUMBERS, "Date", "DateTime", "enum", "text")


__all__ = ["INTEGERS", "Phrases", "Scope"]
