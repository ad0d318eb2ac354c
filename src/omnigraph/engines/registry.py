"""The engines by name, made when first asked for.

One embedded engine per process, so that its caches are shared; the spark engine keeps nothing, and
is made for the session that it is to use.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from omnigraph.engines.base import Engine
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    from omnigraph.engines.spark.settings import SparkSettings

EMBEDDED = "embedded"
SPARK = "spark"

_guard = threading.Lock()
_embedded: Engine | None = None


def engine_named(name: str, spark: SparkSettings | None = None) -> Engine:
    """An engine. `spark` says which Spark to use, where that matters."""
    if name == EMBEDDED:
        return _in_process()
    if name == SPARK:
        from omnigraph.engines.spark.engine import SparkEngine

        return SparkEngine(spark)
    raise InvalidArgumentError(
        f"There is no engine {name!r}.", hint=f"Use {EMBEDDED!r} or {SPARK!r}.", engine=name
    )


def _in_process() -> Engine:
    global _embedded
    with _guard:
        if _embedded is None:
            from omnigraph.engines.embedded import EmbeddedEngine

            _embedded = EmbeddedEngine()
        return _embedded
