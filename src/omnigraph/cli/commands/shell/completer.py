"""Completion of statements in the shell.

Guarantees: pure; knows types, edges, properties, variables and queries, and offers those that fit
the place: properties after `$x.` are those of x where its type can be seen, types come after a
colon, and words of the language anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from omnigraph.cli.display import Format

if TYPE_CHECKING:
    from omnigraph.model.catalog import Catalog

_LANGUAGE = """
query match return with where not optional distinct order having limit offset and or in as is null
asc desc insert update delete upsert on conflict set count sum avg min max collect nearest bm25
search fuzzy match_text rrf rank shortest contains starts_with ends_with matches coalesce lower
upper trim length abs round floor ceil now
"""
WORDS = tuple(_LANGUAGE.split())

_DOT = re.compile(r"\$(\w+)\.(\w*)\Z")
_VARIABLE = re.compile(r"\$(\w*)\Z")
_COLON = re.compile(r"\$\w+\s*:\s*([A-Z]?\w*)\Z")
_AFTER_VERB = re.compile(r"\b(?:insert|update|delete|upsert)\s+(\w*)\Z")
_AFTER_VARIABLE = re.compile(r"\$\w+\s+(\w*)\Z")
_COMMAND = re.compile(r"\A\\(\S*)\Z")
_ARGUMENT = re.compile(r"\A\\(\w+)\s+(\S*)\Z")
_WORD = re.compile(r"(\w*)\Z")


class Completer:
    """Offers words for the end of a text."""

    def __init__(
        self,
        catalog: Catalog,
        queries: Sequence[str] = (),
        branches: Sequence[str] = (),
        commands: Sequence[str] = (),
    ) -> None:
        self._catalog = catalog
        self._queries = queries
        self._branches = branches
        self._commands = commands

    def offer(self, text: str) -> tuple[str, list[str]]:
        """The beginning that was typed, and the words that it may become."""
        for pattern, words in (
            (_COMMAND, lambda _: self._commands),
            (_ARGUMENT, self._arguments),
            (_DOT, lambda match: self._properties(text, match[1])),
            (_COLON, lambda _: self._node_types()),
            (_AFTER_VERB, lambda _: self._types()),
            (_VARIABLE, lambda _: sorted(set(re.findall(r"\$(\w+)", text[:-1])))),
            (_AFTER_VARIABLE, lambda _: self._edges()),
        ):
            match = pattern.search(text)
            if match is not None:
                return self._fitting(match[match.lastindex or 0], words(match))
        match = _WORD.search(text)
        return self._fitting(match[1] if match else "", self._anywhere(text))

    def _fitting(self, begun: str, words: Iterable[str]) -> tuple[str, list[str]]:
        low = begun.lower()
        return begun, [word for word in words if word.lower().startswith(low) and word != begun]

    def _arguments(self, match: re.Match[str]) -> Sequence[str]:
        command = match[1]
        by_command: dict[str, Sequence[str]] = {
            "d": self._types(),
            "branch": self._branches,
            "run": self._queries,
            "explain": [*self._queries, "--run", "match"],
            "format": list(Format),
        }
        return by_command.get(command, ())

    def _anywhere(self, text: str) -> Iterator[str]:
        if not text.strip() or text.strip().isidentifier():
            yield from self._queries
        yield from WORDS
        yield from self._types()

    def _types(self) -> list[str]:
        return [table.name for table in self._catalog.tables()]

    def _node_types(self) -> list[str]:
        names = [node.name for node in self._catalog.nodes]
        return names + [interface.name for interface in self._catalog.interfaces]

    def _edges(self) -> list[str]:
        """Edges as queries write them, with a small letter."""
        return [edge.name[:1].lower() + edge.name[1:] for edge in self._catalog.edges]

    def _properties(self, text: str, variable: str) -> list[str]:
        bound = re.findall(rf"\${re.escape(variable)}\s*:\s*([A-Z]\w*)", text)
        tables = [self._catalog.node(name) or self._catalog.interface(name) for name in bound]
        seen = [each.properties for each in tables if each is not None]
        seen = seen or [each.properties for each in self._catalog.tables()]
        return list(dict.fromkeys(["id", *(found.name for each in seen for found in each)]))
