"""Scores of episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.task import Task
from agentgym_envs.webarena.evaluators.base import Evaluator, FinishedEpisode, ReadPage
from agentgym_envs.webarena.sites.episodes import Episode
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.table import templates, world_for
from agentgym_envs.webarena.tasks.template import Template, evaluators_of


def template_of(task: Task) -> Template:
    """Return the template of a task."""
    return templates()[task.data["template"]]


def world_of(task: Task) -> World:
    """Return the world of a task."""
    return world_for(template_of(task), task.data["world"])


def start_urls(task: Task) -> list[str]:
    """Return the URLs of the tabs with which a task begins; the first one is shown."""
    return list(task.data.get("tabs", [task.data["start"]]))


def evaluators_for(task: Task) -> list[Evaluator]:
    """Return the evaluators of a task; all of them must pass."""
    return evaluators_of(template_of(task), world_of(task), task.data["params"])


def finished(
    task: Task, episode: Episode, *, answer: str, url: str, read: ReadPage, requests: Sequence[Mapping[str, Any]]
) -> FinishedEpisode:
    """Return the final state of an episode for the evaluators, with a copy of the sites' database."""
    database, before = episode.copy(), episode.world.database
    return FinishedEpisode(task.goal, answer, url, read, requests, database, before, urls=ORIGINS)
