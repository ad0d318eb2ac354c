"""The resource of each request: which branches and types it concerns.

A function for each shape of request; `operations.verbs` says which verb uses which. None of them
reads the graph.
"""

from __future__ import annotations

from typing import Any

from omnigraph.operations.admission import Resource, ResourceKind


def graph(request: object) -> Resource:
    return _WHOLE_GRAPH


_WHOLE_GRAPH = Resource()


def on_branch(request: Any) -> Resource:
    return Resource.of_branch(request.branch)


def on_types(request: Any) -> Resource:
    return Resource.of_branch(request.branch, tuple(request.types or ()))


def at_target(request: Any) -> Resource:
    return Resource.of_target(request.target)


def at_blob(request: Any) -> Resource:
    return Resource.of_target(request.target, (request.selector.type_name,))


def exported(request: Any) -> Resource:
    types = request.options.types if request.options is not None else ()
    return Resource.of_target(request.target, tuple(types))


def filtered(request: Any) -> Resource:
    return Resource.of_branch(request.branch, tuple(sorted(request.filter.types)))


def by_commit(request: Any) -> Resource:
    # A commit may lie on any branch.
    return Resource(types=tuple(sorted(request.filter.types)))


def ingested(request: Any) -> Resource:
    types = tuple(request.types) if request.type is None else (*request.types, request.type)
    return Resource.of_branch(request.branch, types)


def loaded(request: Any) -> Resource:
    branch = "main" if request.options is None else request.options.branch
    return Resource.of_branch(branch, () if request.type is None else (request.type,))


def embedded(request: Any) -> Resource:
    return Resource.of_branch(request.options.branch, tuple(request.options.types))


def started(request: Any) -> Resource:
    source = Resource.of_target(request.start).branch
    return Resource(ResourceKind.BRANCH, source, request.name)


def deleted(request: Any) -> Resource:
    return Resource(ResourceKind.BRANCH, None, request.name)


def renamed(request: Any) -> Resource:
    return Resource(ResourceKind.BRANCH, request.old, request.new)


def tagged(request: Any) -> Resource:
    return Resource(ResourceKind.TAG, Resource.of_target(request.start).branch)


def tag(request: object) -> Resource:
    return Resource(ResourceKind.TAG)


def merged(request: Any) -> Resource:
    return Resource(ResourceKind.BRANCH, request.source, request.into)


def picked(request: Any) -> Resource:
    return Resource(ResourceKind.BRANCH, None, request.branch)


def rebased(request: Any) -> Resource:
    return Resource(ResourceKind.BRANCH, request.onto, request.branch)


def schema(request: Any) -> Resource:
    return Resource(ResourceKind.BRANCH, None, request.branch)
