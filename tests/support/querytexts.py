"""Random query texts: every part of the grammar, in any layout, with comments in between.

The texts can be read but need not make sense: names are drawn from a few words, among them those
that mean something in other places.
"""

from __future__ import annotations

from hypothesis import strategies as st

Tokens = list[str]

WORDS = [
    "name",
    "age",
    "friends",
    "in",
    "contains",
    "is",
    "order",
    "limit",
    "with",
    "as",
    "distinct",
]
VARIABLES = ["$p", "$q", "$name", "$_", "$in", "$match"]
TYPES = ["Person", "Company", "Knows"]
EDGES = ["knows", "worksAt", "contains", "in", "_", "shortest", "optional"]
FUNCTIONS = ["lower", "count", "nearest", "rrf", "coalesce", "not_a_function"]
CONSTANTS = [
    "1",
    "0",
    "2.5",
    "1e-3",
    "true",
    "false",
    "null",
    '"text"',
    '"\\"\\n"',
    'date("2026-01-01")',
]
GAPS = [" ", " ", " ", "\n", "\n\n", "  ", " // note\n", " /* note */ ", "\n// above\n", "\n\n\n"]

word = st.sampled_from(WORDS)
variable = st.sampled_from(VARIABLES)
type_name = st.sampled_from(TYPES)


def joined(*parts: st.SearchStrategy[Tokens]) -> st.SearchStrategy[Tokens]:
    return st.tuples(*parts).map(lambda found: [token for part in found for token in part])


def one(token: st.SearchStrategy[str]) -> st.SearchStrategy[Tokens]:
    return token.map(lambda text: [text])


def lit(*tokens: str) -> st.SearchStrategy[Tokens]:
    return st.just(list(tokens))


def listed(
    item: st.SearchStrategy[Tokens], separator: str | None, low: int = 0, high: int = 3
) -> st.SearchStrategy[Tokens]:
    def join(items: list[Tokens]) -> Tokens:
        tokens: Tokens = []
        for at, each in enumerate(items):
            tokens += [separator] if at and separator else []
            tokens += each
        return tokens

    return st.lists(item, min_size=low, max_size=high).map(join)


def maybe(part: st.SearchStrategy[Tokens]) -> st.SearchStrategy[Tokens]:
    return st.one_of(st.just([]), part)


leaf = st.one_of(
    one(st.sampled_from(CONSTANTS)),
    one(variable),
    joined(one(variable), lit("."), one(word)),
    one(word),
    lit("[", "]"),
)


def _grow(inner: st.SearchStrategy[Tokens]) -> st.SearchStrategy[Tokens]:
    safe = joined(lit("("), inner, lit(")"))
    operator = st.sampled_from(
        ["and", "or", "=", "!=", "<", "+", "-", "*", "%", "contains", "ieq", "matches", "in"]
    )
    return st.one_of(
        safe,
        joined(safe, one(operator), safe),
        joined(inner, one(st.sampled_from(["and", "or", "+", "*"])), safe),
        joined(lit("not"), safe),
        joined(lit("-"), safe),
        joined(safe, lit("is", "null")),
        joined(safe, lit("is", "not", "null")),
        joined(safe, lit("not", "in"), safe),
        joined(lit("["), listed(inner, ","), lit("]")),
        joined(one(st.sampled_from(FUNCTIONS)), lit("("), listed(inner, ","), lit(")")),
        joined(lit("count", "(", "distinct"), safe, lit(")")),
        lit("count", "(", "*", ")"),
    )


expression = st.recursive(leaf, _grow, max_leaves=6)
guarded = joined(lit("("), expression, lit(")"))
field = joined(one(word), lit(":"), expression)
fields = joined(lit("{"), listed(field, ",", low=1), maybe(lit(",")), lit("}"))
edge_names = listed(one(st.sampled_from(EDGES)), "|", low=1, high=2)
edge = st.one_of(
    edge_names,
    joined(lit("<"), edge_names, lit(">")),
    joined(lit("<-"), edge_names),
)
bounds = st.sampled_from([["{", "1", ",", "3", "}"], ["{", "2", ",", "}"]])
traversal = joined(
    one(variable),
    maybe(joined(one(variable), lit(":"))),
    edge,
    maybe(bounds),
    maybe(joined(lit("as"), one(variable))),
    one(variable),
)
binding = joined(one(variable), lit(":"), one(type_name), maybe(fields))
clause = st.recursive(
    st.one_of(binding, traversal, guarded, joined(guarded, lit("="), expression)),
    lambda inner: joined(
        one(st.sampled_from(["not", "optional"])), lit("{"), listed(inner, None, low=1), lit("}")
    ),
    max_leaves=4,
)
match = joined(lit("match", "{"), listed(clause, None, low=1, high=4), lit("}"))
projection = joined(expression, maybe(joined(lit("as"), one(word))))
order_key = joined(guarded, one(st.sampled_from(["asc", "desc"])))
tail = joined(
    maybe(joined(lit("having", "{"), expression, lit("}"))),
    maybe(joined(lit("order", "{"), listed(order_key, ",", low=1), lit("}"))),
    maybe(st.sampled_from([["limit", "3"], ["limit", "$p"]])),
    maybe(st.sampled_from([["offset", "3"], ["offset", "$p"]])),
)


def select(keyword: str) -> st.SearchStrategy[Tokens]:
    items = listed(projection, ",", low=1)
    return joined(lit(keyword), maybe(lit("distinct")), lit("{"), items, lit("}"), tail)


read_body = joined(
    match, listed(joined(select("with"), maybe(match)), None, high=2), select("return")
)
policy = st.sampled_from(["update", "replace", "nothing", "error"])
write = st.one_of(
    joined(lit("insert"), one(type_name), fields),
    joined(lit("update"), one(type_name), lit("set"), fields, lit("where"), expression),
    joined(
        lit("upsert"),
        one(type_name),
        fields,
        lit("on", "conflict"),
        one(policy),
        maybe(joined(lit("set"), fields)),
    ),
)
delete = joined(lit("delete"), one(type_name), lit("where"), expression)
write_body = st.one_of(listed(write, None, low=1), listed(delete, None, low=1))
param_type = st.sampled_from(
    [["String"], ["I64", "?"], ["[", "Date", "]"], ["Vector", "(", "3", ")"]]
)
param = joined(one(variable), lit(":"), param_type)
annotation = st.sampled_from([[], ["@", "description", "(", '"about"', ")"]])
query = joined(
    lit("query"),
    one(word),
    lit("("),
    listed(param, ","),
    lit(")"),
    annotation,
    lit("{"),
    st.one_of(read_body, write_body),
    lit("}"),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """The text of one to three queries, laid out at random."""
    queries = draw(st.lists(query, min_size=1, max_size=3))
    chance = draw(st.randoms(use_true_random=False))
    return "".join(token + chance.choice(GAPS) for tokens in queries for token in tokens)
