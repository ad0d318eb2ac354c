"""Group commit between processes: the owner of the branch lock executes waiting requests.

A process that has to wait writes its request as a letter (`storage.mailbox`). The lock owner
executes the letters together with its own request, as one group with a commit for each request, and
writes responses. So processes share table commits and publishes as threads do, and waiting
processes need not read the commits of the others.

Guarantees: a request is executed once, even if a process is killed: its commit has the id of its
letter, and a process that acquires the lock without a response searches the history for that commit
before it executes the request itself. Only requests that can be serialized exactly are passed on,
only between processes that allow the same external blobs, and never to one with less durability. A
letter names no actor: it has the digest of its writer's principal. The lock owner serves letters
whose digest is that of its own principal, and records that principal. A letter also names the graph
and the newest commit that its writer saw; it is not carried out on another graph at the address. A
request that cannot be served is answered as not done, and its writer carries it out itself. Object
stores are not supported: there the lock is a lease, and a letter costs as much as a write.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import orjson

from omnigraph.errors import CommitOutcomeUnknownError, OmniGraphError
from omnigraph.history.log import BranchLog
from omnigraph.history.manifestrows import commit_from_json, commit_to_json
from omnigraph.history.refs import read_branch
from omnigraph.model.commit import Commit
from omnigraph.model.ulid import new_ulid
from omnigraph.storage.durability import Durability
from omnigraph.storage.incarnation import known
from omnigraph.storage.locks import letters_to
from omnigraph.storage.mailbox import Letter, Letters
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.request import Conditions, Portable, Request, RowRequest, Ticket, result_of

MOST_GUESTS = 64
_LONGEST = 64 * 1024
_VERSION = 2
_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
# The response to a request that the lock owner could not execute.
_UNDONE = b"{}"


class AnsweredError(Exception):
    """Ends a wait: all waiting tickets have been executed by the lock owner."""


class Waiting:
    """Our tickets while another process may own the lock."""

    def __init__(self, root: GraphRoot, branch: str, tickets: Sequence[Ticket]) -> None:
        self.was_served = False
        self._root = root
        self._branch = branch
        self._tickets = tickets
        self._posted: dict[Ticket, Letter] = {}
        self._has_asked = False

    def __enter__(self) -> Waiting:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OmniGraphError):
            self._give_up(error)
        for letter in self._posted.values():
            letter.close()

    def _give_up(self, error: OmniGraphError) -> None:
        """Called when the wait ends with an error. Reads the responses first; a letter that was
        taken and not answered has an unknown outcome."""
        self._read_answers()
        for ticket, letter in self._posted.items():
            if not letter.withdraw():
                ticket.error = _unknown(letter.id, error)

    def look(self) -> None:
        """On the first call, write the letters; then check for responses. Raises `AnsweredError`
        once all tickets are done."""
        if not self._has_asked:
            self._has_asked = True
            self._ask()
        self._read_answers()
        if all(ticket.is_done for ticket in self._tickets):
            raise AnsweredError

    def settle(self, line: BranchLog) -> list[Ticket]:
        """Called when we own the lock: determine which tickets were executed. Returns the
        others."""
        self._read_answers()
        for ticket, letter in list(self._posted.items()):
            try:
                self._finish(ticket, _left_commit(line, letter))
            except CommitOutcomeUnknownError as error:
                ticket.error = error
        return [ticket for ticket in self._tickets if not ticket.is_done]

    def _ask(self) -> None:
        branch_id = read_branch(self._root, self._branch).id
        letters = letters_to(self._root.objects, branch_id)
        if letters is None:
            return
        for ticket in self._tickets:
            data = _written(self._root, branch_id, ticket.request)
            letter = None if data is None else letters.post(new_ulid(), data)
            if letter is not None:
                self._posted[ticket] = letter

    def _read_answers(self) -> None:
        for ticket, letter in list(self._posted.items()):
            answer = letter.answer()
            if answer == _UNDONE:
                self._finish(ticket, None)
            elif answer is not None:
                # A response of another release may be unreadable; then the history decides.
                with suppress(ValueError, KeyError, TypeError):
                    self._finish(ticket, commit_from_json(orjson.loads(answer)))

    def _finish(self, ticket: Ticket, commit: Commit | None) -> None:
        if commit is not None:
            ticket.result = result_of(commit)
            self.was_served = True
        self._posted.pop(ticket).close()


class Guests:
    """Requests of processes that wait for our lock."""

    def __init__(self, root: GraphRoot, own: Sequence[Ticket]) -> None:
        self._root = root
        self._own = own
        self._letters: Letters | None = None
        self._tickets: list[Ticket] = []
        # The principals that this process admitted, by their digests.
        self._authors: dict[object, Conditions] = {
            each.request.conditions.principal: each.request.conditions
            for each in own
            if each.request.conditions.principal is not None
        }
        self.were_there = False

    def take(self, line: BranchLog) -> list[Ticket]:
        """The waiting requests. The caller owns the lock and executes those that it can."""
        letters = letters_to(self._root.objects, line.branch_id)
        form = _common_form(self._own) if letters is not None and letters.are_there() else None
        if letters is None or form is None:
            return []
        self._letters = letters
        for id, data in letters.take(line.state.head.sequence, MOST_GUESTS - len(self._own)):
            request = self._request(line, form, data) if _ULID.fullmatch(id) else None
            if request is None:
                letters.answer(id, _UNDONE)
            else:
                self._tickets.append(Ticket(request, commit_id=id))
        self.were_there = bool(self._tickets)
        return self._tickets

    def _request(self, line: BranchLog, form: type[Portable], data: bytes) -> RowRequest | None:
        """The request in a letter; None if it is not for this process to carry out."""
        try:
            letter = orjson.loads(data)
            author = self._authors.get(letter["principal"])
            if author is None or not _is_served(self._root, line, letter):
                return None
            return form.from_text(letter["request"], author)
        except (ValueError, KeyError, TypeError):
            return None

    def answer(self) -> None:
        """Write the responses: a request without a commit was not executed. The caller still owns
        the lock."""
        for ticket in self._tickets:
            assert self._letters is not None
            assert ticket.commit_id is not None
            commit = ticket.result.commit if ticket.result else None
            said = _UNDONE if commit is None else orjson.dumps(commit_to_json(commit))
            self._letters.answer(ticket.commit_id, said)
        self._tickets = []


def _common_form(tickets: Sequence[Ticket]) -> type[Portable] | None:
    """The common type of our requests, which guest requests must have. None if ours differ or are
    not portable."""
    forms = {_form(ticket.request) for ticket in tickets}
    return forms.pop() if len(forms) == 1 else None


def _form(request: Request) -> type[Portable] | None:
    if isinstance(request, Portable) and request.to_text() is not None:
        return type(request)
    return None


def _written(root: GraphRoot, branch_id: str, request: Request) -> bytes | None:
    text = request.to_text() if isinstance(request, Portable) else None
    if text is None or len(text) > _LONGEST:
        return None
    return orjson.dumps(
        {
            "version": _VERSION,
            "allowed": _allowed(root),
            "durability": root.durability,
            "principal": request.conditions.principal,
            "graph": known.stamp(root.key),
            "seen": known.newest_commit(root.key, branch_id),
            "request": orjson.Fragment(text),
        }
    )


def _is_served(root: GraphRoot, line: BranchLog, letter: dict[str, Any]) -> bool:
    """Whether a letter means this graph, and asks for no more than this process may do."""
    if not _is_of_this_graph(line, letter):
        return False
    if letter["version"] != _VERSION or letter["allowed"] != _allowed(root):
        return False
    return letter["durability"] != Durability.POWER or root.durability is Durability.POWER


def _is_of_this_graph(line: BranchLog, letter: dict[str, Any]) -> bool:
    """Whether a letter is for the graph that is at the address now. Letters of older releases do
    not name their graph."""
    if letter.get("graph") != line.image.stamp:
        return False
    seen = letter["seen"]
    return seen is None or line.image.has_commit(int(seen[0]), str(seen[1]))


def _allowed(root: GraphRoot) -> list[str]:
    return [str(base) for base in root.allowed.bases]


def _left_commit(line: BranchLog, letter: Letter) -> Commit | None:
    """The commit of a letter without a response. The process that took it has ended, since we hold
    the lock, and its interrupted writes have been recovered."""
    if letter.withdraw():
        return None
    note = letter.note()
    if note is None:
        raise _unknown(letter.id)
    for commit in line.own_commits(line.state.head.sequence, note + 1):
        if commit.id == letter.id:
            return commit
    return None


def _unknown(commit_id: str, cause: BaseException | None = None) -> CommitOutcomeUnknownError:
    error = CommitOutcomeUnknownError(
        f"Another process was carrying out commit {commit_id} for this one; whether it did is not "
        "known.",
        hint="The next write or read-write open settles it; look the commit up after that, before "
        "you repeat the write.",
        commit_id=commit_id,
    )
    error.__cause__ = cause
    return error
