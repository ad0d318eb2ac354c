"""Group commit: threads that write to one branch share table commits and publishes.

Each branch has a queue. The first thread to come leads: it carries out everything that waits,
itself included, as one group. Who comes meanwhile waits in line, and the next leader takes them
all. Threads that write one request after another come back a moment after their group is done; a
leader gives as many as there were last time that moment, and no more than a part of what the last
group took. A single writer never waits.

Guarantees: requests are carried out in the order in which they came, save that one which cannot
share with those before it goes into the next group; each keeps its own commit and its own error;
branches do not wait for each other.
Deliberately absent: a thread of its own. If callers go away, nothing keeps running.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from omnigraph.errors import CommitOutcomeUnknownError
from omnigraph.model.write import WriteResult
from omnigraph.storage.blobpolicy import AllowList
from omnigraph.storage.durability import Durability
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.attempt import BranchWriter
from omnigraph.writes.request import Request, Ticket

MOST_IN_GROUP = 64
_MOST_QUEUES = 1024
# The longest that a leader waits for those who were there before, as a share of the last group.
_PATIENCE = 0.5


def write_in_group(root: GraphRoot, branch: str, request: Request) -> WriteResult:
    """Execute a request together with the other writers of the branch."""
    return _queue(root, branch).submit(request, BranchWriter(root, branch))


def write_alone(root: GraphRoot, branch: str, request: Request) -> WriteResult:
    """Carry out a request that is too large to make others wait for it."""
    ticket = Ticket(request)
    BranchWriter(root, branch).write([ticket], optimistic=2)
    return ticket.outcome()


class _Waiting:
    """A ticket in line. The thread sleeps until it is done or has become the leader."""

    __slots__ = ("awake", "gone", "leads", "ticket")

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket
        self.leads = False
        self.gone = False
        self.awake = threading.Event()


class _Queue:
    def __init__(self) -> None:
        self._line: deque[_Waiting] = deque()
        self._led = False
        self._guard = threading.Lock()
        self._arrived = threading.Condition(self._guard)
        # How many were there when the last group was done, and how long it took.
        self._company = 1
        self._took_s = 0.0

    def submit(self, request: Request, writer: BranchWriter) -> WriteResult:
        """`writer` is used if this thread comes to lead."""
        mine = _Waiting(Ticket(request))
        with self._guard:
            self._line.append(mine)
            self._arrived.notify()
            if not self._led:
                self._led = mine.leads = True
        if not mine.leads:
            self._await(mine)
        if mine.leads:
            self._lead(mine, writer)
        return mine.ticket.outcome()

    def _await(self, mine: _Waiting) -> None:
        try:
            mine.awake.wait()
        except BaseException:
            # Ctrl-C, say. Its thread is not there any more to lead the others, now or later.
            with self._guard:
                mine.gone = True
                with suppress(ValueError):  # in the group that is being written
                    self._line.remove(mine)
            if mine.leads:
                self._hand_over()
            raise

    def _lead(self, mine: _Waiting, writer: BranchWriter) -> None:
        """Write groups until our own ticket is done, then hand over."""
        try:
            while not mine.ticket.is_done:
                self._write(self._next_group(), writer)
        finally:
            self._hand_over()

    def _next_group(self) -> list[_Waiting]:
        with self._guard:
            expected = min(self._company, MOST_IN_GROUP)
            self._arrived.wait_for(
                lambda: len(self._line) >= expected, timeout=_PATIENCE * self._took_s
            )
            return [self._line.popleft() for _ in range(min(MOST_IN_GROUP, len(self._line)))]

    def _write(self, group: Sequence[_Waiting], writer: BranchWriter) -> None:
        begun = time.monotonic()
        try:
            writer.write([waiting.ticket for waiting in group])
        except BaseException:
            # Ctrl-C in the leader, say. It may have come after the publish, so the write is not
            # repeated.
            for waiting in group:
                if not waiting.ticket.is_done:
                    waiting.ticket.error = _interrupted()
            raise
        finally:
            self._release(group, time.monotonic() - begun)

    def _release(self, group: Sequence[_Waiting], took_s: float) -> None:
        """Wake those who have their outcome; the others go back to the head of the line."""
        with self._guard:
            undone = [each for each in group if not each.ticket.is_done and not each.gone]
            self._line.extendleft(reversed(undone))
            # Who came too late for this group counts: else the crowd never gets together again.
            self._company = len(group) - len(undone) + len(self._line)
            self._took_s = took_s
        for waiting in group:
            if waiting.ticket.is_done:
                waiting.awake.set()

    def _hand_over(self) -> None:
        with self._guard:
            successor = self._line[0] if self._line else None
            if successor is None:
                self._led = False
                return
            successor.leads = True
        successor.awake.set()


def _interrupted() -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError("The leader of the group commit was interrupted.")


# Handles that reach one graph share its queues; but not those that may refer to other places: a
# group is written by one of its members, with what that one may do and with its durability. A queue
# is kept between writes, since it remembers how many it serves, and holds no handle.
_Name = tuple[str, str, AllowList, Durability]
_queues: dict[_Name, _Queue] = {}
_queues_guard = threading.Lock()


def _queue(root: GraphRoot, branch: str) -> _Queue:
    name = (root.key, branch, root.allowed, root.durability)
    with _queues_guard:
        queue = _queues.get(name)
        if queue is None:
            if len(_queues) >= _MOST_QUEUES:
                _queues.clear()  # threads inside one of them finish there
            queue = _queues[name] = _Queue()
        return queue


def _start_over() -> None:
    global _queues, _queues_guard
    # A child has none of the threads that its parent's queues wait for.
    _queues, _queues_guard = {}, threading.Lock()


os.register_at_fork(after_in_child=_start_over)
