"""Dynamic sampling: replaces zero-variance groups, whose scores are all equal, by groups of other tasks.

Source: DAPO, arXiv 2503.14476, section 3.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

from agentgym_envs.rollout import EpisodeSpec, TokenTrajectory
from agentgym_trl.distributed import gathered
from agentgym_trl.trl_format import spec_of

EpisodeStart = tuple[str, str | None, int]
"""Environment, task and seed."""


def zero_variance_groups(episodes: Sequence[TokenTrajectory], group_size: int) -> tuple[list[int], int]:
    """The indices of the groups whose usable episodes have equal scores, and the number of groups.

    Counts the groups of all processes. Every process must call it with the same number of episodes.
    """
    scores = gathered([e.trajectory.score if e.trajectory.usable else None for e in episodes])
    groups = [scores[first : first + group_size] for first in range(0, len(scores), group_size)]
    equal = [number for number, group in enumerate(groups) if len({s for s in group if s is not None}) < 2]
    return equal, len(groups)


def whole_groups(groups: Collection[int], roles: int) -> list[int]:
    """The indices of the tasks whose groups, one per role, are all among `groups`."""
    count = Counter(group // roles for group in groups)
    return sorted(task for task, found in count.items() if found == roles)


def fresh_prompts(dataset: Any, count: int, seed: Sequence[int], played: Collection[EpisodeStart]) -> list[Any]:
    """Draw the prompts of `count` rows; equal arguments give equal prompts in every process.

    Avoids rows in `played` and repeated rows as long as there are others.
    """
    order = [int(row) for row in np.random.default_rng(list(seed)).permutation(len(dataset))]
    prompts = (dataset[row]["prompt"] for row in order)
    fresh = list(islice((prompt for prompt in prompts if episode_start(spec_of(prompt, {})) not in played), count))
    rest = (dataset[row]["prompt"] for row in cycle(order))
    return fresh + list(islice(rest, count - len(fresh)))


def episode_start(spec: EpisodeSpec) -> EpisodeStart:
    """The key of an episode's initial state."""
    return spec.env, spec.task, spec.seed
