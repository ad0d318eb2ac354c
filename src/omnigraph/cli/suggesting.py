"""Words that a shell may complete: names from the operator's configuration.

Guarantees: never fails and never opens a graph; where there is no name, the shell offers files.
"""

from __future__ import annotations

from omnigraph.errors import OmniGraphError


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
    except OmniGraphError:  # a broken file is told when a command runs
        return []
    return [name for name in known if name.startswith(incomplete)]
