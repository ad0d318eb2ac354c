"""Options that several commands share, declared once as the fields of a class.

    @dataclass(frozen=True)
    class State(Bundle):
        commit: AtCommit = None
        tag: AtTag = None

    @app.command()
    def snapshot(graph: Store, state: State) -> None: ...

A command shows and takes the fields as if it had declared them where the bundle stands.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any


class Bundle:
    """Options that belong together; a subclass is a dataclass of annotated options."""


def spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with the fields of its bundles as parameters of their own."""
    signature = inspect.signature(function, eval_str=True)
    bundles: dict[str, tuple[type[Bundle], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if isinstance(each.annotation, type) and issubclass(each.annotation, Bundle):
            fields = _fields(each.annotation)
            bundles[each.name] = (each.annotation, [field.name for field in fields])
            parameters += fields
        else:
            parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    if not bundles:
        return function

    @wraps(function)
    def gathered(**given: Any) -> Any:
        for name, (bundle, fields) in bundles.items():
            given[name] = bundle(**{field: given.pop(field) for field in fields})
        return function(**given)

    gathered.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    gathered.__annotations__ = {each.name: each.annotation for each in parameters}
    return gathered


def _fields(bundle: type[Bundle]) -> list[inspect.Parameter]:
    found = inspect.signature(bundle, eval_str=True).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in found]
