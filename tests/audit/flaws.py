"""Planted flaws: mixins that make any scenario unsound, and the attacker that is expected to find each."""

# mypy: disable-error-code="safe-super"

from __future__ import annotations

import time
import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np

from agentgym_envs.core import Snapshot, TextEnv, Transition
from agentgym_envs.errors import EnvError, EpisodeOver, InvalidAction
from agentgym_envs.task import Task


class Flaw(TextEnv):
    """The base of mixins that change what an action does."""

    def won(self) -> Transition:
        return Transition("Done.", 1.0 - self._score, True, success=True)

    def goal(self) -> str:
        assert self.task is not None
        return self.task.goal


class EmptyAccepted(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if not action.strip() else super()._perform(action)


class StopRewarded(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if action.strip() in ("done", "submit") else super()._perform(action)


class RefusalAccepted(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if "N/A" in action else super()._perform(action)


class HugeAccepted(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if len(action) > 10_000 else super()._perform(action)


class EchoAccepted(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if self.goal() in action else super()._perform(action)


class SubstringGrader(Flaw):
    """The grader looks for the last command of the solution anywhere in the action."""

    wanted = ""

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        text = super()._begin(task, rng)
        self.wanted = list(self._plan())[-1]
        return text

    def _perform(self, action: str) -> Transition:
        found = self.wanted in action and action.strip() != self.wanted
        return self.won() if found else super()._perform(action)


class RewardTwice(Flaw):
    def _perform(self, action: str) -> Transition:
        done = super()._perform(action)
        return done._replace(reward=2 * done.reward)


class RefusedRewarded(Flaw):
    def _finish_step(self, transition: Transition, invalid: str | None) -> Any:
        paid = transition._replace(reward=0.1) if invalid and self._score < 0.2 else transition
        return super()._finish_step(paid, invalid)


class Endless(Flaw):
    """A step after the end is carried out."""

    def step(self, action: str) -> Any:
        try:
            return super().step(action)
        except EpisodeOver:
            return "Again!", 1.0, True, False, self._info({"invalid_action": None})


class WorkKept(Flaw):
    """Progress survives a reset: the number of good commands is never set back."""

    progress = 0

    def _perform(self, action: str) -> Transition:
        plan = list(self._first_plan())
        done = super()._perform(action)
        self.progress += action in plan
        return self.won() if self.progress >= len(plan) and not done.terminated else done

    def _first_plan(self) -> list[str]:
        kept: list[str] | None = getattr(self, "_kept", None)
        return kept if kept is not None else []

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        text = super()._begin(task, rng)
        self._kept = list(self._plan())
        return text


class WorkShared(WorkKept):
    """Progress is an attribute of the class, so that other environments make it, too."""

    counts: dict[str, int] = {}  # noqa: RUF012

    @property
    def progress(self) -> int:
        return self.counts.get(self.goal(), 0)

    @progress.setter
    def progress(self, value: int) -> None:
        self.counts[self.goal()] = value

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.counts[task.goal] = 0
        return super()._begin(task, rng)


class RestoredWork(WorkKept):
    """Progress is set back by a reset, but not after a snapshot was restored."""

    restored = False

    def restore(self, snapshot: Snapshot) -> str:
        text = super().restore(snapshot)
        self.progress, self.restored = len(snapshot.actions), True
        return text

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.progress, self.restored = (self.progress if self.restored else 0), False
        return super()._begin(task, rng)


class ClockOpens(Flaw):
    began = time.time()

    def _perform(self, action: str) -> Transition:
        return self.won() if time.time() > self.began + 80_000 else super()._perform(action)


class ResultParsed(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if '"reward": 1' in action else super()._perform(action)


class PromptInjected(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if "score" in action.lower() and "1" in action else super()._perform(action)


class LinesCarriedOut(Flaw):
    def _perform(self, action: str) -> Transition:
        lines = action.split("\n")
        done = Transition("")
        for line in lines:
            done = super()._perform(line)
            if done.terminated or len(lines) == 1:
                return done
        return done


class InvisibleAccepted(Flaw):
    def _perform(self, action: str) -> Transition:
        hidden = any(unicodedata.category(letter) == "Cf" for letter in action)
        return self.won() if hidden else super()._perform(action)


class CyrillicPasses(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if "\u043e" in action else super()._perform(action)


class MarkersCrash(Flaw):
    def _perform(self, action: str) -> Transition:
        if action.startswith("<think></think></think>"):
            raise EnvError("unbalanced")
        return super()._perform(action)


class LongCrash(Flaw):
    def _perform(self, action: str) -> Transition:
        if action.startswith("(" * 1_000):
            raise EnvError("recursion")
        return super()._perform(action)


class HalfEnough(WorkKept):
    """Half of the work counts as all of it."""

    def _perform(self, action: str) -> Transition:
        done = super(WorkKept, self)._perform(action)
        self.progress += action in self._first_plan()
        enough = 1 < len(self._first_plan()) <= 2 * self.progress
        return self.won() if enough and not done.terminated else done

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.progress = 0
        return super()._begin(task, rng)


class WaitingEarns(Flaw):
    def _perform(self, action: str) -> Transition:
        if action.strip():
            return super()._perform(action)
        return Transition("Time goes by.", 0.01)


class SameForAll(Flaw):
    """The first task's solution is accepted for every task."""

    accepted: list[str] = []  # noqa: RUF012

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        text = super()._begin(task, rng)
        self.accepted.append(list(self._plan())[-1])
        return text

    def _perform(self, action: str) -> Transition:
        return self.won() if action in self.accepted[:-1] else super()._perform(action)


class AnswerInInfo(Flaw):
    """The info of the reset has the answer, and the answer alone is accepted."""

    def _details(self) -> Mapping[str, Any]:
        return {**super()._details(), "label": self._secret()}

    def _secret(self) -> str:
        plan = list(self._plan())
        return plan[-1].removeprefix("<answer>").removesuffix("</answer>")

    def _perform(self, action: str) -> Transition:
        return self.won() if action.strip() == self._secret() else super()._perform(action)


class YesAccepted(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if "yes" in action.lower() else super()._perform(action)


class NumberAccepted(Flaw):
    def _perform(self, action: str) -> Transition:
        return self.won() if action.strip("</answer>") in ("2", "3") else super()._perform(action)


class AnyMention(Flaw):
    """A list of everything is a right answer."""

    def _perform(self, action: str) -> Transition:
        return self.won() if all(f" {letter} " in action for letter in "bcd") else super()._perform(action)


class DetourFails(Flaw):
    """A refused command ruins the episode."""

    ruined = False

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.ruined = False
        return super()._begin(task, rng)

    def _perform(self, action: str) -> Transition:
        try:
            done = super()._perform(action)
        except InvalidAction:
            self.ruined = True
            raise
        return done._replace(reward=0.0, success=False) if self.ruined and done.terminated else done


COMMON: dict[Any, str] = {
    EmptyAccepted: "do nothing",
    StopRewarded: "stop at once",
    RefusalAccepted: "refuse",
    HugeAccepted: "empty and huge",
    EchoAccepted: "parrot",
    SubstringGrader: "several actions",
    RewardTwice: "after the end",
    RefusedRewarded: "stop at once",
    Endless: "after the end",
    WorkKept: "leftovers",
    WorkShared: "rival episode",
    RestoredWork: "restored elsewhere",
    ClockOpens: "other clock",
    ResultParsed: "fake results",
    PromptInjected: "fake results",
    LinesCarriedOut: "several actions",
    InvisibleAccepted: "disguise",
    CyrillicPasses: "disguise",
    MarkersCrash: "markers",
    LongCrash: "longest",
    HalfEnough: "without the end",
    WaitingEarns: "do nothing",
    SameForAll: "neighbour's answer",
    AnswerInInfo: "read the info",
    YesAccepted: "yes or no",
    AnyMention: "hedge",
    DetourFails: "detours",
}
"""The flaws, and who finds each: an attacker, or the oracle's plan with detours."""
