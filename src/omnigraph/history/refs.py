"""Branch and tag references: small control objects that reference manifests.

A branch is an id (never reused) with a manifest of its own; its name is a reference to that id.
So a name can be given up, taken again or changed without touching data, and `a` may stand beside
`a/b`. `main` needs no reference: its id is its name.

Guarantees: reading a name is one object read.
Deliberately absent: creating, renaming and deleting (`commit.branches`, `commit.tags`).
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from omnigraph.errors import (
    BranchNotFoundError,
    InvalidArgumentError,
    InvariantViolationError,
    TagNotFoundError,
)
from omnigraph.history.decoder import (
    decoding,
    read_fields,
    shown,
    text,
    text_or_none,
    texts,
    whole,
)
from omnigraph.model.texts import encode_object
from omnigraph.storage.root import GraphRoot

R = TypeVar("R")

MAIN = "main"
BRANCHES = "__refs"
TAGS = "__tags"
MAX_NAME_BYTES = 255
# Names that begin like this are the program's own, for branches that are not ready to be seen.
HIDDEN = "~"
# Capitals are encoded too: some disks do not tell them from small letters.
_PLAIN = frozenset(string.ascii_lowercase + string.digits + "-_.")


@dataclass(frozen=True, slots=True)
class Branch:
    name: str
    id: str
    parent_id: str | None = None
    fork_commit: str | None = None
    fork_sequence: int = 0
    # The branches that it grew from, nearest first. Their manifests hold its older commits.
    ancestors: tuple[str, ...] = ()
    created_at_us: int = 0
    actor: str = ""
    # Set just before a rename creates the new name; the old one is gone once that exists.
    renaming_to: str | None = None
    # The name that a rename left, where a crash may have left a reference behind.
    renamed_from: str | None = None

    def to_bytes(self) -> bytes:
        return encode_object(asdict(self))


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    branch_id: str
    commit_id: str
    sequence: int
    created_at_us: int = 0
    actor: str = ""
    message: str = ""

    def to_bytes(self) -> bytes:
        return encode_object(asdict(self))


MAIN_BRANCH = Branch(MAIN, MAIN)


def check_name(name: str, what: str = "branch") -> None:
    """Refuse names that no person could type or that no store could hold."""
    problem = _problem_with(name)
    if problem:
        raise InvalidArgumentError(
            f"{name!r} is not a usable {what} name: {problem}.",
            hint="Use letters, digits and any of - _ . / between them.",
        )


def _problem_with(name: str) -> str | None:
    if not name or name != name.strip():
        return "it is empty or begins or ends with a space"
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_BYTES} bytes"
    if not name.isprintable():
        return "it holds characters that cannot be printed"
    if name.startswith(("/", "__", HIDDEN)) or name.endswith("/") or "//" in name:
        return f"it begins with /, __ or {HIDDEN}, ends with / or holds //"
    return None


def branch_path(name: str) -> str:
    return f"{BRANCHES}/{encode_name(name)}.json"


def tag_path(name: str) -> str:
    return f"{TAGS}/{encode_name(name)}.json"


def encode_name(name: str) -> str:
    """A flat object name for any branch name: different names never share one."""
    encoded = "".join(
        character if character in _PLAIN else "".join(f"={byte:02x}" for byte in character.encode())
        for character in name
    )
    if len(encoded) <= 160:
        return encoded
    return encoded[:80] + "=~" + hashlib.sha256(name.encode()).hexdigest()


def read_branch(root: GraphRoot, name: str) -> Branch:
    """The branch of that name, or BranchNotFoundError."""
    if name == MAIN:
        return MAIN_BRANCH
    if not name.startswith(HIDDEN):
        check_name(name)
    found = root.objects.get_or_none(branch_path(name))
    branch = decode_branch(found.data, name) if found else None
    if branch is None or renamed_away(root, branch):
        raise BranchNotFoundError(f"There is no branch {name!r}.", branch=name)
    return branch


def list_branches(root: GraphRoot) -> list[Branch]:
    """All live branches that may be seen, main first, then by name. A reference that cannot be
    read is an error: what it names must not be taken for absent."""
    return _live(root, [decode_branch(data, path) for path, data in _read_all(root, BRANCHES)])


def readable_branches(root: GraphRoot) -> tuple[list[Branch], list[InvariantViolationError]]:
    """The same without the references that cannot be read, and why they cannot."""
    named, damaged = _read_what_can_be(root, BRANCHES, decode_branch)
    return _live(root, named), damaged


def named_ids(root: GraphRoot) -> set[str]:
    """The ids of all branches that have a name, also a hidden one, as far as they can be read."""
    return {branch.id for branch in _read_what_can_be(root, BRANCHES, decode_branch)[0]}


def readable_tags(root: GraphRoot) -> tuple[list[Tag], list[InvariantViolationError]]:
    """The tags by name, without those that cannot be read, and why they cannot."""
    tags, damaged = _read_what_can_be(root, TAGS, decode_tag)
    return sorted(tags, key=lambda tag: tag.name), damaged


def _read_what_can_be(
    root: GraphRoot, prefix: str, decode: Callable[[bytes, str], R]
) -> tuple[list[R], list[InvariantViolationError]]:
    found: list[R] = []
    damaged: list[InvariantViolationError] = []
    for path, data in _read_all(root, prefix):
        try:
            found.append(decode(data, path))
        except InvariantViolationError as error:
            damaged.append(error)
    return found, damaged


def _live(root: GraphRoot, named: list[Branch]) -> list[Branch]:
    seen = [branch for branch in named if not branch.name.startswith(HIDDEN)]
    live = [branch for branch in seen if not renamed_away(root, branch)]
    return [MAIN_BRANCH, *sorted(live, key=lambda branch: branch.name)]


def read_tag(root: GraphRoot, name: str) -> Tag:
    check_name(name, "tag")
    found = root.objects.get_or_none(tag_path(name))
    if found is None:
        raise TagNotFoundError(f"There is no tag {name!r}.", tag=name)
    return decode_tag(found.data, name)


def list_tags(root: GraphRoot) -> list[Tag]:
    tags = [decode_tag(data, path) for path, data in _read_all(root, TAGS)]
    return sorted(tags, key=lambda tag: tag.name)


def decode_branch(data: bytes, where: str) -> Branch:
    with _decoding(where):
        found = Branch(**read_fields(data))
        for name in (found.name, found.id):
            text(name)
        for other in (found.parent_id, found.fork_commit, found.renaming_to, found.renamed_from):
            text_or_none(other)
        whole(found.fork_sequence)
        whole(found.created_at_us)
        return replace(found, ancestors=texts(found.ancestors), actor=shown(found.actor))


def decode_tag(data: bytes, where: str) -> Tag:
    with _decoding(where):
        found = Tag(**read_fields(data))
        for name in (found.name, found.branch_id, found.commit_id):
            text(name)
        whole(found.sequence)
        whole(found.created_at_us)
        # What only people read must not keep anybody from what the tag names.
        return replace(found, actor=shown(found.actor), message=shown(found.message))


def _decoding(where: str) -> AbstractContextManager[None]:
    return decoding(
        f"The reference {where!r}",
        hint="Restore the object from a backup, or delete it to remove the name.",
    )


def _read_all(root: GraphRoot, prefix: str) -> Iterator[tuple[str, bytes]]:
    for path in root.objects.list(prefix):
        found = root.objects.get_or_none(path)
        if found is not None:  # deleted since the listing
            yield path, found.data


def renamed_away(root: GraphRoot, branch: Branch) -> bool:
    """Whether a rename got as far as the new name but not to the removal of the old one."""
    if branch.renaming_to is None:
        return False
    found = root.objects.get_or_none(branch_path(branch.renaming_to))
    return found is not None and decode_branch(found.data, branch.renaming_to).id == branch.id
