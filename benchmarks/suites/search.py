"""Search over documents: vector, text and both, over all of them and over those of one topic.

Times come with recall: of the ten that belong there, how many were found. For vectors those are the
ten with the least cosine distance, computed here; for both together, the ten of the fused rankings,
from all distances and from our own ranking of texts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from benchmarks.documents import Documents, kept_set
from benchmarks.measure import AGAIN, OURS, Findings, Measure
from benchmarks.suites import Setting
from benchmarks.workers import AbsentError, Worker

CASES = (
    ("hybrid", "topic", "vector + text + traversal"),
    ("vector", "topic", "vector + traversal"),
    ("text", "topic", "text + traversal"),
    ("hybrid", "all", "vector + text, all documents"),
    ("vector", "all", "vector, all documents"),
)
TARGETS = {("hybrid", "topic"): 10.0}
RECALL = 0.98
ROUNDS = 4
QUERIES = 25  # of which recall is taken


def run(setting: Setting) -> Findings:
    documents = kept_set(setting.folder, setting.scale, setting.seed)
    skipped: dict[str, str] = {}
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for subject, system in ((OURS, "library"), ("lancedb", "lancedb"), (AGAIN, "library")):
            try:
                worker = stack.enter_context(_filled(system, setting))
            except (AbsentError, RuntimeError) as reason:
                skipped[subject] = str(reason).splitlines()[0][:120]
                continue
            workers[subject] = worker
        measures = [m for case in CASES for m in _measures(case, workers, documents, setting)]
        versions = {s: w.version for s, w in workers.items() if s not in (OURS, AGAIN)}
    return Findings(measures, skipped, versions)


def _filled(system: str, setting: Setting) -> Worker:
    place = setting.folder / f"documents-{setting.scale:g}-{setting.seed}-{system}"
    whole = place / "whole"  # written last
    if not whole.exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    worker = Worker(system, place)
    try:
        worker.call("prepare", setting.folder, setting.scale, setting.seed)
        if not whole.exists():
            worker.call("fill")
            worker.call("settle")
            whole.touch()
    except RuntimeError:
        worker.close()
        raise
    return worker


def _measures(
    case: tuple[str, str, str], workers: dict[str, Worker], documents: Documents, setting: Setting
) -> list[Measure]:
    kind, where, name = case
    samples: dict[str, list[float]] = {s: [] for s in workers}
    for worker in workers.values():  # warm: what is read once and kept has been read
        worker.times("search_next", kind, where, seconds=1.5, most=90)
    for _ in range(ROUNDS):
        for subject, worker in workers.items():
            times = worker.times("search_next", kind, where, seconds=0.3, most=30)
            samples[subject] += [1000 * seconds for seconds in times]
    target = TARGETS.get((kind, where)) if setting.scale == 1 else None
    found = [Measure(name, "ms", samples, target=target)]
    if kind == "text":
        return found
    truths = [_TRUTH[kind](where, n, workers[OURS], documents) for n in range(QUERIES)]
    means = {
        s: [float(np.mean([_recall(kind, where, n, worker, t) for n, t in enumerate(truths)]))]
        for s, worker in workers.items()
        if s != AGAIN
    }
    found.append(Measure(f"recall, {name}", "of 1", means, target=RECALL, more=True))
    return found


def _recall(kind: str, where: str, number: int, worker: Worker, true: list[str]) -> float:
    found = {slug for slug, _ in worker.call("search", kind, where, number)}
    return len(found & set(true)) / max(1, len(true))


def _nearest(where: str, number: int, _: Worker, documents: Documents, most: int = 10) -> list[str]:
    vector, _text, topic = documents.queries[number]
    exact = vector.astype(np.float64)
    distances = 1.0 - documents.directions @ (exact / np.linalg.norm(exact))
    rows = np.arange(len(documents.topics))
    if where == "topic":
        rows = np.flatnonzero(documents.topics == int(topic.split("-")[1]))
        distances = distances[rows]
    return [f"d{rows[place]:07d}" for place in np.argsort(distances, kind="stable")[:most]]


def _fused(where: str, number: int, ours: Worker, documents: Documents) -> list[str]:
    """Reciprocal ranks of both rankings, each a hundred deep."""
    vectors = _nearest(where, number, ours, documents, 100)
    texts = ours.call("rank_texts", where, number, 100)
    scores: dict[str, float] = {}
    for ranking in (vectors, texts):
        for place, slug in enumerate(ranking, 1):
            scores[slug] = scores.get(slug, 0.0) + 1.0 / (60 + place)
    return sorted(scores, key=lambda slug: (-round(scores[slug], 15), slug))[:10]


_TRUTH: dict[str, Callable[[str, int, Worker, Documents], list[str]]] = {
    "vector": _nearest,
    "hybrid": _fused,
}
