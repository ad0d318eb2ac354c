"""How long a query of thirty lines takes to compile: anew, from the cache, and stage by stage.

Processor time, so that other programs on the machine do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from benchmarks.measure import AGAIN, OURS, Findings, Measure, times_ms
from benchmarks.suites import Setting
from omnigraph.lang.diagnostics import Report, Source
from omnigraph.lang.gq import compile_query, format_queries, parse
from omnigraph.lang.gq.compile import cache
from omnigraph.lang.gq.syntax.lexer import tokenize
from omnigraph.lang.pg import compile_schema

SCHEMA = """
interface Named { name: String }
node Person implements Named {
    name: String @key
    age: I32?
    bio: String?
    born: Date?
    tags: [String]?
    vec: Vector(3)?
}
node Company implements Named { name: String @key  size: I64? }
node City { title: String @key }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company { title: String? }
edge LocatedIn: Company -> City
"""

QUERY = """\
query colleagues($name: String, $city: String, $q: String, $v: Vector(3), $tags: [String], $n: I64)
    @description("Friends of friends who work nearby, best match first")
{
    match {
        $p: Person { name: $name }
        $p knows{1,2} $f
        $f $job:worksAt $c
        $c locatedIn $town
        $town.title = $city and ($c.size > 10 or $c.size is null)
        $f.age >= 18 and $f.age < 65
        $f.name != $name
        $job.title icontains "engineer" or $f.bio contains "engineer"
        not { $f knows $p }
        optional { $f <-knows $fan }
    }
    with { $f, $c, $town.title as town, count(distinct $fan) as fans }
    having { fans >= 2 }
    order { fans desc, town }
    limit 1000
    match {
        $f knows|worksAt $other
        $f.born >= date("1970-01-01")
    }
    return {
        $f.name,
        lower($c.name) as company,
        fans * 10 + length($f.name) as weight,
        rrf(nearest($f.vec, $v), bm25($f.bio, $q)) as score
    }
    order { score desc, weight }
    limit $n
}
"""


def run(setting: Setting) -> Findings:
    schema = compile_schema(SCHEMA)

    def anew() -> object:
        cache.clear()
        return compile_query(QUERY, schema)

    stages: dict[str, tuple[Callable[[], object], int, float | None]] = {
        "cut into tokens": (lambda: tokenize(Report(Source(QUERY))), 200, None),
        "parse": (lambda: parse(QUERY), 200, None),
        "compile, not in the cache": (anew, 200, 5_000),
        "compile, in the cache": (lambda: compile_query(QUERY, schema), 500, 50),
        "format": (lambda: format_queries(QUERY), 200, None),
    }
    lines = QUERY.count("\n")
    found = []
    for name, (call, repeats, target) in stages.items():
        samples = {
            subject: [1000 * ms for ms in times_ms(call, repeats, clock=process_time)]
            for subject in (OURS, AGAIN)
        }
        found.append(Measure(f"{name}, {lines} lines", "µs", samples, target=target))
    return Findings(found)
