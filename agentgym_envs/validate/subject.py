"""`ValidationSubject`: the environment that is validated, its sampled tasks, and the episodes that checks share."""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import gymnasium as gym
from gymnasium import spaces

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.registration import import_id
from agentgym_envs.spaces import Utf8Text
from agentgym_envs.task import SPLITS, Task
from agentgym_envs.validate.episodes import (
    JUNK,
    EpisodeStart,
    RecordedEpisode,
    acting_randomly,
    play,
    play_oracle,
    repeating,
    replaying,
)
from agentgym_envs.validate.findings import BudgetUsed, NotApplicable, RefusedSubject
from agentgym_envs.validate.other_process import OtherProcess, play_elsewhere
from agentgym_envs.validate.watch import Watch, joined, watching

if TYPE_CHECKING:
    from agentgym_envs.audit import AuditReport

Env = gym.Env[Any, Any]
_T = TypeVar("_T")
_SEED = 5
_SHARE = 0.15
"""The part of the remaining time that one collection of episodes may take."""


class SampleSizes(NamedTuple):
    """The numbers of tasks and repetitions of the checks."""

    tasks: int
    """Tasks whose episodes are played."""
    few: int
    """Tasks in checks that play an episode several times."""
    seeds: int
    """Seeds without a task."""
    turns: int
    """Turns of policies that do not solve a task."""
    group: int
    """Episodes of one task whose scores are compared."""


FULL = SampleSizes(tasks=24, few=6, seeds=12, turns=12, group=4)
SLOW = SampleSizes(tasks=3, few=1, seeds=3, turns=4, group=2)
"""For environments that declare that they wait for other programs or plan for seconds."""


class Prerequisite(Enum):
    """A property of the subject without which a check does not apply."""

    TEXT_ENV = "TextEnv"
    LOCAL = "local"
    IMPORTABLE = "importable"


class ValidationSubject:
    """An environment under validation.

    Each check opens environments of its own. What is shared are records of episodes, each played once.
    """

    def __init__(
        self,
        make: Callable[[], Env],
        name: str,
        *,
        kwargs: Mapping[str, Any] | None = None,
        importable: bool = False,
        seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`importable` means that `load_subject(name, kwargs)` makes the same subject in another process."""
        self._make, self.name, self.importable = make, name, importable
        self.kwargs = dict(kwargs or {})
        self.seconds, self._clock = seconds, clock
        self._deadline = clock() + seconds
        self.start_watch = Watch()
        """The events of the first environment, set by the start-up check."""

    def lacks(self, need: Prerequisite) -> str:
        """The reason why the subject does not have what a check needs; "" if it has it."""
        has, reason = _HAS[need]
        return "" if has(self) else reason

    @contextmanager
    def fresh(self) -> Iterator[Env]:
        """A new environment, closed at the end."""
        self.check_time()
        env = self.make()
        try:
            yield env
        finally:
            env.close()

    def make(self) -> Env:
        """Make an environment. Raises RefusedSubject for wrong arguments, or if actions or observations are no text."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Gymnasium's advice on ids and spaces
                env = self._make()
        except (UsageError, TypeError) as error:
            if isinstance(error, TypeError) and not self.kwargs:
                raise  # a bug in the constructor
            raise RefusedSubject(f"{self.name} cannot be made with the arguments {self.kwargs}: {error}") from error
        for name in ("action_space", "observation_space"):
            if not _is_text(getattr(env, name)):
                env.close()
                raise RefusedSubject(
                    f"{self.name} has the {name} {getattr(env, name)}, and only environments with texts can be "
                    f"validated: spaces.Text, or those of a TextEnv"
                )
        return env

    @property
    def time_left(self) -> float:
        """Seconds until the end of the budget."""
        return self._deadline - self._clock()

    def check_time(self) -> None:
        """Raise BudgetUsed after the end of the budget."""
        if self.time_left <= 0:
            raise BudgetUsed(f"the budget of {self.seconds:g} s is used up")

    def within(self, items: Sequence[_T], at_least: int = 1, share: float = _SHARE) -> Iterator[_T]:
        """The items, until a part of the remaining time is used; at least the first ones, if the budget allows."""
        end = self._clock() + share * self.time_left
        for number, item in enumerate(items):
            if number >= at_least and self._clock() > end:
                return
            self.check_time()
            yield item

    @property
    def kind(self) -> type[Env]:
        """The class of the environment, without wrappers."""
        return self._facts[0]

    @property
    def is_text_env(self) -> bool:
        """True for a `TextEnv`, which has tasks, scores and snapshots."""
        return issubclass(self.kind, TextEnv)

    @property
    def sizes(self) -> SampleSizes:
        """The sizes of the samples."""
        return self._facts[1]

    @cached_property
    def _facts(self) -> tuple[type[Env], SampleSizes]:
        with self.fresh() as env:
            base = env.unwrapped
        slow = isinstance(base, TextEnv) and (base.blocking or base.slow_oracle or base.heavy)
        return type(base), SLOW if slow else FULL

    @cached_property
    def starts(self) -> list[EpisodeStart]:
        """Starts of episodes: tasks of all splits and groups in turn, or seeds. Easy tasks come first."""
        if not self.is_text_env:
            return [EpisodeStart(_SEED + number) for number in range(self.sizes.tasks)]
        with self.fresh() as env:
            tasks = _spread(text_env(env), self.sizes.tasks)
        return [EpisodeStart(_SEED + number, task.id, task.group) for number, task in enumerate(tasks)]

    @cached_property
    def oracle_episodes(self) -> list[RecordedEpisode]:
        """An episode of the oracle for each start. Raises NotApplicable if there is no oracle."""
        if reason := self.lacks(Prerequisite.TEXT_ENV):
            raise NotApplicable(reason)
        found = []
        with self.fresh() as env:
            for start in self.within(self.starts, at_least=self.sizes.few, share=2 * _SHARE):
                found.append(play_oracle(env, start))
                if len(found) == min(2, len(self.starts)) and all(episode.plan is None for episode in found):
                    raise NotApplicable("the environment has no oracle")
        return found

    @cached_property
    def idle_episodes(self) -> list[RecordedEpisode]:
        """Episodes of a policy that writes nothing, which only a `TextEnv` must answer."""
        return self.collect(lambda number: repeating("")) if self.is_text_env else []

    @cached_property
    def random_episodes(self) -> list[RecordedEpisode]:
        """Episodes of a random policy."""
        return self.collect(acting_randomly)

    def collect(self, policy: Callable[[int], Any], turns: int | None = None) -> list[RecordedEpisode]:
        """An episode of `policy(number)` for each start, in one new environment."""
        most = turns or self.sizes.turns
        with self.fresh() as env:
            numbered = list(enumerate(self.starts))
            return [play(env, start, policy(number), most) for number, start in self.within(numbered)]

    @cached_property
    def known_episodes(self) -> list[RecordedEpisode]:
        """All shared episodes."""
        return [*self._oracle_or_none, *self.idle_episodes, *self.random_episodes]

    @cached_property
    def scripts(self) -> list[tuple[EpisodeStart, list[str]]]:
        """Starts with actions that reach many states: the plan with junk between, or random actions."""
        found = self._oracle_or_none or self.random_episodes
        with_junk = _with_junk if self.is_text_env else list
        return [(episode.start, with_junk(episode.actions)) for episode in found[: self.sizes.few]]

    def replay(self, script: tuple[EpisodeStart, list[str]], env: Env | None = None) -> RecordedEpisode:
        """Play a script, in a new environment unless one is given."""
        start, actions = script
        if env is not None:
            return play(env, start, replaying(actions))
        with self.fresh() as made:
            return play(made, start, replaying(actions))

    @cached_property
    def replays(self) -> list[RecordedEpisode]:
        """The episodes of the scripts, each played in a new environment."""
        return [self.replay(script) for script in self.scripts]

    @cached_property
    def elsewhere(self) -> OtherProcess:
        """The episodes of the scripts in another process."""
        return play_elsewhere(self.name, self.kwargs, self.scripts, self.time_left)

    @cached_property
    def watched(self) -> Watch:
        """The events of an environment's life: it is made, plays the scripts, and is closed."""
        scripts = self.scripts
        with watching() as watch, self.fresh() as env:
            for script in self.within(scripts):
                self.replay(script, env)
        return watch

    @cached_property
    def events(self) -> Watch:
        """The events of two lives: also of the first environment's, which may load things once per process."""
        return joined(self.start_watch, self.watched)

    @cached_property
    def attacks(self) -> AuditReport:
        """A short audit, without the attackers that other checks replace. Raises NotApplicable without time for it."""
        from agentgym_envs.audit import audit, select_attackers  # which needs subjects

        seconds = _SHARE * self.time_left
        part = ValidationSubject(self._make, self.name, kwargs=self.kwargs, seconds=seconds, clock=self._clock)
        attackers = select_attackers(["no work", "guessing", "forging", "shortcuts"])
        try:
            return audit(part, attackers, tasks=1 if self.sizes is SLOW else 2)
        except (BudgetUsed, UsageError):
            raise NotApplicable(f"{seconds:.0f} s are too short for an audit; run agentgym audit") from None

    @property
    def _oracle_or_none(self) -> list[RecordedEpisode]:
        try:
            return self.oracle_episodes
        except NotApplicable:
            return []


def load_subject(name: str, kwargs: Mapping[str, Any] | None = None, seconds: float = 300.0) -> ValidationSubject:
    """The subject of an id, of "module:id" or of "module:Class". Raises UsageError if there is none."""
    arguments = dict(kwargs or {})
    try:
        env_id = import_id(name)
    except ImportError as error:
        raise UsageError(f"the module of {name!r} cannot be imported: {error}") from None
    if env_id in gym.registry:
        make = lambda: gym.make(env_id, disable_env_checker=True, **arguments)  # noqa: E731
    elif ":" in name:
        found = getattr(importlib.import_module(name.rpartition(":")[0]), env_id, None)
        if not callable(found):
            raise UsageError(f"{name!r} is neither an environment id nor a class; use MODULE:ID or MODULE:CLASS")
        make = lambda: found(**arguments)  # noqa: E731
    else:
        raise UsageError(f"there is no environment {name!r}; use an id, MODULE:ID or MODULE:CLASS")
    return ValidationSubject(make, name, kwargs=arguments, importable=True, seconds=seconds)


def _is_text(space: Any) -> bool:
    if isinstance(space, spaces.Dict):
        return "text" in space.spaces and _is_text(space["text"])
    return isinstance(space, Utf8Text | spaces.Text)


def _spread(env: TextEnv, count: int) -> list[Task]:
    """Tasks of each split and group in turn, sorted by their difficulty."""
    groups = env.groups or env.tasks.groups
    found: dict[str, Task] = {}
    cells = [(split, group) for group in groups for split in SPLITS]
    stride = max(1, len(cells) // max(1, count)) | 1  # odd, so that it visits all splits
    for round_number in range(count):
        for number in range(0, len(cells), stride):
            split, group = cells[(number + round_number) % len(cells)]
            for task in _one(env, split, group, round_number):
                found.setdefault(task.id, task)
        if len(found) >= count:
            break
    return sorted(list(found.values())[:count], key=lambda task: _turns(env, task))


def _one(env: TextEnv, split: str, group: str, seed: int) -> list[Task]:
    try:
        return env.tasks.sample(1, split=split, groups=(group,), seed=seed)
    except UsageError:
        return []  # no such task


def _turns(env: TextEnv, task: Task) -> int:
    found = env.tasks.difficulty(task)
    return 0 if found is None else found.turns


def _with_junk(actions: Sequence[str]) -> list[str]:
    return [JUNK[1], *actions[:-1], JUNK[0], *actions[-1:]]


_HAS: Mapping[Prerequisite, tuple[Callable[[ValidationSubject], bool], str]] = {
    Prerequisite.TEXT_ENV: (
        lambda subject: subject.is_text_env,
        "only a TextEnv has tasks, an oracle, and scores from 0 to 1",
    ),
    Prerequisite.LOCAL: (
        lambda subject: "base_url" not in subject.kwargs,
        "the environment runs in the process of a server",
    ),
    Prerequisite.IMPORTABLE: (
        lambda subject: subject.importable,
        "it was made by a function, and other processes need a name",
    ),
}
