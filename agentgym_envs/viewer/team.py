"""A team's episode, taken apart: what each agent saw, wrote and got, and what went from one to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import ActionGrammar, BareGrammar
from agentgym_envs.multiagent.joint_format import own_info, read_actions, read_members, read_seen, read_texts
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.answers import agent_grammar_of, grammar_of, read_answer

MOST_AGENTS = 16
"""How many agents are shown side by side; a larger team is shown as its record stands."""
SPEAKERS = frozenset({"planner"})
"""Agents whose text is free, whatever the grammar of the others."""

Texts = Mapping[str, str]
Written = Mapping[str, str | None]


class Joint(NamedTuple):
    """A record of a team, read.

    `told` is what was seen before each action and at the end, by agent, None for a text that is no joint observation.
    `written` is what was written in each turn, by agent (None: nothing), None for an action that is no joint one.
    `thoughts` stand around the joint actions.
    """

    prompts: Texts
    told: Sequence[Texts | None]
    written: Sequence[Written | None]
    thoughts: Sequence[str]

    @property
    def agents(self) -> list[str]:
        """Their names, in order."""
        return list(self.prompts)


def joint_of(trajectory: Trajectory) -> Joint | None:
    """The record as that of a team, None if it is not one, or of too many to be shown side by side."""
    prompts = read_texts(trajectory.instructions)
    if not prompts or len(prompts) > MOST_AGENTS:
        return None
    said = [*(turn.observation for turn in trajectory.turns), trajectory.final_observation]
    told = [read_seen(text, prompts) for text in said]
    if not told[0]:
        return None
    grammar, acting = grammar_of(trajectory), list[str]()
    written, thoughts = list[Written | None](), list[str]()
    for turn, seen in zip(trajectory.turns, told, strict=False):
        acting = list(seen) if seen else acting  # what answers no joint action changes nothing
        thought, actions = _answer(turn.action, grammar, acting)
        written.append(actions)
        thoughts.append(thought)
    return Joint(prompts, told, written, thoughts)


def _answer(action: str, grammar: ActionGrammar, acting: Sequence[str]) -> tuple[str, Written | None]:
    """The thought before a joint action, and what each wrote; None for what is no joint action of these agents."""
    thought, command = read_answer(action, grammar)
    try:
        return thought, None if command is None else read_actions(command, acting)
    except InvalidAction:
        return thought, None


def team_of(trajectory: Trajectory) -> dict[str, Any] | None:
    """What the page shows of a team, None if the episode is not one of a team.

    `agents` are the names; all lists that follow are in their order, and who did something is told by its place there.
    `instructions` are their prompts, `scores` their own, and `final` what they saw last (None where nothing). A turn
    has `cells`, one an agent; `told` and `action`, the plain text where that is no joint observation or action, else
    None; the `thought` around a joint action; and `hops`: `from`, `to` (several), and a `text` or `amount` and `item`.

    A cell: `acts`, `observation` and `action` (None for nothing), `thought` and `command` as in every turn, `reward`,
    `score` so far, `invalid` and `cut`.
    """
    joint = joint_of(trajectory)
    if joint is None:
        return None
    turns, scores = list[dict[str, Any]](), dict.fromkeys(joint.agents, 0.0)
    teller = _Teller(trajectory, joint)
    for place in range(len(trajectory.turns)):
        turns.append(teller.turn(place, scores))
    final = joint.told[-1]
    return {
        "agents": joint.agents,
        "instructions": list(joint.prompts.values()),
        "turns": turns,
        "final": None if final is None else [final.get(agent) for agent in joint.agents],
        "scores": list(scores.values()),
    }


def texts_within(text: str) -> list[str]:
    """The texts of the agents in a joint observation or action; none for any other text."""
    return [value for value in (read_members(text) or {}).values() if isinstance(value, str)]


class _Teller:
    """Tells the turns of a team one after another."""

    def __init__(self, trajectory: Trajectory, joint: Joint) -> None:
        self._turns, self._joint = trajectory.turns, joint
        self._grammar = agent_grammar_of(trajectory)
        self._acting: Texts = {}

    def turn(self, place: int, scores: dict[str, float]) -> dict[str, Any]:
        """The turn of that place; `scores` are brought up to date."""
        turn, told, written = self._turns[place], self._joint.told[place], self._joint.written[place]
        self._acting = told or self._acting
        info = turn.info
        for agent in scores:
            scores[agent] = _score(own_info(info, agent), scores[agent])
        return {
            "cells": [self._cell(agent, info, told or {}, written, scores[agent]) for agent in scores],
            "told": turn.observation if told is None else None,
            "action": turn.action if written is None else None,
            "thought": self._joint.thoughts[place],
            "hops": list(_hops(info, self._joint.agents, written or {})),
        }

    def _cell(
        self, agent: str, info: Mapping[str, Any], told: Texts, written: Written | None, score: float
    ) -> dict[str, Any]:
        own, action = own_info(info, agent), (written or {}).get(agent)
        grammar = BareGrammar() if agent in SPEAKERS else self._grammar
        thought, command = ("", None) if action is None else read_answer(action, grammar)
        return {
            "acts": written is not None and agent in self._acting,
            "observation": told.get(agent),
            "action": action,
            "thought": thought,
            "command": command,
            "reward": _number(own.get("reward")),
            "score": score,
            "invalid": own.get("invalid_action") if action is not None else None,
            "cut": own_info(info, agent, "answers").get("finish") == "length",
        }


def _hops(info: Mapping[str, Any], agents: list[str], written: Written) -> Iterator[dict[str, Any]]:
    """What went from agent to agent: messages first, each once with all that it reached, then gifts.

    An info may still hold what arrived before, so only what is from one that wrote in this turn is of it.
    """
    messages: dict[tuple[int, str], list[int]] = {}
    gifts = list[dict[str, Any]]()
    for place, agent in enumerate(agents):
        own = own_info(info, agent)
        for sender, arrived in _arrived(own.get("messages"), agents, written):
            if isinstance(text := arrived.get("text"), str):
                messages.setdefault((sender, text), []).append(place)
        for sender, arrived in _arrived(own.get("gifts"), agents, written):
            gifts.append({"from": sender, "to": [place], "amount": arrived.get("amount"), "item": arrived.get("item")})
    for (sender, text), to in messages.items():
        yield {"from": sender, "to": to, "text": text}
    yield from (gift for gift in gifts if type(gift["amount"]) is int and isinstance(gift["item"], str))


def _arrived(things: Any, agents: list[str], written: Written) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for thing in things if isinstance(things, list | tuple) else ():
        sender = thing.get("from") if isinstance(thing, Mapping) else None
        if isinstance(sender, str) and written.get(sender) is not None:
            yield agents.index(sender), thing


def _score(own: Mapping[str, Any], before: float) -> float:
    score = own.get("score")
    return score if isinstance(score, int | float) else before + _number(own.get("reward"))


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0
