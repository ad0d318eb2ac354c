"""The writer lock: at most one writer per name, across threads, handles, processes and machines.

    with writer_lock(store, "main", owner="act-anna", operation="mutate") as lock:
        ...
        lock.check()                    # right before publishing
        publish(fence=lock.token)

- **Local disk**: an OS lock on `__locks/<name>.lock`. It ends with its process, so nothing has to
expire. A second lock file, `<name>.queue`, makes acquisition fair: the next writer waits on it, so
that the previous owner can have priority a few times only. A waiting process may write a letter.
- **memory://**: a lock of this process.
- **S3**: a lease object that is renewed in the background and may be taken over (`lease`).

Every acquisition gets a fencing token, greater than all before it under the same name. A publisher
writes its token into what it publishes and refuses to publish over a greater one. Readers take no
lock. Waiting is bounded and ends in `LockTimeoutError`, which names the owner. Fork: a child
process does not hold the locks of its parent, and the `check` of a token from before the fork
fails. The lock is not reentrant: a writer that acquires it twice times out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from urllib.parse import quote

from omnigraph.errors import InvalidArgumentError
from omnigraph.storage import filelock, lease
from omnigraph.storage.disk import LOCKS
from omnigraph.storage.lockowner import Holder, LockToken
from omnigraph.storage.mailbox import Letters
from omnigraph.storage.objects import ObjectStore

__all__ = ["Holder", "LockToken", "drop_lock", "letters_to", "read_fence", "writer_lock"]

_NAME_LIMIT = 120


def writer_lock(
    store: ObjectStore,
    name: str,
    *,
    owner: str,
    operation: str = "write",
    timeout_ms: int = 30_000,
    meanwhile: Callable[[], None] | None = None,
) -> AbstractContextManager[LockToken]:
    """Hold the writer lock `name` of the graph at this store for the length of a block. On local
    disk, `meanwhile` is called repeatedly while waiting; it may end the wait by raising."""
    holder = Holder.here(owner, operation)
    path = lock_path(name)
    timeout_s = timeout_ms / 1000
    match store.location.scheme:
        case "file":
            place = f"{store.location.path}/{path}"
            return filelock.hold_file(place, name, holder, timeout_s, meanwhile)
        case "memory":
            return filelock.hold_memory(f"{store.location.uri}/{path}", name, holder, timeout_s)
        case "s3":
            return lease.hold(store, f"{path}.json", name, holder, timeout_s)


def letters_to(store: ObjectStore, name: str) -> Letters | None:
    """The letters to the lock owner; None if letters are not supported."""
    if store.location.scheme != "file":
        return None
    return Letters(f"{store.location.path}/{lock_path(name)}.letters")


def read_fence(store: ObjectStore, name: str) -> int:
    """The last fencing token given out under this name; 0 if there was none."""
    path = lock_path(name)
    match store.location.scheme:
        case "file":
            return filelock.read_token(f"{store.location.path}/{path}")
        case "memory":
            return filelock.read_memory_token(f"{store.location.uri}/{path}")
        case "s3":
            return lease.read_token(store, f"{path}.json")


def drop_lock(store: ObjectStore, name: str) -> None:
    """Remove the files of a lock that is not used any more. One that is held now stays."""
    path = lock_path(name)
    match store.location.scheme:
        case "file":
            filelock.drop_file(f"{store.location.path}/{path}")
        case "s3":
            store.delete(f"{path}.json")


def lock_path(name: str) -> str:
    """The path of the lock of a name; names may contain slashes and be very long."""
    if not name:
        raise InvalidArgumentError("A lock needs a name.")
    quoted = quote(name, safe="")
    if len(quoted) > _NAME_LIMIT:
        digest = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        quoted = f"{quoted[:_NAME_LIMIT]}~{digest}"
    # The prefix keeps writers' locks apart from the object locks in the same directory.
    return f"{LOCKS}/writer-{quoted}"
