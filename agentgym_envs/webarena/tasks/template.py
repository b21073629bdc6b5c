"""`Template`: a kind of task, with instances in every world."""

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
"""The parameters of an instance: JSON, and only values that the intent names."""
Kind: TypeAlias = Literal["information", "navigation", "change"]
Difficulty: TypeAlias = Literal["easy", "medium", "hard"]
GROUPS = ("shopping", "cms", "maps", "code-and-forum")
"""The groups of the AgentGym-RL paper; "code-and-forum" corresponds to its GitLab and Reddit."""


class Template(ABC):
    """A kind of task: its intents, its instances in a world, its evaluators and its oracle.

    The oracle gets only the parameters, as an agent gets only the intent, and must read answers on the pages. The
    evaluators take the expected values from the world's database.
    """

    name: ClassVar[str]
    """A unique name, which is part of the ids of the tasks: "forum-upvote"."""
    group: ClassVar[str]
    sites: ClassVar[tuple[str, ...]]
    """The sites of the task; an episode begins on the first."""
    kind: ClassVar[Kind]
    difficulty: ClassVar[Difficulty]
    """By the number of actions: easy up to 4, medium up to 8, hard more."""
    intents: ClassVar[tuple[str, ...]]
    """At least three wordings of the same request, with {parameters}."""
    held_out: ClassVar[bool] = False
    """True reserves the template for the test split."""
    records: ClassVar[bool] = False
    """True records the browser's requests for the evaluators."""

    def start(self, params: Params) -> str:
        """Return the URL on which an episode begins."""
        return f"{ORIGINS[self.sites[0]]}/"

    @abstractmethod
    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Return the parameters of all instances in a world, or of many; the table shuffles and samples them."""

    @abstractmethod
    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """Return the evaluators of an instance; `evaluators_of` adds that nothing else changed."""

    @abstractmethod
    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        """Yield commands that solve an instance; `page` is updated after each one."""

    def wrong(self, page: PageReader, params: Params) -> Iterator[str] | None:
        """Yield the commands of a plausible mistake, which must not score.

        None means that the solution of another instance serves as the mistake.
        """
        return None


def changed(*expected: Expected, free: Sequence[str] = ()) -> OnlyChanged:
    """Return an evaluator for exactly these changes; `free` tables and columns ("table.column") may change, too."""
    return OnlyChanged(expected, (*UNSCORED_TABLES, *free))


def evaluators_of(template: Template, world: World, params: Params) -> list[Evaluator]:
    """Return all evaluators of an instance; unless it expects changes, all sites must stay unchanged."""
    own = list(template.evaluators(world, params))
    return own if any(isinstance(one, OnlyChanged) for one in own) else [*own, changed()]


def intent_of(template: Template, number: int, params: Params) -> str:
    """Return one of the template's wordings with the parameters filled in."""
    return template.intents[number % len(template.intents)].format(**params)
