"""The schema language `.pg`.

What it does: text → tree (`parse`) → catalog (`compile_schema`); catalog ↔ canonical JSON
(`to_json`, `from_json`); two catalogs → ordered steps (`plan_migration`, `apply_steps`); text →
text in one style (`format_schema`).
Pure functions; texts that do not compile raise `SchemaError` with every finding.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnigraph.lang.pg.compiler import compile_schema, diagnose, parse

if TYPE_CHECKING:
    from omnigraph.lang.pg.apply import apply_steps
    from omnigraph.lang.pg.codes import CHANGES, FINDINGS
    from omnigraph.lang.pg.format import format_schema
    from omnigraph.lang.pg.migrationplan import plan_migration
    from omnigraph.lang.pg.render import catalog_to_source
    from omnigraph.lang.pg.steps import DropMode, MigrationPlan, Step, StepKind, Tier
    from omnigraph.model.schema_ir import catalog_hash, from_json, to_json

parse_schema = parse

# Reading a schema must be cheap at start-up; what only few commands need is loaded on first use.
_ELSEWHERE = {
    "apply_steps": "omnigraph.lang.pg.apply",
    "CHANGES": "omnigraph.lang.pg.codes",
    "FINDINGS": "omnigraph.lang.pg.codes",
    "format_schema": "omnigraph.lang.pg.format",
    "plan_migration": "omnigraph.lang.pg.migrationplan",
    "catalog_to_source": "omnigraph.lang.pg.render",
    "catalog_hash": "omnigraph.model.schema_ir",
    "from_json": "omnigraph.model.schema_ir",
    "to_json": "omnigraph.model.schema_ir",
    "DropMode": "omnigraph.lang.pg.steps",
    "MigrationPlan": "omnigraph.lang.pg.steps",
    "Step": "omnigraph.lang.pg.steps",
    "StepKind": "omnigraph.lang.pg.steps",
    "Tier": "omnigraph.lang.pg.steps",
}


def __getattr__(name: str) -> Any:
    module = _ELSEWHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


__all__ = [
    "CHANGES",
    "FINDINGS",
    "DropMode",
    "MigrationPlan",
    "Step",
    "StepKind",
    "Tier",
    "apply_steps",
    "catalog_hash",
    "catalog_to_source",
    "compile_schema",
    "diagnose",
    "format_schema",
    "from_json",
    "parse",
    "parse_schema",
    "plan_migration",
    "to_json",
]
