"""What to do about a finding whose place knows no better advice.

With the advice that is given on the spot, every finding of both languages has a hint.
"""

from __future__ import annotations

_ONCE = "keep one of them"
_BLOB = "blobs are stored and read whole: leave it out, and fetch the blob by the id of its row"

HINTS: dict[str, str] = {
    # Queries: text that cannot be read.
    "Q000": "a query is written `query name($param: Type) { … }`",
    "Q004": "integers end at 18446744073709551615 and floats near 1e308",
    "Q006": "a query is written `query name($param: Type) { … }`",
    # Queries: patterns, results and writes.
    "T1": "declare it in the schema: `node Name { … }`",
    "T3": "give a value of the property's type",
    "T4": "declare it in the schema: `edge Name: From -> To`",
    "T5": "name the variable at the end that has this type, or walk another edge",
    "T6": "bind it in `match` first: `$x: Type`",
    "T7": "compare and assign values of one type",
    "T8": "`sum` and `avg` take numbers, `min` and `max` what has an order, `count` anything",
    "T10": "declare it in the schema: `node Name { … }`",
    "T11": "leave it out, or add the property to the schema",
    "T14": "declare it in the head of the query: `query name($param: Type)`",
    # Queries: search.
    "T15": 'for example `nearest($x.embedding, $vector)` or `nearest($x.embedding, "text")`',
    "T19": "for example `search($x.title, $words)` or `fuzzy($x.title, $words, 1)`",
    "T20": "for example `match_text($x.title, $words)` or `bm25($x.title, $words)`",
    "T21": "k is a whole number such as 60; larger makes the first ranks count less",
    # Queries: names and expressions.
    "T23": "give the edge a name of its own, and use its properties: `$w.since`",
    "T24": _BLOB,
    "T25": "bind it in `match`, or declare it as a parameter",
    "T26": "choose another name",
    "T27": "the length of a vector is at least 1: `Vector(3)`",
    "T28": "a list holds constants of one type: `[1, 2, 3]`",
    "T29": "compare it with something: `$x.age > 18`, `$x is not null`",
    "T30": "calculate with numbers only",
    "T31": "the functions and their arguments are listed in the query language reference",
    "T32": "aggregates are count, sum, avg, min, max and collect: `count(*)`, `sum($x.age)`",
    "T33": "name a value with `as`, and use that name after it",
    "T35": "implement the interface in a node type, or bind the node type itself",
    "T37": "write `limit 10`, or `limit $n` with a parameter `$n: I64`",
    "T41": "patterns are RE2; a backslash in a string is written twice: `\\\\d`",
    "T43": "order by a number, a text, a date or a truth value",
    "L201": "add it to an update, or drop it from the schema if it is not needed",
    # Schemas.
    "S001": "a declaration is `node Name { property: Type }` or `edge Name: From -> To`",
    "S007": "integers have at most 64 bits and floats end near 1e308",
    "S002": "remove it, or put it into a string",
    "S103": "choose another name",
    "S104": _ONCE,
    "S107": "declare it: `interface Name { … }`",
    "S108": "declare it: `node Name { … }`",
    "S202": "write the length that the model gives: `Vector(768)`",
    "S203": "a list holds scalars, as in `[String]`",
    "S204": _ONCE,
    "S205": "list the values: `enum(open, closed)`",
    "S206": "write the same type in both, or leave the property out here to inherit it",
    "S301": "name a property of this type",
    "S302": "write it after the ends: `edge Name: From -> To @card(0..1)`",
    "S303": "remove it, or change the property's type",
    "S308": "patterns are RE2, without look-around and back-references",
    "S309": _ONCE,
    "S401": _ONCE,
    "S402": "give the value in parentheses: `@name(value)`",
    "S403": "move it there, or remove it",
    "S404": "name a String property of the same type",
    "S406": "change the default or the constraint",
    "S407": "make the property optional with `?` instead",
    "S501": "remove `@rename_from` to add it as something new",
    "S502": "drop the old one and add a new one, and carry the data over yourself",
    "S901": "remove it",
}
