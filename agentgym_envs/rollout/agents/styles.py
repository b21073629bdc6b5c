"""Agents: how a model reasons in an episode, independent of the model and of the environment.

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
_LEARNED = "You have tried this task before and did not succeed. What you noted down then:"
_PLAN = re.compile(r"(?:\A|\n)[ \t]*plan[ \t]*:", re.IGNORECASE)
_THOUGHT = re.compile(r"\n[ \t]*thought[ \t]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Agent:
    """A way of reasoning: what the model is asked for, and the context in which it answers.

    name: the name in records.
    grammar: the value for `gym.make(id, grammar=...)`, unless the caller has chosen another.
    thinks: a thought precedes each action.
    plans: the model writes a plan before the first action.
    attempts: the maximum number of attempts at a task; the model writes a lesson after each failed one.
    context: the part of the conversation that is sent.
    """

    name: str
    grammar: str = "react"
    thinks: bool = True
    plans: bool = False
    attempts: int = 1
    context: Context = Context()  # noqa: RUF009 (frozen)

    def instructions(self, grammar: ActionGrammar) -> str:
        """The text that follows the environment's instructions in the system message; may be empty.

        Raises:
            UsageError: the agent thinks, and the grammar cannot hold a thought.
        """
        holds_thoughts = _holds_thoughts(grammar)
        if not self.thinks:
            return _NO_THOUGHT if holds_thoughts else ""
        if not holds_thoughts:
            raise UsageError(
                f"the agent {self.name!r} thinks before it acts, but the grammar {grammar.name!r} cannot hold a "
                f"thought: make the environment with grammar={self.grammar!r}, or choose the agent 'act'"
            )
        think = "" if grammar.name == "react" else _THINK  # its instructions ask for the thought
        return "\n".join(part for part in (think, _REVISE if self.plans else "") if part)


AGENTS = ("act", "react", "plan", "reflect")
"""The names that `make_agent` accepts."""


def make_agent(name: str, context: str = "full", attempts: int = 3) -> Agent:
    """Make an agent by name, with the context policy that `parse_context` reads. Raises UsageError.

    - `act`: an action without a thought.
    - `react`: a thought and an action.
    - `plan`: as react, after a plan; any answer may replace the plan.
    - `reflect`: as react; a failed task is attempted again with all lessons so far, up to `attempts` times in all.
    """
    if attempts < 1:
        raise UsageError(f"an agent needs at least one attempt, got attempts={attempts}")
    policy = parse_context(context)
    if name == "act":
        return Agent(name, "bare", thinks=False, context=policy)
    if name == "react":
        return Agent(name, context=policy)
    if name == "plan":
        return Agent(name, plans=True, context=policy)
    if name == "reflect":
        return Agent(name, attempts=attempts, context=policy)
    raise UsageError(f"there is no agent {name!r}; choose one of {', '.join(AGENTS)}")


def system_message(instructions: str, own: str, lessons: Sequence[str]) -> str:
    """Join the environment's instructions, the agent's own, and the lessons of earlier attempts."""
    learned = "\n".join([_LEARNED, *(f"{number}. {lesson}" for number, lesson in enumerate(lessons, 1))])
    return "\n\n".join(part for part in (instructions, own, learned if lessons else "") if part)


def revised_plan(answer: str, grammar: ActionGrammar) -> str:
    """The plan at the beginning of an answer; "" without a plan or without an action."""
    try:
        thought = grammar.parse(answer).thought
    except InvalidAction:
        return ""
    if not (mark := _PLAN.search(thought)):
        return ""
    return _THOUGHT.split(thought[mark.end() :], 1)[0].strip()


def _holds_thoughts(grammar: ActionGrammar) -> bool:
    try:
        return bool(grammar.parse(grammar.format("look", "I look around.")).thought)
    except InvalidAction:  # a scenario's own grammar; all of those so far hold thoughts
        return True
