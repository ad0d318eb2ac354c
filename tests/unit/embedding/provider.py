"""A provider on this machine that answers as a test says, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: Any


class FakeProvider:
    """`answers` are given in turn; the last one again and again. A function makes its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[Answer | Callable[[Any], Answer]] = []
        self.asked: list[Asked] = []

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        chosen = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return chosen if isinstance(chosen, Answer) else chosen(asked.body)


@contextmanager
def provider() -> Iterator[FakeProvider]:
    state: list[FakeProvider] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            size = int(self.headers["content-length"])
            body = json.loads(self.rfile.read(size))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = state[0].answer(Asked(self.path, headers, body))
            time.sleep(answer.delay_s)
            said = (
                answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            )
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)
            except OSError:
                self.close_connection = True  # the client has gone

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.append(FakeProvider(f"http://127.0.0.1:{server.server_port}/v1"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
