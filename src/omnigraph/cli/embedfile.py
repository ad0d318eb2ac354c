"""`omnigraph embed --input FILE --output FILE`: vectors for records that are in no graph yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.bundles import Bundle
from omnigraph.cli.terminal import echo
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    from omnigraph.model.catalog import Catalog
    from omnigraph.operations.embed import EmbedOptions


@dataclass(frozen=True)
class Records(Bundle):
    """A file of records, and where it goes with vectors in it."""

    input: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="JSONL records to embed, instead of rows of a graph."),
    ] = None
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Output file of --input.")] = (
        None
    )
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Schema of --input; default: that of the graph."),
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing output file.")
    ] = False

    @property
    def are_meant(self) -> bool:
        return bool(self.input or self.output or self.schema or self.overwrite)

    def fill(
        self, graph: str | None, branch: str, options: EmbedOptions, *, dry_run: bool, as_json: bool
    ) -> None:
        """Write the output, or only count, and print what came of it."""
        from omnigraph.cli.display import print_json
        from omnigraph.operations.embed_file import count_due_in, embed_file

        if self.input is None or (self.output is None and not dry_run):
            raise InvalidArgumentError(
                "Records are read from one file and written to another.",
                hint="Give both --input FILE and --output FILE.",
            )
        if options.engine != "embedded":
            raise InvalidArgumentError(
                "Records of a file are embedded in this process.",
                hint="Leave --engine out; or load them on Spark: omnigraph load --embed.",
            )
        catalog = self._catalog(graph, branch)
        if dry_run or self.output is None:
            rows = count_due_in(catalog, self.input, options)
            told: dict[str, Any] = {"rows": rows}
        else:
            done = embed_file(catalog, self.input, self.output, options, overwrite=self.overwrite)
            rows, told = done.rows, done.to_json()
        if as_json:
            print_json(told)
            return
        words = ("to clean", "cleaned") if options.clean else ("to embed", "embedded")
        for name, count in rows.items():
            echo(f"{name}: {count} {words[not dry_run]}")
        if not dry_run:
            echo(f"{told['records']} records written to {self.output}")
            if told["model"]:
                echo(f"model {told['model']}")

    def _catalog(self, graph: str | None, branch: str) -> Catalog:
        from omnigraph.cli.files import naming, read_text
        from omnigraph.cli.startup import without_pandas
        from omnigraph.cli.targets import open_graph
        from omnigraph.lang.pg import compile_schema

        if self.schema is None:
            return open_graph(graph, branch, read_only=True).snapshot().catalog
        without_pandas()
        with naming(self.schema):
            return compile_schema(read_text(self.schema), str(self.schema))
