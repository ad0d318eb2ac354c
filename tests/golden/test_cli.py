"""What `--json` prints: the shape of every command's answer, in `cli/shapes.json`.

A shape keeps names and kinds and drops values, so a golden file changes when a script would notice.
With OMNIGRAPH_UPDATE_GOLDEN=1 it is written anew; read the difference before keeping it: a name
that goes away breaks somebody. Pages of help are held by `docs/reference/cli.md` in the same way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import omnigraph
import reference
from omnigraph.cli import main

SHAPES = Path(__file__).parent / "cli" / "shapes.json"

# Without `--json`: what prints bytes, a script, or a conversation. And what needs a Spark session.
SILENT = {"blob get", "completion", "shell"}
ON_SPARK = {"algorithm", "spark start", "spark status", "spark stop"}

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    photo: Blob?
    vector: Vector(4)? @embed(name)
}
edge Knows: Person -> Person
"""
WIDER = SCHEMA.replace("age: I32?", "age: I32?\n    city: String?")
ROWS = """{"type": "Person", "data": {"name": "Ada", "age": 36, "photo": "base64:AAEC"}}
{"type": "Person", "data": {"name": "Bo"}}
{"edge": "Knows", "from": "Ada", "to": "Bo"}
"""
ASK = "query q() { match { $p: Person } return { $p.name, $p.age } }"
AGE = 'query q() { update Person set { age: 37 } where name = "Ada" }'
BORN = 'query q() { insert Person { name: "Cy" } }'
CONFIG = """
stores: {shop: {uri: g}}
profiles: {dev: {store: shop}, broken: {}}
aliases: {people: {store: shop, file: q.gq, query: q}}
defaults: {store: shop}
"""


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a configuration and files, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "anna")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    for name, text in {
        "s.pg": SCHEMA,
        "wider.pg": WIDER,
        "rows.jsonl": ROWS,
        "q.gq": ASK,
        "config.yaml": CONFIG,
    }.items():
        Path(name).write_text(text)


def script() -> Iterator[tuple[str, str]]:
    """Commands in the order in which they run, each with its words; `@head` is main's head."""
    yield "init", "init g --schema s.pg"
    yield "ingest", "ingest g --data rows.jsonl"
    yield "load", "load g --data rows.jsonl --mode merge --engine embedded"
    yield "query", f"query -e '{ASK}'"
    yield "explain", f"explain -e '{ASK}'"
    yield "explain --run", f"explain -e '{ASK}' --run"
    yield "tag create", "tag create g v1"
    yield "tag list", "tag list g"
    yield "branch create", "branch create g try"
    yield "mutate", f"mutate --branch try -e '{AGE}'"
    yield "commit changes", "commit changes g @try --branch try"
    yield "branch list", "branch list g"
    yield "branch merge --preview", "branch merge g try --preview"
    yield "branch merge", "branch merge g try"
    yield "commit revert", "commit revert g @head"
    yield "commit cherry-pick", "commit cherry-pick g @try"
    yield "", f"mutate -e '{BORN}'"
    yield "branch rebase", "branch rebase g try"
    yield "branch rename", "branch rename g try tried"
    yield "branch delete", "branch delete g tried"
    yield "commit list", "commit list g"
    yield "commit show", "commit show g @head"
    yield "diff", "diff g v1"
    yield "changes poll", "changes poll g --start beginning"
    yield "changes baseline", "changes baseline g --out base.jsonl"
    yield "tag delete", "tag delete g v1"
    yield "snapshot", "snapshot g"
    yield "schema show", "schema show g"
    yield "", "schema get g"  # the elder's other name of it
    yield "schema plan", "schema plan g --schema wider.pg"
    yield "schema apply", "schema apply g --schema wider.pg"
    yield "lint", "lint s.pg q.gq"
    yield "fmt", "fmt --check wider.pg"
    yield "export", "export g --to out.jsonl"
    yield "import", "import g2 --from out.jsonl --schema wider.pg"
    yield "copy", "copy g --to g3"
    yield "blob stat", "blob stat Person Ada photo"
    yield "stats", "stats g --disk"
    yield "embed --dry-run", "embed g --dry-run"
    yield "embed", "embed g"
    yield "embed --input", "embed g --input out.jsonl --output filled.jsonl"
    yield "optimize", "optimize g"
    yield "maintain", "maintain g"
    yield "maintain --lag", "maintain g --lag"
    yield "cleanup", "cleanup g --keep 1"
    yield "fsck", "fsck g"
    yield "repair", "repair g"
    yield "recovery list", "recovery list g"
    yield "recovery run", "recovery run g"
    yield "alias", "alias people"
    yield "alias, without a name", "alias"
    yield "profile list", "profile list"
    yield "profile show", "profile show"
    yield "login", "login hub --token t"
    yield "logout", "logout hub"
    yield "version", "version"
    yield "a failure", "schema show nowhere"


def shape(value: Any) -> Any:
    """Names and kinds, without values."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        found: list[Any] = []
        for item in map(shape, value):
            if item not in found:
                found.append(item)
        return found
    return {type(None): "null", bool: "bool", int: "number", float: "number"}.get(
        type(value), "text"
    )


def words(text: str) -> list[str]:
    import shlex

    heads = {
        "@head": lambda: next(omnigraph.open("g", read_only=True).commits()).id,
        "@try": lambda: next(omnigraph.open("g", branch="try", read_only=True).commits()).id,
    }
    return [heads[word]() if word in heads else word for word in shlex.split(text)]


def read(text: str) -> Any:
    """One JSON value, or several on lines of their own."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def trimmed(answer: Any) -> Any:
    """Plans are not pinned here: one operator stands for all of them."""
    if isinstance(answer, dict) and "plan" in answer and "ir" in answer:
        return answer | {"ir": [], "plan": answer["plan"] | {"inputs": []}}
    return answer


# ledger: P04
@pytest.mark.usefixtures("scene")
def test_every_shape(capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {}
    for name, text in script():
        code = main.run([*words(text), "--json"])
        said = capsys.readouterr()
        assert (code == 0) == (name not in ("a failure", "fmt")), (text, said)
        if name:
            found[name] = shape(trimmed(read(said.out or said.err)))
    written = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        SHAPES.write_text(written)
    assert found == json.loads(SHAPES.read_text())


def test_every_command_with_json_has_a_shape() -> None:
    known = {name.split(" --")[0] for name in json.loads(SHAPES.read_text())}
    for path, command in reference.commands_of(get_command(main.app)):
        name = " ".join(path[1:])
        has_json = any(param.name == "as_json" for param in command.params)
        if not hasattr(command, "commands") and name not in ON_SPARK:
            assert has_json == (name not in SILENT), name
            assert not has_json or name in known, f"add `{name}` to script()"
