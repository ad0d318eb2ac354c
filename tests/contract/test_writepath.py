"""One write path: one retry loop, one door, one idempotency rule. A second one is seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import errors

SOURCE = Path(omnigraph.__file__).parent

# What says that another writer was faster.
CONFLICTS = {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type)
    and issubclass(kind, errors.ConflictError | errors.PreconditionFailedError)
} | {"UsedKeyError"}
CONFLICTS -= {"LockTimeoutError"}  # nobody was faster: a retry has nothing to prepare again
# What catches that along with everything else.
ANYTHING = {"OmniGraphError", "Exception", "BaseException"}

# Loops that try again after a conflict, and why each is not a retry of a write.
LOOPS = {
    "writes/attempt.py",  # the one
    "commit/publish.py",  # the compare-and-set of a manifest, within one commit
    "operations/reconcile.py",  # a service that looks after a branch from time to time
}

# Where each step of a commit may be taken.
STEPS = {
    "land": {"commit/door.py"},
    "arm": {"commit/door.py"},
    "publish": {"commit/door.py", "commit/fastforward.py", "commit/recovery.py"},
    "take_over": {"commit/door.py"},
    "earlier_outcome": {"commit/idempotency.py", "writes/conditions.py"},
    "refuse_used_keys": {"commit/door.py"},
}
# What else has such a name: an object, and a method of its own.
OTHERS = {
    "self.publish",
    "self._scratch.publish",
    "line.root.manifest(line.branch_id).publish",
}


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), path.read_text()


# Retry loops


def caught(handler: ast.ExceptHandler) -> set[str]:
    """The names of the classes that a handler catches."""
    if handler.type is None:
        return {"BaseException"}
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind).rpartition(".")[2] for kind in kinds}


def counts(loop: ast.For | ast.While) -> bool:
    """Whether a loop repeats one thing, rather than going through several."""
    if isinstance(loop, ast.While):
        return True
    call = loop.iter
    return isinstance(call, ast.Call) and ast.unparse(call.func) in {"range", "count"}


def goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether the loop may go round again after the handler."""
    return not isinstance(handler.body[-1], ast.Raise | ast.Return | ast.Break)


def suppressed(node: ast.AST) -> set[str]:
    """The names of the classes that `with suppress(…)` catches."""
    found: set[str] = set()
    if isinstance(node, ast.With):
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("suppress"):
                found |= {ast.unparse(kind).rpartition(".")[2] for kind in call.args}
    return found


def repeats(node: ast.AST, wanted: set[str]) -> bool:
    if isinstance(node, ast.ExceptHandler):
        return bool(caught(node) & wanted) and goes_on(node)
    return bool(suppressed(node) & wanted)


def retries(text: str) -> list[int]:
    """The lines of loops that go round again after a conflict."""
    found = []
    for loop in ast.walk(ast.parse(text)):
        if not isinstance(loop, ast.For | ast.While):
            continue
        wanted = CONFLICTS | ANYTHING if counts(loop) else CONFLICTS
        if any(repeats(node, wanted) for node in ast.walk(loop)):
            found.append(loop.lineno)
    return found


def test_20_04_one_retry_loop() -> None:
    assert {name for name, text in modules() if retries(text)} == LOOPS


PLANTED_LOOPS = {
    "for": """
def merge(root, proposal):
    for attempt in range(5):
        try:
            return commit(root, proposal)
        except ConflictError as error:
            if attempt == 4:
                raise
    raise AssertionError
""",
    "while": """
def load(write):
    while True:
        try:
            return write()
        except errors.ReadSetChangedError:
            continue
""",
    "everything": """
def embed(write):
    for _ in range(3):
        try:
            return write()
        except OmniGraphError:
            pass
""",
    "precondition": """
def embed(write):
    for _ in itertools_of_attempts:
        try:
            return write()
        except (StorageError, PreconditionFailedError):
            pass
""",
    "suppress": """
def migrate(write):
    while not done:
        with suppress(VersionConflictError):
            write()
""",
}


@pytest.mark.parametrize("planted", PLANTED_LOOPS.values(), ids=PLANTED_LOOPS)
def test_20_04_a_second_retry_loop_is_seen(planted: str) -> None:
    assert retries(planted)


def test_a_loop_that_ends_with_a_conflict_is_no_retry() -> None:
    raises = PLANTED_LOOPS["while"].replace("continue", "raise")
    assert not retries(raises)


# Doors


def steps(text: str) -> set[str]:
    """The steps of a commit that a module takes."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            written = ast.unparse(node.func)
            if written not in OTHERS:
                found.add(written.rpartition(".")[2])
    return found & STEPS.keys()


def public_functions(text: str) -> set[str]:
    defined = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in defined if not node.name.startswith("_")}


def test_20_04_one_door() -> None:
    taken: dict[str, set[str]] = {step: set() for step in STEPS}
    for name, text in modules():
        for step in steps(text) if name != "faults.py" else ():  # arms faults, not sidecars
            taken[step].add(name)
    assert taken == STEPS


def test_20_04_the_door_has_one_function_that_publishes() -> None:
    door = (SOURCE / "commit/door.py").read_text()
    assert public_functions(door) == {"commit", "plan_commit", "plan_commits"}


PLANTED_DOORS = {
    "land": "def commit_merge(root, staged):\n    land(root, staged)\n",
    "arm": "def commit_all(root, sidecar):\n    journal.arm(root, sidecar)\n",
    "publish": "def hurry(line, commits):\n    publish(line, commits, claim(line, token), check)\n",
    "earlier_outcome": "def load(line, key):\n    return idempotency.earlier_outcome(line, key)\n",
}


@pytest.mark.parametrize(("step", "planted"), PLANTED_DOORS.items(), ids=PLANTED_DOORS)
def test_20_04_a_second_door_is_seen(step: str, planted: str) -> None:
    assert step in steps(planted)
