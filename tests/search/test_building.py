"""Existing indexes: matching them with a corpus, replacing the part of an engine, and cleaning up."""

import os
import time
from pathlib import Path

import pytest

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import index
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.building import extend_index, index_corpus, partial_of
from agentgym_envs.search.retrieval.index import build_index, open_index
from agentgym_envs.search.retrieval.manifest import MANIFEST, read_manifest
from agentgym_envs.search.retrieval.passages import OFFSETS, TEXTS, PassageStore
from agentgym_envs.search.retrieval.writing import IDS, StoreWriter
from tests.search.cities import CITIES, names, stop_at_engine


def touch(path: Path) -> None:
    """Change the modification time, as a copy or a coarse file system does."""
    changed = path.stat().st_mtime_ns + 2_000_000_000
    os.utime(path, ns=(changed, changed))


def test_a_corpus_rewritten_with_the_same_size_is_another_corpus(made: Path, corpus: Path) -> None:
    size = corpus.stat().st_size
    corpus.write_bytes(corpus.read_bytes().replace(b"river number 5", b"river number 9"))
    touch(corpus)
    assert corpus.stat().st_size == size
    with pytest.raises(UsageError, match=r"index of another corpus \(cities\.jsonl of \d+ bytes\); --overwrite"):
        index_corpus(corpus, made)
    index_corpus(corpus, made, overwrite=True)
    assert names(made, "river 9")


def test_a_copied_corpus_is_the_same_corpus(made: Path, corpus: Path) -> None:
    before = (made / MANIFEST).stat().st_mtime_ns
    touch(corpus)
    index_corpus(corpus, made)
    assert (made / MANIFEST).stat().st_mtime_ns == before
    os.truncate(made / TEXTS, 5)
    with pytest.raises(RetrieverError, match="the index made is damaged"):
        index_corpus(corpus, made)


def test_the_old_part_of_an_engine_stays_until_the_new_one_is_complete(made: Path) -> None:
    extend_index(made, engine="dense")
    before = read_manifest(made)
    with pytest.raises(UsageError, match="flat"):
        extend_index(made, engine="dense", options={"kind": "tree"}, overwrite=True)
    assert read_manifest(made) == before
    assert names(made, "city 3", "dense")
    extend_index(made, engine="dense", options={"kind": "hnsw"}, overwrite=True)
    assert read_manifest(made)["engines"]["dense"]["options"] == {"kind": "hnsw"}
    assert names(made, "city 3", "dense")
    assert not (made / "dense.partial").exists()


def test_the_unfinished_part_of_another_engine_is_removed(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        index_corpus(corpus, folder, engine="bm25s", report=stop_at_engine)
    assert (partial_of(folder) / "bm25s.partial").is_dir()
    index_corpus(corpus, folder)
    assert {path.name for path in folder.iterdir()} == {MANIFEST, TEXTS, OFFSETS, "tantivy", "lock"}


def test_the_slower_process_uses_the_index_of_the_faster_one(tmp_path: Path) -> None:
    def passages() -> list[Passage]:
        build_index(CITIES, tmp_path / "index", corpus="first")
        return CITIES[:5]

    folder = tmp_path / "index"
    index._build((passage for passage in passages()), folder, "second", "tantivy", {})
    assert read_manifest(folder)["corpus"] == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_the_work_of_a_killed_build_is_removed_after_an_hour(tmp_path: Path) -> None:
    for name in ("index.00c0ffee", "index.0badcafe", "index.mine", "other.00c0ffee", "index.12345678"):
        (tmp_path / name / "tantivy").mkdir(parents=True)
        (tmp_path / name / "tantivy" / "data").write_text("x")
    old, young = time.time() - 3_700, time.time() - 3_500
    for path in (*tmp_path.rglob("*"),):
        os.utime(path, (old, old))
    os.utime(tmp_path / "index.0badcafe" / "tantivy" / "data", (young, young))
    os.utime(tmp_path / "index.12345678", (young, young))
    build_index(CITIES, tmp_path / "index", corpus="cities")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"index", "index.0badcafe", "index.12345678", "index.mine", "other.00c0ffee"}


def test_passages_written_after_the_last_state_are_dropped(tmp_path: Path) -> None:
    sizes = []
    with StoreWriter(tmp_path) as writer:
        for passage in CITIES[:3]:
            writer.add(passage)
            writer.flush()
            sizes.append((writer.size, [(tmp_path / name).stat().st_size for name in (TEXTS, OFFSETS, IDS)]))
    with StoreWriter(tmp_path, passages=2, size=sizes[1][0]):
        pass
    assert [(tmp_path / name).stat().st_size for name in (TEXTS, OFFSETS, IDS)] == sizes[1][1]
    assert list(PassageStore(tmp_path)) == CITIES[:2]


def test_a_truncated_store_is_refused(made: Path) -> None:
    os.truncate(made / TEXTS, (made / TEXTS).stat().st_size - 1)
    with pytest.raises(ValueError, match=r"passages\.bin ends too soon"):
        PassageStore(made)


def test_errors_of_a_damaged_index_do_not_show_parent_folders(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="agentgym_envs")
    os.truncate(made / TEXTS, 5)
    with pytest.raises(RetrieverError, match=r"^the index made is damaged: passages\.bin has 5 bytes") as raised:
        open_index(made)
    assert str(made.parent) not in str(raised.value)
    assert str(made) in caplog.text
