"""Random generators: the generator of an episode, and Gymnasium's `np_random`, which is made when it is first used."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding


class SeededEnv(gym.Env[str, str]):
    """A `gym.Env` that makes the generator of a seed when something first draws from it.

    Making a NumPy generator takes a large part of a fast reset, and an episode with a seed of its own draws nothing
    from `np_random`. The generator that a caller sees is the one that Gymnasium's `reset` would have made.
    """

    _generator: np.random.Generator | None = None
    _np_random_seed: int | None = None

    @property
    def _np_random(self) -> np.random.Generator | None:
        """Gymnasium's attribute; None before the first seed."""
        if self._generator is None and self._np_random_seed is not None:
            self._generator, _ = seeding.np_random(self._np_random_seed)
        return self._generator

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._generator = generator

    def _next_seed(self, seed: int | None) -> int:
        """Seed `np_random`, as `gym.Env.reset` does, and return the seed; without one, draw a seed below 2**31 from it.

        Raises Gymnasium's error if the seed is not a whole number from 0 on.
        """
        if seed is None:
            return int(self.np_random.integers(2**31))
        if not isinstance(seed, int) or seed < 0:
            seeding.np_random(seed)
        self._generator, self._np_random_seed = None, seed
        return seed


class _QuickSeedSequence(np.random.SeedSequence):
    """NumPy's seed sequence, asked in its own words of 32 bits and without `errstate`: the same numbers, faster."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Return the state for a generator; NumPy defines words of 64 bits as pairs of these."""
        if dtype is not np.uint64 or sys.byteorder != "little":
            return super().generate_state(n_words, dtype)
        return _generate_state(self, 2 * n_words).view(np.uint64)


_generate_state = getattr(np.random.SeedSequence.generate_state, "__wrapped__", np.random.SeedSequence.generate_state)


def pcg64(seed: int) -> np.random.PCG64:
    """Return `np.random.PCG64(seed)`, made in about two thirds of the time."""
    return np.random.PCG64(_QuickSeedSequence(seed))


def episode_generator(seed: int) -> tuple[np.random.Generator, int]:
    """Return the generator of an episode, and the number below 2**63 that selects its task, drawn from it first.

    The number is that of `integers(2**63)`: a raw number without its lowest bit.
    """
    bits = pcg64(seed)
    return np.random.Generator(bits), int(bits.random_raw()) >> 1
