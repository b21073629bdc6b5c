"""Streams: what each agent of a team saw, wrote and earned, taken out of the joint record of an episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.grammar import make_grammar
from agentgym_envs.multiagent.joint_format import own_info, read_actions, read_texts
from agentgym_envs.trajectory import Trajectory, Turn, line_mark

_JOINT = frozenset({"agents", "answers", "finish", "tokens", "invalid_action"})
"""Of a joint turn's info, what is of the team and not of an agent."""


def team_prompts(instructions: str) -> dict[str, str]:
    """The system texts of a team's agents, in order. Raises UsageError if they are those of no team."""
    prompts = read_texts(instructions)
    if not prompts:
        raise UsageError(
            "this is no team: the instructions of one are a JSON object from its agents to their texts. "
            "Teams are the environments of agentgym_envs.multiagent, such as AgentGym/TextCraftCoop-v0"
        )
    return prompts


def per_agent_trajectories(trajectory: Trajectory) -> dict[str, Trajectory]:
    """Each agent's view of an episode, from the joint record of it.

    A view has the turns in which the agent wrote something. The reward of such a turn is all that the agent got until
    it wrote again, or until the end, and its info is what it was last told in that time, with `invalid_action`,
    `finish` and `tokens` of its own answer. `final_observation` answers its last action; it is "" where the episode
    was cut before that was known. `score` is the agent's own; how the episode ended is the team's.

    `meta` is that of the joint record, and tells the `agent`, its `team` (all agents), and `episode`, which is the
    `line_mark` of the joint record: equal in all views of it. `state_key` is the agent's own, of the state in which it
    first wrote (None if it never did), as the infos of its turns tell it of the states after them.

    Raises:
        UsageError: the record is not one of a team.
    """
    prompts = team_prompts(trajectory.instructions)
    views = {agent: _View(agent) for agent in prompts}
    for turn in _played(trajectory):
        for view in views.values():
            view.follow(turn)
    mark = line_mark(trajectory.to_json().encode("utf-8", "surrogatepass"))
    shared = {**trajectory.meta, "team": list(prompts), "episode": mark}
    last = trajectory.final_observation
    final = read_texts(last) or dict.fromkeys(prompts, last)
    return {
        agent: replace(
            trajectory,
            instructions=prompts[agent],
            turns=tuple(view.turns),
            final_observation=view.unanswered or final.get(agent, ""),
            score=view.score,
            meta={**shared, "agent": agent, "state_key": view.began},
        )
        for agent, view in views.items()
    }


class _JointTurn(NamedTuple):
    """A turn of the team: what those saw who were to act, what they wrote, and what came of it."""

    seen: Mapping[str, str]
    written: Mapping[str, str | None]
    info: Mapping[str, Any]


def _played(trajectory: Trajectory) -> Iterator[_JointTurn]:
    """The turns; in one whose action was no joint action, nobody wrote anything."""
    grammar = make_grammar(trajectory.env_kwargs.get("grammar", "bare"))
    seen: Mapping[str, str] = {}
    for turn in trajectory.turns:
        seen = read_texts(turn.observation) or seen  # a text that answers a malformed action changes nothing
        try:
            written = read_actions(grammar.parse(turn.action).command, tuple(seen))
        except InvalidAction:
            written = {}
        yield _JointTurn(seen, written, turn.info)


class _View:
    """One agent's view while the joint turns are read."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._notes: dict[str, Any] = {}
        self.turns: list[Turn] = []
        self.score = 0.0
        self.began: str | None = None
        self.unanswered = ""  # what it saw first of that to which it wrote nothing any more

    def follow(self, turn: _JointTurn) -> None:
        """Take in what a joint turn was for this agent."""
        own = dict(own_info(turn.info, self._agent)) if turn.info.get("stop_reason") != "env_error" else {}
        before = own.pop("state_before", None)
        text = turn.written.get(self._agent)
        if text is None and self._agent in turn.written:
            self.unanswered = self.unanswered or turn.seen[self._agent]
        elif text is not None:
            self.unanswered = ""
            self.began = self.began or before
            answer = own_info(turn.info, self._agent, "answers")
            self._notes = {"invalid_action": own.get("invalid_action"), **answer}
            without = {name: value for name, value in turn.info.items() if name not in _JOINT}
            self.turns.append(Turn(turn.seen[self._agent], text, 0.0, {**without, **self._notes}))
        reward = float(own.get("reward", 0.0))
        self.score += reward
        if self.turns and own:
            last = self.turns[-1]
            self.turns[-1] = replace(last, reward=last.reward + reward, info={**own, **self._notes})
