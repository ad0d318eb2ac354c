"""Values of options and arguments, without the library that Typer checks them with.

Typer hands every value to pydantic, also a plain word for a plain text, and importing it takes
longer than all of the rest of showing a page of help. Here a value that is evidently right is
taken as it is, one that is evidently wrong is refused; anything else goes the usual way.

Guarantees: the same values and the same refusals as without this module, in plainer words.
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperCommand

_UNCLEAR = object()
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")
_PATH_RULES = ("exists", "writable", "resolve_path", "allow_dash", "path_type", "parser")


class Quick(TyperCommand):
    """A command whose plain values are taken as they are."""

    def get_params(self, ctx: Any) -> list[Any]:
        return quickened(super().get_params(ctx))


def quickened(params: list[Any]) -> list[Any]:
    """The same parameters, each with a shortcut before its usual check."""
    for param in params:
        if getattr(param, "_runtime_param", _UNCLEAR) is None:
            param._runtime_param = _Shortcut(param.type_descriptor)
    return params


class _Shortcut:
    """Stands where Typer keeps what checks a parameter's values."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor
        self._usual: Any = None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        kind, rules = self._descriptor.annotation, self._descriptor.parameter_info
        if _refused_text(value, kind):
            raise typer.BadParameter("This is not valid UTF-8.", ctx=ctx, param=param)
        plain = _plain(value, kind, rules)
        if plain is not _UNCLEAR:
            return plain
        objection = _objection(value, kind, rules)
        if objection is not None:
            raise typer.BadParameter(objection, ctx=ctx, param=param)
        return self._checked().coerce(value, param=param, ctx=ctx)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checked(), name)

    def _checked(self) -> Any:
        if self._usual is None:
            from typer._coercion import build_runtime_param

            self._usual = build_runtime_param(self._descriptor)
        return self._usual


def _refused_text(value: Any, kind: Any) -> bool:
    """Whether bytes that are no text were given for one; names of files may hold any bytes."""
    if isinstance(value, list | tuple):
        return any(_refused_text(item, (get_args(kind) or (str,))[0]) for item in value)
    if kind is Path or not isinstance(value, str) or value.isascii():
        return False
    return any("\ud800" <= letter <= "\udfff" for letter in value)


def _plain(value: Any, kind: Any, rules: Any) -> Any:
    """The value in its type, where no rule could object."""
    if rules.parser is not None:
        return _UNCLEAR
    if get_origin(kind) is list and isinstance(value, list | tuple):
        items = [_plain(item, get_args(kind)[0], rules) for item in value]
        return _UNCLEAR if any(item is _UNCLEAR for item in items) else items
    if kind in (str, bool):
        return value if type(value) is kind else _UNCLEAR
    if kind is int:
        return _whole(value, rules)
    if kind is Path:
        free = not any(getattr(rules, rule, None) for rule in _PATH_RULES)
        return Path(value) if free and isinstance(value, str) else _UNCLEAR
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next((member for member in kind if value in (member, member.value)), _UNCLEAR)
    return _UNCLEAR


def _whole(value: Any, rules: Any) -> Any:
    if isinstance(value, str) and _INTEGER.match(value):
        value = int(value)
    if type(value) is not int:
        return _UNCLEAR
    low, high = rules.min, rules.max
    fits = (low is None or value >= low) and (high is None or value <= high)
    return value if fits else _UNCLEAR


def _objection(value: Any, kind: Any, rules: Any) -> str | None:
    """Why a value can not be what it should, where that is plain to see."""
    if rules.parser is not None or not isinstance(value, str):
        return None
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f"{value!r} is not one of {', '.join(str(member.value) for member in kind)}."
    if kind is not int:
        return None
    if not _INTEGER.match(value):
        return f"{value!r} is not a whole number."
    most = "" if rules.max is None else f" and at most {rules.max}"
    return f"{value} is not at least {rules.min}{most}."
