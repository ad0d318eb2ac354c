"""Which graph is meant: an address, a profile or the defaults, in this order.

An explicit address wins over a profile, a profile that is named over `$OMNIGRAPH_PROFILE`, and the
defaults come last. A store's name can stand where its address can; `./name` is always a path.

Guarantees: one scope or a refusal, never a silent choice; the scope says where it came from.
Deliberately absent: a stored current profile. Each call resolves its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from omnigraph.config.operator import OperatorConfig, Profile
from omnigraph.config.storageoptions import option_values
from omnigraph.errors import EngineUnavailableError, InvalidArgumentError, NotFoundError

PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"
_ARGUMENT = "the argument"


class ScopeKind(StrEnum):
    STORE = "store"
    SERVER = "server"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class Address:
    """What the caller said. `uri` is a plain argument, the others are options."""

    uri: str | None = None
    store: str | None = None
    server: str | None = None
    cluster: str | None = None
    profile: str | None = None
    graph: str | None = None


@dataclass(frozen=True)
class Scope:
    """One graph's place. `address` is a URI, a URL or a root; `origin` says who named it."""

    kind: ScopeKind
    address: str
    origin: str
    name: str | None = None
    graph: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        return self.kind is ScopeKind.STORE and is_local(self.address)

    @property
    def is_explicit(self) -> bool:
        """Whether the caller spelled it out, so that nothing needs to be explained."""
        return self.name is None and self.origin in (_ARGUMENT, "--store")

    def store_uri(self) -> str:
        """The graph's address in storage, if this version can reach it."""
        if self.kind is not ScopeKind.STORE:
            shown = f"{self.name} ({self.address})" if self.name else self.address
            raise EngineUnavailableError(
                f"The target is the {self.kind} {shown}, from {self.origin}; "
                f"this version reaches graphs in storage only, not through a {self.kind}.",
                hint="Give the graph's own address: a path, file:// or s3://, or --store.",
                kind=str(self.kind),
                address=self.address,
            )
        return self.address


def is_local(uri: str) -> bool:
    """Whether an address is on this machine's disk."""
    return "://" not in uri or uri.startswith("file://")


def resolve_scope(config: OperatorConfig, address: Address) -> Scope:
    """The one graph that is meant."""
    explicit = _explicit(config, address)
    if explicit is not None:
        return explicit
    profile = address.profile or os.environ.get(PROFILE_VARIABLE)
    if profile:
        return profile_scope(config, profile, address.graph)
    found = default_scope(config, address.graph)
    if found is None:
        raise InvalidArgumentError(
            "No graph is named.",
            hint="Give its address or --store, choose a --profile, or set defaults.store in "
            f"{config.path}.",
            missing="graph",
        )
    return found


def _explicit(config: OperatorConfig, address: Address) -> Scope | None:
    said = {
        _ARGUMENT: address.uri,
        "--store": address.store,
        "--server": address.server,
        "--cluster": address.cluster,
    }
    given = [name for name, value in said.items() if value is not None]
    if len(given) > 1:
        raise InvalidArgumentError(
            f"{' and '.join(given)} both select a graph.", hint="Keep one of them."
        )
    if address.uri is not None:
        return _plain(config, address.uri, address.graph)
    if address.store is not None:
        return store_scope(config, address.store, "--store", address.graph)
    if address.server is not None:
        return _server(config, address.server, "--server", address.graph)
    if address.cluster is not None:
        return _cluster(config, address.cluster, "--cluster", address.graph)
    return None


def _plain(config: OperatorConfig, uri: str, graph: str | None) -> Scope:
    if uri.startswith(("http://", "https://")):
        raise InvalidArgumentError(
            f"{uri} is a server, not a graph's storage.", hint="Name a server with --server."
        )
    return store_scope(config, uri, _ARGUMENT, graph)


def store_scope(config: OperatorConfig, store: str, origin: str, graph: str | None = None) -> Scope:
    """A store by its name or address."""
    if graph is not None:
        raise InvalidArgumentError(
            "A store is one graph; --graph chooses among the graphs of a server or cluster."
        )
    if store in config.stores:
        options = option_values(config.store_options.get(store, {}), config.path)
        address = _expanded(config.stores[store])
        return Scope(ScopeKind.STORE, address, origin, store, None, options)
    return Scope(ScopeKind.STORE, _expanded(store), origin)


def profile_scope(config: OperatorConfig, name: str, graph: str | None = None) -> Scope:
    """What a profile stands for."""
    profile = config.profiles.get(name)
    if profile is None:
        known = ", ".join(config.profiles) or "none"
        raise NotFoundError(
            f"There is no profile {name!r} in {config.path}.", hint=f"There are: {known}."
        )
    return _bound(config, profile, f"the profile {name}", graph)


def default_scope(config: OperatorConfig, graph: str | None = None) -> Scope | None:
    """What the defaults stand for, if they stand for anything."""
    defaults = config.defaults
    if not defaults.server and not defaults.store:
        return None
    flat = Profile(defaults.server, None, defaults.store, defaults.default_graph)
    return _bound(config, flat, "the defaults", graph)


def _bound(config: OperatorConfig, profile: Profile, origin: str, graph: str | None) -> Scope:
    bound = [kind for kind in ScopeKind if getattr(profile, kind)]
    if len(bound) != 1:
        names = " and ".join(bound) or "nothing"
        raise InvalidArgumentError(
            f"In {config.path}, {origin} stands for {names}.",
            hint="It must have exactly one of store, server and cluster.",
        )
    graph = graph or profile.default_graph
    if profile.store:
        scope = store_scope(config, profile.store, origin)
        own = option_values(profile.storage_options, config.path)
        return replace(scope, storage_options={**scope.storage_options, **own})
    if profile.server:
        return _server(config, profile.server, origin, graph)
    return _cluster(config, profile.cluster or "", origin, graph)


def _server(config: OperatorConfig, server: str, origin: str, graph: str | None) -> Scope:
    return _named(ScopeKind.SERVER, config.servers, server, origin, graph)


def _cluster(config: OperatorConfig, cluster: str, origin: str, graph: str | None) -> Scope:
    return _named(ScopeKind.CLUSTER, config.clusters, cluster, origin, graph)


def _named(
    kind: ScopeKind, known: Mapping[str, str], word: str, origin: str, graph: str | None
) -> Scope:
    if word in known:
        return Scope(kind, known[word], origin, word, graph)
    if kind is ScopeKind.SERVER and not word.startswith(("http://", "https://")):
        names = ", ".join(known) or "none"
        raise NotFoundError(
            f"There is no server {word!r} in the configuration.", hint=f"There are: {names}."
        )
    return Scope(kind, word, origin, None, graph)


def _expanded(uri: str) -> str:
    return str(Path(uri).expanduser()) if uri.startswith("~") else uri
