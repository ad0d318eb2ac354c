"""Random schemas: trees that compile, and pairs of which one grows out of the other."""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph.lang.pg import ast
from omnigraph.lang.pg.writer import write_schema

# The types a property of a given name may have. Close relatives, so that many changes are allowed.
PROPERTIES: dict[str, list[str]] = {
    "name": ["String", "String?"],
    "text": ["String"],
    "count": ["I32", "I64", "I32?", "I64?"],
    "size": ["U32", "U64", "I64"],
    "ratio": ["F32", "F64", "F64?"],
    "state": ["enum(x)", "enum(x, y)", "enum(z, y, x)", "enum(y, x)?"],
    "flag": ["Bool", "Bool?"],
    "day": ["Date?"],
    "moment": ["DateTime"],
    "tags": ["[String]", "[I64]?"],
    "vector": ["Vector(2)?"],
    "blob": ["Blob?"],
}
DEFAULTS: dict[str, ast.Value] = {
    "name": "none",
    "count": 5,
    "ratio": 0.5,
    "state": ast.Word("x"),
    "flag": True,
    "day": "2026-01-31",
    "moment": "2026-01-31T12:00:00Z",
}
NODES = ("Person", "Company", "Doc", "Tag")
EDGES = ("Knows", "WorksAt", "Cites", "Likes")
INTERFACES = ("Named", "Sized")


def type_ref(spelling: str) -> ast.TypeRef:
    nullable = spelling.endswith("?")
    spelling = spelling.removesuffix("?")
    if spelling.startswith("["):
        return ast.TypeRef(spelling[1:-1], nullable, is_list=True)
    if spelling.startswith("Vector"):
        return ast.TypeRef("Vector", nullable, dim=int(spelling[7:-1]))
    if spelling.startswith("enum"):
        values = spelling[5:-1].split(", ")
        return ast.TypeRef("enum", nullable, values=tuple(ast.Name(v) for v in values))
    return ast.TypeRef(spelling, nullable)


def annotation(name: str, *values: ast.Value) -> ast.Annotation:
    return ast.Annotation(name, tuple(ast.Argument(v) for v in values))


def words(*names: str) -> tuple[ast.Word, ...]:
    return tuple(ast.Word(name) for name in names)


@st.composite
def properties(draw: st.DrawFn, name: str, constraints: bool) -> ast.Property:
    ref = type_ref(draw(st.sampled_from(PROPERTIES[name])))
    notes: list[ast.Annotation] = []
    if name in DEFAULTS and draw(st.integers(0, 3)) == 0:
        notes.append(annotation("default", DEFAULTS[name]))
    if draw(st.integers(0, 5)) == 0:
        notes.append(annotation("description", draw(st.text(min_size=1, max_size=5)) + "."))
    if draw(st.integers(0, 8)) == 0:
        values: list[ast.Value] = [1, 1.0, True, "1", -2.5e30]
        value = draw(st.sampled_from(values))
        notes.append(ast.Annotation("custom", (ast.Argument(value), ast.Argument("v", "k"))))
    plain = name not in ("tags", "vector", "blob")
    if plain and draw(st.integers(0, 4)) == 0:
        notes.append(annotation(draw(st.sampled_from(["index", "unique"]))))
    if constraints and name == "count" and draw(st.booleans()):
        low, high = draw(st.integers(-9, 5)), draw(st.none() | st.integers(5, 20))
        notes.append(annotation("range", ast.Bounds(low, high)))
    if constraints and name == "text" and draw(st.booleans()):
        notes.append(annotation("check", draw(st.sampled_from(["[a-z]+", "^x", "\\p{L}"]))))
    return ast.Property(ast.Name(name), ref, tuple(notes))


@st.composite
def members(draw: st.DrawFn, names: list[str], *, edge: bool) -> tuple[ast.Member, ...]:
    own = draw(st.lists(st.sampled_from(names), unique=True, max_size=6))
    body: list[ast.Member] = [draw(properties(name, not edge)) for name in own]
    keyable = [n for n in own if n not in ("tags", "vector", "blob")]
    if edge:
        keyable += ["src", "dst"]
    if len(keyable) > 1 and draw(st.booleans()):
        group = draw(st.lists(st.sampled_from(keyable), unique=True, min_size=1, max_size=3))
        kind = draw(st.sampled_from(["unique", "index"]))
        body.append(annotation(kind, *words(*group)))
    required = [
        m.name.text
        for m in body
        if isinstance(m, ast.Property) and not m.type.nullable and m.name.text in keyable
    ]
    if not edge and required and draw(st.booleans()):
        group = draw(st.lists(st.sampled_from(required), unique=True, min_size=1, max_size=2))
        body.append(annotation("key", *words(*group)))
    if not edge and "text" in own and "vector" not in own and draw(st.booleans()):
        embed = ast.Annotation("embed", (ast.Argument("text"), ast.Argument("m", "model")))
        ref = ast.TypeRef("Vector", True, dim=3)
        body.append(ast.Property(ast.Name("embedding"), ref, (embed,)))
    return tuple(body)


@st.composite
def schemas(draw: st.DrawFn) -> ast.Schema:
    """A tree that compiles."""
    declarations: list[ast.Declaration] = []
    # Interfaces have properties of their own, so that they never clash with a node's.
    if draw(st.booleans()):
        note = (annotation("index"),) if draw(st.booleans()) else ()
        title = ast.Property(ast.Name("title"), ast.TypeRef("String"), note)
        declarations.append(ast.Interface(ast.Name("Named"), (), (title,)))
    if draw(st.booleans()):
        weight = ast.Property(ast.Name("weight"), type_ref(draw(st.sampled_from(["F32?", "F64?"]))))
        declarations.append(ast.Interface(ast.Name("Sized"), (), (weight,)))
    contracts = [d.name for d in declarations]
    names = draw(st.lists(st.sampled_from(NODES), unique=True, min_size=1))
    for name in names:
        chosen = tuple(c for c in contracts if draw(st.booleans()))
        body = draw(members(list(PROPERTIES), edge=False))
        declarations.append(ast.Node(ast.Name(name), (), body, chosen))
    for name in draw(st.lists(st.sampled_from(EDGES), unique=True)):
        # Mostly the same ends, because changing them is never allowed.
        end = ast.Name(sorted(names)[0])
        card = (annotation("card", ast.Bounds(0, draw(st.integers(1, 4)))),)
        notes = card if draw(st.booleans()) else ()
        body = draw(members(["name", "count", "day"], edge=True))
        declarations.append(ast.Edge(ast.Name(name), notes, body, end, end))
    return ast.Schema(tuple(draw(st.permutations(declarations))))


def add_renames(draw: st.DrawFn, before: ast.Schema, after: ast.Schema) -> None:
    """Let some declarations of `after` say that they are renamed ones of `before`."""
    for kind in (ast.Interface, ast.Node, ast.Edge):
        old = {d.name.text: d for d in before.declarations if isinstance(d, kind)}
        new = {d.name.text: d for d in after.declarations if isinstance(d, kind)}
        gone = [name for name in old if name not in new]
        for name, declaration in new.items():
            origin = old.get(name)
            if origin is None and gone and draw(st.booleans()):
                origin = old[gone.pop()]
                hint = annotation("rename_from", origin.name.text)
                declaration.annotations += (hint,)
            if origin is not None:
                rename_properties(draw, origin, declaration)


def rename_properties(draw: st.DrawFn, old: ast.Declaration, new: ast.Declaration) -> None:
    names = {p.name.text for p in new.properties}
    # Inherited properties are not listed, so a name that an interface uses stays out of it.
    gone = [p for p in old.properties if p.name.text not in names | {"title", "weight"}]
    known = {p.name.text for p in old.properties}
    for prop in new.properties:
        fits = [p for p in gone if p.type.name == prop.type.name]
        if prop.name.text not in known | {"title", "weight"} and fits and draw(st.booleans()):
            gone.remove(fits[0])
            prop.annotations += (annotation("rename_from", fits[0].name.text),)


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[ast.Schema, ast.Schema]:
    """Two trees: one to accept, and one to compile against it."""
    before, after = draw(schemas()), draw(schemas())
    add_renames(draw, before, after)
    return before, after


def spelled(schema: ast.Schema) -> str:
    return write_schema(schema)
