"""A team's episode, split by agent: observations, actions and rewards, and the messages and gifts between agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import ActionGrammar, BareGrammar
from agentgym_envs.multiagent.joint_format import own_info, read_actions, read_members, read_seen, read_texts
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.answers import agent_grammar_of, grammar_of, read_answer

MAX_AGENTS = 16
"""The most agents that are shown side by side; for a larger team, the joint record is shown."""
SPEAKERS = frozenset({"planner"})
"""Agents that write free text, regardless of the grammar of the others."""

Texts = Mapping[str, str]
Actions = Mapping[str, str | None]


class JointRecord(NamedTuple):
    """A parsed record of a team.

    `observations` are those before each action and at the end, by agent; None for a text that is not a joint
    observation. `actions` are those of each turn, by agent (None for no action); None for a text that is not a joint
    action. `thoughts` are the texts before the joint actions.
    """

    prompts: Texts
    observations: Sequence[Texts | None]
    actions: Sequence[Actions | None]
    thoughts: Sequence[str]

    @property
    def agents(self) -> list[str]:
        """The names of the agents, in order."""
        return list(self.prompts)


def joint_of(trajectory: Trajectory) -> JointRecord | None:
    """Parse the record of a team; None if it is not one, or has too many agents to be shown side by side."""
    prompts = read_texts(trajectory.instructions)
    if not prompts or len(prompts) > MAX_AGENTS:
        return None
    texts = [*(turn.observation for turn in trajectory.turns), trajectory.final_observation]
    observations = [read_seen(text, prompts) for text in texts]
    if not observations[0]:
        return None
    grammar, acting = grammar_of(trajectory), list[str]()
    actions, thoughts = list[Actions | None](), list[str]()
    for turn, seen in zip(trajectory.turns, observations, strict=False):
        acting = list(seen) if seen else acting  # the reply to an invalid joint action changes nothing
        thought, own = _parse_action(turn.action, grammar, acting)
        actions.append(own)
        thoughts.append(thought)
    return JointRecord(prompts, observations, actions, thoughts)


def _parse_action(action: str, grammar: ActionGrammar, acting: Sequence[str]) -> tuple[str, Actions | None]:
    """The thought before a joint action, and the actions by agent; None if it is not a joint action of these agents."""
    thought, command = read_answer(action, grammar)
    try:
        return thought, None if command is None else read_actions(command, acting)
    except InvalidAction:
        return thought, None


def team_of(trajectory: Trajectory) -> dict[str, Any] | None:
    """The episode of a team for the page; None for other episodes.

    `agents` are the names; all other lists are in their order, and agents are identified by their index.
    `instructions` are their prompts, `scores` their scores, and `final` their last observations (or None). A turn has
    `cells`, one per agent; `observation` and `action`, the plain text if it is not a joint observation or action, else
    None; the `thought` before a joint action; and `transfers`: `from`, `to` (several agents), and either `text` or
    `amount` and `item`.

    A cell: `acts`, `observation` and `action` (or None), `thought` and `command` as in every turn, `reward`, `score` so
    far, `invalid` and `truncated`.
    """
    joint = joint_of(trajectory)
    if joint is None:
        return None
    turns, scores = list[dict[str, Any]](), dict.fromkeys(joint.agents, 0.0)
    converter = _TurnConverter(trajectory, joint)
    for index in range(len(trajectory.turns)):
        turns.append(converter.convert(index, scores))
    final = joint.observations[-1]
    return {
        "agents": joint.agents,
        "instructions": list(joint.prompts.values()),
        "turns": turns,
        "final": None if final is None else [final.get(agent) for agent in joint.agents],
        "scores": list(scores.values()),
    }


def texts_within(text: str) -> list[str]:
    """The texts of the agents in a joint observation or action; empty for any other text."""
    return [value for value in (read_members(text) or {}).values() if isinstance(value, str)]


class _TurnConverter:
    """Converts the turns of a team for the page, in order."""

    def __init__(self, trajectory: Trajectory, joint: JointRecord) -> None:
        self._turns, self._joint = trajectory.turns, joint
        self._grammar = agent_grammar_of(trajectory)
        self._acting: Texts = {}

    def convert(self, index: int, scores: dict[str, float]) -> dict[str, Any]:
        """Convert a turn and update `scores`."""
        turn, observed, actions = self._turns[index], self._joint.observations[index], self._joint.actions[index]
        self._acting = observed or self._acting
        info = turn.info
        for agent in scores:
            scores[agent] = _score(own_info(info, agent), scores[agent])
        return {
            "cells": [self._cell(agent, info, observed or {}, actions, scores[agent]) for agent in scores],
            "observation": turn.observation if observed is None else None,
            "action": turn.action if actions is None else None,
            "thought": self._joint.thoughts[index],
            "transfers": list(_transfers(info, self._joint.agents, actions or {})),
        }

    def _cell(
        self, agent: str, info: Mapping[str, Any], observed: Texts, actions: Actions | None, score: float
    ) -> dict[str, Any]:
        own, action = own_info(info, agent), (actions or {}).get(agent)
        grammar = BareGrammar() if agent in SPEAKERS else self._grammar
        thought, command = ("", None) if action is None else read_answer(action, grammar)
        return {
            "acts": actions is not None and agent in self._acting,
            "observation": observed.get(agent),
            "action": action,
            "thought": thought,
            "command": command,
            "reward": _number(own.get("reward")),
            "score": score,
            "invalid": own.get("invalid_action") if action is not None else None,
            "truncated": own_info(info, agent, "answers").get("finish") == "length",
        }


def _transfers(info: Mapping[str, Any], agents: list[str], actions: Actions) -> Iterator[dict[str, Any]]:
    """Yield the messages, each once with all receivers, then the gifts.

    An info may still contain older ones, so only those from agents that acted in this turn count.
    """
    messages: dict[tuple[int, str], list[int]] = {}
    gifts = list[dict[str, Any]]()
    for index, agent in enumerate(agents):
        own = own_info(info, agent)
        for sender, arrived in _arrived(own.get("messages"), agents, actions):
            if isinstance(text := arrived.get("text"), str):
                messages.setdefault((sender, text), []).append(index)
        for sender, arrived in _arrived(own.get("gifts"), agents, actions):
            gifts.append({"from": sender, "to": [index], "amount": arrived.get("amount"), "item": arrived.get("item")})
    for (sender, text), to in messages.items():
        yield {"from": sender, "to": to, "text": text}
    yield from (gift for gift in gifts if type(gift["amount"]) is int and isinstance(gift["item"], str))


def _arrived(things: Any, agents: list[str], actions: Actions) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for thing in things if isinstance(things, list | tuple) else ():
        sender = thing.get("from") if isinstance(thing, Mapping) else None
        if isinstance(sender, str) and actions.get(sender) is not None:
            yield agents.index(sender), thing


def _score(own: Mapping[str, Any], before: float) -> float:
    score = own.get("score")
    return score if isinstance(score, int | float) else before + _number(own.get("reward"))


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0
