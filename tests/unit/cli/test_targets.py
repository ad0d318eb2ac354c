"""Which graph a command works on, and what it says and asks before it writes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.pseudoterminal import TAB, Terminal

import omnigraph
from omnigraph.cli import main, targets
from omnigraph.errors import InvalidArgumentError

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person\n"
ASK = "query q($n: String?) { match { $p: Person } return { $p.name } limit 3 }"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with a graph `g`, which the configuration calls `shop` and takes by default."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)
    monkeypatch.delenv("OMNIGRAPH_ACTOR", raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "q.gq").write_text(ASK)
    configure(tmp_path, f"operator: {{actor: anna}}\nstores: {{shop: {{uri: {tmp_path}/g}}}}")
    omnigraph.init(str(tmp_path / "g"), SCHEMA).ingest(
        [{"type": "Person", "data": {"name": "Ada"}}]
    )
    return str(tmp_path / "g")


def configure(folder: Path, text: str) -> None:
    with (folder / "home" / "config.yaml").open("a") as file:
        file.write(text + "\n")


def branches(place: str) -> list[str]:
    return [info.name for info in omnigraph.open(place, read_only=True).branches()]


@pytest.mark.parametrize(
    "words",
    [
        ["branch", "create", "g", "new"],
        ["branch", "create", "shop", "new"],
        ["branch", "create", "--store", "g", "new"],
        ["branch", "create", "new", "--uri", "shop"],
        ["branch", "create", "new", "--profile", "dev"],
        ["branch", "create", "new"],
    ],
    ids=" ".join,
)
def test_ways_to_name_a_graph(place: str, tmp_path: Path, words: list[str]) -> None:
    configure(tmp_path, "profiles: {dev: {store: shop}}\ndefaults: {store: shop}")
    assert main.run(words) == 0
    assert branches(place) == ["main", "new"]


def test_the_profile_of_the_environment(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, "profiles: {dev: {store: shop}}")
    assert main.run(["branch", "create", "new"]) == 2
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "dev")
    assert main.run(["branch", "create", "new"]) == 0


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["branch", "list", "g", "--store", "g"], 2, "the argument and --store"),
        (["branch", "list", "--profile", "zebra"], 3, "no profile 'zebra'"),
        (["branch", "list", "--server", "https://h"], 1, "not through a server"),
        (["branch", "list", "https://h"], 2, "Name a server with --server"),
        (["query", "-e", ASK], 2, "No graph is named"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_refusals(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(words) == code
    assert said in capsys.readouterr().err


def test_a_write_tells_its_target(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(tmp_path, "defaults: {store: shop}")
    main.run(["tag", "create", "g", "a"])
    assert capsys.readouterr().err == "omnigraph tag create → g (local)\n"
    main.run(["tag", "create", "b"])
    assert capsys.readouterr().err == f"omnigraph tag create → {place} (local, from the defaults)\n"
    for more in (["--quiet"], ["--json"]):
        main.run(["tag", "create", more[0][2:], *more])
        assert capsys.readouterr().err == ""
    main.run(["tag", "list"])
    assert capsys.readouterr().err == ""


def test_who_acts(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def author(*words: str) -> str:
        assert main.run(["mutate", "--store", "g", "-e", INSERT, *words]) == 0
        return next(omnigraph.open(place, read_only=True).commits()).actor

    INSERT = 'query q() { insert Person { name: "a" } }'  # noqa: N806
    assert author() == "anna"
    INSERT = INSERT.replace('"a"', '"b"')  # noqa: N806
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "envy")
    assert author() == "envy"
    INSERT = INSERT.replace('"b"', '"c"')  # noqa: N806
    assert author("--as", "carl") == "carl"


def test_destroying_what_is_not_local_needs_a_word(tmp_path: Path) -> None:
    targets.ask_consent(str(tmp_path), "remove it", yes=False)
    targets.ask_consent("s3://bucket/graph", "remove it", yes=True)
    with pytest.raises(InvalidArgumentError, match="is not local, and this would remove it"):
        targets.ask_consent("s3://bucket/graph", "remove it", yes=False)
    for words in (
        ["branch", "delete", "s3://b/g", "x"],
        ["ingest", "s3://b/g", "--data", "x", "--mode", "overwrite"],
        ["load", "s3://b/g", "--data", "x", "--mode", "overwrite"],
        ["cleanup", "s3://b/g", "--keep", "1", "--confirm"],
    ):
        assert main.run([*words, "--json"]) == 2


@pytest.mark.usefixtures("place")
def test_aliases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(
        tmp_path,
        "aliases:\n"
        "  who: {store: shop, file: q.gq, query: q, args: [n], format: csv}\n"
        "  far: {server: hub, query: q}\n"
        "  lost: {store: shop, query: q}",
    )
    assert main.run(["alias", "who", "Ada"]) == 0
    assert capsys.readouterr().out == "p.name\nAda\n"
    assert main.run(["alias", "who", "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1]) == {"p.name": "Ada"}
    for words, code, said in (
        (["who", "a", "b"], 2, "takes 1 arguments"),
        (["far"], 1, "this version has no servers"),
        (["lost"], 2, "no file"),
        (["zebra"], 3, "no alias 'zebra'"),
    ):
        assert main.run(["alias", *words]) == code
        assert said in capsys.readouterr().err


@pytest.mark.usefixtures("place")
def test_the_format_of_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(tmp_path, "defaults: {store: shop, output: kv}")
    assert main.run(["query", "-e", ASK]) == 0
    assert capsys.readouterr().out == "p.name  Ada\n"
    assert main.run(["query", "-e", ASK, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "p.name\nAda\n"


@pytest.mark.usefixtures("place")
def test_login(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    assert main.run(["login", "hub"]) == 0
    kept = tmp_path / "home" / "credentials"
    assert kept.read_text() == "[hub]\ntoken = secret\n"
    assert "secret" not in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main.run(["login", "hub"]) == 2
    assert main.run(["logout", "hub"]) == 0
    assert kept.read_text() == ""


def test_the_words_that_a_shell_completes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for shell in ("bash", "zsh", "fish", "powershell"):
        assert main.run(["completion", shell]) == 0
        assert "_OMNIGRAPH_COMPLETE" in capsys.readouterr().out
    monkeypatch.setenv("_OMNIGRAPH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "omnigraph bra")
    monkeypatch.setenv("COMP_CWORD", "1")
    main.run([])
    assert capsys.readouterr().out.split() == ["branch"]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("snapshot sh", ["shop"]),
        ("query --profile ", ["dev"]),
        ("alias ", ["who"]),
        ("snapshot zebra", []),
        ("load g --branch ", ["main", "night"]),
        ("query --store shop --branch ni", ["night"]),
        ("export shop --mode x --type K", ["Knows"]),
        ("export g --tag v", ["v1"]),
        ("export nowhere --type K", []),
    ],
)
def test_names_that_a_shell_completes(
    words: str,
    offered: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(tmp_path, "profiles: {dev: {store: shop}}\naliases: {who: {store: shop}}")
    graph = omnigraph.open("g")
    graph.create_branch("night")
    graph.create_tag("v1")
    monkeypatch.setenv("_OMNIGRAPH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"omnigraph {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    main.run([])
    assert capsys.readouterr().out.split() == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
@pytest.mark.usefixtures("place")
def test_zsh_completes_in_earnest(tmp_path: Path) -> None:
    omnigraph.open("g").create_branch("night")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ("--no-rcs", "--interactive")
    env = {"PATH": path, "PS1": "> ", "HOME": str(tmp_path)}
    with Terminal(*words, program=shutil.which("zsh") or "", env=env) as zsh:
        zsh.send('autoload -U compinit; compinit -u; eval "$(omnigraph completion zsh)"\n')
        zsh.send("echo set$((40 + 2))\n")
        zsh.read_until("set42")
        zsh.send(f"omnigraph fsc{TAB}")
        zsh.read_until("fsck")
        zsh.send(f" g; omnigraph load g --branch ni{TAB}")
        zsh.read_until("--branch night")


def test_a_copy_tells_where_it_goes(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["copy", "g", "--to", "twin"]) == 0
    assert "→ twin (local)" in capsys.readouterr().err
    assert branches("twin") == branches(place)


@pytest.mark.usefixtures("place")
def test_an_empty_folder_says_what_is_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bare").mkdir()
    for engine in ("spark", "embedded"):
        assert main.run(["load", "g", "--data", "bare", "--engine", engine]) == 2
        said = capsys.readouterr().err
        assert "The folder bare holds no file that can be loaded." in said
        assert ".jsonl, " in said
        assert ".parquet" in said


def test_init_replaces_what_a_broken_one_left_but_never_a_graph(place: str, tmp_path: Path) -> None:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "_schema.pg").write_text("node Old { name: String @key }")
    assert main.run(["init", "half", "--schema", "s.pg", "--force"]) == 0
    assert "Person" in str(omnigraph.open("half").schema())
    assert main.run(["init", "g", "--schema", "s.pg", "--force"]) == 5
    assert branches(place) == ["main"]


def test_a_branch_that_begins_with_its_rows(place: str, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"type": "Person", "data": {"name": "Bo"}}\n')
    bad.write_text('{"type": "Person", "data": {}}\n')
    words = ["--branch", "new", "--from", "main"]
    assert main.run(["ingest", "g", "--data", str(bad), *words]) == 8
    assert branches(place) == ["main"]
    assert main.run(["ingest", "g", "--data", str(good), *words]) == 0
    assert main.run(["load", "g", "--data", str(good), "--engine", "embedded", *words]) == 5
    assert branches(place) == ["main", "new"]


@pytest.mark.usefixtures("place")
def test_the_names_of_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["read", "--store", "g", "-e", ASK]) == 0
    said = capsys.readouterr()
    assert said.out == "p.name\n------\nAda\n"
    assert said.err == "warning: read is called query now\n"
    assert main.run(["-v"]) == 0
    assert capsys.readouterr().out == f"omnigraph {omnigraph.__version__}\n"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "words", [["branch", "list"], ["commit", "list"], ["snapshot"], ["stats"], ["tag", "list"]]
)
def test_lists_in_every_format(
    words: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def said(*more: str) -> bytes:
        assert main.run([*words, "--store", "g", *more]) == 0
        return capsysbinary.readouterr().out

    main.run(["tag", "create", "g", "v1"])
    capsysbinary.readouterr()
    lines = [json.loads(line) for line in said("--format", "jsonl").splitlines()]
    assert said("--format", "json") == said("--json")
    header, *rows = said("--format", "csv").decode().splitlines()
    assert len(rows) == len(lines)
    assert set(header.split(",")) <= {*lines[0], "indexed"}
    stream = pa.ipc.open_stream(said("--format", "arrow")).read_all()
    file = pq.read_table(pa.BufferReader(said("--format", "parquet")))
    assert stream.column_names == file.column_names == header.split(",")
    assert said("--format", "kv").decode().startswith(header.split(",")[0])
    assert said("--format", "table") == said()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["query", "--store", "home/q.gq", "-e", ASK], 3, "a graph is a folder"),
        (["query", "--store", "home/q.gq/x", "-e", ASK], 3, "a graph is a folder"),
        (["init", "home/q.gq", "--schema", "home/s.pg"], 2, "a graph is a folder"),
        (["query", "--store", "g", "--query", "home/bad.gq"], 8, "home/bad.gq:1:24: error"),
        (["mutate", "--store", "g", "--query", "home/bad.gq"], 8, "home/bad.gq:1:24: error"),
        (["diff", "g", "main", "nobody"], 3, "no branch, tag or commit 'nobody'"),
        (["import", "new", "--from", "nowhere"], 2, "neither a graph nor an export at nowhere"),
        (["changes", "baseline", "g", "--out", "home"], 2, "home is a directory"),
        (["changes", "baseline", "g", "--out", "no/where"], 2, "There is no folder no"),
        (["embed", "g"], 2, "No type has a property with @embed"),
        (["ingest", "g", "--data", "home/rows.csv"], 2, "Use `load` for CSV"),
        (["blob", "get", "vertex", "Person", "Ada", "name", "--store", "g"], 2, "neither node"),
        (["blob", "get", "edge", "Person", "Ada", "name", "--store", "g"], 2, "type of nodes"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
def test_what_is_not_what_it_should_be_is_told_in_a_sentence(
    place: str, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("home/s.pg").write_text(SCHEMA)
    Path("home/bad.gq").write_text("query q() { match { $p Persn } }")
    Path("home/rows.csv").write_text("name\nAda\n")
    assert main.run(words) == code
    assert said.lower() in capsys.readouterr().err.lower()


def test_rows_of_a_named_type_are_ingested(place: str) -> None:
    pq.write_table(pa.table({"name": ["Bo"]}), "people.parquet")
    assert main.run(["ingest", "g", "--data", "people.parquet"]) == 2
    assert main.run(["ingest", "g", "--data", "people.parquet", "--type", "Person"]) == 0
    assert omnigraph.open(place, read_only=True).query(ASK).rows()[-1] == {"p.name": "Bo"}


def test_a_token_is_kept_and_forgotten(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["login", "hub", "--token", "t", "--json"]) == 0
    assert main.run(["logout", "hub"]) == 0
    assert main.run(["logout", "hub"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "forgot the token of hub",
        "no token of hub was kept",
    ]
