"""A flame graph of one question: `make profile Q="8 paths"` writes `flame.svg`.

The question is one of the query suite, by the beginning of its name, or the text of a query. It is
asked again and again over the social graph while a thread looks at the stack every millisecond.
Bars are as wide as the share of looks that found them; what calls is below what is called.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.questions import QUESTIONS, Question
from benchmarks.social import write_social
from benchmarks.subjects.omni import OmniGraph
from benchmarks.suites import SEED

_WIDTH, _HEIGHT = 1200, 17
_LEAST = 0.6  # pixels
_QUERY = "omnigraph-query-main"  # the thread of a query that may take long


@dataclass
class Bar:
    """How often a frame was seen below its caller, and what it called."""

    name: str
    seen: int = 0
    called: dict[str, Bar] = field(default_factory=dict)

    def add(self, stack: Sequence[str]) -> None:
        self.seen += 1
        bar = self
        for name in stack:
            bar = bar.called.setdefault(name, Bar(name))
            bar.seen += 1

    @property
    def depth(self) -> int:
        return 1 + max((bar.depth for bar in self.called.values()), default=0)


def watch(action: Any, seconds: float) -> Bar:
    """Call something for a while and look at this thread's stack meanwhile."""
    watched = threading.get_ident()
    root = Bar("all")
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.001):
            root.add(_stack(watched))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        action()
    done.set()
    watcher.join()
    return root


def _stack(watched: int) -> list[str]:
    """What the thread is doing; while it waits for a long query, what that is doing."""
    frames = sys._current_frames()
    threads = [watched, *(t.ident for t in threading.enumerate() if t.name == _QUERY)]
    found: list[str] = []
    for ident in threads:
        frame = frames.get(ident or 0)
        found += _names(frame) if frame is not None else []
    return found


def _names(frame: FrameType) -> list[str]:
    found: list[str] = []
    current: FrameType | None = frame
    while current is not None:
        code = current.f_code
        place = "/".join(Path(code.co_filename).parts[-2:])
        found.append(f"{code.co_name} ({place})")
        current = current.f_back
    found.reverse()
    start = next((n for n, name in enumerate(found) if name.startswith("ask ")), 0)
    return found[start:]


def draw(root: Bar, title: str) -> str:
    """The flame graph as SVG; hovering over a bar tells its name and its share."""
    height = (root.depth + 2) * _HEIGHT
    parts: list[str] = []
    _draw(root, root, 0.0, float(_WIDTH), height - _HEIGHT, parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}">'
        "<style>text{font:11px monospace;pointer-events:none}</style>"
        f'<text x="4" y="13">{escape(title)}, {root.seen} looks</text>{"".join(parts)}</svg>\n'
    )


def _draw(bar: Bar, root: Bar, x: float, width: float, y: float, parts: list[str]) -> None:
    if width < _LEAST:
        return
    share = bar.seen / max(1, root.seen)
    hue = sum(map(ord, bar.name)) % 55
    label = bar.name[: int(width / 6.8)]
    parts.append(
        f"<g><title>{escape(bar.name)}: {share:.1%}</title>"
        f'<rect x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{_HEIGHT - 1}"'
        f' fill="hsl({hue},75%,65%)"/>'
        f'<text x="{x + 2:.1f}" y="{y + 12:.0f}">{escape(label)}</text></g>'
    )
    for called in sorted(bar.called.values(), key=lambda b: b.name):
        part = width * called.seen / max(1, bar.seen)
        _draw(called, root, x, part, y - _HEIGHT, parts)
        x += part


def _question(asked: str) -> Question:
    for question in QUESTIONS:
        if question.name.startswith(asked):
            return question
    if asked.lstrip().startswith("query"):
        return Question("a query", asked, "", "")
    names = "\n  ".join(question.name for question in QUESTIONS)
    raise SystemExit(f"No question begins with {asked!r}; there are\n  {names}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Draw where the time of a question goes.")
    parser.add_argument("question")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--out", type=Path, default=Path("flame.svg"))
    given = parser.parse_args(arguments)
    question = _question(given.question)
    with tempfile.TemporaryDirectory() as scratch:
        subject = OmniGraph(Path(scratch))
        subject.load(write_social(Path(scratch), given.scale, SEED))
        subject.settle()
        for _ in range(80):
            subject.ask(question)
        root = watch(lambda: subject.ask(question), given.seconds)
    given.out.write_text(draw(root, question.name))
    print(f"{given.out}: {root.seen} looks at {question.name!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
