"""Golden files of the schema language: what each construct, finding and migration looks like.

`pg/constructs/x.pg` compiles to `x.ir.json`; `pg/errors/x.pg` yields `x.txt` (compiled against
`x.accepted.pg` if there is one); `pg/migrations/x.before.pg` and `x.after.pg` plan as `x.plan.txt`;
`pg/format/x.pg` is formatted as `x.fmt.pg`. With OMNIGRAPH_UPDATE_GOLDEN=1 the expected files are
written anew; read the difference before keeping it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omnigraph.lang import pg
from omnigraph.lang.diagnostics import render

HERE = Path(__file__).parent / "pg"
RESERVED = {"OG-DS-101"}


def cases(folder: str, suffix: str, but_not: tuple[str, ...] = ()) -> list[str]:
    names = (path.name for path in (HERE / folder).glob(f"*{suffix}"))
    return sorted(n.removesuffix(suffix) for n in names if not n.endswith(but_not or ("//",)))


def agree(path: Path, actual: str) -> None:
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        path.write_text(actual)
    assert actual == path.read_text(), f"{path.name} differs; see the head of this file"


def read(folder: str, name: str) -> str:
    return (HERE / folder / name).read_text()


@pytest.mark.parametrize("name", cases("constructs", ".pg"))
def test_construct(name: str) -> None:
    catalog = pg.compile_schema(read("constructs", f"{name}.pg"), f"{name}.pg")
    pretty = json.dumps(json.loads(pg.to_json(catalog)), indent=1, sort_keys=True)
    agree(HERE / "constructs" / f"{name}.ir.json", pretty + "\n")
    assert pg.from_json(pg.to_json(catalog)) == catalog
    assert pg.compile_schema(pg.catalog_to_source(catalog), accepted=catalog) == catalog


@pytest.mark.parametrize("name", cases("errors", ".pg", (".accepted.pg",)))
def test_finding(name: str) -> None:
    accepted = HERE / "errors" / f"{name}.accepted.pg"
    base = pg.compile_schema(accepted.read_text()) if accepted.exists() else None
    found = pg.diagnose(read("errors", f"{name}.pg"), f"{name}.pg", base)
    code = name.split("-")[0]
    assert code in {d.code for d in found}
    assert all(d.hint and d.excerpt and d.line and d.column for d in found)
    agree(HERE / "errors" / f"{name}.txt", "\n\n".join(render(d) for d in found) + "\n")


@pytest.mark.parametrize("name", cases("migrations", ".before.pg"))
def test_migration(name: str) -> None:  # ledger: T02
    before = pg.compile_schema(read("migrations", f"{name}.before.pg"))
    after = pg.compile_schema(read("migrations", f"{name}.after.pg"), accepted=before)
    plan = pg.plan_migration(before, after, allow_data_loss=name.startswith("hard-"))
    lines = [json.dumps(step.to_dict(), indent=1) for step in plan.steps]
    verdict = "supported" if plan.supported else "unsupported"
    agree(HERE / "migrations" / f"{name}.plan.txt", "\n".join([verdict, *lines]) + "\n")
    if plan.supported:
        assert pg.apply_steps(before, plan.steps, after) == after


@pytest.mark.parametrize("name", cases("format", ".pg", (".fmt.pg",)))
def test_format(name: str) -> None:
    formatted = pg.format_schema(read("format", f"{name}.pg"))
    agree(HERE / "format" / f"{name}.fmt.pg", formatted)
    assert pg.format_schema(formatted) == formatted


def test_every_finding_has_a_file() -> None:
    shown = {name.split("-")[0] for name in cases("errors", ".pg", (".accepted.pg",))}
    assert shown == set(pg.FINDINGS)


def test_every_change_has_a_file() -> None:
    plans = [path.read_text() for path in (HERE / "migrations").glob("*.plan.txt")]
    shown = {code for code in pg.CHANGES if any(f'"{code}"' in plan for plan in plans)}
    assert shown == set(pg.CHANGES) - RESERVED
