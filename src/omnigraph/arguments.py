"""Arguments of public functions, checked against their annotations.

    @checked
    def commit_graph(self, limit: int = 50) -> CommitGraph: ...

    commit_graph("x")   # InvalidArgumentError: `limit` takes a whole number, not 'x'.

`checked` decorates a function, a class (all of its public methods) or a dataclass (its fields).
Annotations are read as text on the first call, so that names imported for type checkers only need
not be imported here: a value's class is compared by name with the annotation.

Guarantees: what reaches the function fits its annotation. Texts are valid Unicode, whole numbers
fit 64 bits, other numbers are finite, iterables of texts are tuples. `Any` is not checked.
Deliberately absent: rules that depend on the graph, and rules about several arguments.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import cache, reduce, wraps
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args, get_origin

from omnigraph.errors import InvalidArgumentError

T = TypeVar("T", bound=Callable[..., Any])

_UNFIT = object()
_LONGEST = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Kind(NamedTuple):
    """What an annotation allows: in words, and as a function that returns the value to pass on,
    or `_UNFIT`."""

    words: str
    take: Callable[[Any], Any]


def checked(target: T) -> T:
    """The same function or class with its arguments checked."""
    if not isinstance(target, type):
        return cast("T", _wrapped(target))
    if is_dataclass(target):
        setattr(target, "__init__", _wrapped(target.__init__))  # noqa: B010  mypy forbids the other
        return target
    for name, member in list(vars(target).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(target, name, _wrapped(member))
    return target


def check_text(value: str, name: str) -> str:
    """A text that can be stored and printed: one without halves of characters."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(
                f"`{name}` is not valid Unicode: {shown(value)} contains a lone surrogate.",
                hint="Decode the bytes as UTF-8 and correct invalid ones.",
                argument=name,
            ) from None
    return value


def microseconds(moment: datetime, name: str) -> int:
    """A moment as whole microseconds since 1970; without a zone it is local time."""
    try:
        return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (OverflowError, ValueError, OSError) as error:
        raise InvalidArgumentError(
            f"`{name}` is outside the years 1 to 9999 in UTC.", argument=name
        ) from error


def shown(value: object) -> str:
    """A value for a message, in a few printable characters."""
    if isinstance(value, str | bytes):
        text = ascii(value[: _LONGEST + 1])
    elif value is None or isinstance(value, bool | float):
        text = repr(value)
    elif isinstance(value, int):
        text = repr(value) if abs(value) < 10**_LONGEST else "a huge number"
    else:
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        rules = _rules(function)
        taken = [
            _take(rules.named[rules.order[n]], rules.order[n], value)
            if n < len(rules.order)
            else _take(rules.rest, rules.rest_name, value)
            for n, value in enumerate(args)
        ]
        named = {
            name: _take(rules.named.get(name, rules.others), name, value)
            for name, value in kwargs.items()
        }
        return function(*taken, **named)

    return call


def _take(kind: Kind, name: str, value: Any) -> Any:
    fitting = kind.take(value)
    if fitting is _UNFIT:
        raise InvalidArgumentError(
            f"`{name}` takes {kind.words}, not {shown(value)}.", argument=name
        )
    return check_text(fitting, name) if isinstance(fitting, str) else fitting


class _Rules(NamedTuple):
    """The parameters of one function: by position, by name, and the rest."""

    order: tuple[str, ...]
    named: Mapping[str, Kind]
    rest: Kind
    rest_name: str
    others: Kind


@cache
def _rules(function: Callable[..., Any]) -> _Rules:
    order: list[str] = []
    named: dict[str, Kind] = {}
    rest, rest_name, others = _ANYTHING, "", _ANYTHING
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    for each in inspect.signature(function).parameters.values():
        kind = _kind_of(each.annotation, scope)
        if each.kind is each.VAR_POSITIONAL:
            rest, rest_name = kind, each.name
        elif each.kind is each.VAR_KEYWORD:
            others = kind
        else:
            named[each.name] = kind
            if each.kind is not each.KEYWORD_ONLY:
                order.append(each.name)
    return _Rules(tuple(order), named, rest, rest_name, others)


def _kind_of(annotation: Any, scope: Mapping[str, Any]) -> Kind:
    if not isinstance(annotation, str):
        return _ANYTHING  # `self`, or no annotation
    return _read(ast.parse(annotation, mode="eval").body, scope)


def _read(tree: ast.expr, scope: Mapping[str, Any]) -> Kind:
    if isinstance(tree, ast.BinOp):
        return _either(_read(tree.left, scope), _read(tree.right, scope))
    if isinstance(tree, ast.Subscript):
        return _generic(tree, scope)
    if isinstance(tree, ast.Constant):
        return _NOTHING if tree.value is None else _kind_of(tree.value, scope)
    if isinstance(tree, ast.Attribute):
        module = scope.get(cast("ast.Name", tree.value).id)
        return _named(tree.attr, getattr(module, tree.attr, None), scope)
    name = cast("ast.Name", tree).id
    return _PLAIN.get(name) or _named(name, scope.get(name), scope)


def _either(one: Kind, other: Kind) -> Kind:
    def take(value: Any) -> Any:
        fitting = one.take(value)
        return other.take(value) if fitting is _UNFIT else fitting

    words = " or ".join(each.words for each in (one, other) if each is not _NOTHING)
    return Kind(words, take)


def _named(name: str, found: Any, scope: Mapping[str, Any]) -> Kind:
    """What a name of the function's module stands for: an alias, an enumeration or a class."""
    if isinstance(found, type) and issubclass(found, Enum):
        return _member(found)
    if getattr(found, "_is_runtime_protocol", False):
        return _instance(f"a value like {name}", found)
    if isinstance(found, str):
        return _kind_of(found, scope)
    if isinstance(found, UnionType):
        return reduce(_either, (_class(each.__name__) for each in get_args(found)))
    if get_origin(found) is Callable:
        return _FUNCTION
    if get_origin(found) is Literal:
        return _one_of(get_args(found))
    return _class(name)


def _class(name: str) -> Kind:
    """An instance of a class of that name."""
    if name in _PLAIN or name == "NoneType":
        return _PLAIN.get(name, _NOTHING)

    def take(value: Any) -> Any:
        return value if any(each.__name__ == name for each in type(value).__mro__) else _UNFIT

    return Kind(f"a value of the class {name}", take)


def _member(enumeration: type[Enum]) -> Kind:
    def take(value: Any) -> Any:
        fitting = (each for each in enumeration if isinstance(value, str) and value == each.value)
        return value if isinstance(value, enumeration) else next(fitting, _UNFIT)

    return Kind(f"one of {', '.join(str(each.value) for each in enumeration)}", take)


def _one_of(choices: Sequence[Any]) -> Kind:
    def take(value: Any) -> Any:
        return value if isinstance(value, str) and value in choices else _UNFIT

    return Kind(f"one of {', '.join(choices)}", take)


def _generic(tree: ast.Subscript, scope: Mapping[str, Any]) -> Kind:
    name = cast("ast.Name", tree.value).id
    inner = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    if name == "Callable":
        return _FUNCTION
    kinds = [_read(each, scope) for each in inner]
    if name in ("Mapping", "dict"):
        return _mapping(*kinds)
    if name == "tuple" and not isinstance(inner[-1], ast.Constant):
        return _row(kinds)
    return _several(kinds[0], frozenset if name == "frozenset" else tuple)


def _several(item: Kind, gather: Callable[[Iterable[Any]], Any]) -> Kind:
    """Several values of a kind. A text or a mapping would be iterated by mistake."""

    def take(value: Any) -> Any:
        if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
            return _UNFIT
        taken = [item.take(each) for each in value]
        if any(each is _UNFIT for each in taken):
            return _UNFIT
        return gather(check_text(each, "item") if isinstance(each, str) else each for each in taken)

    return Kind(f"several values in a list, each {item.words}", take)


def _row(kinds: Sequence[Kind]) -> Kind:
    """As many values as there are kinds, each of its own."""

    def take(value: Any) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(kinds):
            return _UNFIT
        taken = tuple(kind.take(each) for kind, each in zip(kinds, value, strict=True))
        return _UNFIT if any(each is _UNFIT for each in taken) else taken

    return Kind(f"a pair of {' and '.join(kind.words for kind in kinds)}", take)


def _mapping(key: Kind, item: Kind) -> Kind:
    def take(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return _UNFIT
        for name, each in value.items():
            taken = (key.take(name), item.take(each))
            if any(each is _UNFIT for each in taken):
                return _UNFIT
            for part in taken:
                if isinstance(part, str):
                    check_text(part, "item")
        return value

    return Kind(f"a mapping with {key.words} for each key and {item.words} for each value", take)


def _take_integer(value: Any) -> Any:
    if isinstance(value, bool):
        return _UNFIT
    try:
        number = operator.index(value)
    except TypeError:
        return _UNFIT
    return number if -(2**63) <= number < 2**63 else _UNFIT


def _take_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _UNFIT
    try:
        return value if math.isfinite(value) else _UNFIT
    except OverflowError:
        return _UNFIT


def _instance(words: str, *classes: type) -> Kind:
    return Kind(words, lambda value: value if isinstance(value, classes) else _UNFIT)


_ANYTHING = Kind("any value", lambda value: value)
_NOTHING = Kind("None", lambda value: None if value is None else _UNFIT)
_FUNCTION = Kind("a function", lambda value: value if callable(value) else _UNFIT)
_PLAIN: dict[str, Kind] = {
    "Any": _ANYTHING,
    "object": _ANYTHING,
    "Value": _ANYTHING,  # of a built query; checked where it becomes a constant
    "None": _NOTHING,
    "str": _instance("a text", str),
    "bytes": _instance("bytes", bytes),
    "bool": _instance("True or False", bool),
    "int": Kind("a whole number of 64 bits", _take_integer),
    "float": Kind("a finite number", _take_number),
    "datetime": _instance("a datetime", datetime),
    "date": _instance("a date", date),
    "timedelta": _instance("a timedelta", timedelta),
    "Path": _instance("a path", os.PathLike),
}
