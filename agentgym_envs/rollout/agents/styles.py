"""Agents: how a model reasons in an episode, apart from which model it is and which environment.

Sources: ReAct, arXiv 2210.03629; Plan-and-Solve, arXiv 2305.04091; Reflexion, arXiv 2303.11366.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.rollout.agents.context import Context, parse_context

ASK_PLAN = (
    "Before you act, write a short numbered plan for this task: the plan only, without a thought or an action. "
    "It stays in view."
)
AFTER_PLAN = "Now carry it out, one action at a time."
ASK_LESSON = (
    "You will try this task once more, from its beginning. In at most three sentences, write down what went wrong and "
    "what to do differently: this text only, without an action."
)
_NO_THOUGHT = "Do not write down any reasoning: write the action alone, in that form."
_THINK = "Before each action, think: begin your answer with a thought."
_REVISE = (
    "You will be asked for a plan first. If what you see calls for another one, begin your answer with a section "
    "headed 'Plan:' that holds the whole new plan; your thought and the action follow it."
)
_LEARNT = "You have tried this task before and did not succeed. What you noted down then:"
_PLAN = re.compile(r"(?:\A|\n)[ \t]*plan[ \t]*:", re.IGNORECASE)
_THOUGHT = re.compile(r"\n[ \t]*thought[ \t]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Agent:
    """How a model reasons.

    `grammar` is what `gym.make(id, grammar=...)` should get, unless the caller has chosen another. `tries` is how often
    a task is tried at most, with a lesson after each try that failed.
    """

    name: str
    grammar: str = "react"
    thinks: bool = True
    plans: bool = False
    tries: int = 1
    context: Context = Context()  # noqa: RUF009 (frozen)

    def instructions(self, grammar: ActionGrammar) -> str:
        """What the system message says behind the environment's own instructions; may be empty.

        Raises:
            UsageError: the agent thinks, and the grammar has no place for a thought.
        """
        room = _carries_thoughts(grammar)
        if not self.thinks:
            return _NO_THOUGHT if room else ""
        if not room:
            raise UsageError(
                f"the agent {self.name!r} thinks before it acts, and the grammar {grammar.name!r} has no place for a "
                f"thought: make the environment with grammar={self.grammar!r}, or choose the agent 'act'"
            )
        think = "" if grammar.name == "react" else _THINK  # whose own instructions ask for the thought
        return "\n".join(part for part in (think, _REVISE if self.plans else "") if part)


AGENTS = ("act", "react", "plan", "reflect")
"""The names that `make_agent` knows."""


def make_agent(name: str, context: str = "full", tries: int = 3) -> Agent:
    """An agent by name; `context` as `parse_context` reads it. Raises UsageError.

    - `act`: an action and no thought.
    - `react`: a thought and an action.
    - `plan`: as react, after a plan, which any answer may replace.
    - `reflect`: as react; a task that it failed is tried again, with the lessons from all tries: `tries` times in all.
    """
    if tries < 1:
        raise UsageError(f"an agent tries a task at least once, got tries={tries}")
    policy = parse_context(context)
    if name == "act":
        return Agent(name, "bare", thinks=False, context=policy)
    if name == "react":
        return Agent(name, context=policy)
    if name == "plan":
        return Agent(name, plans=True, context=policy)
    if name == "reflect":
        return Agent(name, tries=tries, context=policy)
    raise UsageError(f"there is no agent {name!r}; choose one of {', '.join(AGENTS)}")


def system_message(instructions: str, own: str, lessons: Sequence[str]) -> str:
    """The environment's instructions, the agent's own, and what it learnt in earlier tries."""
    learnt = "\n".join([_LEARNT, *(f"{number}. {lesson}" for number, lesson in enumerate(lessons, 1))])
    return "\n\n".join(part for part in (instructions, own, learnt if lessons else "") if part)


def revised_plan(answer: str, grammar: ActionGrammar) -> str:
    """The plan that an answer begins with; "" if there is none, or no action."""
    try:
        thought = grammar.parse(answer).thought
    except InvalidAction:
        return ""
    if not (mark := _PLAN.search(thought)):
        return ""
    return _THOUGHT.split(thought[mark.end() :], 1)[0].strip()


def _carries_thoughts(grammar: ActionGrammar) -> bool:
    try:
        return bool(grammar.parse(grammar.format("look", "I look around.")).thought)
    except InvalidAction:  # a form of commands of its own, which has yet to be without a thought
        return True
