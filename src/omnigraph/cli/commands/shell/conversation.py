"""One shell session with a graph.

Guarantees: an error is printed and ends its statement, not the session; the graph is opened for
writing when something is first written; Ctrl-C stops a statement and says what became of it.
Deliberately absent: the terminal. A session takes text and prints.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli import callstate, interrupt, progressline
from omnigraph.cli.commands.shell import entry
from omnigraph.cli.display import Format, print_result
from omnigraph.cli.failure import print_failure
from omnigraph.cli.terminal import echo
from omnigraph.errors import DeniedError, NotFoundError, OmniGraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.model.catalog import Catalog


class Session:
    """The state of a conversation. `queries` are texts by the name of the query in them."""

    def __init__(
        self,
        graph: Graph,
        open_to_write: Callable[[str], Graph],
        *,
        format: Format = Format.TABLE,
        read_only: bool = False,
    ) -> None:
        self.graph = graph
        self.format = format
        self.read_only = read_only
        self.timing = False
        self.queries: dict[str, str] = {}
        self.is_over = False
        self._open_to_write = open_to_write
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """The branch's schema, as of the last statement."""
        if self._catalog is None:
            self._catalog = self.graph.snapshot().catalog
        return self._catalog

    def branch_names(self) -> list[str]:
        return [info.name for info in self.graph.branches()]

    def read_script(self, lines: Iterable[str]) -> bool:
        """Carry out the statements of a text; False if one of them failed, which ends it."""
        waiting = ""
        for line in lines:
            waiting += line
            if entry.is_complete(waiting):
                if not self.carry_out(waiting):
                    return False
                waiting = ""
            if self.is_over:
                return True
        return not waiting.strip() or self.carry_out(waiting)

    def carry_out(self, text: str) -> bool:
        """Do what a statement says; False if that failed."""
        if not text.strip():
            return True
        began = time.monotonic()
        call = callstate.current()
        call.began, call.writing = time.time(), None
        interrupt.forget()
        try:
            with progressline.shown("query", quiet=call.quiet):
                self._dispatch(text.strip())
        except OmniGraphError as error:
            print_failure(error, as_json=False)
            return False
        except KeyboardInterrupt:
            interrupt.tell()
            return False
        finally:
            self._catalog = None
        if self.timing:
            echo(f"{(time.monotonic() - began) * 1000:.0f} ms", err=True)
        return True

    def _dispatch(self, text: str) -> None:
        if text.startswith("\\"):
            from omnigraph.cli.commands.shell.commands import run_command

            run_command(self, text)
            return
        word = text.split(maxsplit=1)[0].removesuffix(";")
        if word in self.queries:
            self.run(word, entry.read_arguments(text[len(word) :]))
            return
        self.ask(entry.as_query(text))

    def ask(self, text: str) -> None:
        """Run a query that was typed; one that has a name is remembered."""
        from omnigraph.lang import gq

        for query in gq.parse(text).queries:
            name = query.name.text
            if name != entry.NAME:
                self.queries[name] = text
            if all(param.type.nullable for param in query.params):
                self.run(name, {}, text)
            else:
                echo(f"remembered {name}; call it as: {name} {_usage(query)}", err=True)

    def run(self, name: str, params: dict[str, Any], text: str | None = None) -> None:
        """Run a query that has a name."""
        source = text if text is not None else self.find(name)
        if self._writes(source, name):
            self._mutate(source, name, params)
        else:
            print_result(self.graph.query(source, name, params), self.format)

    def find(self, name: str) -> str:
        if name not in self.queries:
            known = ", ".join(self.queries) or "none"
            raise NotFoundError(f"There is no query {name!r} here.", hint=f"There are: {known}.")
        return self.queries[name]

    def load(self, file: Path) -> list[str]:
        """Know the queries of a file from now on."""
        from omnigraph.cli.files import read_text
        from omnigraph.lang import gq

        text = read_text(file)
        names = [query.name.text for query in gq.parse(text, str(file)).queries]
        self.queries.update(dict.fromkeys(names, text))
        return names

    def _writes(self, text: str, name: str) -> bool:
        from omnigraph.lang import gq
        from omnigraph.lang.gq import ast

        found = (query for query in gq.parse(text).queries if query.name.text == name)
        return any(isinstance(query.body, ast.Write) for query in found)

    def _mutate(self, text: str, name: str, params: dict[str, Any]) -> None:
        from omnigraph.cli.writereport import print_write

        if self.read_only:
            raise DeniedError("This shell is read-only.", hint="Start it without --read-only.")
        writer = self._open_to_write(self.graph.branch_name)
        print_write(writer.mutate(text, name, params), as_json=False)


def _usage(query: Any) -> str:
    return " ".join(f"{param.name.text}=…" for param in query.params)
