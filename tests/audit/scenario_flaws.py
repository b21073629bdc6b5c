"""Planted flaws of one scenario, for the attackers that know its rules."""

# mypy: disable-error-code="safe-super"

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from agentgym_envs.core import Transition
from agentgym_envs.task import Task
from tests.audit.flaws import Flaw


class OrderIgnored(Flaw):
    """BabyAI: the parts of a mission count in any order."""

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        from minigrid.envs.babyai.core.verifier import AndInstr

        text = super()._begin(task, rng)
        level = self.world.level  # type: ignore[attr-defined]
        level.instrs = AndInstr(level.instrs.instr_a, level.instrs.instr_b)
        level.instrs.reset_verifier(level)
        return text


class QuotedWordsRetrieved(Flaw):
    """Search: an accepted answer in any reply counts as retrieved, also one that the agent wrote itself."""

    def _record(self, action: Any, transition: Transition) -> Transition:
        from agentgym_envs.search.scoring import subem

        self._retrieved = getattr(self, "_retrieved", False) or subem(transition.observation, self._golds)  # type: ignore[attr-defined]
        return super()._record(action, transition)  # type: ignore[misc]


class AnyToolAnswers(Flaw):
    """Search: the words of every tool are taken as an answer."""

    def _take_action(self, action: Any) -> Transition:
        right = any(gold == action.text for gold in self._golds)  # type: ignore[attr-defined]
        return self.won() if right else super()._take_action(action)  # type: ignore[misc]


class ScoringAgain(Flaw):
    """SciWorld: a command that scored is paid again."""

    paid: Mapping[str, float] = {}

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.paid = {}
        return super()._begin(task, rng)

    def _act(self, command: str) -> Transition:
        done = super()._act(command)
        again = self.paid.get(command, 0.0)
        self.paid = {**self.paid, command: done.reward}
        return done._replace(reward=min(done.reward + again, 1.0 - self._score))


class AddressesSend(Flaw):
    """WebArena: visiting an address sends its query as a form does."""

    async def _carry_out(self, action: Any) -> Transition:
        from agentgym_envs.webarena.actions import Goto

        if isinstance(action, Goto) and "?" in action.url and action.url.startswith("http:"):
            place, _, body = action.url.partition("?")
            form = {"method": "POST", "headers": {"Content-Type": "application/x-www-form-urlencoded"}, "body": body}
            await self.session.evaluate(f"fetch({json.dumps(place)}, {json.dumps(form)}).then(reply => reply.status)")  # type: ignore[attr-defined]
        return await super()._carry_out(action)  # type: ignore[misc]


class AddressContains(Flaw):
    """WebArena: an address that contains that of the wanted page is enough."""

    async def _judge(self, session: Any, task: Task, answer: str) -> Any:
        class Elsewhere:
            def __getattr__(self, name: str) -> Any:
                return getattr(session, name)

            url = unquote(session.url).replace("#", "=").rpartition("=")[2]

        return await super()._judge(Elsewhere(), task, answer)  # type: ignore[misc]


class OneTableJudged(Flaw):
    """WebArena: the grader looks only at the tables that the task names."""

    async def _judge(self, session: Any, task: Task, answer: str) -> Any:
        from agentgym_envs.webarena.evaluators.base import Verdict, score_all
        from agentgym_envs.webarena.evaluators.state import OnlyChanged
        from agentgym_envs.webarena.tasks.scoring import evaluators_for, finished

        episode = session.state["episode"]
        tables = {name for (name,) in episode.database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        lenient = [
            replace(one, free=(*one.free, *tables - {change.table for change in one.expected}))
            if isinstance(one, OnlyChanged)
            else one
            for one in evaluators_for(task)
        ]
        ended = finished(task, episode, answer=answer, url=session.url, read=session.read, requests=[])
        verdict = await score_all(lenient, ended)
        return Verdict(verdict.score)


class BestMoment(Flaw):
    """WebArena: the sites are judged at the best moment of the episode, and not at its end."""

    async def _after_action(self, session: Any, task: Task) -> Any:
        found = await super()._judge(session, task, "")  # type: ignore[misc]
        session.state["best"] = max(session.state.get("best", 0.0), found.score)
        return None

    async def _judge(self, session: Any, task: Task, answer: str) -> Any:
        from agentgym_envs.webarena.evaluators.base import Verdict

        found = await super()._judge(session, task, answer)  # type: ignore[misc]
        return Verdict(max(found.score, session.state.get("best", 0.0)))


class SpecificFlaw(NamedTuple):
    """A flaw of a scenario, who finds it, and the tasks where it is looked for."""

    scenario: str
    flaw: Any
    attacker: str
    options: Mapping[str, Any] = {}
    tasks: tuple[str, ...] = ()
    """The ids of the tasks; all without any."""


_PAID = {"groups": ["2hop-city", "sum"], "retrieval_score": 0.1, "format_reward": 0.2}
SPECIFIC = (
    SpecificFlaw("BabyAI", OrderIgnored, "order violated", {"levels": "OpenRedBlueDoors,OpenDoorsOrderN2"}),
    SpecificFlaw("SearchPages", QuotedWordsRetrieved, "answer in another tool", _PAID),
    SpecificFlaw("SearchPages", AnyToolAnswers, "answer in another tool", _PAID),
    SpecificFlaw(
        "SciWorld",
        ScoringAgain,
        "repeated scoring",
        {},
        (
            "sciworld/find-plant/162",
            "sciworld/measure-melting-point-unknown-substance/132",  # a later measurement rightly scores again
        ),
    ),
    SpecificFlaw("WebArena", AddressesSend, "post without form", {}, ("webarena/forum-subscribe/1/1",)),
    SpecificFlaw(
        "WebArena",
        AddressContains,
        "another page",
        {},
        ("webarena/forum-open-sorted/1/1", "webarena/forum-search-comments/4/3"),  # the latter leaves the order open
    ),
    SpecificFlaw("WebArena", OneTableJudged, "changes more", {}, ("webarena/forum-open-sorted/1/1",)),
    SpecificFlaw("WebArena", BestMoment, "do and undo", {}, ("webarena/forum-subscribe/1/1",)),
)
