"""Encoders: functions from texts to vectors whose inner product measures similarity."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.errors import UsageError, missing_extra
from agentgym_envs.search.retrieval.words import STOP_WORDS

Kind = Literal["query", "passage"]
Vectors = NDArray[np.float32]
MAX_TOKENS = 256
"""Texts are truncated to this many tokens, as in Search-R1."""
_E5_PROMPTS = ("query: ", "passage: ")
_MAX_WORDS = 1_000
_GRAMS = (3, 4, 5)


class Encoder(Protocol):
    """The protocol of encoders."""

    dimensions: int

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return a vector of length 1 for each text, (n, `dimensions`); an empty text may have a vector of zeros."""

    def describe(self) -> dict[str, Any]:
        """Return the arguments from which `reload_encoder` creates it again (JSON)."""


class HashingEncoder:
    """Hashes words and character n-grams into a vector. Needs no weights and gives the same vectors everywhere.

    It finds words that are spelled alike, including misspelled and inflected ones, but does not model meaning.
    """

    def __init__(self, dimensions: int = 512) -> None:
        """Set the number of dimensions of a vector."""
        self.dimensions = dimensions

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Encode texts; queries and passages are treated alike."""
        return np.stack([self._encode(text) for text in texts]) if texts else np.zeros((0, self.dimensions), np.float32)

    def describe(self) -> dict[str, Any]:
        """Return the arguments of `load_encoder`."""
        return {"encoder": "hashing", "dimensions": self.dimensions}

    def _encode(self, text: str) -> Vectors:
        words = [word for word in _words(text) if word not in STOP_WORDS][:_MAX_WORDS]
        hashes = np.array([crc32(word.encode()) for word in words], np.uint64)
        # a word weighs as much as a few of its n-grams
        parts = [(hashes, 2.0)] + [(grams, 0.5) for grams in _grams(words)]
        vector = np.zeros(self.dimensions, np.float64)
        for numbers, weight in parts:
            mixed = (numbers * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
            signs = np.where(mixed & np.uint64(1), weight, -weight)
            buckets = ((mixed >> np.uint64(1)) % np.uint64(self.dimensions)).astype(np.int64)
            vector += np.bincount(buckets, signs, self.dimensions)
        length = float(np.sqrt(vector @ vector))
        return (vector / length if length else vector).astype(np.float32)


def _words(text: str) -> list[str]:
    """Words of letters and digits, in lower case and without accents."""
    plain = unicodedata.normalize("NFKD", text[: 16 * _MAX_WORDS].casefold())
    return re.findall(r"[^\W_]+", "".join(char for char in plain if not unicodedata.combining(char)))


def _grams(words: Sequence[str]) -> list[NDArray[np.uint64]]:
    """Hashes of the byte n-grams of the words, including the spaces around them."""
    codes = np.frombuffer(f" {' '.join(words)} ".encode(errors="replace"), np.uint8).astype(np.uint64)
    found = []
    for size in _GRAMS:
        hashes = np.full(max(0, len(codes) - size + 1), size, np.uint64)
        for offset in range(size):
            hashes = hashes * np.uint64(1_099_511_628_211) + codes[offset : offset + len(hashes)]
        found.append(hashes)
    return found


class SentenceTransformerEncoder:
    """A model of the sentence-transformers library. A lock serializes threads. Source: https://sbert.net."""

    def __init__(
        self,
        model: str,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        backend: Literal["torch", "onnx", "openvino"] = "torch",
        device: str | None = None,
    ) -> None:
        """Load a model from a folder, or by its name on the Hugging Face hub.

        The prompts are put before queries and passages. By default, a model with "e5" in its name gets the prompts
        that E5 models were trained with, and others get none. `device` is "cpu", "cuda" or None for the best one.
        Raises MissingExtra, and UsageError if the model cannot be loaded.
        """
        try:
            from sentence_transformers import SentenceTransformer
        except ModuleNotFoundError:
            raise missing_extra("this encoder", "sentence-transformers", "search-dense") from None
        try:
            self._model = SentenceTransformer(model, backend=backend, device=device)
        except (OSError, ValueError, ImportError) as error:
            raise UsageError(f"the encoder {model!r} cannot be loaded: {str(error).strip()[:300]}") from error
        self._model.max_seq_length = min(MAX_TOKENS, self._model.max_seq_length or MAX_TOKENS)
        defaults = _E5_PROMPTS if "e5" in re.split(r"[^a-z0-9]+", model.lower()) else ("", "")
        self._prompts = {
            "query": defaults[0] if query_prompt is None else query_prompt,
            "passage": defaults[1] if passage_prompt is None else passage_prompt,
        }
        self._name, self._backend, self._lock = model, backend, threading.Lock()
        self.dimensions = len(self.encode(["a"], "query")[0])

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Encode texts with the prompt of their kind."""
        prompt = self._prompts[kind]
        readable = [(prompt + text).encode(errors="replace").decode() for text in texts]
        if not readable:
            return np.zeros((0, self.dimensions), np.float32)
        with self._lock:  # the tokenizer is not thread-safe
            vectors = self._model.encode(readable, prompt="", normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)

    def describe(self) -> dict[str, Any]:
        """Return the arguments of `load_encoder`."""
        prompts = {"query_prompt": self._prompts["query"], "passage_prompt": self._prompts["passage"]}
        return {"encoder": "sentence-transformers", "model": self._name, "backend": self._backend, **prompts}


def load_encoder(name: str, **options: Any) -> Encoder:
    """Load an encoder by name: "hashing", or the folder or name of a sentence-transformers model.

    `options` are passed to the encoder. Raises UsageError and MissingExtra.
    """
    try:
        return HashingEncoder(**options) if name == "hashing" else SentenceTransformerEncoder(name, **options)
    except TypeError as error:
        raise UsageError(f"the encoder {name!r} cannot be created with {options}: {error}") from None


def reload_encoder(description: dict[str, Any]) -> Encoder:
    """Load the encoder whose `describe` returned this description."""
    options = dict(description)
    name = options.pop("encoder")
    return load_encoder(options.pop("model") if name == "sentence-transformers" else name, **options)
