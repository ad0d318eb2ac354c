"""A graph on disk: made, filled, asked, branched, merged, and survived."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from demo.steps.papers import CITATIONS, PAPERS, person, title, write_papers
from demo.steps.schema import SCHEMA
from demo.steps.shell import omnigraph, omnigraph_with_progress

QUERIES = str(SCHEMA.with_suffix(".gq"))
AUTHOR, COLLEAGUE = person(3), person(1)  # two who wrote much
NEAR = [0, 0, 0, 0, 0, 0, 1, 0]  # what is about indexes


def make_a_graph(out: Path) -> None:
    """A graph is a folder, made from its schema."""
    omnigraph("init", str(out / "papers"), "--schema", str(SCHEMA))
    print("   on disk: " + ", ".join(sorted(each.name for each in (out / "papers").iterdir())))


def write_a_literature(out: Path) -> None:
    """Papers, people and a few hundred thousand edges, made on the spot."""
    file = out / "papers.jsonl"
    print(f"   {write_papers(file):,} records, {file.stat().st_size / 1e6:.0f} MB, in {file}")
    print(f"   {CITATIONS + PAPERS:,} of them are edges, such as {title(7)!r} cites {title(1)!r}")


def load_it_on_spark(out: Path) -> None:
    """Spark reads, checks and writes the file; it becomes one commit, or none."""
    graph = str(out / "papers")
    omnigraph_with_progress("load", graph, "--data", str(out / "papers.jsonl"))
    omnigraph("snapshot", graph)


def build_indexes(out: Path) -> None:
    """Indexes are built when it suits; answers are the same without them."""
    omnigraph("optimize", str(out / "papers"), "--quiet")


def refuse_bad_rows(out: Path) -> None:
    """A file with mistakes names each of them, and nothing of it is written."""
    file = out / "bad.jsonl"
    file.write_text(
        '{"type": "Paper", "data": {"title": "x", "year": "soon", "abstract": "?"}}\n'
        '{"edge": "Wrot", "from": "Ada A. Abe", "to": "x"}\n'
    )
    omnigraph("ingest", str(out / "papers"), "--data", str(file), exits=8)


def ask_it(out: Path) -> None:
    """Three questions: traversal, search by meaning and words at once, aggregation."""
    ask = ("query", "--store", str(out / "papers"), "--query", QUERIES)
    omnigraph(*ask, "influence", "--params", json.dumps({"name": AUTHOR}))
    given = {"about": "index recovery", "near": NEAR, "since": 2015}
    omnigraph(*ask, "find", "--params", json.dumps(given))
    omnigraph(*ask, "years")


def branch_and_merge(out: Path) -> None:
    """Try something on a branch, see what merging it would do, merge it."""
    graph = str(out / "papers")
    omnigraph("branch", "create", graph, "try/ideas")
    change = ("mutate", "--store", graph, "--query", QUERIES, "add_paper")
    given = json.dumps({"title": "On branches", "author": AUTHOR})
    omnigraph(*change, "--branch", "try/ideas", "--params", given)
    omnigraph("diff", graph, "main", "try/ideas")
    other = json.dumps({"title": "Meanwhile on main", "author": COLLEAGUE})
    omnigraph(*change, "--params", other)
    omnigraph("branch", "merge", graph, "try/ideas", "--preview")
    omnigraph("branch", "merge", graph, "try/ideas", "--delete-branch", "-m", "a good idea")
    omnigraph("commit", "list", graph, "--limit", "4")


def kill_a_writer(out: Path) -> None:
    """A writer is killed between two tables; nothing is lost and nothing is half there."""
    graph = str(out / "papers")
    change = ("mutate", "--store", graph, "--query", QUERIES, "add_paper")
    given = json.dumps({"title": "Never finished", "author": AUTHOR})
    omnigraph(
        *change,
        "--params",
        given,
        exits=-signal.SIGKILL,
        OMNIGRAPH_FAULTS="commit.before_table=kill@2",
    )
    look = 'query q() { match { $d: Paper { title: "Never finished" } } return { count($d) as n } }'
    omnigraph("query", "--store", graph, "-e", look)
    omnigraph("recovery", "list", graph, "--pending")
    omnigraph("recovery", "run", graph)
    omnigraph("recovery", "list", graph)
    omnigraph(*change, "--params", given)
