"""How cost grows with the graph: the same at one, three and ten times the size.

By default the largest is the graph of the promises, which other suites have loaded already; a scale
moves all three. How loads on Spark grow is in the suite `load`.
"""

from __future__ import annotations

import math

from benchmarks.measure import OURS, Findings, Measure
from benchmarks.questions import QUESTIONS
from benchmarks.social import crowd, write_social
from benchmarks.suites import Setting

SIZES = (0.1, 0.3, 1.0)
ASKED = (
    "1 most followed people",
    "4 people of an age, by country",
    "9 paths of two hops, filtered",
    "reach, 3 hops",
    "one hop from a key",
)


def run(setting: Setting) -> Findings:
    samples: dict[str, dict[str, list[float]]] = {}
    for size in SIZES:
        scale = size * setting.scale
        label = f"× {size / SIZES[0]:g}"
        data = write_social(setting.folder, scale, setting.seed)
        with crowd(setting.folder, data, (OURS,)) as found:
            worker = found.workers[OURS]
            samples.setdefault("load", {})[label] = [1000 * found.loading[OURS]]
            samples.setdefault("optimize", {})[label] = [1000 * found.settling[OURS]]
            for name in ASKED:
                question = next(q for q in QUESTIONS if q.name == name)
                worker.call("ask", question)  # the first reads what is kept; it may take long
                worker.times("ask", question, seconds=0.3, most=80)
                times = [
                    seconds
                    for _ in range(3)
                    for seconds in worker.times("ask", question, seconds=0.15, most=15)
                ]
                samples.setdefault(name, {})[label] = [1000 * seconds for seconds in times]
    return Findings([_measure(name, found) for name, found in samples.items()])


def _measure(name: str, samples: dict[str, list[float]]) -> Measure:
    plain = Measure(name, "ms", samples, peers=False)
    first, *_, last = samples
    power = math.log(plain.value(last) / plain.value(first)) / math.log(SIZES[-1] / SIZES[0])
    note = f"grows with size to the power of {power:.2f}"
    return Measure(name, "ms", samples, peers=False, note=note)
