"""Reading corpora, building indexes, resuming builds and opening complete indexes."""

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import building, jsonl, tantivy_engine, writing
from agentgym_envs.search.retrieval.building import extend_index, index_corpus, partial_of
from agentgym_envs.search.retrieval.engines import ENGINES, SearchEngine
from agentgym_envs.search.retrieval.index import build_index, open_index
from agentgym_envs.search.retrieval.jsonl import Corpus
from agentgym_envs.search.retrieval.locking import locked
from agentgym_envs.search.retrieval.manifest import MANIFEST, read_manifest
from agentgym_envs.search.retrieval.passages import OFFSETS, TEXTS, PassageStore
from tests.search.cities import CITIES, line, names, stop_at_engine, write

ROOT = Path(__file__).parents[2]

# Reading

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
ids = texts.filter(lambda text: "\n" not in text and "\r" not in text)
blanks = st.sampled_from([b"", b"\n", b"  \r\n", b"\t\n"])


@given(st.lists(st.tuples(ids, texts, blanks, st.booleans())), st.booleans(), st.booleans())
def test_passages_are_read_back_as_written(
    tmp_path_factory: Any, rows: list[tuple[str, str, bytes, bool]], packed: bool, end: bool
) -> None:
    lines = [
        blank + json.dumps({"id": name, "contents": text, "more": 1}, ensure_ascii=ascii).encode() + b"\n"
        for name, text, blank, ascii in rows
    ]
    data = b"".join(lines) if end else b"".join(lines).removesuffix(b"\n")
    path = tmp_path_factory.mktemp("read") / "corpus"
    path.write_bytes(gzip.compress(data) if packed else data)
    with Corpus(path) as opened:
        read = list(opened.rows())
        assert [row.passage for row in read] == [(name, text) for name, text, _, _ in rows]
        for index, row in enumerate(read):
            assert list(opened.rows(row.end, row.line)) == read[index + 1 :]
            assert opened.lines_of((index,)) == [row.line]


@given(st.binary(max_size=60) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(repr).map(str.encode))
def test_any_line_is_a_passage_or_refused(data: bytes) -> None:
    try:
        passage = jsonl.parse(data, "here:1")
    except UsageError as error:
        assert str(error).startswith("here:1: ") and "\n" not in str(error)
    else:
        assert passage is None or (passage.id.strip() and passage.contents.strip())


@pytest.mark.parametrize(
    ("row", "passage"),
    [
        ('{"id": 7, "contents": "x"}', ("7", "x")),
        ('{"id": "7", "title": "Oslo", "text": "It is\\na city."}', ("7", '"Oslo"\nIt is\na city.')),
        ('{"id": "7", "title": "Os\\nlo", "text": "x"}', ("7", '"Os lo"\nx')),
        ('{"id": "7", "text": "x"}', ("7", '""\nx')),
        ('{"id": "7", "contents": "c", "title": "t", "text": "x"}', ("7", "c")),
        ('\ufeff{"id": "7", "contents": "\u2028 \\u00e9"}', ("7", "\u2028 é")),
    ],
)
def test_every_form_of_a_passage_is_parsed(row: str, passage: tuple[str, str]) -> None:
    assert jsonl.parse(row.encode(), "") == passage


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (b"{", "this is not JSON"),
        (b"[1]", "must be an object"),
        (b'{"contents": "x"}', 'there is no "id"'),
        (b'{"id": null, "contents": "x"}', 'there is no "id"'),
        (b'{"id": " ", "contents": "x"}', '"id" is empty'),
        (b'{"id": true, "contents": "x"}', '"id" must be a string or a whole number'),
        (b'{"id": ["a"], "contents": "x"}', '"id" must be a string or a whole number'),
        (b'{"id": "a\\nb", "contents": "x"}', '"id" contains a line break'),
        (b'{"id": "a"}', 'there is no "contents"'),
        (b'{"id": "a", "contents": "\\n"}', '"contents" is empty'),
        (b'{"id": "a", "contents": 5}', '"contents" must be a string'),
        (b'{"id": "a", "title": 5, "text": "x"}', '"title" must be a string'),
        (b'{"id": "a", "contents": "\xff"}', "this is not UTF-8 text, from byte 26 of the line on"),
        (b'{"id": "a", "contents": "\\ud800"}', "lone surrogate"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_the_error_names_a_malformed_line_and_no_index_appears(tmp_path: Path, row: bytes, shown: str) -> None:
    path = write(tmp_path / "c.jsonl", [line(CITIES[0]), b"\n", row + b"\n", line(CITIES[1])])
    folder = tmp_path / "out"
    with pytest.raises(UsageError, match=shown) as raised:
        index_corpus(path, folder)
    assert str(raised.value).startswith(f"{path}:3: ")
    assert not folder.exists()
    with pytest.raises(UsageError):
        open_index(partial_of(folder))
    write(path, map(line, CITIES))  # the same call works after a fix
    assert index_corpus(path, folder)["passages"] == 60
    assert not partial_of(folder).exists()


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1000)
    path = write(tmp_path / "c.jsonl", [line(CITIES[0]), b'{"id": "', b"x" * 10_000])
    with pytest.raises(UsageError, match=r"c\.jsonl:2: the line is longer than 1000 bytes"):
        index_corpus(path, tmp_path / "out")


@pytest.mark.parametrize("data", [gzip.compress(b"".join(map(line, CITIES)))[:-30], b"\x1f\x8bnothing"])
def test_damaged_gzip_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageError, match=r"c\.jsonl\.gz:\d+: the gzip data is damaged or ends too soon"):
        index_corpus(write(tmp_path / "c.jsonl.gz", [data]), tmp_path / "out")


@pytest.mark.parametrize("lines", [[], [b"\n", b"  \n"]])
def test_a_corpus_without_passages_is_refused(tmp_path: Path, lines: list[bytes]) -> None:
    with pytest.raises(UsageError, match="the corpus holds no passages"):
        index_corpus(write(tmp_path / "c.jsonl", lines), tmp_path / "out")


def test_an_unreadable_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        index_corpus(tmp_path / "none.jsonl", tmp_path / "out")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        index_corpus(tmp_path, tmp_path / "out")


def test_duplicate_ids_are_refused(tmp_path: Path) -> None:
    lines = [*map(line, CITIES), b"\n", line(CITIES[9]), line(CITIES[5])]
    path = write(tmp_path / "c.jsonl", lines)
    with pytest.raises(UsageError, match=f"^{path}:62: the id 'c9' is that of line 10 already$"):
        index_corpus(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="passages 9 and 60 have the same id, 'c9'"):
        build_index([*CITIES, CITIES[9]], tmp_path / "built", corpus="cities")
    assert not (tmp_path / "built").exists()


def test_ids_with_the_same_hash_are_not_duplicates(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_hash", lambda name: b"the same")
    assert index_corpus(corpus, tmp_path / "out")["passages"] == 60


# Indexes


def test_an_index_of_a_corpus_has_its_passages_and_manifest(made: Path, corpus: Path) -> None:
    manifest = read_manifest(made)
    assert (manifest["corpus"], manifest["passages"]) == ("cities", 60)
    assert list(PassageStore(made)) == CITIES
    assert list(PassageStore(made).after(58)) == CITIES[58:]
    assert names(made)[0] == "c3"
    assert {path.name for path in made.iterdir()} == {MANIFEST, TEXTS, OFFSETS, "tantivy", "lock"}


def test_memory_and_gzip_give_the_same_passages(made: Path, corpus: Path, tmp_path: Path) -> None:
    build_index(CITIES, tmp_path / "built", corpus="cities")
    packed = tmp_path / "cities.jsonl.gz"
    packed.write_bytes(gzip.compress(corpus.read_bytes()))
    index_corpus(packed, tmp_path / "packed")
    assert len({read_manifest(folder)["sha256"] for folder in (made, tmp_path / "built", tmp_path / "packed")}) == 1
    assert read_manifest(tmp_path / "packed")["corpus"] == "cities"
    assert names(tmp_path / "built") == names(tmp_path / "packed") == names(made)


def test_progress_is_reported(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_REPORT_EVERY", 20)
    shown: list[tuple[str, int, int]] = []
    index_corpus(corpus, tmp_path / "out", report=lambda *what: shown.append(what))
    reading = [done for stage, done, total in shown if (stage, total) == ("reading", corpus.stat().st_size)]
    indexing = [done for stage, done, total in shown if (stage, total) == ("indexing", 60)]
    assert len(reading) + len(indexing) == len(shown)
    assert reading == sorted(reading) and reading[-1] == corpus.stat().st_size
    assert indexing == [0, 20, 40, 60]


def test_indexing_again_changes_nothing(made: Path, corpus: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.name != "lock"}
    index_corpus(corpus, made)
    build_index([], made, corpus="cities")
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.name != "lock"} == before


def test_another_corpus_needs_overwrite(made: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.jsonl", map(line, CITIES[:9]))
    with pytest.raises(UsageError, match=r"index of another corpus .*--overwrite"):
        index_corpus(other, made)
    assert open_index(made).describe()["passages"] == 60
    index_corpus(other, made, overwrite=True)
    assert open_index(made).describe()["passages"] == 9
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cities.jsonl", "made", "other.jsonl"]


def test_a_folder_that_is_not_an_index_is_never_replaced(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="is not an index; choose another"):
            index_corpus(corpus, tmp_path / "mine", overwrite=overwrite)
        with pytest.raises(UsageError, match="is not an index; choose another"):
            index_corpus(corpus, corpus, overwrite=overwrite)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_adding_a_second_engine_does_not_change_the_first(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_index(made)

    def make(folder: Path, passages: PassageStore) -> None:
        (folder / "toy").mkdir()
        (folder / "toy" / "data").write_text(" ".join(passage.id for passage in passages))

    monkeypatch.setitem(ENGINES, "toy", SearchEngine("", lambda folder, passages: opened, make, (), "toy"))
    with pytest.raises(UsageError, match=r"not built for the engine 'toy' \(only for tantivy\); .*--engine toy"):
        open_index(made, "toy")
    before = {path: path.stat().st_mtime_ns for path in (made / "tantivy").rglob("*")}
    manifest = extend_index(made, engine="toy")
    assert list(manifest["engines"]) == ["tantivy", "toy"]
    assert manifest["engines"]["toy"]["files"] == {"toy/data": (made / "toy" / "data").stat().st_size}
    assert open_index(made, "toy") is opened
    assert {path: path.stat().st_mtime_ns for path in (made / "tantivy").rglob("*")} == before
    build_index([], made, corpus="cities", engine="toy")
    (made / "toy" / "data").write_text("spoilt")
    extend_index(made, engine="toy", overwrite=True)
    assert open_index(made, "toy") is opened
    with pytest.raises(UsageError, match=r"was built with \{\}, not \{'size': 2\}; --overwrite replaces it"):
        extend_index(made, engine="toy", options={"size": 2})


def test_an_engine_whose_build_fails_is_not_in_the_manifest(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(folder: Path, passages: PassageStore) -> None:
        (folder / "toy").mkdir(exist_ok=True)
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(ENGINES, "toy", SearchEngine("", lambda folder, passages: open_index(made), make, (), "toy"))
    with pytest.raises(OSError, match="No space"):
        extend_index(made, engine="toy")
    with pytest.raises(UsageError, match="not built for the engine 'toy'"):
        open_index(made, "toy")
    assert names(made)[0] == "c3"


@pytest.mark.parametrize(
    ("manifest", "shown"),
    [
        ('{"format": 99}', "has the format 99, this version reads 1: build it again"),
        ('{"format"', "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "cannot be read"),
    ],
)
def test_an_index_of_another_format_is_refused(made: Path, manifest: str, shown: str) -> None:
    (made / MANIFEST).write_text(manifest)
    with pytest.raises(UsageError, match=shown):
        open_index(made)


def test_opening_an_invalid_index_is_refused(made: Path, corpus: Path, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", corpus):
        with pytest.raises(UsageError, match="is not an index; `agentgym search index CORPUS"):
            open_index(path)
    with pytest.raises(UsageError, match="there is no engine 'lucene'; choose one of tantivy"):
        open_index(made, "lucene")
    with pytest.raises(UsageError, match="there is no engine 'lucene'"):
        index_corpus(corpus, tmp_path / "out", engine="lucene")


def parts(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and path.stat().st_size and path.name != MANIFEST
    )


def test_the_error_names_a_damaged_file(made: Path, tmp_path: Path) -> None:
    for number, path in enumerate(parts(made)):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(made, copy)
        damaged = copy / path.relative_to(made)
        os.truncate(damaged, damaged.stat().st_size - 1)
        with pytest.raises(RetrieverError, match=f"is damaged: {path.relative_to(made)} has .* instead of"):
            open_index(copy)
        damaged.unlink()
        with pytest.raises(RetrieverError, match=f"is damaged: {path.relative_to(made)}: No such file"):
            open_index(copy)


def test_a_replaced_index_is_opened_again(made: Path, corpus: Path, tmp_path: Path) -> None:
    first = open_index(made)
    assert open_index(made) is first
    index_corpus(write(corpus, map(line, CITIES[:5])), made, overwrite=True)
    assert open_index(made).describe()["passages"] == 5
    assert first.search(["river 3"], 1)[0][0].passage.id == "c3"  # an open retriever still reads the old index


def test_only_one_process_writes(corpus: Path, tmp_path: Path) -> None:
    partial = partial_of(tmp_path / "out")
    partial.mkdir()
    with locked(partial), pytest.raises(UsageError, match="another process is writing to"):
        index_corpus(corpus, tmp_path / "out")


def test_a_users_folder_called_partial_is_not_touched(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="is not an unfinished index; remove it"):
        index_corpus(corpus, tmp_path / "out", overwrite=True)
    assert (tmp_path / "out.partial" / "thesis.txt").read_text() == "years of work"


def test_an_index_can_be_built_in_the_current_folder(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    index_corpus(corpus, Path())
    assert names(tmp_path / "empty")[0] == "c3"


# Interruptions


def stop_after(count: int) -> building.ProgressCallback:
    """Return a progress callback that interrupts the build at its `count`-th call."""
    calls = 0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == count:
            raise KeyboardInterrupt

    return report


@pytest.mark.parametrize("packed", [False, True])
def test_a_build_resumes_after_any_interruption(
    made: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    for module, name, number in ((building, "STATE_EVERY", 7), (building, "_REPORT_EVERY", 5)):
        monkeypatch.setattr(module, name, number)
    monkeypatch.setattr(tantivy_engine, "COMMIT_EVERY", 10)
    if packed:
        data = gzip.compress(corpus.read_bytes())
        corpus = write(tmp_path / "cities.jsonl.gz", [data])
    folder, stops, seen = tmp_path / "out", 0, []
    while not folder.exists():
        stops += 1
        try:
            index_corpus(corpus, folder, report=stop_after(4))
        except KeyboardInterrupt:
            state = json.loads((partial_of(folder) / building.STATE).read_text())
            seen.append((state["passages"], tantivy_engine.committed(partial_of(folder) / "tantivy.partial")))
    assert stops > 5
    assert seen == sorted(seen) and any(committed for _, committed in seen)
    for name in (TEXTS, OFFSETS):
        assert (folder / name).read_bytes() == (made / name).read_bytes()
    assert open_index(folder).search(["river 3", "city"], 9) == open_index(made).search(["river 3", "city"], 9)


def test_a_build_resumes_if_stopped_after_the_manifest(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        index_corpus(corpus, folder, report=stop_at_engine)
    (partial_of(folder) / writing.IDS).write_bytes(b"not yet removed")
    index_corpus(corpus, folder)
    assert {path.name for path in folder.iterdir()} == {MANIFEST, TEXTS, OFFSETS, "tantivy", "lock"}
    with pytest.raises(KeyboardInterrupt):  # or just before
        index_corpus(corpus, folder, overwrite=True, report=stop_at_engine)
    (partial_of(folder) / MANIFEST).unlink()
    state = json.loads((partial_of(folder) / building.STATE).read_text())
    (partial_of(folder) / writing.IDS).write_bytes(b"".join(writing._hash(city.id) for city in CITIES))
    assert state["passages"] == 60
    index_corpus(corpus, folder, overwrite=True)
    assert names(folder)[0] == "c3"


def test_a_build_resumes_if_stopped_while_replacing_an_index(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write(tmp_path / "other.jsonl", map(line, CITIES[:9]))
    rename, calls = os.rename, []

    def stop(source: Path, target: Path) -> None:
        calls.append(source)
        if target == made:
            raise KeyboardInterrupt
        rename(source, target)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "rename", stop)
        index_corpus(other, made, overwrite=True)
    assert not made.exists() and len(calls) == 3
    index_corpus(other, made, overwrite=True)
    assert open_index(made).describe()["passages"] == 9
    assert {path.name for path in made.iterdir()} == {MANIFEST, TEXTS, OFFSETS, "tantivy", "lock"}


def test_a_changed_corpus_is_read_again(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "STATE_EVERY", 7)
    monkeypatch.setattr(building, "_REPORT_EVERY", 20)
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        index_corpus(corpus, folder, report=stop_after(2))
    write(corpus, map(line, reversed(CITIES)))
    index_corpus(corpus, folder)
    assert [passage.id for passage in PassageStore(folder)][:2] == ["c59", "c58"]


def test_the_unfinished_index_of_another_corpus_is_refused(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "STATE_EVERY", 7)
    monkeypatch.setattr(building, "_REPORT_EVERY", 20)
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        index_corpus(corpus, folder, report=stop_after(2))
    other = write(tmp_path / "other.jsonl", map(line, CITIES[:9]))
    with pytest.raises(UsageError, match=r"unfinished index of .*cities\.jsonl; finish it, or --overwrite"):
        index_corpus(other, folder)
    assert index_corpus(other, folder, overwrite=True)["passages"] == 9
