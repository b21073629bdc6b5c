"""What an episode of a task is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.task import Task
from agentgym_envs.webarena.evaluators.base import Evaluator, FinishedEpisode, ReadPage
from agentgym_envs.webarena.sites.episodes import Episode
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World, world
from agentgym_envs.webarena.tasks.table import templates
from agentgym_envs.webarena.tasks.template import Template, evaluators_of


def template_of(task: Task) -> Template:
    """The template that a task was made from."""
    return templates()[task.data["template"]]


def world_of(task: Task) -> World:
    """The world that a task plays in."""
    return world(task.data["world"])


def evaluators_for(task: Task) -> list[Evaluator]:
    """What scores a task; all of it has to hold."""
    return evaluators_of(template_of(task), world_of(task), task.data["params"])


def finished(
    task: Task, episode: Episode, *, answer: str, url: str, read: ReadPage, requests: Sequence[Mapping[str, Any]]
) -> FinishedEpisode:
    """An episode as evaluators see it, with the sites as they are at this moment."""
    database, before = episode.copy(), episode.world.database
    return FinishedEpisode(task.goal, answer, url, read, requests, database, before, urls=ORIGINS)
