"""`Seeds`: the seeds of sampled answers, which do not depend on the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch


class Seeds:
    """The seed of an answer: a number of the run, the episode, and how many answers it has had in this run.

    The number of the run is drawn from torch's generator, so that it follows from `torch.manual_seed`, differs between
    runs, and is repeated by a resumed training run.
    """

    def __init__(self, *fixed: int) -> None:
        """`fixed` are further parts of every seed, such as the number of the process."""
        self._fixed = fixed
        self._run: int | None = None
        self._answers = Counter[int]()

    def of(self, episodes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the seeds of the next answers of these episodes."""
        if self._run is None:
            self._run = int(torch.randint(2**62, ()))
        seeds = []
        for episode in episodes:
            seeds.append((self._run, episode, self._answers[episode], *self._fixed))
            self._answers[episode] += 1
        return seeds

    def restart(self) -> None:
        """Begin another run."""
        self._run = None
        self._answers.clear()
