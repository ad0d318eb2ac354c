"""The guided tour that `make demo` runs: every step does something real and prints what it did.

A step is a function that takes the tour's folder and prints. Add one to `STEPS`; its docstring is
its title. A step that fails stops the tour with a non-zero exit code.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from demo.steps import graph, house, schema

Step = Callable[[Path], None]

STEPS: tuple[Step, ...] = (
    house.show_versions,
    house.fail_helpfully,
    schema.compile_a_schema,
    schema.explain_a_broken_schema,
    schema.plan_a_change,
    graph.make_a_graph,
    graph.write_a_literature,
    graph.load_it_on_spark,
    graph.refuse_bad_rows,
    graph.build_indexes,
    graph.ask_it,
    graph.branch_and_merge,
    graph.kill_a_writer,
)

OUT = Path(__file__).resolve().parent / "out"


def main() -> int:
    parser = argparse.ArgumentParser(description="A guided tour of OmniGraph.")
    parser.add_argument("--list", action="store_true", help="list the steps and stop")
    parser.add_argument("--out", type=Path, default=OUT, help="where the tour writes")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{number}. {title(step)}" for number, step in enumerate(STEPS, 1)))
        return 0
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    spent = [run(number, step, options.out) for number, step in enumerate(STEPS, 1)]
    print("\n── What that was")
    for step, seconds in zip(STEPS, spent, strict=True):
        print(f"   {seconds:6.1f} s  {title(step)}")
    print(f"\nThe tour is over: {len(STEPS)} steps in {sum(spent):.1f} s. Its graph stays in")
    print(f"{options.out / 'papers'}; talk to it: omnigraph shell {options.out / 'papers'}")
    return 0


def run(number: int, step: Step, out: Path) -> float:
    """Do a step; returns how many seconds it took."""
    print(f"\n── {number}/{len(STEPS)} {title(step)}", flush=True)
    begin = time.perf_counter()
    step(out)
    seconds = time.perf_counter() - begin
    print(f"   ({seconds:.2f} s)", flush=True)
    return seconds


def title(step: Step) -> str:
    return (step.__doc__ or step.__name__).strip().splitlines()[0].rstrip(".")


if __name__ == "__main__":
    sys.exit(main())
