"""The transcripts in docs/agents.md match the requests of agents."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import text_env
from agentgym_envs.rollout import EpisodeSpec, Limits, make_agent, play_agent
from agentgym_envs.trajectory import Message
from tests.rollout.test_agents import Script

DOCS = Path(__file__).parents[2] / "docs" / "agents.md"
GET = ("I need a log.", "get 1 dark oak logs")
PLANKS = ("Now planks.", "craft 4 dark oak planks using 1 dark oak logs")
BUTTON = ("Now the button.", "craft 1 dark oak button using 1 dark oak planks")
LOOK = ("What do I carry?", "inventory")


def react(*steps: tuple[str, str]) -> list[str]:
    return [f"Thought: {thought}\nAction: {command}" for thought, command in steps]


SHOWN = {
    "act": ("act", "full", [GET[1], PLANKS[1], BUTTON[1]]),
    "react": ("react", "full", react(GET, PLANKS, BUTTON)),
    "last:1": ("react", "last:1", react(GET, PLANKS, BUTTON)),
    "summarise:1": (
        "react",
        "summarise:1",
        [*react(GET, PLANKS), "Got a log, made 4 dark oak planks of it. Left: the button.", *react(BUTTON)],
    ),
    "plan": (
        "plan",
        "full",
        [
            "1. Get a log.\n2. Craft the button of it.",
            *react(GET),
            "Plan:\n1. Craft planks.\n2. Craft the button of one.\n" + react(PLANKS)[0],
            *react(BUTTON),
        ],
    ),
    "reflect": (
        "reflect",
        "full",
        [
            *react(LOOK, GET, PLANKS),
            "I spent a turn on the inventory, which is empty at the start. Take the log at once.",
            *react(GET, PLANKS, BUTTON),
        ],
    ),
}


@pytest.mark.parametrize("title", SHOWN)
def test_the_transcripts_of_the_documentation_are_real(title: str) -> None:
    name, context, answers = SHOWN[title]
    agent, script = make_agent(name, context), Script(answers)
    env = gym.make("AgentGym/TextCraft-v0", grammar=agent.grammar)
    first, _ = env.reset(seed=0, options={"task": "textcraft/198"})
    spec = EpisodeSpec("textcraft/198")
    episode = asyncio.run(play_agent(env, agent, script.model, spec, limits=Limits(max_turns=3)))
    assert episode.trajectory.success
    known = {text_env(env).instructions: "[the environment's instructions]", first: "[the first observation]"}
    assert transcript(script.sent, answers, known) in DOCS.read_text("utf-8")


def transcript(asked: Sequence[Sequence[Message]], answers: Sequence[str], known: dict[str, str]) -> str:
    """Requests and answers; for a request that continues the one before, only the new messages."""
    lines: list[str] = []
    said: list[Message] = []
    for messages, answer in zip(asked, answers, strict=True):
        goes_on = list(messages[:-1]) == said
        if said and not goes_on:
            lines.append("--- a new context ---")
        said = [*messages, {"role": "assistant", "content": answer}]
        lines += [_shown(message, known) for message in (said[-2:] if goes_on else said)]
    return "\n".join(["```", *lines, "```"])


def _shown(message: Message, known: dict[str, str]) -> str:
    content = message["content"]
    for text, name in known.items():
        content = content.replace(text, name)
    wrapped = [part for line in content.split("\n") for part in textwrap.wrap(line, 98) or [""]]
    head, *rest = wrapped
    return "\n".join([f"{message['role']:<11}{head}", *(f"{'':<11}{line}".rstrip() for line in rest)])
