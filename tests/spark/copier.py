"""What Spark does with a stream of changes, without Spark: `-m tests.spark.copier FROM TO PLACE`.

A batch is planned and noted, its rows are laid down, it is committed to the graph, and then noted
as done. A process that begins again finds a planned batch and carries that very batch out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from omnigraph.spark.changestream import ChangeStream, change_schema
from omnigraph.spark.sink import CHANGES, StreamWriter, WriteOptions
from omnigraph.storage.location import parse_location

COLUMNS = [part.split()[0] for part in change_schema(None).split(", ")]


def main() -> None:
    source, target, place = sys.argv[1:4]
    notes = Path(place)
    place_read = parse_location(source)
    reader = ChangeStream(place_read, "main", None, "beginning", COLUMNS, most_commits=2)
    state: dict[str, Any] = {"batch": 0, "start": reader.initialOffset(), "end": None}
    if notes.exists():
        state = json.loads(notes.read_text())
    while True:
        end = state["end"] or reader.latestOffset(state["start"], reader.getDefaultReadLimit())
        if end == state["start"]:
            return
        state["end"] = end
        notes.write_text(json.dumps(state))
        writer = StreamWriter(WriteOptions(target, "main", None, CHANGES), "copy")
        parts = reader.partitions(state["start"], end)
        writer.commit([writer.write(reader.read(part)) for part in parts], state["batch"])
        state = {"batch": state["batch"] + 1, "start": end, "end": None}
        notes.write_text(json.dumps(state))


if __name__ == "__main__":
    main()
