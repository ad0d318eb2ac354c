"""The shell on a terminal: editing, history, completion.

Guarantees: Enter ends a statement once it is complete and begins a new line before; Ctrl-C drops
what was typed, Ctrl-D leaves; history is kept in the operator's folder, readable by them alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completion
from prompt_toolkit.completion import Completer as Completing
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from omnigraph.cli.commands.shell.commands import COMMANDS
from omnigraph.cli.commands.shell.completer import WORDS, Completer
from omnigraph.cli.commands.shell.entry import is_complete
from omnigraph.cli.terminal import echo, has_colour, note

if TYPE_CHECKING:
    from omnigraph.cli.commands.shell.conversation import Session

_PIECES = re.compile(
    r'(?P<string>"[^"]*"?)|(?P<comment>//.*)|(?P<variable>\$\w*)|(?P<type>\b[A-Z]\w*)'
    r"|(?P<number>\b\d[\d.]*)|(?P<word>\b[a-z_]\w*)|(?P<command>\A\\\S*)|(?P<other>.)"
)
_STYLE = Style.from_dict(
    {
        "string": "ansigreen",
        "comment": "ansibrightblack",
        "variable": "ansicyan",
        "type": "ansiyellow",
        "number": "ansimagenta",
        "keyword": "bold",
        "command": "bold",
    }
)


def converse(session: Session) -> None:
    """Read statements until the person leaves."""
    prompts: PromptSession[str] = PromptSession(
        history=_history(),
        key_bindings=_keys(),
        multiline=True,
        completer=_Words(session),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        lexer=_Colours() if has_colour(err=False) else None,
        style=_STYLE,
        prompt_continuation=lambda width, *_: " " * (width - 2) + "· ",
    )
    note(f"{session.graph.uri}; \\? lists the commands, Ctrl-D leaves")
    while not session.is_over:
        try:
            text = prompts.prompt(f"{session.graph.branch_name}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            echo(err=True)
            return
        session.carry_out(text)


def _history() -> History:
    from omnigraph.config.operator import home

    file = home() / "history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def _(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    return keys


class _Words(Completing):
    """Reads the graph once per statement, at the first Tab."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        session = self._session
        text = document.text_before_cursor
        branches = session.branch_names() if text.startswith("\\br") else []
        offered = Completer(session.catalog, list(session.queries), branches, list(COMMANDS))
        begun, words = offered.offer(text)
        return [Completion(word, start_position=-len(begun)) for word in words]


class _Colours(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], Any]:
        def line(number: int) -> list[tuple[str, str]]:
            return [
                (f"class:{_kind(match)}", match[0])
                for match in _PIECES.finditer(document.lines[number])
            ]

        return line


def _kind(match: re.Match[str]) -> str:
    kind = match.lastgroup or "other"
    if kind == "word":
        return "keyword" if match[0] in WORDS else "other"
    return kind
