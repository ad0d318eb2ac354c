"""Places, excerpts, hints, and reports of several findings."""

from __future__ import annotations

import pickle

import pytest

from omnigraph.errors import SchemaError
from omnigraph.lang.diagnostics import (
    MAX_FINDINGS,
    Report,
    Source,
    Span,
    closest,
    first_hint,
    offer,
    render,
    suggest,
)

TEXT = "first\nsecond line\n\tthird\n"


def test_positions_count_from_one() -> None:
    source = Source(TEXT)
    assert source.position(0) == (1, 1)
    assert source.position(6) == (2, 1)
    assert source.position(len(TEXT)) == (4, 1)
    assert source.position(10**9) == (4, 1)
    assert source.position(-5) == (1, 1)


def test_excerpt_puts_carets_under_the_span() -> None:
    assert Source(TEXT).excerpt(Span(13, 17)) == "2 | second line\n  |        ^^^^"


def test_excerpt_keeps_tabs_and_hides_control_characters() -> None:
    assert Source(TEXT).excerpt(Span(19, 24)) == "3 | \tthird\n  | \t^^^^^"
    assert Source("a\x00b").excerpt(Span(2, 3)) == "1 | a\N{REPLACEMENT CHARACTER}b\n  |   ^"


def test_excerpt_of_a_span_over_lines_stops_at_the_line_end() -> None:
    assert Source(TEXT).excerpt(Span(0, 12)) == "1 | first\n  | ^^^^^"


def test_excerpt_at_the_end_of_the_text_still_has_a_caret() -> None:
    assert Source("ab").excerpt(Span(2, 2)) == "1 | ab\n  |   ^"


def test_excerpt_of_a_long_line_is_a_window() -> None:
    text = "x" * 5000 + "HERE" + "y" * 5000
    shown, carets = Source(text).excerpt(Span(5000, 5004)).split("\n")
    assert len(shown) < 200
    assert shown[carets.index("^") : carets.index("^") + 4] == "HERE"


def test_diagnostic_carries_place_excerpt_and_hint() -> None:
    found = Source(TEXT, "a.pg").diagnostic("S001", "odd", Span(6, 12), hint="write `x`")
    assert (found.file, found.line, found.column) == ("a.pg", 2, 1)
    assert (found.end_line, found.end_column) == (2, 7)
    assert render(found) == (
        "a.pg:2:1: error[S001]: odd\n2 | second line\n  | ^^^^^^\nhint: write `x`"
    )


def test_report_orders_findings_and_drops_repeats() -> None:
    report = Report(Source(TEXT))
    report.add("B", "later", Span(8, 9))
    report.add("A", "sooner", Span(1, 2))
    report.add("A", "sooner", Span(1, 2))
    assert [d.code for d in report.diagnostics] == ["A", "B"]


def test_warnings_alone_raise_nothing() -> None:
    report = Report(Source(TEXT))
    report.add("W", "hm", severity="warning")
    report.raise_if_errors(SchemaError)
    assert not report.has_errors


def test_raising_tells_the_first_error_and_counts_the_rest() -> None:
    report = Report(Source(TEXT, "a.pg"))
    report.add("W", "hm", severity="warning")
    report.add("A", "one", Span(1, 2))
    report.add("B", "two", Span(3, 4))
    with pytest.raises(SchemaError) as caught:
        report.raise_if_errors(SchemaError)
    assert "a.pg:1:2: error[A]: one" in str(caught.value)
    assert "1 more error" in str(caught.value)
    assert len(caught.value.diagnostics) == 3
    assert pickle.loads(pickle.dumps(caught.value)).diagnostics == caught.value.diagnostics


def test_a_report_takes_only_so_many_findings() -> None:
    report = Report(Source("x" * 1000))
    for place in range(500):
        report.add("A", "again", Span(place, place + 1))
    assert report.full
    assert len(report.diagnostics) == MAX_FINDINGS


def test_remarks_never_crowd_out_an_error() -> None:
    report = Report(Source("x" * 1000))
    for place in range(500):
        report.add("W", "hm", Span(place, place + 1), severity="warning")
    assert not report.full
    report.add("A", "bad", Span(900, 901))
    assert report.has_errors
    assert report.diagnostics[-1].code == "A"


def test_offers_name_what_exists_where_nothing_is_near() -> None:
    assert offer("knosw", ["knows", "likes"]) == "did you mean `knows`?"
    assert offer("zzz", ["knows", "likes"]) == "known here: `knows`, `likes`"
    assert offer("zzz", [f"p{n}" for n in range(10)]) == (
        "known here: `p0`, `p1`, `p2`, `p3`, `p4`, `p5`, `p6`, `p7` and 2 more"
    )
    assert offer("zzz", []) is None


def test_a_finding_without_a_hint_gets_that_of_its_code() -> None:
    source = Source(TEXT)
    assert source.diagnostic("S205", "m").hint == "list the values: `enum(open, closed)`"
    assert source.diagnostic("S205", "m", hint="own").hint == "own"
    assert source.diagnostic("X1", "m").hint is None


def test_suggestions() -> None:
    assert closest("knosw", ["knows", "likes"]) == "knows"
    assert closest("KNOWS", ["knows"]) == "knows"
    assert closest("zzz", ["knows"]) is None
    assert suggest("knosw", ["knows"]) == "did you mean `knows`?"
    assert suggest("knows", ["knows"]) is None
    assert suggest("zzz", []) is None
    assert first_hint(None, "", "x", "y") == "x"
