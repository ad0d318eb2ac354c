"""The shell without its terminal: statements, commands, completion."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli import main
from omnigraph.cli.commands.shell.completer import Completer
from omnigraph.cli.commands.shell.entry import as_query, is_complete, read_arguments
from omnigraph.errors import InvalidArgumentError

SCHEMA = """
interface Named { name: String }
node Person implements Named {
    name: String @key
    age: I32?
}
node Firm {
    title: String @key
}
edge WorksAt: Person -> Firm
"""
QUERIES = """query called($n: String) @description("by name") {
    match { $p: Person { name: $n } } return { $p.age }
}
query all() { match { $p: Person } return { $p.name } }
"""


@pytest.fixture
def graph(tmp_path: Path) -> str:
    place = str(tmp_path / "g")
    made = omnigraph.init(place, SCHEMA)
    made.ingest([{"type": "Person", "data": {"name": "Ada", "age": 36}}])
    made.create_branch("try")
    (tmp_path / "q.gq").write_text(QUERIES)
    return place


@pytest.fixture
def say(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Pipe statements into a shell; gives its exit code and what it printed."""

    def speak(text: str, *options: str) -> tuple[int, str, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        code = main.run(["shell", graph, *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    return speak


def test_queries_and_mutations(say) -> None:
    code, out, err = say('insert Person { name: "Bo" }\nmatch { $p: Person }\nreturn { $p.name }\n')
    assert code == 0
    assert out.startswith("Person: 1 inserted\ncommit ")
    assert out.endswith("p.name\n------\nAda\nBo\n")
    assert err.startswith("omnigraph shell → ")


def test_queries_that_have_names(say) -> None:
    code, out, err = say('called n=Ada\ncalled {"n": "Ada"};\n\\run called n="Ada"\n', "-q", "q.gq")
    assert (code, out.count("36")) == (0, 3)
    text = "query mine($n: String) { match { $p: Person { name: $n } } return { $p.name } }\n"
    code, out, err = say(text + "mine n=Ada\n")
    assert (code, "Ada" in out, "call it as: mine n=…" in err) == (0, True, True)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("\\d", "node  Person   1"),
        ("\\d Person", "edge WorksAt: Person -> Firm"),
        ("\\d WorksAt", "edge WorksAt: Person -> Firm"),
        ("\\branch", "*  main"),
        ("\\branch try\n\\branch", "*  try"),
        ("\\explain match { $p: Person } return { $p.name }", "Scan $p: Person"),
        ("\\explain --run all", "1 rows;"),
        ("\\i q.gq\n\\queries", "called  $n          by name"),
        ("\\log 1", "load"),
        ("\\schema", "node Person"),
        ("\\format csv\nall", "p.name\nAda\n"),
        ("\\?", "\\explain [--run] QUERY"),
        ("\\q\nnonsense", ""),
    ],
    ids=lambda value: value.split("\n")[0] if value.startswith("\\") else "",
)
def test_commands(say, command: str, told: str) -> None:
    code, out, _ = say(command + "\n", "-q", "q.gq")
    assert code == 0
    assert told in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\\zebra\n", "There is no command \\zebra."),
        ("\\d Zebra\n", "There is no type 'Zebra'."),
        ("\\branch zebra\n", "There is no branch 'zebra'."),
        ("\\run zebra\n", "There is no query 'zebra' here."),
        ("\\format zebra\n", "There is no format 'zebra'."),
        ("match { $p: Zebra } return { $p.name }\n", "Zebra"),
        ("nonsense\n\\d\n", "error"),
    ],
)
def test_a_failure_ends_a_script(say, text: str, said: str) -> None:
    code, out, err = say(text)
    assert (code, out) == (1, "")
    assert said in err


def test_a_shell_that_only_reads(say) -> None:
    code, _, err = say('insert Person { name: "Bo" }\n', "--read-only")
    assert code == 1
    assert "read-only" in err


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("\\d", True),
        ("match { $p: Person }", False),
        ("match { $p: Person } return { $p.name", False),
        ("match { $p: Person } return { $p.name }", True),
        ('match { $p: Person { name: "}" ', False),
        ("query q() { match { $p: Person", False),
        ("query q()", False),
        ("query q() { match { $p: Person } return { $p } }", True),
        ("insert Person { name: 'x' }", True),
        ("\\explain match { $p: Person", False),
        ("all;", True),
    ],
)
def test_when_a_statement_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_what_has_no_query_around_it_gets_one() -> None:
    assert as_query("delete Person where name = 'x';") == (
        "query shell() { delete Person where name = 'x' }"
    )
    assert as_query("query q() { … }") == "query q() { … }"


def test_arguments() -> None:
    assert read_arguments(' n=3 name="a b" word=Ada on=true list=[1,2]') == {
        "n": 3,
        "name": "a b",
        "word": "Ada",
        "on": True,
        "list": [1, 2],
    }
    assert read_arguments('{"n": null}') == {"n": None}
    for wrong in ("3", "{", "a b=1"):
        with pytest.raises(InvalidArgumentError):
            read_arguments(wrong)


@pytest.mark.parametrize(
    ("text", "begun", "words"),
    [
        ("match { $p: Per", "Per", ["Person"]),
        ("match { $p: ", "", ["Person", "Firm", "Named"]),
        ("match { $p: Person } return { $p.n", "n", ["name"]),
        ("match { $p: Person } return { $p.", "", ["id", "name", "age"]),
        ("match { $x worksAt $y } return { $y.t", "t", ["title"]),
        ("match { $p w", "w", ["worksAt"]),
        ("match { $person: Person } return { $p", "p", ["person"]),
        ("insert F", "F", ["Firm"]),
        ("\\br", "br", ["branch"]),
        ("\\branch t", "t", ["try"]),
        ("\\d W", "W", ["WorksAt"]),
        ("\\format j", "j", ["jsonl", "json"]),
        ("cal", "cal", ["called"]),
        ("match { $p: Person } retu", "retu", ["return"]),
    ],
)
def test_what_could_come_next(text: str, begun: str, words: list[str]) -> None:
    from omnigraph.lang.pg import compile_schema

    offered = Completer(compile_schema(SCHEMA), ["called"], ["main", "try"], ["branch", "d"])
    assert offered.offer(text) == (begun, words)
