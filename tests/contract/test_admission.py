"""Every verb is admitted, from whichever surface it comes; a way past `run` is found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.bypasses import bypasses, sources

import omnigraph
from omnigraph.cli import main as cli
from omnigraph.errors import DeniedError, InvalidArgumentError
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target
from omnigraph.model.principal import Principal
from omnigraph.operations import requests as r
from omnigraph.operations import verbs
from omnigraph.operations.admission import READS, Action, Resource, ResourceKind
from omnigraph.operations.verbs import VERBS, Verb, run

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
READ = "query q() { match { $p: Person } return { $p.name } }"
WRITE = 'query q() { insert Person { name: "new" } }'


# What other verbs and the Spark source use.
INNER = {"capture_baseline", "find_offset", "replay", "table_changes", "type_changes"}


class Recorder:
    """A gate that writes down what it was asked, and refuses some actions."""

    def __init__(self, refused: frozenset[Action] = frozenset()) -> None:
        self.asked: list[tuple[Principal, Action, Resource]] = []
        self.refused = refused

    def admit(self, principal: Principal, action: Action, resource: Resource) -> None:
        self.asked.append((principal, action, resource))
        if action in self.refused:
            raise DeniedError(f"{principal.id} may not {action}.")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "g", SCHEMA, actor=Principal("act-anna", frozenset({"a"})))
    made.mutate(WRITE)
    return made


def gated(graph: Graph, gate: Recorder) -> Graph:
    return Graph(replace(graph._context, gate=gate), graph.branch_name)


# The source.


def test_20_01_nothing_goes_past_run() -> None:
    assert bypasses(sources()) == []


PLANTED = {
    "a method that calls the function of a verb": (
        "omnigraph.graph",
        """
def rows(graph):
    from omnigraph.operations import query
    return query.query(graph._context, None)
""",
        "omnigraph.graph refers to omnigraph.operations.query.query",
    ),
    "a method that imports the function of a verb": (
        "omnigraph.graph",
        """
from omnigraph.operations.export import export as _export
def dump(graph):
    return _export(graph._context, None)
""",
        "omnigraph.graph refers to omnigraph.operations.export.export",
    ),
    "a command that reads a snapshot": (
        "omnigraph.cli.commands.query",
        """
def peek(root):
    from omnigraph.history.resolve import resolve
    return resolve(root)
""",
        "omnigraph.cli.commands.query imports omnigraph.history.resolve.resolve",
    ),
    "a data source that reads a table": (
        "omnigraph.spark.source",
        "\nfrom omnigraph.storage.distributed import scan_files\n",
        "omnigraph.spark.source imports omnigraph.storage.distributed.scan_files",
    ),
    "a verb that is not in the list": (
        "omnigraph.operations.stats",
        """
def peek(context: Context, request: ReadStats) -> int:
    return len(list_branches(context.root))
""",
        "omnigraph.operations.stats.peek takes a context and is not a verb",
    ),
    "a verb that calls another one": (
        "omnigraph.operations.verify",
        """
def _peek(context):
    from omnigraph.operations.stats import stats
    return stats(context, None)
""",
        "omnigraph.operations.verify refers to omnigraph.operations.stats.stats",
    ),
    "a surface that uses machinery of verbs": (
        "omnigraph.graph",
        """
def forget(graph):
    from omnigraph.operations.cleanup import purge
    return purge(graph._context, frozenset())
""",
        "omnigraph.graph refers to omnigraph.operations.cleanup.purge",
    ),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_20_01_a_planted_bypass_is_found(planted: tuple[str, str, str]) -> None:
    module, code, expected = planted
    texts = sources()
    (found,) = bypasses({module: texts[module] + code})
    assert found.startswith(expected)


# The list.


def test_20_05_the_list_is_whole() -> None:
    listed = {verb.request for verb in VERBS}
    assert len(listed) == len({verb.name for verb in VERBS}) == len(VERBS)
    named = {getattr(r, name) for name in r.__all__} - {r.Request, r.Question}
    assert listed == named


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_20_05_a_verb_takes_its_request_and_returns_its_result(verb: Verb) -> None:
    annotations = verb.call.__annotations__
    assert annotations["request"] == verb.request.__name__
    returned = annotations["return"]
    assert {"NoneType": "None", "Any": "DataFrame"}.get(verb.result, verb.result) == returned
    assert verb.request.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_20_05_a_request_that_no_verb_takes_is_refused(graph: Graph) -> None:
    class Unknown(r.Request[None]):
        pass

    with pytest.raises(InvalidArgumentError, match="No verb takes a Unknown"):
        run(graph._context, Unknown())


def test_20_05_graph_and_aio_have_a_method_for_each_verb() -> None:
    for surface in (Graph, omnigraph.aio.AsyncGraph):
        missing = [v.name for v in VERBS if v.name not in INNER and not hasattr(surface, v.name)]
        assert missing == []


# The command that runs each verb.
COMMANDS = {
    "algorithm": "algorithm",
    "apply_schema": "schema apply",
    "baseline": "changes baseline",
    "blob": "blob get",
    "blob_stat": "blob stat",
    "branches": "branch list",
    "changes": "changes poll",
    "cherry_pick": "commit cherry-pick",
    "cleanup": "cleanup",
    "commit": "commit show",
    "commit_changes": "commit changes",
    "commit_changes_page": "commit changes",
    "commits": "commit list",
    "copy": "copy",
    "count_embed": "embed",
    "create_branch": "branch create",
    "create_tag": "tag create",
    "delete_branch": "branch delete",
    "delete_tag": "tag delete",
    "diff": "diff",
    "embed": "embed",
    "ensure_indices": "optimize",
    "explain": "explain",
    "export": "export",
    "export_lines": "export",
    "ingest": "ingest",
    "install_baseline": "changes baseline",
    "lag": "maintain",
    "load": "load",
    "merge": "branch merge",
    "mutate": "mutate",
    "optimize": "optimize",
    "plan_optimize": "optimize",
    "plan_schema": "schema plan",
    "poll_changes": "changes poll",
    "preview_merge": "branch merge",
    "query": "query",
    "rebase": "branch rebase",
    "reconciler": "maintain",
    "recover": "recovery run",
    "recoveries": "recovery list",
    "rename_branch": "branch rename",
    "repair": "repair",
    "revert": "commit revert",
    "schema": "schema show",
    "snapshot": "snapshot",
    "stats": "stats",
    "tags": "tag list",
    "verify": "fsck",
    "write_algorithm": "algorithm",
}
# Without a command: pictures of notebooks, settings of a graph, and what opening does.
NO_COMMAND = {"commit_graph", "refresh", "set_durability"}
# Without a command of their own in the list above: they run no verb.
OTHER_COMMANDS = {
    "alias", "completion", "fmt", "import", "init", "lint", "login", "logout", "profile", "shell",
    "spark", "version",
}  # fmt: skip


def test_20_05_the_command_line_has_a_command_for_each_verb(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert set(COMMANDS) | NO_COMMAND | INNER == {verb.name for verb in VERBS}
    for words in sorted(set(COMMANDS.values())):
        assert cli.run([*words.split(), "--help"]) == 0, words
    capsys.readouterr()
    assert cli.run(["--help"]) == 0
    listed = set(re.findall(r"^  ([a-z]+) {2,}", capsys.readouterr().out, re.MULTILINE))
    assert listed == {words.split()[0] for words in COMMANDS.values()} | OTHER_COMMANDS


# The gate.


def methods(graph: Graph, folder: Path) -> dict[str, Any]:
    """A call of each method that runs a verb."""
    head = graph.snapshot().commit_id
    return {
        "algorithm": lambda g: g.algorithm("degree"),
        "apply_schema": lambda g: g.apply_schema(SCHEMA + "\nnode Pet { name: String @key }"),
        "baseline": lambda g: list(g.baseline()),
        "blob": lambda g: g.blob("Person", "new", "photo"),
        "blob_stat": lambda g: g.blob_stat("Person", "new", "photo"),
        "branches": lambda g: g.branches(),
        "changes": lambda g: list(g.changes(start="beginning")),
        "cherry_pick": lambda g: g.cherry_pick(head),
        "cleanup": lambda g: g.cleanup(keep=1, confirm=True),
        "commit": lambda g: g.commit(head),
        "commit_changes": lambda g: list(g.commit_changes(head)),
        "commit_changes_page": lambda g: g.commit_changes_page(head),
        "commit_graph": lambda g: g.commit_graph(),
        "commits": lambda g: list(g.commits()),
        "copy": lambda g: g.copy(folder / "copy"),
        "count_embed": lambda g: g.count_embed(),
        "create_branch": lambda g: g.create_branch("x"),
        "create_tag": lambda g: g.create_tag("x"),
        "delete_branch": lambda g: g.delete_branch("x"),
        "delete_tag": lambda g: g.delete_tag("x"),
        "diff": lambda g: list(g.diff("main", "main")),
        "embed": lambda g: g.embed(),
        "ensure_indices": lambda g: g.ensure_indices(),
        "explain": lambda g: g.explain(READ),
        "export": lambda g: g.export(folder / "out.jsonl"),
        "export_lines": lambda g: list(g.export_lines()),
        "ingest": lambda g: g.ingest([{"name": "x"}], type="Person"),
        "install_baseline": lambda g: g.install_baseline(folder / "base.jsonl"),
        "lag": lambda g: g.lag(),
        "load": lambda g: g.load(str(folder), engine="embedded"),
        "merge": lambda g: g.merge("x"),
        "mutate": lambda g: g.mutate(WRITE),
        "optimize": lambda g: g.optimize(),
        "plan_optimize": lambda g: g.plan_optimize(),
        "plan_schema": lambda g: g.plan_schema(SCHEMA),
        "poll_changes": lambda g: g.poll_changes(),
        "preview_merge": lambda g: g.preview_merge("x"),
        "query": lambda g: g.query(READ),
        "rebase": lambda g: g.on("x").rebase(),
        "reconciler": lambda g: g.reconciler(),
        "recover": lambda g: g.recover(),
        "recoveries": lambda g: g.recoveries(),
        "refresh": lambda g: g.refresh(),
        "rename_branch": lambda g: g.rename_branch("x", "y"),
        "repair": lambda g: g.repair(confirm=True),
        "revert": lambda g: g.revert(head),
        "schema": lambda g: g.schema(),
        "set_durability": lambda g: g.set_durability("process"),
        "snapshot": lambda g: g.snapshot(),
        "stats": lambda g: g.stats(),
        "tags": lambda g: g.tags(),
        "verify": lambda g: g.verify(),
        "write_algorithm": lambda g: g.write_algorithm("degree", "rank"),
    }


def test_20_01_every_method_is_refused_by_a_gate_that_refuses_all(
    graph: Graph, tmp_path: Path
) -> None:
    calls = methods(graph, tmp_path)
    assert set(calls) == {verb.name for verb in VERBS} - INNER
    before = graph.snapshot().commit_id
    for name, call in calls.items():
        gate = Recorder(frozenset(Action))
        with pytest.raises(DeniedError, match="act-anna may not"):
            call(gated(graph, gate))
        assert len(gate.asked) == 1, name
        assert gate.asked[0][0] == graph.principal
    assert graph.snapshot().commit_id == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g"]


def test_20_01_a_read_only_graph_refuses_what_writes(graph: Graph, tmp_path: Path) -> None:
    reader = omnigraph.open(graph.uri, read_only=True)
    for name, call in methods(graph, tmp_path).items():
        verb = verbs.BY_NAME[name]
        action = verb.action if isinstance(verb.action, Action) else Action.ADMIN
        if action not in READS:
            with pytest.raises(DeniedError, match="read-only"):
                call(reader)


@pytest.mark.parametrize(
    ("request_", "action", "resource"),
    [
        (r.Query(READ), Action.READ, Resource.of_branch("main")),
        (r.Query(READ, target=Target("f", version=2)), Action.READ, Resource.of_branch("f")),
        # A commit or a tag may lie on any branch: a rule for one branch does not apply.
        (r.Query(READ, target=Target("main", tag="v1")), Action.READ, Resource()),
        (r.Query(READ, target=Target("main", commit="01J")), Action.READ, Resource()),
        (r.Mutate(WRITE, branch="f"), Action.CHANGE, Resource.of_branch("f")),
        (
            r.Ingest([], type="Person", types=("Pet",)),
            Action.CHANGE,
            Resource.of_branch("main", ("Pet", "Person")),
        ),
        (
            r.Merge("f", "main"),
            Action.BRANCH_MERGE,
            Resource(ResourceKind.BRANCH, "f", "main"),
        ),
        (
            r.CreateBranch("x", Target("f")),
            Action.BRANCH_CREATE,
            Resource(ResourceKind.BRANCH, "f", "x"),
        ),
        (r.DeleteBranch("x"), Action.BRANCH_DELETE, Resource(ResourceKind.BRANCH, None, "x")),
        (r.RepairDrift(confirm=False), Action.READ, Resource.of_branch("main")),
        (r.RepairDrift(confirm=True), Action.RECOVER, Resource.of_branch("main")),
        (r.Export("x"), Action.EXPORT, Resource.of_branch("main")),
    ],
)
def test_20_01_what_is_asked(
    graph: Graph, request_: r.Request[Any], action: Action, resource: Resource
) -> None:
    gate = Recorder(frozenset(Action))
    with pytest.raises(DeniedError):
        run(replace(graph._context, gate=gate), request_)
    assert gate.asked == [(graph.principal, action, resource)]


def test_20_01_a_scratch_branch_is_created_merged_and_deleted_by_verbs(graph: Graph) -> None:
    gate = Recorder()
    with gated(graph, gate).branch("x") as inner:
        inner.mutate('query q() { insert Person { name: "x" } }')
    actions = [action for _, action, _ in gate.asked]
    assert actions == [
        Action.BRANCH_CREATE,
        Action.CHANGE,
        Action.BRANCH_MERGE,
        Action.BRANCH_DELETE,
    ]


def test_20_01_each_round_of_the_reconciler_is_admitted(graph: Graph) -> None:
    gate = Recorder()
    worker = gated(graph, gate).reconciler()
    gate.refused = frozenset({Action.READ})
    with pytest.raises(DeniedError):
        worker.reconcile()


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Every context of this process has a gate that refuses all."""
    from omnigraph.operations import lifecycle

    gate = Recorder(frozenset(Action))
    made = lifecycle._context
    monkeypatch.setattr(
        lifecycle, "_context", lambda *args, **kwargs: replace(made(*args, **kwargs), gate=gate)
    )
    return gate


def test_20_01_the_spark_source_and_its_streams_are_admitted(
    graph: Graph, refusing: Recorder
) -> None:
    from pyspark.sql.datasource import InputPartition

    from omnigraph.spark.changestream import ChangeStream
    from omnigraph.spark.source import OmniGraphSource

    source = OmniGraphSource({"graph": graph.uri, "type": "Person", "actor": "act-spark"})
    with pytest.raises(DeniedError):
        source.schema()
    stream = ChangeStream(graph._context.root.location, "main", None, "now", [])
    with pytest.raises(DeniedError):
        stream.initialOffset()
    with pytest.raises(DeniedError):
        list(stream.read(InputPartition((1, 2))))
    assert refusing.asked[0][0] == Principal.named("act-spark")
