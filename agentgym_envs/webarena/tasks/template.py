"""`Template`: a kind of task, with instances in every world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from string import Formatter
from types import ModuleType
from typing import Any, Literal, TypeAlias

from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Expected, OnlyChanged
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import UNSCORED_TABLES, World
from agentgym_envs.webarena.tasks.instances import Instances
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.parameters import Params as Params
from agentgym_envs.webarena.tasks.parameters import call_by_name
from agentgym_envs.webarena.tasks.steps import AnswerStep, Solution, Step, play

Kind: TypeAlias = Literal["information", "navigation", "change"]
Difficulty: TypeAlias = Literal["easy", "medium", "hard"]
GROUPS = ("shopping", "cms", "maps", "code-and-forum")
"""The groups of the AgentGym-RL paper; "code-and-forum" corresponds to its GitLab and Reddit."""

ExpectedResult: TypeAlias = Evaluator | Expected | Iterable[Evaluator | Expected]
"""Changes of the database, evaluators, or both. Nothing else may change."""
StartPages: TypeAlias = Callable[..., str | Sequence[str]]
"""Returns the URL on which an episode begins, or those of several tabs. The first tab is shown."""


@dataclass(frozen=True)
class Template:
    """A kind of task: its intents, its instances in a world, the expected result and a solution.

    The functions of a template receive by name what their parameters name: `world`, `params` for all parameters of the
    instance, or single ones, such as `title` for "{title}" in the intents. The solution gets only the parameters, as an
    agent gets only the intent, and must read answers on the pages. The expected result comes from the world's database.

    Attributes:
        group: one of `GROUPS`.
        sites: the sites of the task; an episode begins on the first.
        name: a unique name, which is part of the ids of the tasks: "forum-upvote".
        difficulty: by the number of actions: easy up to 4, medium up to 8, hard more.
        intents: at least three wordings of the same request, with {parameters}.
        instances: returns the parameters of all instances; the table shuffles and samples them.
        expected: returns the expected changes or answer.
        solution: the steps that solve an instance.
        mistake: a plausible mistake, which must not score. A single step replaces the last one of the solution. Without
            one, the solution of another instance serves as the mistake.
        free: tables and columns ("table.column") that may change, too.
        held_out: reserves the template for the test split.
        records: records the browser's requests for the evaluators.
        since: the version of the task table with which the template appears.
        start: returns the start page, or several for as many tabs; by default, the front page of the first site. Its
            parameters that no intent names select what "this product" means. The solution does not get them.
    """

    group: str
    sites: tuple[str, ...]
    name: str
    kind: Kind
    difficulty: Difficulty
    _: KW_ONLY
    intents: tuple[str, ...]
    instances: Instances
    expected: Callable[..., ExpectedResult]
    solution: Solution
    mistake: Solution | Step | AnswerStep | None = None
    free: tuple[str, ...] = ()
    held_out: bool = False
    records: bool = False
    since: int = 1
    start: StartPages | None = None

    @property
    def named(self) -> frozenset[str]:
        """The parameters that the intents name."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.intents[0]) if name)

    def start_urls(self, world: World, params: Params) -> list[str]:
        """Return the URLs of the tabs with which an episode begins; the first one is shown."""
        if self.start is None:
            return [f"{ORIGINS[self.sites[0]]}/"]
        found = call_by_name(self.start, {**params, "world": world, "params": params})
        return [found] if isinstance(found, str) else list(found)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """Return the evaluators of an instance; `evaluators_of` adds that nothing else changed."""
        found = call_by_name(self.expected, {**params, "world": world, "params": params})
        every = list(found) if isinstance(found, Iterable) else [found]
        changes = [one for one in every if isinstance(one, Expected)]
        others = [one for one in every if not isinstance(one, Expected)]
        return [changed(*changes, free=self.free), *others] if changes or self.free else others

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        """Yield commands that solve an instance; `page` is updated after each one."""
        return play(self.solution, page, self._known(params))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str] | None:
        """Yield the commands of the mistake, if there is one."""
        mistake = self.mistake
        if isinstance(mistake, Step | AnswerStep):
            mistake = [*self.steps()[:-1], mistake]
        return None if mistake is None else play(mistake, page, self._known(params))

    def _known(self, params: Params) -> Params:
        """Return the parameters that an agent knows, which are those that the intents name."""
        return {name: value for name, value in params.items() if self.start is None or name in self.named}

    def steps(self) -> Sequence[Step | AnswerStep]:
        """Return the solution, which must be a list of steps."""
        if not isinstance(self.solution, Sequence):
            raise UsageError(f"{self.name}: the solution is a function, so that no step of it can be replaced")
        return self.solution


def starting_on(
    start: StartPages, template: Template, *intents: str, skip: int = 1, lead: Sequence[Step] = (), **changes: Any
) -> Template:
    """Return a variant of a template that starts on a deep page, such as that of the product in question.

    Args:
        start: returns the start page.
        template: the template to vary. Instances and expected results stay the same.
        intents: the wordings, which say "this product" instead of its name.
        skip: the number of steps of the solution, and of a mistake that begins with them, that lead to the start page.
        lead: steps that take the place of the skipped ones.
        changes: other fields that change. A new solution needs no `skip`.
    """
    fields: dict[str, Any] = {"name": f"{template.name}-here", "since": 2}
    if "solution" not in changes:
        skipped, mistake = list(template.steps()[:skip]), template.mistake
        fields["solution"] = [*lead, *template.steps()[skip:]]
        if isinstance(mistake, Sequence) and list(mistake[:skip]) == skipped:
            fields["mistake"] = [*lead, *mistake[skip:]]
    return replace(template, start=start, intents=intents, **{**fields, **changes})


def templates_in(*modules: ModuleType) -> list[Template]:
    """Return all templates that these modules define, in the order of their definition."""
    return [one for module in modules for one in vars(module).values() if isinstance(one, Template)]


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
