"""`Template`: a kind of task, from which tasks are made in any world."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Literal, TypeAlias

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Expected, OnlyChanged
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import UNSCORED_TABLES, World
from agentgym_envs.webarena.tasks.page_reader import PageReader

Params: TypeAlias = Mapping[str, Any]
"""What makes an instance of a template: JSON, and nothing that the intent does not tell."""
Kind: TypeAlias = Literal["information", "navigation", "change"]
Difficulty: TypeAlias = Literal["easy", "medium", "hard"]
GROUPS = ("shopping", "cms", "maps", "code-and-forum")
"""The groups that the paper of AgentGym-RL reports, where code hosting and forum are GitLab and Reddit."""


class Template(ABC):
    """A kind of task.

    A subclass is one: it says how an agent is told what to do, which instances a world has, how an episode is scored
    and how it is solved. Its oracle is told nothing but the parameters, as an agent is told nothing but the intent:
    what it answers it has read on the pages. The evaluators get what they expect from the world's database.
    """

    name: ClassVar[str]
    """Unique, and part of the ids of its tasks: "forum-upvote"."""
    group: ClassVar[str]
    sites: ClassVar[tuple[str, ...]]
    """The sites that it leads to; an episode begins on the first."""
    kind: ClassVar[Kind]
    difficulty: ClassVar[Difficulty]
    """By the actions that it takes: easy up to 4, medium up to 8, hard more."""
    intents: ClassVar[tuple[str, ...]]
    """At least three ways to say the same, with {parameters}."""
    held_out: ClassVar[bool] = False
    """Whether it is kept for tests: of such templates, no task is in train or validation."""
    records: ClassVar[bool] = False
    """Whether its evaluators look at what the browser asked for."""

    def start(self, params: Params) -> str:
        """The URL on which an episode begins."""
        return f"{ORIGINS[self.sites[0]]}/"

    @abstractmethod
    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """All parameters that make a task of this kind in a world, or many of them; the best mix comes by shuffling."""

    @abstractmethod
    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """What has to hold in the end, beside that nothing changed: see `evaluators_of`."""

    @abstractmethod
    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        """Commands that solve an instance from its first page on; `page` shows what came of each before the next."""

    def wrong(self, page: PageReader, params: Params) -> Iterator[str] | None:
        """What a careless agent might do instead, which must not score; None if another instance's solution is that."""
        return None


def changed(*expected: Expected, free: Sequence[str] = ()) -> OnlyChanged:
    """These rows of the database changed, and nothing else did but in `free` tables and columns ("table.column")."""
    return OnlyChanged(expected, (*UNSCORED_TABLES, *free))


def evaluators_of(template: Template, world: World, params: Params) -> list[Evaluator]:
    """All evaluators of an instance: one that changes nothing must leave every site as it was."""
    own = list(template.evaluators(world, params))
    return own if any(isinstance(one, OnlyChanged) for one in own) else [*own, changed()]


def intent_of(template: Template, number: int, params: Params) -> str:
    """What an agent is told to do in an instance, in one of the template's ways."""
    return template.intents[number % len(template.intents)].format(**params)
