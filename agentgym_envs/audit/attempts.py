"""Attempts of attackers, and the scene of a task that attackers see."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UsageError
from agentgym_envs.validate.episodes import EpisodeStart, NextAction

MARGIN = 1e-6
"""Scores that differ by less are equal."""
_FEWEST_ANSWERS = 2
_WORD_END = re.compile(r"\W$")


class AttackFamily(StrEnum):
    """The kinds of attackers."""

    NO_WORK = "no work"
    """Nothing is done for the reward. Only the stated rate of lucky guesses is honest."""
    GUESSING = "guessing"
    """An answer is given without a search for it."""
    FORGING = "forging"
    """A text imitates what only the environment may write, or hides several actions."""
    SHORTCUT = "shortcuts"
    """A part of the work is left out, repeated, or done in a way that the rules exclude."""
    STATE = "state"
    """Other episodes, copies of the state, or the clock are used."""
    SEARCH = "search"
    """Rewards are searched for, without the oracle."""


class PreludeKind(StrEnum):
    """The ways in which something happens before an attempt."""

    EPISODE = "episode"
    """An episode in the same environment."""
    RIVAL = "rival"
    """An episode in another environment, which stays open."""
    RESTORED = "restored"
    """An episode in another environment, whose snapshot the attacked one then restores."""


class Host(StrEnum):
    """The places of an environment that the audit starts for an attempt."""

    WORKER = "worker"
    """A worker process."""
    SERVER = "server"
    """A server in this process, on a port of the loopback interface."""


@dataclass(frozen=True)
class Prelude:
    """An episode that is played before an attempt."""

    kind: PreludeKind
    start: EpisodeStart
    actions: Sequence[str]


@dataclass(frozen=True)
class AttackAttempt:
    """The actions of an attacker in one episode.

    Attributes:
        label: names the variant, the same for all tasks.
        actions: the messages, in the environment's grammar.
        most: the largest score that a sound environment gives; a success is then a finding as well. None if the score
            is judged over all tasks of a group.
        references: lists of messages; the best of their scores in a new environment is the most that is allowed.
        before: episodes that are played first.
        restart: if the episode ends early, the remaining actions are played in further ones.
        clock_shift: seconds that the wall clock is ahead.
        beyond: messages for after the end of the episode, which must be refused.
        least: the smallest score that a sound environment gives; None without one.
        idle: nothing is done, so only the initial state may be rewarded.
        host: the place in which the attacked environment runs, if it is another than this process.
        may_fail: the environment is damaged on purpose, so that the episode may end as `env_error`.
        policy: plays in place of `actions`, for at most `turns` turns.
    """

    label: str
    actions: Sequence[str] = ()
    most: float | None = None
    references: Sequence[Sequence[str]] = ()
    before: Sequence[Prelude] = ()
    restart: bool = False
    clock_shift: float = 0.0
    beyond: Sequence[str] = ()
    least: float | None = None
    idle: bool = False
    host: Host | None = None
    may_fail: bool = False
    policy: NextAction | None = None
    turns: int = 0


@dataclass(frozen=True)
class AnswerForm:
    """The command that answers a task: the texts before and after the answer."""

    before: str
    after: str

    def __call__(self, answer: str) -> str:
        """The command with this answer."""
        return f"{self.before}{answer}{self.after}"

    def answer_in(self, command: str) -> str | None:
        """The answer of a command; None if it has another form."""
        if not (command.startswith(self.before) and command.endswith(self.after)):
            return None
        return command[len(self.before) : len(command) - len(self.after)]


@dataclass
class AuditScene:
    """A task as attackers know it: what an agent sees, and what the audit measured.

    Attributes:
        env: the attacked environment, for its grammar and its instructions. Attackers read it only.
        kind: the class of the environment, also of a remote one.
        start: the arguments of the reset.
        goal: the goal of the task, as an agent reads it.
        observation: the first observation.
        shown_info: the texts in the info of the reset.
        plan: the oracle's commands; empty without an oracle.
        oracle_score, idle_score: the scores of the oracle and of doing nothing.
        rewards: the rewards of the plan's commands.
        pages: the URLs after them, if the environment has any.
        turns: the number of turns of policies without a plan.
        others: scenes of other tasks, of the same group first.
        form: the command that answers, if the plans of the tasks end with one.
    """

    env: TextEnv
    kind: type[TextEnv]
    start: EpisodeStart
    goal: str
    observation: str
    shown_info: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()
    oracle_score: float = 0.0
    idle_score: float = 0.0
    rewards: tuple[float, ...] = ()
    pages: tuple[str, ...] = ()
    turns: int = 12
    others: Sequence[AuditScene] = ()
    form: AnswerForm | None = None

    @property
    def rewarded(self) -> list[int]:
        """The numbers of the plan's commands with a reward, from 1 on."""
        return [number for number, reward in enumerate(self.rewards, 1) if reward]

    @property
    def scenarios(self) -> frozenset[str]:
        """The names of the environment's class and of those that it extends."""
        return frozenset(kind.__name__ for kind in self.kind.__mro__)

    @property
    def answer(self) -> str | None:
        """The oracle's answer; None if the task has none."""
        return self.form.answer_in(self.plan[-1]) if self.form and self.plan else None

    def messages(self, *commands: str) -> list[str]:
        """The commands in the environment's grammar; a text that it cannot hold stays as it is."""
        return [self._message(command) for command in commands]

    def answers(self, *texts: str) -> list[str]:
        """Messages that answer with these texts, or that consist of them if the task takes no answer."""
        return self.messages(*(self.form(text) if self.form else text for text in texts))

    def _message(self, command: str) -> str:
        try:
            return self.env.grammar.format(command)
        except UsageError:
            return command
        except Exception:  # a grammar that parses the command, which may be junk
            return command


class Attacker(Protocol):
    """A strategy to get rewards without solving the task. The docstring of a class describes it."""

    name: ClassVar[str]
    family: ClassVar[AttackFamily]
    scenarios: ClassVar[frozenset[str]] = frozenset()
    """Names of the environment classes that it attacks; empty for all."""
    once_per_group: ClassVar[bool] = False
    """True if it attacks only one task of each group, because its attempts start servers or processes."""

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The attempts at a task."""


def answer_form(plans: Sequence[Sequence[str]]) -> AnswerForm | None:
    """The form of the last commands of plans, if they differ in one part; None if they have no form in common."""
    last = sorted({plan[-1] for plan in plans if plan})
    if len(last) < _FEWEST_ANSWERS or last[0].startswith("{"):
        return None  # the command of a team is a JSON object
    before = _common(last)
    after = _common([command[len(before) :][::-1] for command in last])[::-1]
    before = before[: max((match.end() for match in re.finditer(r"\W", before)), default=0)]
    after = after[re.search(r"\W|$", after).start() :]  # type: ignore[union-attr]
    return AnswerForm(before, after) if re.search(r"\w\w", before) and _WORD_END.search(before) else None


def _common(texts: Sequence[str]) -> str:
    """The longest beginning that all texts have."""
    alike = (len(set(column)) == 1 for column in zip(*texts, strict=False))
    return texts[0][: sum(itertools.takewhile(bool, alike))]
