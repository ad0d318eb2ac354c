"""Words that a shell may complete: names from the operator's configuration, and from the graph that
the line names so far.

Never fails; a graph is only read, and only if it is local, because completion must be fast; without
a match, the shell offers files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph


def stores(incomplete: str) -> list[str]:
    return _names("stores", incomplete)


def profiles(incomplete: str) -> list[str]:
    return _names("profiles", incomplete)


def servers(incomplete: str) -> list[str]:
    return _names("servers", incomplete)


def aliases(incomplete: str) -> list[str]:
    return _names("aliases", incomplete)


def _names(section: str, incomplete: str) -> list[str]:
    from omnigraph.config.operator import read_config

    try:
        known = getattr(read_config(), section)
    except OmniGraphError:  # a broken file is reported when a command runs
        return []
    return [name for name in known if name.startswith(incomplete)]


def branches(ctx: typer.Context, incomplete: str) -> list[str]:
    return _of_graph(ctx, incomplete, lambda graph: [info.name for info in graph.branches()])


def tags(ctx: typer.Context, incomplete: str) -> list[str]:
    return _of_graph(ctx, incomplete, lambda graph: [tag.name for tag in graph.tags()])


def types(ctx: typer.Context, incomplete: str) -> list[str]:
    def names(graph: Graph) -> list[str]:
        return [table.name for table in graph.snapshot().catalog.tables()]

    return _of_graph(ctx, incomplete, names)


def _of_graph(
    ctx: typer.Context, incomplete: str, names: Callable[[Graph], list[str]]
) -> list[str]:
    from omnigraph.cli.startup import without_pandas
    from omnigraph.config.addresses import Address, resolve_scope
    from omnigraph.config.operator import read_config

    said = {name: ctx.params.get(name) for name in ("store", "profile")}
    # Words are not given their places yet while the last option lacks its value.
    named = ctx.params.get("graph") or next(iter(ctx.args), None)
    try:
        scope = resolve_scope(read_config(), Address(uri=None if said["store"] else named, **said))
        if not scope.is_local:
            return []
        without_pandas()
        import omnigraph

        found = names(
            omnigraph.open(
                scope.store_uri(), read_only=True, storage_options=scope.storage_options or None
            )
        )
    except (OmniGraphError, OSError):  # the error is reported when a command runs
        return []
    return [name for name in found if name.startswith(incomplete)]
