"""A proxy that counts: every HTTP request to the S3 server passes through and is written down.

What a store client retries, pools or hides is seen here as the server sees it. Requests and
answers are forwarded byte for byte, so signatures stay valid.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Seen:
    """One request. `verb` tells listing from reading, and conditional from plain writing."""

    verb: str
    path: str


class CountingProxy:
    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        assert parts.hostname is not None
        assert parts.port is not None
        self._upstream = (parts.hostname, parts.port)
        self.guard = threading.Lock()
        self.seen: list[Seen] = []
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                proxy._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that goes away is no news."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def counting(self) -> Iterator[Counter[str]]:
        """How many requests of each verb are made in a block."""
        counted: Counter[str] = Counter()
        with self.guard:
            start = len(self.seen)
        yield counted
        with self.guard:
            counted.update(seen.verb for seen in self.seen[start:])

    def since(self, start: int) -> list[str]:
        """The requests from a number on, for a person to read."""
        return [f"{seen.verb} {seen.path}" for seen in self.seen[start:]]

    def _serve(self, client: socket.socket) -> None:
        with socket.create_connection(self._upstream) as server:
            for each in (client, server):  # else small parts wait for one another
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client_file, server_file = client.makefile("rb"), server.makefile("rb")
            while self.exchange(client, server, (client_file, server_file)):
                pass

    def exchange(self, client: socket.socket, server: socket.socket, files: Any) -> bool:
        """Forward one request and its answer. False: the connection is over."""
        head = read_head(files[0])
        if not head:
            return False
        method, target, _ = head[0].split(" ", 2)
        headers = headers_of(head)
        self.count(method, target, headers)
        server.sendall(raw_head(head))
        copy_body(files[0], server, headers)
        answer = read_head(files[1])
        if not answer:
            return False
        client.sendall(raw_head(answer))
        status = int(answer[0].split(" ")[1])
        if method != "HEAD" and status not in (204, 304):
            copy_body(files[1], client, headers_of(answer))
        return True

    def count(self, method: str, target: str, headers: dict[str, str]) -> tuple[Seen, int]:
        """Record a request; returns it and its number, from 1."""
        seen = _describe(method, target, headers)
        with self.guard:
            self.seen.append(seen)
            return seen, len(self.seen)


def _describe(method: str, target: str, headers: dict[str, str]) -> Seen:
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    verb = method
    if method == "GET" and "list-type" in query:
        verb = "LIST"
    elif method == "POST" and "delete" in query:
        verb = "DELETE many"
    elif method == "PUT" and ("if-none-match" in headers or "if-match" in headers):
        verb = "PUT if"
    return Seen(verb, parts.path)


def read_head(file: Any) -> list[str]:
    lines: list[str] = []
    while line := file.readline():
        text = line.decode("latin-1").rstrip("\r\n")
        if not text and lines:
            return lines
        if text:
            lines.append(text)
    return []


def raw_head(head: list[str]) -> bytes:
    return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")


def headers_of(head: list[str]) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in head[1:])
    return {name.strip().lower(): value.strip() for name, value in pairs}


def copy_body(source: Any, target: Any, headers: dict[str, str]) -> None:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while True:
            line = source.readline()
            target.sendall(line)
            size = int(line.split(b";")[0], 16)
            target.sendall(source.read(size + 2))
            if size == 0:
                return
    length = int(headers.get("content-length", 0))
    while length:
        part = source.read(min(length, 1 << 16))
        target.sendall(part)
        length -= len(part)
