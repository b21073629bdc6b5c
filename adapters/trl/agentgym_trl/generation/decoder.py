"""`CachedDecoder`: answers prompts with a model in this process, and keeps the keys and values of every sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch

from agentgym_envs.rollout import Generation, Sampling
from agentgym_trl.generation.cached_model import CachedModel, device_memory
from agentgym_trl.generation.rows import Rows
from agentgym_trl.generation.sampling import choose, logprobs_of

_BLOCK = 64
_GROWTH = 1.25
_DENSE = 0.75  # the min share of active rows among those that a pass reads
_SMALL_PASS, _SIMILAR = 8, 0.75
_LONG_PREFIX = 32
_MEMORY_SHARE = 0.25


@dataclass(eq=False, slots=True)
class PendingAnswer:
    """A prompt and its answer so far. `noise` has one number per token; the row holds `known` tokens of the prompt."""

    ids: Sequence[int]
    sampling: Sampling
    noise: np.ndarray
    row: int = -1
    known: int = 0
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, ids: Sequence[int], sampling: Sampling, seed: Sequence[int]) -> Self:
        """An answer that is not begun."""
        return cls(ids, sampling, np.random.Generator(np.random.PCG64(list(seed))).random(sampling.max_tokens))

    @property
    def unread(self) -> Sequence[int]:
        """The tokens of the prompt that the row does not hold."""
        return self.ids[self.known :]

    @property
    def stopped(self) -> bool:
        """True if it ended with a stop id."""
        return bool(self.tokens) and self.tokens[-1] in self.sampling.stop_ids

    @property
    def ended(self) -> bool:
        """True if it has its last token."""
        return self.stopped or len(self.tokens) >= self.sampling.max_tokens

    def generation(self) -> Generation:
        """The answer so far."""
        return Generation(self.tokens, "stop" if self.stopped else "length", self.logprobs)


class CachedDecoder:
    """Samples answers batch by batch, and reads only those tokens of a prompt that its cache does not hold.

    A prompt that continues a row extends it. A prompt with the same beginning as another row, such as those of a group,
    gets a copy of that beginning. If earlier text has changed, it is read again from the first different token. An
    answer that has ended leaves the batch at once, and a waiting prompt takes its place.

    The cache has at most `max_bytes`, by default a quarter of the device's memory. If it is full, the row that was not
    used for the longest time is overwritten, and prompts wait while all rows are in use. The cache is dropped if the
    weights have changed since the last batch. Call `drop` after changes that torch does not count, such as those
    through `tensor.data`.

    The random numbers of an answer follow from its seed only. So its tokens do not depend on the other answers of the
    batch, except that a pass over another number of rows rounds differently, in about the seventh digit.
    """

    def __init__(self, model: Any, *, logprob_temperature: float = 1.0, max_bytes: int | None = None) -> None:
        """`logprob_temperature` is the temperature of the reported log-probabilities, before top-k and top-p."""
        self.tokens_read = 0
        self._model = CachedModel(model)
        self._temperature, self._max_bytes = logprob_temperature, max_bytes
        self._rows = Rows()
        self._active: list[PendingAnswer] = []
        self._weights: Any = None

    def answer(
        self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling], seeds: Sequence[Sequence[int]]
    ) -> list[Generation]:
        """Return one answer per prompt, in order."""
        answers = [PendingAnswer.of(*fields) for fields in zip(prompts, samplings, seeds, strict=True)]
        waiting = answers
        with self.running():
            while waiting or self._active:
                waiting = self.advance(waiting)
        return [answer.generation() for answer in answers]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Prepare the model for `advance`. The weights must not change meanwhile."""
        self._drop_if_weights_changed()
        try:
            with self._model.running():
                yield
        except BaseException:
            self.drop()
            raise

    def advance(self, waiting: list[PendingAnswer]) -> list[PendingAnswer]:
        """Begin the answers that there is room for, sample one token of each, and return those that still wait."""
        waiting = self._admit(waiting) if waiting else []
        if self._active:
            self._step()
        return waiting

    def drop(self) -> None:
        """Free the cache."""
        self._model.cache.drop()
        self._rows.drop()
        self._active = []

    def _drop_if_weights_changed(self) -> None:
        weights = self._model.weights()
        if weights != self._weights:
            self.drop()
        self._weights = weights

    def _admit(self, waiting: list[PendingAnswer]) -> list[PendingAnswer]:
        """Read the prompts that there are rows for; return the others.

        Rows that are continued are taken first, so that no other prompt overwrites them.
        """
        room = self._make_room(waiting)
        joining, rest = waiting[:room], waiting[room:]
        continued = [answer for answer in joining if self._continue_row(answer)]
        fresh = [answer for answer in joining if answer.row < 0]
        for wave in self._waves(fresh):
            for answer in wave:
                self._start_row(answer)
            self._read([*wave, *continued])
            continued = []
        self._read(continued)
        return rest

    def _waves(self, answers: Sequence[PendingAnswer]) -> list[list[PendingAnswer]]:
        """Sets of prompts to read one after another, so that later ones get copies of what earlier ones have read.

        Equal prompts are read once. If all have a long common beginning, one prompt goes first.
        """
        first = {tuple(answer.ids): answer for answer in reversed(answers)}
        different = list(reversed(first.values()))
        equal = [answer for answer in answers if first[tuple(answer.ids)] is not answer]
        if len(different) > 1:
            common = _common_prefix([answer.ids for answer in different])
            if common - self._rows.best_match(different[0].ids)[1] >= _LONG_PREFIX:
                return [wave for wave in (different[:1], different[1:], equal) if wave]
        return [wave for wave in (different, equal) if wave]

    def _make_room(self, waiting: Sequence[PendingAnswer]) -> int:
        """The number of waiting prompts that may join now, at least one if no row is active; make rows for them."""
        longest = max(len(answer.ids) + answer.sampling.max_tokens for answer in (*waiting, *self._active))
        limit = self._max_rows(max(self._rows.width, _rounded(int(_GROWTH * longest))))
        active = len(self._active)
        room = min(len(waiting), max(limit - active, 0 if active else 1))
        rows = max(active + room, min(len(self._rows), limit))
        if room:
            self._resize(rows, max(len(answer.ids) for answer in waiting[:room]) + 1)
        return room

    def _max_rows(self, width: int) -> int:
        """The number of rows of a width that fit into the memory."""
        if self._max_bytes is None:
            self._max_bytes = int(_MEMORY_SHARE * device_memory(self._model.model.device))
        return max(1, self._max_bytes // (self._model.bytes_per_place() * width))

    def _resize(self, rows: int, width: int) -> None:
        """Make a table of `rows` rows and at least `width` places."""
        table = self._rows
        if width > table.width:
            width = _rounded(max(width, int(_GROWTH * table.width)))
        width = max(width, table.width)
        if (rows, width) == (len(table), table.width):
            return
        kept = table.kept_by_use(min(rows, len(table)))
        moved = {int(old): new for new, old in enumerate(kept)}
        for answer in self._active:
            answer.row = moved[answer.row]
        self._model.cache.resize(torch.from_numpy(kept), rows, width)
        table.resize(kept, rows, width)

    def _continue_row(self, answer: PendingAnswer) -> bool:
        """Take the row that ends where this prompt goes on, if there is one."""
        source, common = self._rows.best_match(answer.ids)
        if not self._rows.is_continued(source, common):
            return False
        answer.row, answer.known = source, common
        self._rows.take(source, answer.ids[:common])
        return True

    def _start_row(self, answer: PendingAnswer) -> None:
        """Take another row, with a copy of the longest common beginning if that is worth it."""
        if self._continue_row(answer):
            return
        source, common = self._rows.best_match(answer.ids)
        answer.known = common if self._rows.is_worth_a_copy(common) else 0
        answer.row = self._rows.idle(but=source if answer.known else -1)
        if answer.known and answer.row != source:
            self._model.cache.copy(source, answer.row, answer.known)
        self._rows.take(answer.row, answer.ids[: answer.known])

    def _read(self, answers: Sequence[PendingAnswer]) -> None:
        """Read what is new, in passes over prompts with similarly many new tokens, and sample the first tokens."""
        for bucket in _buckets(answers):
            bucket.sort(key=lambda answer: answer.row)
            unread = [answer.unread for answer in bucket]
            self._active += bucket
            self._resize(len(self._rows), max(len(a.ids) - len(a.unread) for a in bucket) + 2 * max(map(len, unread)))
            logits = self._model.read([a.row for a in bucket], [a.known for a in bucket], unread)
            self.tokens_read += sum(map(len, unread))
            for answer in bucket:
                self._rows.set(answer.row, answer.ids)
            self._sample(bucket, logits)

    def _step(self) -> None:
        """Read the last token of every active answer, and sample the next."""
        self._compact()
        active = sorted(self._active, key=lambda answer: answer.row)
        rows = np.array([answer.row for answer in active])
        first, end = int(rows[0]), int(rows[-1]) + 1
        self._resize(len(self._rows), int(self._rows.length[first:end].max()) + 1)
        ids = np.zeros((end - first, 1), np.int64)  # idle rows get a token too, after their end, where it is not seen
        ids[rows - first, 0] = [answer.tokens[-1] for answer in active]
        places = self._rows.length[first:end, None].copy()
        positions = np.zeros_like(places)
        positions[rows - first] = places[rows - first]
        logits = self._model.forward(np.arange(first, end), ids, positions, places)
        for answer in active:
            self._rows.append(answer.row, answer.tokens[-1])
        picked = logits if len(rows) == end - first else logits[torch.from_numpy(rows - first).to(logits.device)]
        self._sample(active, picked)

    def _compact(self) -> None:
        """Move the active rows together if too many idle ones are between them: a pass reads neighbouring rows."""
        rows = np.array(sorted(answer.row for answer in self._active))
        first, count = int(rows[0]), len(rows)
        if count >= _DENSE * (rows[-1] + 1 - first):
            return
        far = rows[rows >= first + count]
        free = np.setdiff1d(np.arange(first, first + count), rows)
        length = int(self._rows.length[np.concatenate([far, free])].max())
        self._model.cache.swap(torch.from_numpy(far), torch.from_numpy(free), length)
        self._rows.swap(far, free)
        moved = dict(zip(far.tolist(), free.tolist(), strict=True))
        for answer in self._active:
            answer.row = moved.get(answer.row, answer.row)

    def _sample(self, answers: Sequence[PendingAnswer], logits: torch.Tensor) -> None:
        """Append one token to each answer; those that have ended leave."""
        noise = [float(answer.noise[len(answer.tokens)]) for answer in answers]
        chosen = choose(logits, [answer.sampling for answer in answers], noise)
        scores = logprobs_of(logits, chosen, self._temperature)
        for answer, token, score in zip(answers, chosen.tolist(), scores, strict=True):
            answer.tokens.append(token)
            answer.logprobs.append(score)
            self._rows.busy[answer.row] = not answer.ended
        self._active = [answer for answer in self._active if not answer.ended]


def _buckets(answers: Iterable[PendingAnswer]) -> list[list[PendingAnswer]]:
    """Prompts to read in one pass: padding to the longest is cheap, or the pass is small."""
    found: list[list[PendingAnswer]] = []
    for answer in sorted(answers, key=lambda answer: -len(answer.unread)):
        full = found and len(found[-1]) >= _SMALL_PASS
        if not found or (full and len(answer.unread) < _SIMILAR * len(found[-1][0].unread) - 2):
            found.append([])
        found[-1].append(answer)
    return found


def _common_prefix(texts: Sequence[Sequence[int]]) -> int:
    shortest = min(map(len, texts))
    table = np.array([text[:shortest] for text in texts])
    alike = (table == table[0]).all(0)
    return shortest if alike.all() else int(alike.argmin())


def _rounded(width: int) -> int:
    return -(-width // _BLOCK) * _BLOCK
