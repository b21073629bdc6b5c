"""Dynamic sampling: groups whose scores are all equal teach nothing, so other tasks may take their places.

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
    """Which groups, counted over all processes, have equal scores in all usable episodes; and how many there are.

    Every process must call it with the same number of episodes.
    """
    scores = gathered([e.trajectory.score if e.trajectory.usable else None for e in episodes])
    groups = [scores[first : first + group_size] for first in range(0, len(scores), group_size)]
    equal = [number for number, group in enumerate(groups) if len({s for s in group if s is not None}) < 2]
    return equal, len(groups)


def whole_groups(groups: Collection[int], roles: int) -> list[int]:
    """The numbers of the tasks of which the groups of all roles are among `groups`."""
    count = Counter(number // roles for number in groups)
    return sorted(task for task, found in count.items() if found == roles)


def fresh_prompts(dataset: Any, count: int, seed: Sequence[int], played: Collection[EpisodeStart]) -> list[Any]:
    """Prompts of `count` rows, the same in every process that gives the same arguments.

    None begins as one in `played` does, and none comes twice, as long as there are others.
    """
    order = [int(row) for row in np.random.default_rng(list(seed)).permutation(len(dataset))]
    prompts = (dataset[row]["prompt"] for row in order)
    fresh = list(islice((prompt for prompt in prompts if episode_start(spec_of(prompt, {})) not in played), count))
    rest = (dataset[row]["prompt"] for row in cycle(order))
    return fresh + list(islice(rest, count - len(fresh)))


def episode_start(spec: EpisodeSpec) -> EpisodeStart:
    """What decides how an episode begins."""
    return spec.env, spec.task, spec.seed
