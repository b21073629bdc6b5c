"""Search-R1's prebuilt indexes: real faiss files in its layout, over a corpus that is read by offset."""

import copy
import gzip
import json
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import jsonl_store
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.encoders import HashingEncoder
from agentgym_envs.search.retrieval.factory import check_retriever, open_retriever, uses_encoder
from agentgym_envs.search.retrieval.faiss_engine import FaissRetriever, find_files
from agentgym_envs.search.retrieval.jsonl import Corpus
from agentgym_envs.search.retrieval.jsonl_store import JsonlStore
from tests.trying import examples

faiss = pytest.importorskip("faiss")
DIMENSIONS = 64
WORDS = ["river", "mountain", "harbour", "copper", "wheat", "railway", "bridge", "castle", "desert", "island", "forest"]
SPEC = {"engine": "faiss", "encoder": "hashing"}


def make_passages(count: int = 300) -> list[Passage]:
    rng = random.Random(1)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(5, 20))) for _ in range(count)]
    return [Passage(str(i), f'"{rng.choice(WORDS)} {i}"\n{text} ü東.') for i, text in enumerate(texts)]


PASSAGES = make_passages()
VECTORS = HashingEncoder(DIMENSIONS).encode([passage.contents for passage in PASSAGES], "passage")


def lines(passages: list[Passage]) -> bytes:
    return b"".join(json.dumps(passage._asdict(), ensure_ascii=False).encode() + b"\n" for passage in passages)


def write_index(folder: Path, kind: str, vectors: Any = VECTORS, name: str | None = None) -> Path:
    """Write an index as Search-R1's index_builder.py does: `index_factory`, inner products, its file name."""
    index = faiss.index_factory(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    if not index.is_trained:
        index.train(vectors)
    index.add(vectors)
    path = folder / (name or f"e5_{kind}.index")
    faiss.write_index(index, str(path))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wiki")
    (path / "wiki-18.jsonl").write_bytes(lines(PASSAGES))
    for kind in ("Flat", "HNSW64"):
        write_index(path, kind)
    write_index(path, "IVF32,Flat", name="e5_IVF.index")
    return path


def brute_force(query: str, k: int) -> list[str]:
    scores = VECTORS @ HashingEncoder(DIMENSIONS).encode([query], "query")[0]
    return [PASSAGES[number].id for number in sorted(range(len(scores)), key=lambda i: (-scores[i].round(5), i))[:k]]


@pytest.mark.parametrize("kind", ["Flat", "HNSW64"])
def test_it_agrees_with_brute_force(folder: Path, kind: str) -> None:
    retriever = open_retriever(SPEC, folder / f"e5_{kind}.index")
    queries = ["river", "copper mountain", "castle 17", "harbour island forest", "railways"]
    found = retriever.search([*queries, "", "?!"], 10)
    assert found[5:] == [[], []] and retriever.search(queries, 0) == [[]] * 5
    for query, hits in zip(queries, found, strict=False):
        ids = [hit.passage.id for hit in hits]
        assert all(hit.passage == PASSAGES[int(hit.passage.id)] for hit in hits)
        assert len(set(ids)) == 10 and [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert ids == brute_force(query, 10) if kind == "Flat" else len({*ids} & {*brute_force(query, 10)}) >= 8
    alone = [retriever.search([query], 10)[0] for query in queries]
    assert [[hit.passage for hit in hits] for hits in alone] == [[hit.passage for hit in hits] for hits in found[:5]]
    about = retriever.describe()
    assert (about["corpus"], about["passages"], about["index"]) == ("wiki-18", 300, f"e5_{kind}.index")


def test_padding_of_faiss_is_never_a_hit(folder: Path) -> None:
    """An inverted file looks into one of 32 lists here, and faiss pads its results with the number -1."""
    raw = faiss.read_index(str(folder / "e5_IVF.index"))
    assert (raw.search(VECTORS[:1], 100)[1] == -1).any()
    hits = open_retriever(SPEC, folder / "e5_IVF.index").search([PASSAGES[0].contents], 100)[0]
    assert 0 < len(hits) < 100 and hits[0].passage == PASSAGES[0]
    assert len({hit.passage.id for hit in hits}) == len(hits)


def test_it_is_shared_and_its_pickle_opens_it_again(folder: Path) -> None:
    spec = {**SPEC, "corpus": str(folder / "wiki-18.jsonl")}
    retriever = open_retriever(spec, folder / "e5_Flat.index")
    assert retriever is open_retriever(dict(reversed(spec.items())), str(folder / "e5_Flat.index"))
    assert copy.deepcopy(retriever) is retriever is pickle.loads(pickle.dumps(retriever))
    assert uses_encoder(spec) and not retriever.waits


def test_a_flat_index_goes_to_the_gpus_and_a_graph_does_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """faiss-cpu has no GPU functions; these only record the calls that a build with them would get."""
    moved = list[tuple[Any, bool, bool]]()

    class Options:
        useFloat16 = shard = False

    def to_gpus(index: Any, co: Options) -> Any:
        moved.append((type(index), co.useFloat16, co.shard))
        return faiss.clone_index(index)

    monkeypatch.setattr(faiss, "GpuMultipleClonerOptions", Options, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", to_gpus, raising=False)
    for kind in ("Flat", "HNSW64"):
        for device in ("auto", "cuda", "cpu"):
            files = find_files(folder / f"e5_{kind}.index")
            retriever = FaissRetriever(files, encoder="hashing", device=device)
            assert retriever.search(["castle 17"], 1)[0][0].passage.id == brute_force("castle 17", 1)[0]
    assert moved == [(faiss.IndexFlatIP, True, True)] * 2


def test_an_episode_searches_it(folder: Path) -> None:
    env = gym.make("AgentGym/Search-v0", retriever=SPEC, index=folder / "e5_Flat.index")
    env.reset(seed=1)
    observation, *_, info = env.step("<search>castle 17</search>")
    assert info["hits"] == brute_force("castle 17", 3) and PASSAGES[int(info["hits"][0])].text in observation
    env.close()


def test_a_compressed_corpus_is_decompressed_once(folder: Path, tmp_path: Path) -> None:
    index = write_index(tmp_path, "Flat")
    (tmp_path / "wiki-18.jsonl.gz").write_bytes(gzip.compress(lines(PASSAGES)))
    wanted = open_retriever(SPEC, folder / "e5_Flat.index").search(["river"], 3)
    assert open_retriever(SPEC, tmp_path).search(["river"], 3) == wanted
    assert (tmp_path / "wiki-18.jsonl").read_bytes() == lines(PASSAGES)
    assert open_retriever(SPEC, index) is open_retriever(SPEC, tmp_path)
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(lines(PASSAGES))[:-100])
    with pytest.raises(UsageError, match="damaged or ends too soon"):
        jsonl_store.decompressed(cut)
    assert not (tmp_path / "cut.jsonl").exists()


def test_files_that_do_not_fit_together_are_refused(folder: Path, tmp_path: Path) -> None:
    def refusal(place: Path | None, kind: type[Exception] = UsageError, **options: Any) -> str:
        with pytest.raises(kind) as caught:
            open_retriever({**SPEC, **options}, place)
        return str(caught.value)

    assert "needs `index`" in refusal(None)
    assert "pass the index file itself" in refusal(folder)
    assert f"holds no *.index; put the parts together: cat {tmp_path}/part_*" in (
        (tmp_path / "part_aa").touch() or refusal(tmp_path)  # type: ignore[func-returns-value]
    )
    flat = write_index(tmp_path, "Flat")
    assert "holds no *.jsonl" in refusal(tmp_path)
    assert "there is no corpus" in refusal(flat, corpus="nowhere.jsonl")
    (tmp_path / "short.jsonl").write_bytes(lines(PASSAGES[:-1]))
    assert "300 vectors, and short.jsonl has 299 passages" in refusal(tmp_path, RetrieverError)
    assert "has no option 'depth'; it takes corpus, encoder" in refusal(folder, depth=3)
    assert "there is no device 'tpu'" in refusal(folder / "e5_Flat.index", device="tpu")
    assert "needs a GPU" in refusal(folder / "e5_Flat.index", device="cuda")
    assert "does not say which" in refusal(
        write_index(tmp_path, "Flat", name="my.index"), corpus=str(folder / "wiki-18.jsonl"), encoder=None
    )
    (tmp_path / "bad.index").write_bytes(b"IxFI" + bytes(40))
    assert "bad.index is damaged" in refusal(
        tmp_path / "bad.index", RetrieverError, corpus=str(folder / "wiki-18.jsonl")
    )
    with pytest.raises(UsageError, match="needs `index`"):
        check_retriever("faiss")


@pytest.mark.slow
def test_opening_a_flat_index_maps_its_vectors(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).random((40_000, 256), np.float32)  # 41 MB
    write_index(tmp_path, "Flat", vectors)
    (tmp_path / "big.jsonl").write_bytes(lines([Passage(str(i), '"a"\nb') for i in range(len(vectors))]))
    script = """
import sys
from agentgym_envs.search.retrieval.factory import open_retriever
from agentgym_envs.search.retrieval.vector_search import import_faiss
def anonymous(): return int(next(line for line in open("/proc/self/status") if "RssAnon" in line).split()[1])
import_faiss()
before = anonymous()
retriever = open_retriever({"engine": "faiss", "encoder": "hashing"}, sys.argv[1])
assert len(retriever.search(["river", "copper"], 3)[0]) == 3
print(anonymous() - before)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 20_000, "the vectors are 41 MB"


pieces = st.sampled_from(
    [b"\n", b"  \n", b"\r\n", b'{"id": 1, "contents": "x"}\n', b' {"id": "2", "contents": "\xc3\xbc"}\r\n']
)


@examples(25)
@given(st.lists(pieces, max_size=12), st.integers(1, 60), st.booleans())
def test_offsets_are_those_of_the_corpus_reader(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], block: int, newline: bool
) -> None:
    text = b"".join(parts)
    path = tmp_path_factory.mktemp("offsets") / "corpus.jsonl"
    path.write_bytes(text if newline else text.rstrip(b"\n"))
    with Corpus(path) as corpus, pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl_store, "_BLOCK_BYTES", block)
        store = JsonlStore(path)
        assert [store[number] for number in range(len(store))] == [row.passage for row in corpus.rows()]
    with pytest.raises(IndexError):
        store[len(store)]


def test_offsets_are_found_once_and_again_when_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(lines(PASSAGES))
    JsonlStore(path)
    with monkeypatch.context() as patch:
        patch.setattr(jsonl_store, "find_offsets", None)
        assert JsonlStore(path)[299] == PASSAGES[299]
    path.write_bytes(lines(PASSAGES[::-1]))
    assert JsonlStore(path)[0] == PASSAGES[299]
    (tmp_path / "corpus.jsonl.offsets").unlink()
    (tmp_path / "corpus.jsonl.offsets").mkdir()  # not writable, even for root
    assert JsonlStore(path, tmp_path / "cache")[0] == PASSAGES[299]
    assert len(list((tmp_path / "cache").iterdir())) == 1
    with pytest.raises(UsageError, match="cannot be stored"):
        JsonlStore(path)


def test_a_damaged_line_is_an_infrastructure_error(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(lines(PASSAGES[:1]) + b'{"id": 3}\n')
    store = JsonlStore(path)
    with pytest.raises(RetrieverError, match='passage 1: there is no "contents"'):
        store[1]
    with pytest.raises(UsageError, match="No such file"):
        JsonlStore(tmp_path / "none.jsonl")
