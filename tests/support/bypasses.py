"""Finds ways past `run`: code that reads or writes a graph without being admitted.

    bypasses(sources())                                  # [] if there are none
    bypasses({**sources(), "omnigraph.graph": text})     # with a module replaced

Three rules, checked on the source text of all modules:

1. A public function of `operations` that takes a context is a verb, or is listed in `MACHINERY`.
2. Nothing refers to the function of a verb but the list of verbs, and nothing outside of
   `operations` refers to machinery.
3. Surfaces import from the rooms that reach tables only what is listed in `ALLOWED`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import omnigraph
from omnigraph.operations.verbs import VERBS

OPERATIONS = "omnigraph.operations"
VERB_FUNCTIONS = frozenset(f"{OPERATIONS}.{verb.function.replace(':', '.')}" for verb in VERBS)
# Functions that verbs share. They take a context that was admitted.
MACHINERY = frozenset(
    f"{OPERATIONS}.{name}"
    for name in (
        "cleanup.purge",
        "embed_on_spark.embed_on_spark",
        "embeddedload.load_here",
        "inspection.schema_source",
        "relocate.bring_home",
        "relocate.strays",
        "revert.apply_change",
    )
)
ENTRANCES = frozenset({f"{OPERATIONS}.verbs.run", f"{OPERATIONS}.admission.admit"})
SURFACES = ("graph", "aio", "builder", "drawing", "cli", "config", "spark")
REACHING = ("history", "storage", "engines", "commit", "writes", "merges", "bulk")
# What surfaces may import from the rooms that reach tables: values, types, and functions that read
# no graph. A name with a module may be used by that module alone.
ALLOWED: dict[str, str | None] = {
    "bulk.stagedkeys.shares": None,
    "commit.retention.Policy": None,
    "engines.base.Cancellation": None,
    "engines.base.DEFAULT_OPTIONS": None,
    "engines.base.Options": None,
    "engines.spark.frameinputs.gathered": None,
    "engines.spark.frameinputs.to_ipc": None,
    "engines.spark.jobprogress.hearing": None,
    "engines.spark.jobprogress.observed": None,
    "engines.spark.resident.find_resident": None,
    "engines.spark.residentserver.resident_status": None,
    "engines.spark.residentserver.start_resident": None,
    "engines.spark.residentserver.stop_resident": None,
    "engines.spark.session.get_session": None,
    "engines.spark.session.parallelism": None,
    "engines.spark.settings.SparkSettings": None,
    "engines.spark.settings.parse_config": None,
    "engines.spark.settings.read_settings": None,
    "engines.spark.sparkrunner.SparkRunner": "cli.commands.spark",  # checks executors
    "engines.spark.sparktypes.arrow_type": None,
    "engines.spark.sparktypes.column_types": None,
    "engines.spark.sparktypes.physical_names": None,
    "engines.spark.sparktypes.spark_schema": None,
    "engines.spark.sparktypes.to_spark": None,
    "engines.spark.workergc.spare_collector": None,
    "history.ancestry.Place": None,
    "history.images.TableDiff": None,
    "history.refs.MAIN": None,
    "history.refs.Tag": None,
    "history.resolve.Target": None,
    "merges.resolutions.conflict_to_dict": None,
    "merges.resolutions.write_conflicts": None,
    "storage.distributed.SCRATCH": None,
    "storage.distributed.list_files": "spark.reader",  # of a snapshot that was pinned by a verb
    "storage.distributed.scan_files": "spark.reader",
    "engines.snapshotreader.visible_ids": "spark.reader",
    "storage.inputs.open_input": "spark.sink",  # its own scratch files
    "storage.inputs.write_output": "spark.sink",
    "storage.location.parse_location": None,
    "storage.manifest.FORMAT_VERSION": None,
    "storage.root.GraphRoot": None,
    "writes.request.Conditions": None,
    "writes.requiredvectors.configured": None,
}


def sources() -> dict[str, str]:
    """The text of every module, by its name."""
    folder = Path(str(omnigraph.__file__)).parent
    found = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text()
    return found


def bypasses(texts: Mapping[str, str]) -> list[str]:
    """Every way past `run`, in words."""
    found = []
    for name, text in sorted(texts.items()):
        tree = ast.parse(text)
        found += [*_unlisted(name, tree), *_references(name, tree), *_imports(name, tree)]
    return found


def _unlisted(name: str, tree: ast.Module) -> Iterator[str]:
    if not name.startswith(OPERATIONS):
        return
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or function.name.startswith("_"):
            continue
        first = function.args.args[0].annotation if function.args.args else None
        path = f"{name}.{function.name}"
        known = VERB_FUNCTIONS | MACHINERY | ENTRANCES
        if isinstance(first, ast.Name) and first.id == "Context" and path not in known:
            yield f"{path} takes a context and is not a verb"


def _references(name: str, tree: ast.Module) -> Iterator[str]:
    hidden = VERB_FUNCTIONS if name.startswith(OPERATIONS) else VERB_FUNCTIONS | MACHINERY
    own = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    imported = {bound: path for path, bound in _imported(tree)}
    for node in ast.walk(tree):
        path = ""
        if isinstance(node, ast.Name):
            path = imported.get(node.id, "")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            path = f"{imported.get(node.value.id, '')}.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own:
            path = f"{name}.{node.func.id}"
        if path in hidden:
            yield f"{name} refers to {path}; use `run`"


def _imports(name: str, tree: ast.Module) -> Iterator[str]:
    room, _, rest = name.removeprefix("omnigraph.").partition(".")
    if room not in SURFACES:
        return
    module = f"{room}.{rest}" if rest else room
    for path, _ in _imported(tree):
        short = path.removeprefix("omnigraph.")
        if short.partition(".")[0] not in REACHING:
            continue
        if short not in ALLOWED or ALLOWED[short] not in (None, module):
            yield f"{name} imports {path}, which may read a graph; use `run`"


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What is imported when the code runs, and the name that it gets."""
    for node in _running(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                yield f"{node.module}.{each.name}", each.asname or each.name
        elif isinstance(node, ast.Import):
            for each in node.names:
                yield each.name, each.asname or each.name


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees."""
    yield node
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    for child in ast.iter_child_nodes(node):
        yield from _running(child)
