"""Advantages of episodes of several contexts. Each context is a row of verl's batch.

verl's estimators compare rows, and read rewards and values along a row. So the sampled tokens of an episode's rows are
joined into one row, in the order in which its contexts began, verl's own estimator runs over episodes, and its
advantages are laid back onto the tokens. Other tokens are left out: no estimator of verl reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from verl.protocol import DataProto
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

_LAID_BACK = ("advantages", "returns")


@dataclass(frozen=True, slots=True)
class EpisodeRows:
    """The episode of each of R rows, by the keys of verl's queue: `{uid}_{session}_{context}`."""

    numbers: Tensor
    """(R,) the number of the row's episode, in order of its first row"""
    order: Tensor
    """(R,) the rows by episode, and those of an episode by context"""

    @property
    def several(self) -> bool:
        """True if an episode has more than one row."""
        return len(self.numbers) > self.count

    @property
    def count(self) -> int:
        """The number of episodes."""
        return int(self.numbers.max()) + 1 if len(self.numbers) else 0

    @property
    def first_rows(self) -> Tensor:
        """(E,) the row of each episode's first context."""
        changes = self.numbers[self.order].diff(prepend=self.numbers.new_tensor([-1]))
        return self.order[changes != 0]

    def sums(self, values: Tensor) -> Tensor:
        """(E,) the sum over the rows of each episode of (R,) values."""
        return values.new_zeros(self.count).index_add(0, self.numbers, values)


def episode_rows(keys: Sequence[str]) -> EpisodeRows:
    """Read the episodes of rows from their keys."""
    episodes, contexts = zip(*(key.rsplit("_", 1) for key in keys), strict=True) if keys else ((), ())
    names = {episode: number for number, episode in enumerate(dict.fromkeys(episodes))}
    numbers = [names[episode] for episode in episodes]
    order = sorted(range(len(keys)), key=lambda row: (numbers[row], int(contexts[row])))
    return EpisodeRows(torch.tensor(numbers, dtype=torch.long), torch.tensor(order, dtype=torch.long))


class JoinedTokens:
    """Chosen tokens of R rows of T tokens as E rows, one per episode, without gaps."""

    def __init__(self, rows: EpisodeRows, chosen: Tensor) -> None:
        """`chosen` (R, T) is true on the tokens to join."""
        at, columns = chosen[rows.order].nonzero(as_tuple=True)
        self._source = rows.order[at], columns
        episodes = rows.numbers[self._source[0]]
        sizes = torch.bincount(episodes, minlength=rows.count)
        begins = sizes.cumsum(0) - sizes
        self._target = episodes, torch.arange(len(episodes)) - begins[episodes]
        self._shape, self._joined_shape = chosen.shape, (rows.count, max(int(sizes.max()), 1))

    def join(self, values: Tensor) -> Tensor:
        """Values of the rows' tokens (R, T) as those of the episodes' (E, T'); 0 behind the last."""
        return values.new_zeros(self._joined_shape).index_put(self._target, values[self._source])

    def lay_back(self, values: Tensor) -> Tensor:
        """Values of the episodes' tokens (E, T') as those of the rows' (R, T); 0 on those not chosen."""
        return values.new_zeros(self._shape).index_put(self._source, values[self._target])


def compute_episode_advantages(data: DataProto, batch_keys: list[str], **options: Any) -> DataProto:
    """Compute advantages once an episode, in place of verl's function of the same arguments.

    `options` are those of verl's `compute_advantage`. A batch in which every episode has one row is left to verl.
    """
    rows = episode_rows(batch_keys)
    if not rows.several:
        return compute_advantage_for_multi_trajectories(data, batch_keys=batch_keys, **options)
    mask = data.batch["response_mask"]
    rewarded = data.batch["token_level_rewards"] != 0  # also a token that verl's rejection sampling masks
    tokens = JoinedTokens(rows, mask.bool() | rewarded)
    per_token = {name: value for name, value in data.batch.items() if value.shape == mask.shape}
    joined = DataProto.from_single_dict(
        {name: tokens.join(value) for name, value in per_token.items()}
        | {name: np.asarray(column)[rows.first_rows.numpy()] for name, column in data.non_tensor_batch.items()}
    )
    found = compute_advantage(joined, **options)
    for name in _LAID_BACK:
        data.batch[name] = tokens.lay_back(found.batch[name])
    return data
