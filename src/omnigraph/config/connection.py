"""A graph by the name that its operator gave it.

omnigraph.connect("shop")          the store, else the profile of that name
omnigraph.connect()                $OMNIGRAPH_PROFILE, else the defaults
"""

from __future__ import annotations

from omnigraph.arguments import checked
from omnigraph.config.addresses import Address, Scope, profile_scope, resolve_scope
from omnigraph.config.operator import read_config
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.model.principal import Principal


@checked
def connect(
    name: str | None = None,
    *,
    branch: str = "main",
    actor: str | Principal | None = None,
    read_only: bool = False,
    durability: str | None = None,
) -> Graph:
    """Open a graph by its name in `~/.omnigraph/config.yaml`: a store, a profile, or with no name
    the defaults. An address is also accepted. Writes have the actor of the configuration, and the
    given `durability`, or that of the environment, the configuration or the graph."""
    import os

    config = read_config()
    scope: Scope
    if name is not None and name in config.profiles and name not in config.stores:
        scope = profile_scope(config, name)
    else:
        is_server = name is not None and name.startswith(("http://", "https://"))
        scope = resolve_scope(config, Address(server=name) if is_server else Address(uri=name))
    who = actor or os.environ.get("OMNIGRAPH_ACTOR") or config.actor
    promised = durability or os.environ.get("OMNIGRAPH_DURABILITY") or config.defaults.durability
    return open_graph(
        scope.store_uri(),
        branch=branch,
        actor=who,
        read_only=read_only,
        durability=promised,
        storage_options=scope.storage_options or None,
    )
