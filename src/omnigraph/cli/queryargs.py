"""Arguments that select the query of a command: text, name and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.bundles import Bundle
from omnigraph.cli.rowformats import Format
from omnigraph.errors import InvalidArgumentError

Params = Annotated[str | None, typer.Option(metavar="JSON", help="Parameters, a JSON object.")]
ParamsFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Parameters, a file with a JSON object.")
]
EngineName = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="embedded, or spark for large graphs.")
]
RowFormat = Annotated[Format | None, typer.Option("--format", help="Output format of the rows.")]


@dataclass(frozen=True)
class Asked(Bundle):
    """A query of a file, or one on the command line."""

    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the query, if there are several.")
    ] = None
    file: Annotated[
        Path | None, typer.Option("--query", "-q", metavar="FILE", help="File of queries, .gq.")
    ] = None
    text: Annotated[
        str | None, typer.Option("--query-string", "-e", metavar="GQ", help="A query as text.")
    ] = None
    params: Params = None
    params_file: ParamsFile = None

    @contextmanager
    def question(self) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
        """The text, the query's name and the parameters; findings in the text name its file."""
        from omnigraph.cli.files import naming, read_params, read_text

        if (self.file is None) == (self.text is None):
            raise InvalidArgumentError(
                "A query comes from a file or from the command line.",
                hint="Give one of --query FILE and -e 'query …'.",
            )
        text = self.text if self.file is None else read_text(self.file)
        given = read_params(self.params, self.params_file)
        with naming(self.file):
            yield text or "", self.name, given


def name_of(question: tuple[str, str | None, dict[str, Any]]) -> str:
    """The name of a query that has run: the one that was named, or the only one of the text."""
    from omnigraph.lang import gq

    text, name, _ = question
    return name or gq.parse(text).queries[0].name.text
