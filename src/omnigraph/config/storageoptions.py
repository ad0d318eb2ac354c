"""Storage options of the configuration file, with values from the environment filled in.

storage_options: {region: eu-1, access_key_id: $SHOP_KEY, secret_access_key: $SHOP_SECRET}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnigraph.errors import StorageConfigurationError

_SECRETS = ("secret_access_key", "session_token")


def option_values(written: Mapping[str, Any], path: Path | None) -> dict[str, str]:
    """The options of a store or profile. A value `$NAME` is read from the environment."""
    return {name: _value(name, value, path) for name, value in written.items()}


def _value(name: str, written: Any, path: Path | None) -> str:
    text = str(written).lower() if isinstance(written, bool) else str(written)
    if not text.startswith("$"):
        if name.lower().endswith(_SECRETS):
            raise StorageConfigurationError(
                f"In {path}, the storage option {name} is a secret.",
                hint="Put it in an environment variable and write its name here: $NAME.",
            )
        return text
    variable = text[1:].strip("{}")
    found = os.environ.get(variable)
    if not found:
        raise StorageConfigurationError(
            f"In {path}, the storage option {name} refers to the variable {variable}, "
            "which is not set.",
            hint=f"Set {variable}.",
        )
    return found
