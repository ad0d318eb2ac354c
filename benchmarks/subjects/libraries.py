"""Search over documents: OmniGraph, and LanceDB over the same rows.

LanceDB has no edges; a document's topic is a column of its own there, with an index on it, which is
the best that it can be given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.documents import DIMENSIONS, SCHEMA, Documents, kept_set
from benchmarks.subjects.omni import OmniGraph

Hits = list[tuple[str, float]]

_MATCH = {
    "topic": "$k: Topic { name: $topic } $d about $k",
    "all": "$d: Doc",
}
_RETURN = {
    "vector": "nearest($d.embedding, $v) as score } order { score } limit 10",
    "text": "bm25($d.body, $t) as score } order { score desc } limit 10",
    "hybrid": "rrf(nearest($d.embedding, $v), bm25($d.body, $t)) as score }"
    " order { score desc } limit 10",
}


class Library(OmniGraph):
    """OmniGraph with documents."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._documents: Documents | None = None

    def prepare(self, folder: Path, scale: float, seed: int) -> None:
        """Have the documents; not part of what is measured."""
        self._documents = kept_set(folder, scale, seed)

    @property
    def documents(self) -> Documents:
        assert self._documents is not None, "prepare first"
        return self._documents

    def fill(self) -> None:
        import omnigraph

        self._graph = omnigraph.init(self.uri, SCHEMA)
        for name, table in self.documents.tables.items():
            self._graph.ingest(table, type=name)

    def search(self, kind: str, where: str, number: int) -> Hits:
        vector, text, topic = self.documents.queries[number % len(self.documents.queries)]
        given = {"v": vector, "t": text, "topic": topic}
        wanted = {"vector": "v", "text": "t", "hybrid": "vt"}[kind]
        params = {name: value for name, value in given.items() if name in wanted}
        if where == "topic":
            params["topic"] = topic
        found = self.graph.query(_text(kind, where), params=params).to_arrow()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def rank_texts(self, where: str, number: int, most: int) -> list[str]:
        """The most relevant texts alone, for the truth about fused rankings."""
        _, text, topic = self.documents.queries[number]
        params = {"t": text} if where == "all" else {"t": text, "topic": topic}
        query = _text("text", where).replace("limit 10", f"limit {most}")
        slugs: list[str] = self.graph.query(query, params=params).to_arrow().column(0).to_pylist()
        return slugs

    def _next(self) -> int:
        self._turn = getattr(self, "_turn", -1) + 1
        return self._turn

    def search_next(self, kind: str, where: str) -> Hits:
        """The next of the queries, so that no answer is asked for twice in a row."""
        return self.search(kind, where, self._next())


def _text(kind: str, where: str) -> str:
    types = {"v": f"Vector({DIMENSIONS})", "t": "String"}
    names = {"vector": "v", "text": "t", "hybrid": "vt"}[kind]
    declared = [f"${name}: {types[name]}" for name in names]
    if where == "topic":
        declared.append("$topic: String")
    return (
        f"query q({', '.join(declared)}) {{ match {{ {_MATCH[where]} }}"
        f" return {{ $d.slug, {_RETURN[kind]} }}"
    )


class LanceDB(Library):
    """The same calls, by LanceDB."""

    def __init__(self, folder: Path) -> None:
        import lancedb

        super().__init__(folder)
        self._database = lancedb.connect(str(folder / "lancedb"))
        names = self._database.table_names()
        self._table: Any = self._database.open_table("doc") if names else None

    @staticmethod
    def version() -> str:
        from importlib import metadata

        return metadata.version("lancedb")

    def fill(self) -> None:
        topics = self.documents.tables["About"].column("to")
        self._table = self._database.create_table(
            "doc", self.documents.tables["Doc"].append_column("topic", topics)
        )

    def settle(self) -> None:
        self._table.create_index(
            metric="cosine", vector_column_name="embedding", index_type="IVF_RQ", num_bits=5
        )
        self._table.create_fts_index("body", use_tantivy=False)
        self._table.create_scalar_index("topic")

    def search(self, kind: str, where: str, number: int) -> Hits:
        vector, text, topic = self.documents.queries[number % len(self.documents.queries)]
        if kind == "vector":
            asked = self._table.search(vector, vector_column_name="embedding")
        elif kind == "text":
            asked = self._table.search(text, query_type="fts", fts_columns="body")
        else:
            asked = self._table.search(query_type="hybrid", vector_column_name="embedding")
            asked = asked.vector(vector).text(text)
        if kind != "text":
            asked = asked.distance_type("cosine").nprobes(1000).refine_factor(4)
        if where == "topic":
            asked = asked.where(f"topic = '{topic}'", prefilter=True)
        column = {"vector": "_distance", "text": "_score", "hybrid": "_relevance_score"}[kind]
        # As deep as we fuse: it would otherwise see the ten best of either ranking alone.
        found = asked.limit(100 if kind == "hybrid" else 10).to_arrow().slice(0, 10)
        return list(
            zip(found.column("slug").to_pylist(), found.column(column).to_pylist(), strict=True)
        )
