"""OmniGraph: a typed property-graph database on Lance tables.

This module holds the public names and nothing else. `errors`, `aio`, `builder` and
`spark` are public as modules; every other module below is private and may move.

Names are loaded on first use, so that importing the package costs next to nothing and pulls in
neither Lance, an engine nor a web framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import aio as aio
    from omnigraph import builder as builder
    from omnigraph import errors as errors
    from omnigraph import spark as spark
    from omnigraph.config.connection import connect as connect
    from omnigraph.drawing import draw as draw
    from omnigraph.engines.base import Cancellation as Cancellation
    from omnigraph.engines.base import Limits as Limits
    from omnigraph.engines.base import Options as Options
    from omnigraph.errors import OmniGraphError as OmniGraphError
    from omnigraph.graph import Graph as Graph
    from omnigraph.graph import init as init
    from omnigraph.graph import open as open
    from omnigraph.history.resolve import Target as Target
    from omnigraph.model.change import Change as Change
    from omnigraph.model.change import ChangeFilter as ChangeFilter
    from omnigraph.model.commit import Commit as Commit
    from omnigraph.model.principal import Principal as Principal
    from omnigraph.model.result import Result as Result
    from omnigraph.model.write import WriteResult as WriteResult
    from omnigraph.operations.inspection import CommitFilter as CommitFilter
    from omnigraph.operations.preparedquery import PreparedQuery as PreparedQuery

__version__ = "0.1.0"

__all__ = [
    "Cancellation",
    "Change",
    "ChangeFilter",
    "Commit",
    "CommitFilter",
    "Graph",
    "Limits",
    "OmniGraphError",
    "Options",
    "PreparedQuery",
    "Principal",
    "Result",
    "Target",
    "WriteResult",
    "__version__",
    "aio",
    "builder",
    "connect",
    "draw",
    "errors",
    "init",
    "open",
    "spark",
]

# Public name -> the module that defines it, or None where the name is itself a module.
_HOMES: dict[str, str | None] = {
    "Cancellation": "omnigraph.engines.base",
    "Change": "omnigraph.model.change",
    "ChangeFilter": "omnigraph.model.change",
    "Commit": "omnigraph.model.commit",
    "CommitFilter": "omnigraph.operations.inspection",
    "Graph": "omnigraph.graph",
    "Limits": "omnigraph.engines.base",
    "OmniGraphError": "omnigraph.errors",
    "Options": "omnigraph.engines.base",
    "PreparedQuery": "omnigraph.operations.preparedquery",
    "Principal": "omnigraph.model.principal",
    "Result": "omnigraph.model.result",
    "Target": "omnigraph.history.resolve",
    "WriteResult": "omnigraph.model.write",
    "aio": None,
    "builder": None,
    "connect": "omnigraph.config.connection",
    "draw": "omnigraph.drawing",
    "errors": None,
    "init": "omnigraph.graph",
    "open": "omnigraph.graph",
    "spark": None,
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(home), name) if home else import_module(f"{__name__}.{name}")
    globals()[name] = value  # so that the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
