"""Questions about the social graph, warm and cold, beside the peers; every answer compared."""

from __future__ import annotations

from benchmarks.measure import AGAIN, Findings, Measure
from benchmarks.questions import QUESTIONS, Question
from benchmarks.social import Crowd, crowd, same_answers, write_social
from benchmarks.suites import Setting
from benchmarks.workers import Worker

ROUNDS = 4
SECONDS_WARM = 0.3
SECONDS_EACH = 0.1
SECONDS_ENOUGH = 1.5  # of a subject that is slow; two samples at least
# What a new process is asked first: something small, and something that needs the whole graph.
FIRST = ("person by key", "8 paths of two hops")


def run(setting: Setting) -> Findings:
    data = write_social(setting.folder, setting.scale, setting.seed)
    with crowd(setting.folder, data, again=True) as found:
        measures = [measure(question, found, setting) for question in QUESTIONS]
        systems = [s for s in found.workers if s != AGAIN]
    for name in FIRST:
        question = next(q for q in QUESTIONS if q.name == name)
        samples = {s: _cold(s, question, setting, data.name) for s in systems}
        note = "open and answer, in a new process"
        measures.append(Measure(f"cold: {name}", "ms", samples, note=note))
    return Findings(measures, found.skipped, found.versions)


def measure(question: Question, found: Crowd, setting: Setting) -> Measure:
    """Rounds, and in each round every subject, so that what disturbs one disturbs all."""
    answers = {s: w.call("ask", question) for s, w in found.workers.items()}
    samples: dict[str, list[float]] = {s: [] for s in found.workers}
    for worker in found.workers.values():
        worker.times("ask", question, seconds=SECONDS_WARM, most=80)
    for turn in range(ROUNDS):
        for subject, worker in found.workers.items():
            if turn > 1 and sum(samples[subject]) > 1000 * SECONDS_ENOUGH:
                continue
            times = worker.times("ask", question, seconds=SECONDS_EACH, most=15)
            samples[subject] += [1000 * seconds for seconds in times]
    return Measure(
        question.name,
        "ms",
        samples,
        target=setting.promised(question.target_ms) if question.target_ms else None,
        bound=setting.promised(1.0) if question.analytic else None,
        same=same_answers(answers, question),
    )


def _cold(system: str, question: Question, setting: Setting, name: str) -> list[float]:
    found = []
    for _ in range(3):
        with Worker(system, setting.folder / f"{name}-{system}") as worker:
            found.append(1000 * (worker.opening + worker.time("ask", question)))
    return found
