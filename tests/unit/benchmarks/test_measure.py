"""What the benchmark says about samples, and that its questions can be asked."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks import comparison, flames, page, plots, records, run
from benchmarks.generate import SCHEMA, social_graph
from benchmarks.measure import AGAIN, OURS, Findings, Measure, noise_floor, promises, verdict
from benchmarks.questions import QUESTIONS
from benchmarks.social import same_answers
from benchmarks.suites import NAMES, Setting
from benchmarks.tables import show, summary

from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema


def measure(ours: float, theirs: float, again: float | None = None, **more: object) -> Measure:
    samples = {OURS: [ours] * 3, "peer": [theirs] * 3}
    if again is not None:
        samples[AGAIN] = [again] * 3
    return Measure("x", "ms", samples, **more)  # type: ignore[arg-type]


def test_a_ratio_within_the_noise_is_no_difference() -> None:
    assert verdict(measure(1.0, 1.08), 0.1) == "no difference from peer"
    assert verdict(measure(1.0, 2.0), 0.1) == "0.50 × peer"
    assert verdict(measure(2.0, 1.0), 0.1) == "2.00 × peer"


def promised(found: Measure, floor: float = 0.1) -> list[str]:
    return [str(promise) for promise in promises(found, floor)]


def test_more_may_be_better() -> None:
    fast = measure(200, 100, more=True, target=150)
    assert fast.ratio == 0.5
    assert promised(fast) == ["at least 150 ms: kept"]
    slow = measure(100, 200, more=True, target=150)
    assert promised(slow) == ["at least 150 ms: MISSED (best 100)"]


def test_the_median_keeps_a_promise_or_misses_it() -> None:
    assert promised(measure(1.0, 2.0)) == []
    loud = Measure("x", "ms", {OURS: [9.0, 12.0, 14.0]}, target=10)
    assert promised(loud) == ["at most 10 ms: MISSED (best 9.00)"]


def test_a_promise_may_be_about_the_best_other() -> None:
    assert promised(measure(1.0, 2.0, bound=1)) == ["at most 1 × the best other: kept"]
    assert promised(measure(1.05, 1.0, bound=1))[0].endswith("no difference (best 1.05)")
    assert promised(measure(1.5, 1.0, bound=1))[0].endswith("MISSED (best 1.50)")
    # Only "no slower" is a matter of noise.
    assert promised(measure(1.45, 1.0, bound=1.4))[0].endswith("MISSED (best 1.45)")
    assert promised(measure(1.0, 2.0, target=3, bound=1)) == [
        "at most 3 ms: kept",
        "at most 1 × the best other: kept",
    ]


def test_trials_leave_the_records_of_the_page_alone() -> None:
    assert records.folder_of(1.0) == records.FOLDER
    assert records.folder_of(0.1).parent == records.FOLDER


def test_promises_belong_to_the_whole_graph(tmp_path: Path) -> None:
    assert Setting(tmp_path).promised(15) == 15
    assert Setting(tmp_path, scale=0.1).promised(15) is None


def test_the_floor_is_how_far_the_same_was_from_itself() -> None:
    quiet = [measure(1.0, 1.0, again=1.01) for _ in range(10)]
    assert noise_floor(quiet) == 0.05
    loud = [measure(1.0, 1.0, again=1.5) for _ in range(10)]
    assert noise_floor(loud) == pytest.approx(0.5)
    assert noise_floor([measure(1.0, 1.0)]) == 0.05


def test_the_best_rival_counts() -> None:
    found = Measure("x", "ms", {OURS: [2.0], "slow": [8.0], "fast": [4.0], AGAIN: [2.0]})
    assert (found.best_rival, found.ratio) == ("fast", 0.5)
    cases = Measure("x", "ms", {"1": [2.0], "2": [8.0]}, peers=False)
    assert cases.best_rival is None


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    found = Findings([measure(1.0, 2.0, again=1.0, same=True)], {"absent": "not installed"})
    made = records.record("queries", 0.1, 7, 12.0, found)
    made.write(tmp_path)
    assert records.read("queries", tmp_path) == made
    assert records.read("search", tmp_path) is None
    text = show(made)
    assert "0.50 × peer; same answers" in text
    assert "absent is left out: not installed" in text


def test_the_page_follows_from_the_records() -> None:
    assert page.drifted() == []


def test_a_summary_names_what_was_missed() -> None:
    found = [measure(1.0, 2.0, target=3), measure(4.0, 2.0, target=3, bound=1)]
    text = summary([records.record("queries", 1, 7, 12.0, Findings(found))])
    assert text.splitlines() == [
        "1 of 3 promises kept",
        "  x: 4.00 ms; at most 3 ms: MISSED (best 4.00)",
        "  x: 2.00 × peer; at most 1 × the best other: MISSED (best 2.00)",
    ]


def test_the_comparison_is_renewed_between_its_marks() -> None:
    found = [measure(1.0, 4.0), measure(2.0, 1.0), measure(1.0, 1.01)]
    made = records.record("queries", 1, 7, 12.0, Findings(found, versions={"peer": "9"}))
    text = comparison.renewed(f"above\n{comparison.BEGIN}\nold\n{comparison.END}\nbelow", [made])
    assert "| peer 9 | 3 questions about a social graph | 1 | 1 | 1 | 0.99 |" in text
    assert text.startswith("above\n")
    assert text.endswith("\nbelow")
    assert "old" not in text
    assert comparison.renewed("no marks", [made]) == "no marks"


def test_a_suite_that_fails_leaves_the_others_their_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(setting: Setting) -> Findings:
        raise RuntimeError("no server")

    good = SimpleNamespace(run=lambda setting: Findings([measure(1.0, 2.0, same=True)]))
    monkeypatch.setitem(sys.modules, "benchmarks.suites.cost", SimpleNamespace(run=fail))
    monkeypatch.setitem(sys.modules, "benchmarks.suites.memory", good)
    assert run.main(["cost", "memory", "--dry"]) == 1
    told = capsys.readouterr().out
    assert "0.50 × peer; same answers" in told
    assert told.endswith("failed, or gave other answers than the peers: cost\n")
    assert run.main(["memory", "--dry"]) == 0
    assert run.main(["memories", "--dry"]) == 2


def test_other_answers_fail_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = SimpleNamespace(run=lambda setting: Findings([measure(1.0, 2.0, same=False)]))
    monkeypatch.setitem(sys.modules, "benchmarks.suites.memory", wrong)
    assert run.main(["memory", "--dry"]) == 1


def test_every_suite_can_be_run() -> None:
    """Imported, at least: none of them is tried in full here."""
    for name in NAMES:
        assert callable(import_module(f"benchmarks.suites.{name}").run)


def test_a_plot_is_well_formed() -> None:
    text = plots.bars("a < b", "ms", [("x & y", {"one": 1.0, "two": 20.0}), ("z", {"one": 0.0})])
    root = ElementTree.fromstring(text)
    assert sum(element.tag.endswith("rect") for element in root.iter()) == 5


def test_a_flame_graph_holds_what_ran() -> None:
    root = flames.watch(lambda: sum(range(20_000)), 0.2)
    assert root.seen > 0
    ElementTree.fromstring(flames.draw(root, "x"))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_questions_fit_the_schema(question: object) -> None:
    text = question.text  # type: ignore[attr-defined]
    assert gq.compile_query(text, compile_schema(SCHEMA)).query.name == "q"


def test_answers_are_compared_by_value() -> None:
    ordered, unordered = QUESTIONS[0], next(q for q in QUESTIONS if not q.ordered)
    assert same_answers({"a": [(1, 0.1 + 0.2)], "b": [(1, 0.3)]}, ordered)
    assert not same_answers({"a": [(1,), (2,)], "b": [(2,), (1,)]}, ordered)
    assert same_answers({"a": [(1,), (2,)], "b": [(2,), (1,)]}, unordered)
    assert same_answers({OURS: [(1,)], AGAIN: [(1,)]}, ordered) is None


def test_the_graph_follows_from_its_seed() -> None:
    one, other = social_graph(0.01, seed=3), social_graph(0.01, seed=3)
    assert all(one[name].equals(other[name]) for name in one)
    assert not one["Follows"].equals(social_graph(0.01, seed=4)["Follows"])
