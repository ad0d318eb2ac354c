"""How a query is answered: its plan, and with a run what each operator did.

Without a run no row is read and parameters need no values; with one, the rows are read to the end
and thrown away.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.engines.explanation import Explanation
from omnigraph.operations.context import Context
from omnigraph.operations.query import default_options, plan_for
from omnigraph.operations.requests import Explain, Query
from omnigraph.operations.verbs import run


def explain(context: Context, request: Explain) -> Explanation:
    """The plan of a read query against one snapshot."""
    if not request.run:
        snapshot = context.snapshot(request.target)
        return Explanation(plan_for(request, snapshot, request.engine), request.engine)
    chosen = replace(request.options or default_options(request.engine), profile=True)
    asked = Query(
        request.text,
        request.name,
        request.params,
        request.file,
        request.target,
        request.engine,
        chosen,
        request.spark,
    )
    result = run(context, asked)
    for _ in result.stream():
        pass
    explanation: Explanation = result.explanation
    return explanation
