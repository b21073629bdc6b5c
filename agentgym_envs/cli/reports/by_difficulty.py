"""The groups of a report by difficulty: bands of the oracle's turns in place of the groups of tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import gymnasium as gym

from agentgym_envs.core import text_env
from agentgym_envs.task import TaskSet
from agentgym_envs.trajectory import Trajectory

BANDS = ("1-2 turns", "3-4 turns", "5-8 turns", "9-16 turns", "17-32 turns", "33 turns or more", "unknown difficulty")
"""The names of the groups; each band reaches to twice the turns of the one before it."""


def by_difficulty(episodes: Sequence[Trajectory]) -> list[Trajectory]:
    """The episodes with the bands of their tasks as groups. Makes the environments again, to ask for the difficulties.

    Raises MissingExtra if a package of an environment is not installed.
    """

    @cache
    def tasks_of(env_id: str, kwargs: str) -> TaskSet:
        return _tasks(env_id, json.loads(kwargs))

    found = []
    for episode in episodes:
        difficulty = tasks_of(episode.env_id, json.dumps(dict(episode.env_kwargs))).difficulty(episode.task)
        band = BANDS[-1] if difficulty is None else BANDS[min((max(difficulty.turns, 2) - 1).bit_length(), 6) - 1]
        found.append(replace(episode, task=replace(episode.task, group=band)))
    return found


def _tasks(env_id: str, kwargs: Mapping[str, Any]) -> TaskSet:
    env = gym.make(env_id, **kwargs)
    env.close()
    return text_env(env).tasks
