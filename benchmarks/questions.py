"""What the query suite asks of a social graph: each question in our language, in Cypher and in SQL.

The nine numbered ones are analytic; the others are what applications do all day. Orders are total
in every language, so that answers can be compared row by row: ours breaks ties by id, the others
say so. `target_ms` is what we promise for a warm run at scale 1; of the analytic ones we promise to
be no slower than the best peer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Question:
    """`cypher` takes parameters by name; `sql` likewise, over integer keys (see `subjects.sql`)."""

    name: str
    text: str
    cypher: str
    sql: str
    params: Mapping[str, Any] = field(default_factory=dict)
    target_ms: float | None = None
    ordered: bool = True  # False: compared as a set

    @property
    def analytic(self) -> bool:
        return self.name[0].isdigit()


SOMEBODY = {"who": "p0000042"}
_HOME = "JOIN lives_in l ON l.src = p.num JOIN city c ON c.num = l.dst"
_LAND = "JOIN city_in ci ON ci.src = c.num JOIN state s ON s.num = ci.dst"
_COUNTRY = "JOIN state_in si ON si.src = s.num JOIN country k ON k.num = si.dst"
_FANS = "SELECT dst, count(*) AS followers FROM follows GROUP BY dst"
_LIKES = "JOIN has_interest h ON h.src = p.num JOIN interest i ON i.num = h.dst"
_START = "(SELECT num FROM person WHERE handle = $who)"
_PLACES = "-[:CityIn]->(s:State)-[:StateIn]->(l:Country)"

QUESTIONS = (
    Question(
        "1 most followed people",
        """query q() { match { $f: Person $f follows $p }
        return { $p.handle, $p.name, count($f) as followers }
        order { followers desc } limit 3 }""",
        """MATCH (:Person)-[f:Follows]->(p:Person)
        RETURN p.handle, p.name, count(f) AS followers
        ORDER BY followers DESC, p.handle LIMIT 3""",
        f"""SELECT p.handle, p.name, followers FROM ({_FANS}) f JOIN person p ON p.num = f.dst
        ORDER BY followers DESC, p.handle LIMIT 3""",
    ),
    Question(
        "2 home of the most followed",
        """query q() { match { $f: Person $f follows $p }
        with { $p, count($f) as followers } order { followers desc } limit 1
        match { $p livesIn $c $c cityIn $s $s stateIn $l }
        return { $p.name, followers, $c.label, $s.name as state, $l.name as country } }""",
        f"""MATCH (:Person)-[f:Follows]->(p:Person)
        WITH p, count(f) AS followers ORDER BY followers DESC, p.handle LIMIT 1
        MATCH (p)-[:LivesIn]->(c:City){_PLACES}
        RETURN p.name, followers, c.label, s.name, l.name""",
        f"""WITH top AS (SELECT p.num, p.name, followers FROM ({_FANS}) f
            JOIN person p ON p.num = f.dst ORDER BY followers DESC, p.handle LIMIT 1)
        SELECT p.name, followers, c.label, s.name, k.name FROM top p {_HOME} {_LAND} {_COUNTRY}""",
    ),
    Question(
        "3 youngest cities of a country",
        """query q($country: String) { match { $l: Country { name: $country }
            $s stateIn $l $c cityIn $s $p livesIn $c }
        return { $c.label, avg($p.age) as age } order { age } limit 5 }""",
        f"""MATCH (p:Person)-[:LivesIn]->(c:City){_PLACES} WHERE l.name = $country
        RETURN c.label, avg(p.age) AS age ORDER BY age, c.label LIMIT 5""",
        f"""SELECT c.label, avg(p.age) AS age FROM person p {_HOME} {_LAND} {_COUNTRY}
        WHERE k.name = $country GROUP BY c.label ORDER BY age, c.label LIMIT 5""",
        {"country": "United States"},
    ),
    Question(
        "4 people of an age, by country",
        """query q($low: I32, $high: I32) { match { $p: Person
            $p.age >= $low and $p.age <= $high
            $p livesIn $c $c cityIn $s $s stateIn $l }
        return { $l.name, count($p) as people } order { people desc } }""",
        f"""MATCH (p:Person)-[:LivesIn]->(c:City){_PLACES} WHERE p.age >= $low AND p.age <= $high
        RETURN l.name, count(p) AS people ORDER BY people DESC, l.name""",
        f"""SELECT k.name, count(*) AS people FROM person p {_HOME} {_LAND} {_COUNTRY}
        WHERE p.age >= $low AND p.age <= $high GROUP BY k.name ORDER BY people DESC, k.name""",
        {"low": 30, "high": 40},
    ),
    Question(
        "5 men of a city with an interest",
        """query q($interest: String) { match { $p: Person { gender: "male" }
            $p hasInterest $i lower($i.name) = $interest
            $p livesIn $c $c.label = "London"
            $c cityIn $s $s stateIn $l $l.name = "United Kingdom" }
        return { count($p) as people } }""",
        f"""MATCH (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City){_PLACES}
        WHERE lower(i.name) = $interest AND p.gender = 'male' AND c.label = 'London'
            AND l.name = 'United Kingdom' RETURN count(p) AS people""",
        f"""SELECT count(*) FROM person p {_LIKES} {_HOME} {_LAND} {_COUNTRY}
        WHERE lower(i.name) = $interest AND p.gender = 'male' AND c.label = 'London'
            AND k.name = 'United Kingdom'""",
        {"interest": "fine dining"},
    ),
    Question(
        "6 city of women with an interest",
        """query q($interest: String) { match { $p: Person { gender: "female" }
            $p hasInterest $i lower($i.name) = $interest
            $p livesIn $c }
        return { $c.name, $c.label, count($p) as people } order { people desc } limit 5 }""",
        """MATCH (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)
        WHERE lower(i.name) = $interest AND p.gender = 'female'
        RETURN c.name, c.label, count(p) AS people ORDER BY people DESC, c.name LIMIT 5""",
        f"""SELECT c.name, c.label, count(*) AS people FROM person p {_LIKES} {_HOME}
        WHERE lower(i.name) = $interest AND p.gender = 'female'
        GROUP BY c.name, c.label ORDER BY people DESC, c.name LIMIT 5""",
        {"interest": "tennis"},
    ),
    Question(
        "7 states of an age and interest",
        """query q($low: I32, $high: I32) { match { $p: Person
            $p.age >= $low and $p.age <= $high
            $p hasInterest $i lower($i.name) = "photography"
            $p livesIn $c $c cityIn $s $s stateIn $l $l.name = "United States" }
        return { $s.name, count($p) as people } order { people desc } limit 1 }""",
        f"""MATCH (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City){_PLACES}
        WHERE lower(i.name) = 'photography' AND p.age >= $low AND p.age <= $high
            AND l.name = 'United States'
        RETURN s.name, count(p) AS people ORDER BY people DESC, s.name LIMIT 1""",
        f"""SELECT s.name, count(*) AS people FROM person p {_LIKES} {_HOME} {_LAND} {_COUNTRY}
        WHERE lower(i.name) = 'photography' AND p.age >= $low AND p.age <= $high
            AND k.name = 'United States'
        GROUP BY s.name ORDER BY people DESC, s.name LIMIT 1""",
        {"low": 23, "high": 30},
    ),
    Question(
        "8 paths of two hops",
        """query q() { match { $a: Person $a follows $b $b follows $c }
        return { count(*) as paths } }""",
        """MATCH (:Person)-[:Follows]->(:Person)-[:Follows]->(:Person) RETURN count(*)""",
        """SELECT sum(ins * outs)
        FROM (SELECT dst AS num, count(*) AS ins FROM follows GROUP BY dst)
        JOIN (SELECT src AS num, count(*) AS outs FROM follows GROUP BY src) USING (num)""",
        target_ms=15,
    ),
    Question(
        "9 paths of two hops, filtered",
        """query q($b: I32, $c: I32) { match { $x: Person $x follows $y $y follows $z
            $y.age < $b $z.age > $c }
        return { count(*) as paths } }""",
        """MATCH (:Person)-[:Follows]->(y:Person)-[:Follows]->(z:Person)
        WHERE y.age < $b AND z.age > $c RETURN count(*)""",
        """SELECT sum(ins * outs)
        FROM (SELECT dst AS num, count(*) AS ins FROM follows GROUP BY dst)
        JOIN (SELECT f.src AS num, count(*) AS outs FROM follows f JOIN person z ON z.num = f.dst
            WHERE z.age > $c GROUP BY f.src) USING (num)
        JOIN person y USING (num) WHERE y.age < $b""",
        {"b": 50, "c": 25},
        target_ms=15,
    ),
    Question(
        "reach, 2 hops",
        """query q($who: String) { match { $a: Person { handle: $who } $a follows{1,2} $b }
        return { count($b) as reached } }""",
        """MATCH (a:Person {handle: $who})-[:Follows* SHORTEST 1..2]->(b:Person)
        WHERE b.handle <> $who RETURN count(DISTINCT b.handle)""",
        f"""WITH one AS (SELECT DISTINCT dst FROM follows WHERE src = {_START}),
        two AS (SELECT dst FROM one UNION SELECT f.dst FROM one JOIN follows f ON f.src = one.dst)
        SELECT count(*) FROM two WHERE dst <> {_START}""",
        SOMEBODY,
        target_ms=5,
    ),
    Question(
        "reach, 3 hops",
        """query q($who: String) { match { $a: Person { handle: $who } $a follows{1,3} $b }
        return { count($b) as reached } }""",
        """MATCH (a:Person {handle: $who})-[:Follows* SHORTEST 1..3]->(b:Person)
        WHERE b.handle <> $who RETURN count(DISTINCT b.handle)""",
        f"""WITH one AS (SELECT DISTINCT dst FROM follows WHERE src = {_START}),
        two AS (SELECT dst FROM one UNION SELECT f.dst FROM one JOIN follows f ON f.src = one.dst),
        three AS (SELECT dst FROM two UNION SELECT f.dst FROM two JOIN follows f ON f.src = two.dst)
        SELECT count(*) FROM three WHERE dst <> {_START}""",
        SOMEBODY,
        target_ms=5,
    ),
    Question(
        "page of people who do not follow",
        """query q($who: String) { match { $a: Person
            not { $a follows $b $b.handle = $who } }
        return { $a.handle, $a.name } order { $a.name } limit 20 }""",
        """MATCH (a:Person) WHERE NOT EXISTS { MATCH (a)-[:Follows]->(b:Person {handle: $who}) }
        RETURN a.handle, a.name ORDER BY a.name, a.handle LIMIT 20""",
        f"""SELECT a.handle, a.name FROM person a
        WHERE NOT EXISTS (SELECT 1 FROM follows f WHERE f.src = a.num AND f.dst = {_START})
        ORDER BY a.name, a.handle LIMIT 20""",
        SOMEBODY,
        target_ms=20,
    ),
    Question(
        "person by key",
        """query q($who: String) { match { $a: Person { handle: $who } }
        return { $a.name, $a.age } }""",
        "MATCH (a:Person {handle: $who}) RETURN a.name, a.age",
        "SELECT name, age FROM person WHERE handle = $who",
        SOMEBODY,
        target_ms=1,
    ),
    Question(
        "one hop from a key",
        """query q($who: String) { match { $a: Person { handle: $who } $a follows $b }
        return { $b.handle, $b.name } }""",
        "MATCH (a:Person {handle: $who})-[:Follows]->(b:Person) RETURN b.handle, b.name",
        f"""SELECT b.handle, b.name FROM follows f JOIN person b ON b.num = f.dst
        WHERE f.src = {_START}""",
        SOMEBODY,
        target_ms=1.5,
        ordered=False,
    ),
    Question(
        "triangles around the young",
        """query q($age: I32) { match { $a: Person $a.age = $age
            $a follows $b $b follows $c $c follows $a }
        return { count(*) as triangles } }""",
        """MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person)-[:Follows]->(a)
        WHERE a.age = $age RETURN count(*)""",
        """SELECT count(*) FROM person a JOIN follows f ON f.src = a.num
        JOIN follows g ON g.src = f.dst JOIN follows h ON h.src = g.dst AND h.dst = a.num
        WHERE a.age = $age""",
        {"age": 18},
    ),
)
