"""What the schema language does: compile, explain, plan a change."""

from __future__ import annotations

from pathlib import Path

from omnigraph.errors import SchemaError
from omnigraph.lang import pg

SCHEMA = Path(__file__).resolve().parent.parent / "papers.pg"


def compile_a_schema(out: Path) -> None:
    """A schema becomes a catalog, in which everything has a number that outlives its name."""
    catalog = pg.compile_schema(SCHEMA.read_text(), file=SCHEMA.name)
    for table in catalog.tables():
        properties = ", ".join(f"{each.name} #{each.id}" for each in table.properties)
        print(f"   {table.name} #{table.id}: {properties}")


def explain_a_broken_schema(out: Path) -> None:
    """A schema with two mistakes is explained, both at once."""
    text = SCHEMA.read_text().replace("I32", "Int23").replace("-> Paper", "-> Papr")
    try:
        pg.compile_schema(text, file=SCHEMA.name)
    except SchemaError as error:
        for finding in error.diagnostics:
            print(f"   {finding}\n   " + (finding.excerpt or "").replace("\n", "\n   "))
        return
    raise SystemExit("   That should not have compiled.")


def plan_a_change(out: Path) -> None:
    """A changed schema becomes a plan that says what is safe."""
    accepted = pg.compile_schema(SCHEMA.read_text())
    text = SCHEMA.read_text().replace("editor)", "editor, reviewer)").replace("  year: I32\n", "")
    desired = pg.compile_schema(text, accepted=accepted)
    for step in pg.plan_migration(accepted, desired).steps:
        print(f"   [{step.tier}] {step.code}: {step.message}")
