"""Built queries: equal to their text, in tree and in IR."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from omnigraph.builder import (
    Built,
    alias,
    distinct,
    fn,
    mutation,
    node,
    optional,
    query,
    this,
    var,
    variables,
    walk,
    without,
)
from omnigraph.errors import InvalidArgumentError, QueryError
from omnigraph.lang import gq
from omnigraph.lang.gq.drafts.querytext import text_of
from omnigraph.lang.pg import compile_schema

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "gq"
CATALOG = compile_schema((GOLDEN / "schema.pg").read_text())
FILES = sorted([*(GOLDEN / "constructs").glob("*.gq"), *(GOLDEN / "syntax").glob("*.gq")])

p, f, c, q, h, w = variables("p f c q h w")
who, least = variables("who least")

MORNING = datetime(2026, 1, 2, tzinfo=UTC)
PAIRS = {
    "binding": (
        query("q", who="String").match(node(p, "Person", name=who)).returns(p.name),
        "query q($who: String) { match { $p: Person { name: $who } } return { $p.name } }",
    ),
    "operators": (
        query()
        .match(
            node(p, "Person"),
            ((p.age + 1) * 2 > 30) | (p.age.is_null() & ~p.name.starts_with("A")),
            p.name.is_in(["Ada", "Bo"]),
            p.age != -3,
        )
        .returns(p.name, half=p.age / 2, rest=10 - p.age % 3),
        """query built() { match { $p: Person
            ($p.age + 1) * 2 > 30 or $p.age is null and not $p.name starts_with "A"
            $p.name in ["Ada", "Bo"]
            $p.age != -3 }
        return { $p.name, $p.age / 2 as half, 10 - $p.age % 3 as rest } }""",
    ),
    "walks": (
        query()
        .match(
            node(p, "Person"),
            walk(p, "knows", f, hops=(1, 3), hops_var=h),
            walk(f, ["knows", "likes"], q),
            optional(walk(p, "worksAt", c, edge_var=w), c.size > 10),
            without(walk(q, "knows", p)),
        )
        .returns(f.name, h, c.name, w.title, distinct=True),
        """query built() { match { $p: Person  $p knows{1,3} as $h $f  $f knows|likes $q
            optional { $p $w:worksAt $c  $c.size > 10 }
            not { $q knows $p } }
        return distinct { $f.name, $h, $c.name, $w.title } }""",
    ),
    "stages": (
        query("popular", least="I64")
        .match(node(p, "Person"), walk(f, "knows", p))
        .hands_on(p, fans=fn.count(distinct(f)), oldest=fn.max(f.age))
        .having(alias("fans") >= least)
        .order(alias("fans").desc(), p.name)
        .limit(10)
        .match(walk(p, "worksAt", c), alias("fans") > 3)
        .returns(p.name, c.name, twice=alias("fans") * 2, all=fn.count())
        .order(alias("twice"))
        .offset(5)
        .limit(least),
        """query popular($least: I64) {
            match { $p: Person  $f knows $p }
            with { $p, count(distinct $f) as fans, max($f.age) as oldest }
            having { fans >= $least } order { fans desc, $p.name } limit 10
            match { $p worksAt $c  fans > 3 }
            return { $p.name, $c.name, fans * 2 as twice, count(*) as all }
            order { twice } offset 5 limit $least }""",
    ),
    "search": (
        query("near", v="Vector(3)", text="String")
        .match(node(q, "Doc"), fn.search(q.body, var("text")))
        .returns(q.slug, score=fn.score(fn.bm25(q.body, var("text"))))
        .order(fn.rrf(fn.nearest(q.embedding, var("v")), fn.bm25(q.body, var("text"))))
        .limit(3),
        """query near($v: Vector(3), $text: String) {
            match { $q: Doc  search($q.body, $text) }
            return { $q.slug, score(bm25($q.body, $text)) as score }
            order { rrf(nearest($q.embedding, $v), bm25($q.body, $text)) } limit 3 }""",
    ),
    "constants": (
        mutation()
        .insert("Knows", from_="a", to='quo"te\\n', since=date(2026, 1, 2))
        .update("Person", this.name == "Ada", age=this.age + 1, seen=MORNING)
        .upsert("Person", name="x", age=None, on_conflict="update", updates={"age": 1}),
        """query built() {
            insert Knows { from: "a", to: "quo\\"te\\\\n", since: date("2026-01-02") }
            update Person set { age: age + 1, seen: datetime("2026-01-02T00:00:00+00:00") }
                where name = "Ada"
            upsert Person { name: "x", age: null } on conflict update set { age: 1 } }""",
    ),
    "delete": (
        mutation("drop", who="String").delete("Person", this.name == who),
        "query drop($who: String) { delete Person where name = $who }",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_built_query_and_its_text_give_the_same_ir(name: str) -> None:
    built, text = PAIRS[name]
    assert isinstance(built, Built)
    assert gq.parse(str(built)).queries[0] == built.tree()
    assert gq.compile_query(str(built), CATALOG) == gq.compile_query(text, CATALOG)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_tree_is_written_as_text_that_reads_the_same(file: Path) -> None:
    for tree in gq.parse(file.read_text()).queries:
        assert gq.parse(text_of(tree)).queries[0] == tree


def test_steps_leave_what_they_start_from_alone() -> None:
    base = query().match(node(p, "Person")).returns(p.name)
    assert str(base.limit(1)) != str(base)
    assert "limit" not in str(base)


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(InvalidArgumentError, match="no truth"):
        bool(p.age > 3)
    with pytest.raises(InvalidArgumentError, match="no constant"):
        p.age == {1}  # noqa: B015
    with pytest.raises(InvalidArgumentError, match="returns nothing"):
        str(query().match(node(p, "Person")))
    with pytest.raises(InvalidArgumentError, match="no name"):
        var("a b")
    with pytest.raises(QueryError, match="no type"):
        str(query(x="Zebra!").returns(p.name))
    with pytest.raises(QueryError):
        gq.compile_query(str(query().match(node(p, "Zebra")).returns(p.x)), CATALOG)


def test_an_expression_shows_itself_as_text() -> None:
    assert repr((p.age > 3) & p.name.contains("a")) == '$p.age > 3 and $p.name contains "a"'
