"""A network that fails, between a client and the S3 server.

`FaultProxy.fail` chooses requests, by their number or kind, and what happens to them:

    slow              it is forwarded after a while
    reset             the connection is reset; the server never sees the request
    lost answer       the server carries it out; the connection is reset instead of an answer
    half answer       the server carries it out; the connection ends in the middle of the answer
    throttled         503 SlowDown; the server never sees the request
    failed after      the server carries it out; the client gets 500 InternalError
    expired           403 ExpiredToken; the server never sees the request
    stale list        a listing shows what it showed the last time before this proxy's last write

Every other request is forwarded byte for byte.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from tests.support.countproxy import CountingProxy, Seen, copy_body, headers_of, raw_head, read_head

SLOW_S = 0.2


class NetworkFault(StrEnum):
    SLOW = "slow"
    RESET = "reset"
    LOST_ANSWER = "lost answer"
    HALF_ANSWER = "half answer"
    THROTTLED = "throttled"
    FAILED_AFTER = "failed after"
    EXPIRED = "expired"
    STALE_LIST = "stale list"


Choice = Callable[[int, Seen], bool]
"""Whether the fault meets the nth request since it was switched on, counted from 1."""

_ERRORS = {
    NetworkFault.THROTTLED: (503, "SlowDown", "Please reduce your request rate."),
    NetworkFault.FAILED_AFTER: (500, "InternalError", "We encountered an internal error."),
    NetworkFault.EXPIRED: (403, "ExpiredToken", "The provided token has expired."),
}


class FaultProxy(CountingProxy):
    def __init__(self, upstream: str) -> None:
        self._fault: NetworkFault | None = None
        self._chosen: Choice = _none
        self._start = 0
        self.met = 0
        self._lists: dict[str, bytes] = {}
        super().__init__(upstream)

    def fail(self, fault: NetworkFault, chosen: Choice) -> None:
        with self.guard:
            self._fault, self._chosen, self._start, self.met = fault, chosen, len(self.seen), 0

    def heal(self) -> None:
        with self.guard:
            self._fault, self._chosen = None, _none

    def exchange(self, client: socket.socket, server: socket.socket, files: Any) -> bool:
        """One request and its answer. False: the connection is over."""
        head = read_head(files[0])
        if not head:
            return False
        method, target, _ = head[0].split(" ", 2)
        seen, number = self.count(method, target, headers_of(head))
        fault = self._fault_for(seen, number)
        body = _Collected()
        copy_body(files[0], body, headers_of(head))
        if fault in (NetworkFault.RESET, NetworkFault.THROTTLED, NetworkFault.EXPIRED):
            return _refuse(client, fault, method)
        if fault is NetworkFault.SLOW:
            time.sleep(SLOW_S)
        server.sendall(raw_head(head) + body.data)
        answer = _Collected()
        answered = read_head(files[1])
        if not answered:
            return False
        answer.sendall(raw_head(answered))
        if method != "HEAD" and int(answered[0].split(" ")[1]) not in (204, 304):
            copy_body(files[1], answer, headers_of(answered))
        return self._deliver(client, fault, seen, target, answer.data)

    def _fault_for(self, seen: Seen, number: int) -> NetworkFault | None:
        with self.guard:
            fault = self._fault
            if fault is None or not self._chosen(number - self._start, seen):
                return None
            if fault is NetworkFault.STALE_LIST and seen.verb != "LIST":
                return None
            self.met += 1
            return fault

    def _deliver(
        self,
        client: socket.socket,
        fault: NetworkFault | None,
        seen: Seen,
        target: str,
        answer: bytes,
    ) -> bool:
        if fault is NetworkFault.STALE_LIST:
            answer = self._lists.get(target, answer)
        elif seen.verb == "LIST":
            self._lists[target] = answer
        if fault is NetworkFault.LOST_ANSWER:
            return _reset(client)
        if fault is NetworkFault.FAILED_AFTER:
            return _refuse(client, fault, seen.verb)
        if fault is NetworkFault.HALF_ANSWER:
            client.sendall(answer[: max(1, len(answer) // 2)])
            return False
        client.sendall(answer)
        return True


class _Collected:
    """Takes the place of a socket."""

    def __init__(self) -> None:
        self.data = b""

    def sendall(self, part: bytes) -> None:
        self.data += part


def _none(number: int, seen: Seen) -> bool:
    return False


def _refuse(client: socket.socket, fault: NetworkFault, method: str) -> bool:
    if fault is NetworkFault.RESET:
        return _reset(client)
    status, code, message = _ERRORS[fault]
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>'
        f"<Message>{message}</Message></Error>"
    ).encode()
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + (b"" if method == "HEAD" else body))
    return True


def _reset(client: socket.socket) -> bool:
    """Close with RST instead of FIN."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    return False
