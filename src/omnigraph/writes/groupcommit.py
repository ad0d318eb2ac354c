"""Group commit: threads that write to one branch share table commits and publishes.

Each branch has a queue. The first thread becomes the leader: it executes all waiting requests,
including its own, as one group. Threads that arrive in the meantime wait in the queue, and the next
leader executes all of them. Threads that write repeatedly return shortly after their group is done,
so a leader waits until as many members as in the last group are present, but at most for a fraction
of the duration of the last group. A single writer never waits.

Guarantees: requests are executed in the order of arrival, except that a request that cannot share
with those before it goes into the next group; each keeps its own commit and its own error; branches
do not wait for each other. There is no background thread: if no caller is active, nothing runs.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from omnigraph.errors import CommitOutcomeUnknownError
from omnigraph.history.log import BranchLog
from omnigraph.model.write import WriteResult
from omnigraph.storage.blobpolicy import AllowList
from omnigraph.storage.durability import Durability
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.attempt import BranchWriter
from omnigraph.writes.request import Attempts, LoneRequest, RowRequest, Ticket

MOST_IN_GROUP = 64
_MOST_QUEUES = 1024
# The maximum time that a leader waits for members of the last group, as a share of its duration.
_PATIENCE = 0.5
_LARGE = Attempts(unlocked=2)


def write_in_group(
    root: GraphRoot, branch: str, request: RowRequest, log: BranchLog | None = None
) -> WriteResult:
    """Execute a request together with the other writers of the branch. `log`: the branch as the
    caller read it just now; a request that need not wait is prepared on it."""
    return _queue(root, branch).submit(request, BranchWriter(root, branch), log)


def write_alone(root: GraphRoot, branch: str, request: RowRequest | LoneRequest) -> WriteResult:
    """Execute a request outside the queue, because it is so large that others would wait for it."""
    ticket = Ticket(request)
    attempts = request.attempts if isinstance(request, LoneRequest) else _LARGE
    BranchWriter(root, branch).write([ticket], attempts)
    return ticket.outcome()


class _Waiting:
    """A ticket in the queue. Its thread sleeps until the ticket is done or the thread is the
    leader."""

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
        # Number of members present after the last group, and its duration.
        self._company = 1
        self._took_s = 0.0

    def submit(
        self, request: RowRequest, writer: BranchWriter, log: BranchLog | None = None
    ) -> WriteResult:
        """`writer` is used if this thread becomes the leader, `log` if it does at once."""
        mine = _Waiting(Ticket(request))
        with self._guard:
            self._line.append(mine)
            self._arrived.notify()
            if not self._led:
                self._led = mine.leads = True
                mine.ticket.log = log if self._company == 1 else None
        if not mine.leads:
            self._await(mine)
        if mine.leads:
            self._lead(mine, writer)
        return mine.ticket.outcome()

    def _await(self, mine: _Waiting) -> None:
        try:
            mine.awake.wait()
        except BaseException:
            # Ctrl-C, for example. Its thread is no longer available as a leader.
            with self._guard:
                mine.gone = True
                with suppress(ValueError):  # in the group that is being executed
                    self._line.remove(mine)
            if mine.leads:
                self._hand_over()
            raise

    def _lead(self, mine: _Waiting, writer: BranchWriter) -> None:
        """Execute groups until our own ticket is done, then pass the leadership on."""
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
            # Ctrl-C in the leader, for example. It may have come after the publish, so the write is
            # not repeated.
            for waiting in group:
                if not waiting.ticket.is_done:
                    waiting.ticket.error = _interrupted()
            raise
        finally:
            self._release(group, time.monotonic() - begun)

    def _release(self, group: Sequence[_Waiting], took_s: float) -> None:
        """Wake the threads whose tickets are done; the others return to the head of the queue."""
        with self._guard:
            undone = [each for each in group if not each.ticket.is_done and not each.gone]
            self._line.extendleft(reversed(undone))
            # Late arrivals are counted too; otherwise the group would not grow to its full size
            # again.
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


# Handles of one graph share its queues, unless they allow different external blobs: a group is
# executed by one of its members, with the permissions and the durability of that member. A queue is
# kept between writes, because it stores the size of the last group, and holds no handle.
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
    # After a fork, the child process has none of the threads in the queues of its parent.
    _queues, _queues_guard = {}, threading.Lock()


os.register_at_fork(after_in_child=_start_over)
