"""Dynamic sampling: groups whose scores are all equal teach nothing, so other tasks may take their places.

Source: DAPO, arXiv 2503.14476, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from agentgym_envs.rollout import TokenTrajectory
from agentgym_trl.ranks import gathered


def equal_groups(episodes: Sequence[TokenTrajectory], group_size: int) -> tuple[list[int], int]:
    """Which groups, counted over all processes, have equal scores in all usable episodes; and how many there are.

    Every process must call it with the same number of episodes.
    """
    scores = gathered([e.trajectory.score if e.trajectory.usable else None for e in episodes])
    groups = [scores[first : first + group_size] for first in range(0, len(scores), group_size)]
    equal = [number for number, group in enumerate(groups) if len({s for s in group if s is not None}) < 2]
    return equal, len(groups)


def fresh_prompts(dataset: Any, count: int, seed: Sequence[int]) -> list[Any]:
    """Prompts of `count` rows, the same in every process that gives the same seed."""
    rows = np.random.default_rng(list(seed)).choice(len(dataset), count, replace=count > len(dataset))
    return [dataset[int(row)]["prompt"] for row in rows]
