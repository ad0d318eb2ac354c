"""Tags: names for commits that must stay readable.

A tag is one object; it never moves by itself.
"""

from __future__ import annotations

import time

from omnigraph.commit.preconditions import refuse_other_graph
from omnigraph.errors import AlreadyExistsError, StoragePreconditionError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import Tag, check_name, read_tag, tag_path
from omnigraph.model.commit import Commit
from omnigraph.model.texts import check_text
from omnigraph.storage.root import GraphRoot


def create_tag(
    root: GraphRoot, name: str, line: BranchLog, commit: Commit, actor: str, message: str = ""
) -> Tag:
    check_name(name, "tag")
    check_text(message, "message of the tag")
    refuse_other_graph(line)
    tag = Tag(
        name, line.branch_id, commit.id, commit.sequence, time.time_ns() // 1000, actor, message
    )
    try:
        root.objects.create(tag_path(name), tag.to_bytes())
    except StoragePreconditionError as error:
        raise AlreadyExistsError(f"There is a tag {name!r} already.", tag=name) from error
    return tag


def delete_tag(root: GraphRoot, name: str) -> Tag:
    tag = read_tag(root, name)
    root.objects.delete(tag_path(name))
    return tag
