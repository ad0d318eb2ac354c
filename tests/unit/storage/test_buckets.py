"""S3 when things go wrong: lost answers, missing rights, missing buckets, a silent server."""

# ledger: S01, S02

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.support.s3 import S3Server

from omnigraph.errors import (
    StorageConfigurationError,
    StorageError,
    StoragePreconditionError,
    StorageTransientError,
)
from omnigraph.storage.location import parse_location
from omnigraph.storage.objects import ObjectStore, open_store


class Proxy:
    """A TCP proxy that can swallow the answer to a write which the server has carried out."""

    def __init__(self, endpoint: str) -> None:
        target = urlsplit(endpoint)
        self._upstream = (str(target.hostname), int(target.port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closed = False
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.swallow = 0
        self.swallowed = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed = True
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self._closed:
                client.close()
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._upstream) as server:
            writing = threading.Event()
            back = threading.Thread(
                target=self._answer, args=(server, client, writing), daemon=True
            )
            back.start()
            while data := _receive(client):
                if data.startswith((b"PUT ", b"DELETE ")):
                    writing.set()
                elif data.startswith((b"GET ", b"HEAD ")):
                    writing.clear()
                server.sendall(data)
            _shut(server)
            back.join()

    def _answer(
        self, server: socket.socket, client: socket.socket, writing: threading.Event
    ) -> None:
        while data := _receive(server):
            if writing.is_set() and self.swallow:
                self.swallow -= 1
                self.swallowed += 1
                break
            client.sendall(data)
        _shut(client)
        _shut(server)


def _receive(source: socket.socket) -> bytes:
    try:
        return source.recv(65536)
    except OSError:
        return b""


def _shut(target: socket.socket) -> None:
    try:
        target.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    proxy = Proxy(s3_server.endpoint)
    yield proxy
    proxy.close()


@pytest.fixture
def store(s3_root: str) -> ObjectStore:
    return open_store(s3_root)


@pytest.fixture
def fragile(s3_server: S3Server, s3_root: str, proxy: Proxy) -> ObjectStore:
    environ = s3_server.environ() | {"AWS_ENDPOINT_URL": proxy.address}
    return open_store(parse_location(s3_root, environ))


def test_a_create_whose_answer_was_lost_has_won(fragile: ObjectStore, proxy: Proxy) -> None:
    proxy.swallow = 1
    etag = fragile.create("a", b"mine")
    assert proxy.swallowed == 1
    assert fragile.get("a").etag == etag
    with pytest.raises(StoragePreconditionError):
        fragile.create("a", b"mine")


def test_a_replace_whose_answer_was_lost_has_won(fragile: ObjectStore, proxy: Proxy) -> None:
    first = fragile.put("a", b"one")
    proxy.swallow = 1
    second = fragile.replace("a", b"two", first)
    assert proxy.swallowed == 1
    assert fragile.get("a").data == b"two"
    fragile.replace("a", b"three", second)


def test_a_lost_create_stays_lost_when_its_answer_was_lost(
    fragile: ObjectStore, store: ObjectStore, proxy: Proxy
) -> None:
    store.create("a", b"mine")  # Equal content by another writer is still another writer.
    proxy.swallow = 1
    with pytest.raises(StoragePreconditionError):
        fragile.create("a", b"mine")


def test_put_and_delete_are_repeated(fragile: ObjectStore, proxy: Proxy) -> None:
    proxy.swallow = 1
    fragile.put("a", b"one")
    assert fragile.get("a").data == b"one"
    proxy.swallow = 1
    fragile.delete("a")
    assert not fragile.exists("a")


def test_a_missing_bucket_is_a_configuration_error(s3_root: str) -> None:
    store = open_store(f"s3://no-such-bucket-{uuid4().hex[:8]}/graph")
    for act in (
        lambda: store.get("a"),
        lambda: store.get_or_none("a"),
        lambda: store.put("a", b""),
        lambda: store.create("a", b""),
        lambda: store.replace("a", b"", '"etag"'),
        lambda: list(store.list()),
    ):
        with pytest.raises(StorageConfigurationError, match=r"NoSuchBucket|bucket"):
            act()


@pytest.mark.parametrize("path", ["present", "absent"])
def test_a_wrong_key_is_a_configuration_error(
    s3_server: S3Server, s3_root: str, store: ObjectStore, path: str
) -> None:
    store.put("present", b"")
    environ = s3_server.environ() | {"AWS_SECRET_ACCESS_KEY": "wrong"}
    intruder = open_store(parse_location(s3_root, environ))
    for act in (
        lambda: intruder.get(path),
        lambda: intruder.get_or_none(path),
        lambda: intruder.exists(path),
        lambda: intruder.put(path, b""),
        lambda: intruder.delete(path),
        lambda: list(intruder.list()),
    ):
        with pytest.raises(StorageConfigurationError) as caught:
            act()
        assert "wrong" not in str(caught.value)
    assert list(store.list()) == ["present"]


def test_a_reader_may_not_write(s3_server: S3Server, s3_root: str, store: ObjectStore) -> None:
    etag = store.put("a", b"one")
    reader = open_store(parse_location(s3_root, s3_server.environ("reader")))
    assert reader.get("a").data == b"one"
    assert list(reader.list()) == ["a"]
    for act in (
        lambda: reader.put("a", b""),
        lambda: reader.create("b", b""),
        lambda: reader.replace("a", b"", etag),
        lambda: reader.delete("a"),
    ):
        with pytest.raises(StorageConfigurationError):
            act()
    assert store.get("a").data == b"one"


def test_plain_http_must_be_allowed(s3_server: S3Server, s3_root: str) -> None:
    environ = s3_server.environ()
    del environ["AWS_ALLOW_HTTP"]
    with pytest.raises(StorageConfigurationError):
        open_store(parse_location(s3_root, environ)).get("a")


def test_nobody_listening_is_transient(s3_server: S3Server, s3_root: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = s3_server.environ() | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    store = open_store(parse_location(s3_root, environ))
    for act in (lambda: store.get("a"), lambda: store.put("a", b""), lambda: list(store.list())):
        with pytest.raises(StorageTransientError) as caught:
            act()
        assert isinstance(caught.value, StorageError)
        assert "\n" not in str(caught.value)
