"""Text search: the same matches with an index, with half of one, and with none."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.storage.search_tables import (
    append,
    build,
    delete,
    reopen,
    rows_as_they_lie,
    upsert,
    write,
)

from omnigraph.errors import InvalidArgumentError
from omnigraph.ir.expr import TextMode
from omnigraph.model.indexes import IndexKind
from omnigraph.storage import search
from omnigraph.storage.analysis import TEXT_INDEX_OPTIONS
from omnigraph.storage.indexplan import IndexTask
from omnigraph.storage.scratch import ScratchIndexes, scratch_key
from omnigraph.storage.search import text_topk
from omnigraph.storage.table import Table

DOCS = {
    "fox": "The quick brown fox jumps over the lazy dog",
    "runs": "Running runners ran quickly",
    "cafe": "Café au lait, and a naïve façade",
    "mail": "foo-bar baz_qux e-mail user@example.com 3.14",
    "phrase": "brown fox",
    "swapped": "fox brown",
    "nothing": None,
    "empty": "",
    "quicker": "quick quick quick brown",
    "tests": "日本語 テスト text",
    "stops": "the and of",
    "machine": "machines learning, learned; learn machine",
    "gap": "red the blue green",
    "tight": "red blue green",
    "fox2": "A fox, brown and quick",
}

CASES = [
    (TextMode.SEARCH, "quick fox", "fox fox2 phrase quicker runs swapped"),
    (TextMode.BM25, "quick fox", "fox fox2 phrase quicker runs swapped"),
    (TextMode.SEARCH, "run", "runs"),
    (TextMode.SEARCH, "cafe", "cafe"),
    (TextMode.SEARCH, "NAÏVE", "cafe"),
    (TextMode.SEARCH, "bar", "mail"),
    (TextMode.SEARCH, "テスト", "tests"),
    (TextMode.SEARCH, "the", ""),
    (TextMode.SEARCH, "...", ""),
    (TextMode.SEARCH, "", ""),
    (TextMode.SEARCH, "absent", ""),
    (TextMode.SEARCH, "machine AND fox", "fox fox2 machine phrase swapped"),
    (TextMode.MATCH_TEXT, "brown fox", "fox phrase"),
    (TextMode.MATCH_TEXT, "fox brown", "fox2 swapped"),
    (TextMode.MATCH_TEXT, "learns machines", "machine"),
    (TextMode.MATCH_TEXT, "red blue", "tight"),
    (TextMode.MATCH_TEXT, "red the blue", "gap"),
    (TextMode.MATCH_TEXT, "quick lazy", ""),
    (TextMode.FUZZY, "quik", "fox fox2 mail quicker runs"),
    (TextMode.FUZZY, "machne", "machine"),
    (TextMode.FUZZY, "brwon", "fox fox2 phrase quicker swapped"),
    (TextMode.FUZZY, "elephant", ""),
]


def docs() -> pa.Table:
    years = pa.array(range(1990, 1990 + len(DOCS)), pa.int32())
    return pa.table({"id": list(DOCS), "year": years, "body": pa.array(DOCS.values(), pa.string())})


def text_task(table: Table, fragments: list[int] | None = None) -> IndexTask:
    held = [f.fragment_id for f in table.dataset.get_fragments()]
    covered = tuple(held if fragments is None else fragments)
    return IndexTask(
        "body",
        "body",
        IndexKind.FTS,
        "INVERTED",
        "body_fts",
        table.rows,
        "missing",
        covered,
        params=TEXT_INDEX_OPTIONS,
    )


@pytest.fixture(scope="module", params=["none", "half", "all"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    path = tmp_path_factory.mktemp("text") / request.param
    table = write(path, docs(), rows_per_file=4)
    if request.param == "none":
        return table
    return build(path, text_task(table, [0, 2] if request.param == "half" else None))


def ids_of(hits: search.Hits) -> list[str]:
    found: list[str] = hits.rows.column("id").to_pylist()
    return found


@pytest.mark.parametrize(("mode", "query", "expected"), CASES)
def test_what_matches(library: Table, mode: TextMode, query: str, expected: str) -> None:
    # ledger: I02
    hits = text_topk(library, "body", query, mode=mode)
    assert sorted(ids_of(hits)) == expected.split()
    scores = hits.rows.column("score").to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_access_is_told(library: Table) -> None:
    access = text_topk(library, "body", "fox").access
    covered = sum(index.rows for index in library.indexes())
    expected = {0: search.Path.SCAN, len(DOCS): search.Path.INDEX}
    assert access.path is expected.get(covered, search.Path.MIXED)
    assert access.scanned == len(DOCS) - covered


@pytest.mark.parametrize("mode", [TextMode.SEARCH, TextMode.FUZZY])
def test_filters_apply_before_the_ranking(library: Table, mode: TextMode) -> None:
    late = pc.field("year") >= 1994
    hits = text_topk(library, "body", "quick fox", 3, mode=mode, max_edits=0, filter=late)
    assert set(ids_of(hits)) <= {"phrase", "swapped", "quicker", "fox2"}
    assert len(hits) == 3
    known = dict(zip(DOCS, range(len(DOCS)), strict=True))
    some = [known["swapped"], known["fox"], known["machine"]]
    for filter_, expected in ((None, ["fox", "swapped"]), (late, ["swapped"])):
        hits = text_topk(
            library, "body", "quick fox", mode=mode, max_edits=0, rows=some, filter=filter_
        )
        assert sorted(ids_of(hits)) == expected
    assert len(text_topk(library, "body", "fox", mode=mode, rows=[])) == 0
    assert len(text_topk(library, "body", "fox", mode=mode, filter=pc.field("year") > 3000)) == 0


def test_the_best_k(library: Table) -> None:
    whole = text_topk(library, "body", "quick fox")
    for k in range(8):
        assert text_topk(library, "body", "quick fox", k).rows.equals(whole.rows.slice(0, k))


def test_ids_are_left_out_when_nobody_wants_them(library: Table) -> None:
    whole = text_topk(library, "body", "quick fox", 4)
    hits = text_topk(library, "body", "quick fox", 4, tie_break=rows_as_they_lie)
    assert hits.rows.equals(whole.rows.select(["_rowid", "score"]))


@pytest.mark.parametrize("covered", [False, True])
def test_ties_break_by_id_even_at_the_cut(tmp_path: Path, covered: bool) -> None:
    ids = [f"n{number:04d}" for number in range(600)][::-1]
    data = pa.table({"id": ids, "body": ["same words here"] * 600})
    table = write(tmp_path / "t", data)
    if covered:
        table = build(tmp_path / "t", text_task(table))
    assert ids_of(text_topk(table, "body", "words", 5)) == sorted(ids)[:5]


def test_an_index_scores_as_the_scan_does(tmp_path: Path) -> None:
    table = write(tmp_path / "t", docs())
    before = text_topk(table, "body", "quick fox").rows
    after = text_topk(build(tmp_path / "t", text_task(table)), "body", "quick fox").rows
    assert after.select(["id"]).equals(before.select(["id"]))
    assert np.allclose(after.column("score").to_numpy(), before.column("score").to_numpy())


@pytest.mark.parametrize("mode", [TextMode.SEARCH, TextMode.FUZZY, TextMode.MATCH_TEXT])
@pytest.mark.parametrize("covered", [False, True])
def test_changed_rows_match_by_what_they_say_now(
    tmp_path: Path, mode: TextMode, covered: bool
) -> None:
    path = tmp_path / "t"
    table = write(path, docs(), rows_per_file=4)
    if covered:
        build(path, text_task(table))
    year = pa.array([2020, 2021], pa.int32())
    upsert(path, pa.table({"id": ["fox", "new"], "year": year, "body": ["owl", "a fox again"]}))
    table = delete(path, "swapped")
    hits = text_topk(table, "body", "fox", mode=mode, max_edits=0)
    assert sorted(ids_of(hits)) == ["fox2", "new", "phrase"]
    assert ids_of(text_topk(table, "body", "owl", mode=mode, max_edits=0)) == ["fox"]


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_match_alike_with_and_without_index(tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    vocabulary = ["red", "reds", "bread", "breads", "blue", "blues", "glue", "the", "is", "running"]
    texts = [" ".join(chance.choice(vocabulary, chance.integers(0, 6))) for _ in range(300)]
    data = pa.table({"id": [f"n{number:03d}" for number in range(300)], "body": texts})
    bare = write(tmp_path / "bare", data)
    half = build(tmp_path / "half", text_task(write(tmp_path / "half", data, 100), [1]))
    full = build(tmp_path / "full", text_task(write(tmp_path / "full", data)))
    for mode in TextMode:
        for _ in range(3):
            query = " ".join(chance.choice(vocabulary, chance.integers(1, 4)))
            found = [
                sorted(ids_of(text_topk(table, "body", query, mode=mode, max_edits=1)))
                for table in (bare, half, full)
            ]
            assert found[0] == found[1] == found[2], (mode, query)


def test_scratch_entries_follow_the_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    kept = ScratchIndexes()

    def get(table: Table) -> object:
        return kept.get(table, "body", table.dataset.get_fragments())

    first = get(write(path, docs()))
    assert get(reopen(path)) is first
    grown = get(
        append(path, pa.table({"id": ["n"], "year": pa.array([1], pa.int32()), "body": ["x"]}))
    )
    assert grown is not first
    assert get(delete(path, "n")) is first
    assert get(delete(path, "fox")) is not first


def test_scratch_entries_stay_within_their_budget(tmp_path: Path) -> None:
    table = write(tmp_path / "t", docs())
    fragments = table.dataset.get_fragments()
    small = ScratchIndexes(budget_bytes=1)
    assert small.get(table, "body", fragments) is not small.get(table, "body", fragments)
    ample = ScratchIndexes()
    entry = ample.get(table, "body", fragments)
    ample.clear()
    assert ample.get(table, "body", fragments) is not entry


def test_large_scratch_entries_go_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.storage.scratch._IN_MEMORY_ROWS", 3)
    table = write(tmp_path / "t", docs())
    entry = ScratchIndexes().get(table, "body", table.dataset.get_fragments())
    assert entry.folder is not None
    folder = Path(entry.folder.name)
    assert entry.dataset.count_rows() == len(DOCS) - 1
    assert folder.exists()
    entry.folder.cleanup()


def test_calls_that_make_no_sense(library: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="no text"):
        text_topk(library, "year", "x")
    for edits in (-1, 3):
        with pytest.raises(InvalidArgumentError, match="from 0 to 2 edits"):
            text_topk(library, "body", "x", mode=TextMode.FUZZY, max_edits=edits)


def test_an_empty_table_matches_nothing(tmp_path: Path) -> None:
    table = write(tmp_path / "t", docs().slice(0, 0))
    assert len(text_topk(table, "body", "fox")) == 0


def test_a_table_of_nulls_matches_nothing(tmp_path: Path) -> None:
    data = pa.table({"id": ["a", "b"], "body": pa.array([None, None], pa.string())})
    assert len(text_topk(write(tmp_path / "t", data), "body", "fox")) == 0


def common_words(texts: list[str], count: int) -> list[str]:
    found = Counter(word for text in texts for word in re.findall(r"[A-Za-z]{3,}", text))
    return [word for word, _ in found.most_common(count)]


@pytest.mark.parametrize("covered", ["none", "half", "all"])
def test_18_15_fuzzy_finds_what_search_finds(tmp_path: Path, covered: str) -> None:
    pages = sorted(Path("docs").rglob("*.md"))
    texts = [line for page in pages for line in page.read_text().splitlines() if line.strip()]
    ids = [f"l{number:05d}" for number in range(len(texts))]
    rows_per_file = len(texts) // 4 + 1
    table = write(tmp_path / "t", pa.table({"id": ids, "body": texts}), rows_per_file)
    if covered != "none":
        table = build(tmp_path / "t", text_task(table, [0, 2] if covered == "half" else None))
    for word in [*common_words(texts, 120), "harness", "coding"]:
        exact = set(ids_of(text_topk(table, "body", word)))
        assert (
            set(ids_of(text_topk(table, "body", word, mode=TextMode.FUZZY, max_edits=0))) == exact
        )
        one = set(ids_of(text_topk(table, "body", word, mode=TextMode.FUZZY, max_edits=1)))
        two = set(ids_of(text_topk(table, "body", word, mode=TextMode.FUZZY, max_edits=2)))
        assert exact <= one <= two, word


@pytest.mark.parametrize(
    ("query", "edits", "expected"),
    [
        ("harness", 1, "harness"),
        ("HARNESS", 1, "harness"),
        ("harnes", 1, "harness"),
        ("harnesses", 1, "harness"),
        ("coding", 1, "coding"),
        ("codeing", 1, "coding"),
        ("Cafés", 1, "cafe"),
        ("runing", 1, "running"),
        ("the", 2, ""),
        ("the harness", 1, "harness"),
        ("harness coding", 1, "coding harness"),
        ("harness, coding!", 1, "coding harness"),
        ("...", 2, ""),
        ("", 2, ""),
    ],
)
@pytest.mark.parametrize("covered", [False, True])
def test_18_15_a_fuzzy_word_is_compared_as_typed_and_as_its_stem(
    tmp_path: Path, query: str, edits: int, expected: str, covered: bool
) -> None:
    texts = {"harness": "The harness", "coding": "Coding", "running": "running", "cafe": "café"}
    table = write(tmp_path / "t", pa.table({"id": list(texts), "body": list(texts.values())}))
    if covered:
        table = build(tmp_path / "t", text_task(table))
    hits = text_topk(table, "body", query, mode=TextMode.FUZZY, max_edits=edits)
    assert sorted(ids_of(hits)) == expected.split()


def test_18_12_scratch_keys_name_the_rows(tmp_path: Path) -> None:
    write(tmp_path / "t", docs())
    shutil.copytree(tmp_path / "t", tmp_path / "u")
    one, other = delete(tmp_path / "t", "fox"), delete(tmp_path / "u", "cafe")
    keys = {
        scratch_key(table, column, table.dataset.get_fragments())
        for table in (one, other)
        for column in ("body", "id")
    }
    assert len(keys) == 4
    again = reopen(tmp_path / "t")
    assert scratch_key(again, "body", again.dataset.get_fragments()) in keys


def test_18_12_a_column_of_the_same_name_is_another_field(tmp_path: Path) -> None:
    before = write(tmp_path / "t", docs())
    dataset = lance.dataset(str(tmp_path / "t"))
    fragments = before.dataset.get_fragments()
    key = scratch_key(before, "body", fragments)
    dataset.drop_columns(["body"])
    dataset.add_columns(pa.field("body", pa.string()))
    after = reopen(tmp_path / "t")
    assert scratch_key(after, "body", after.dataset.get_fragments()) != key
    assert len(text_topk(before, "body", "fox")) == 4
    assert len(text_topk(after, "body", "fox")) == 0
