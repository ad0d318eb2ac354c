"""How a query is answered: its plan, and with a run what each operator did.

Without a run no row is read and parameters need no values; with one, the rows are read to the end
and thrown away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.engines.base import Options
from omnigraph.engines.explanation import Explanation
from omnigraph.engines.registry import EMBEDDED
from omnigraph.history.resolve import Target, resolve
from omnigraph.operations import query as asking
from omnigraph.operations.context import Context

if TYPE_CHECKING:
    from omnigraph.engines.spark.settings import SparkSettings


def explain(
    context: Context,
    question: asking.Question,
    target: Target | None = None,
    *,
    run: bool = False,
    engine: str = EMBEDDED,
    options: Options | None = None,
    spark: SparkSettings | None = None,
) -> Explanation:
    """The plan of a read query against one snapshot."""
    if not run:
        return Explanation(asking.plan_for(question, resolve(context.root, target), engine), engine)
    chosen = replace(options or asking.default_options(engine), profile=True)
    result = asking.query(context, question, target, engine=engine, options=chosen, spark=spark)
    for _ in result.stream():
        pass
    explanation: Explanation = result.explanation
    return explanation
