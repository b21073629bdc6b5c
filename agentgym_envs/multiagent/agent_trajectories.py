"""Per-agent trajectories: the observations, actions and rewards of each agent, from the joint record of an episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.grammar import make_grammar
from agentgym_envs.multiagent.joint_format import own_info, read_actions, read_texts
from agentgym_envs.times import EpisodeTimes
from agentgym_envs.trajectory import Trajectory, Turn, line_mark

_JOINT = frozenset({"agents", "answers", "finish", "tokens", "invalid_action"})
"""Keys of a joint turn's info that belong to the team and not to an agent."""


def team_prompts(instructions: str) -> dict[str, str]:
    """The system prompts of a team's agents, in order. Raises UsageError if `instructions` are not a team's."""
    prompts = read_texts(instructions)
    if not prompts:
        raise UsageError(
            "this is not a team: the instructions of a team are a JSON object from agents to texts. "
            "Teams are the environments of agentgym_envs.multiagent, such as AgentGym/TextCraftCoop-v0"
        )
    return prompts


def per_agent_trajectories(trajectory: Trajectory) -> dict[str, Trajectory]:
    """Split the joint record of an episode into one trajectory per agent.

    An agent's trajectory has the turns in which it wrote something. The reward of such a turn is the sum of the agent's
    rewards until it writes again, or until the end. The info is the agent's last one in that time, with
    `invalid_action`, `finish` and `tokens` of its own answer. `final_observation` follows its last action; it is "" if
    the episode was truncated before. `score` is the agent's own; `success` and `stop_reason` are the team's. The times
    of a turn are those of the joint turn, in which all acting agents answer concurrently.

    `meta` is that of the joint record, with four more keys. `agent` is the name, `team` lists all agents, and `episode`
    is the `line_mark` of the joint record, equal for all its agents. `state_key` is the agent's key of the state in
    which it first wrote, None if it never did; the infos of its turns have the keys of the later states.

    Raises:
        UsageError: the record is not a team's.
    """
    prompts = team_prompts(trajectory.instructions)
    views = {agent: _AgentView(agent) for agent in prompts}
    for turn in _joint_turns(trajectory):
        for view in views.values():
            view.add(turn)
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
            times=view.times(trajectory.times),
            meta={**shared, "agent": agent, "state_key": view.first_state},
        )
        for agent, view in views.items()
    }


class _JointTurn(NamedTuple):
    """A turn of the team: the observations of the agents that act, their texts, and the info after it."""

    seen: Mapping[str, str]
    written: Mapping[str, str | None]
    info: Mapping[str, Any]


def _joint_turns(trajectory: Trajectory) -> Iterator[_JointTurn]:
    """Yield the turns. In a turn with a malformed joint action, no agent wrote anything."""
    grammar = make_grammar(trajectory.env_kwargs.get("grammar", "bare"))
    seen: Mapping[str, str] = {}
    for turn in trajectory.turns:
        seen = read_texts(turn.observation) or seen  # the reply to a malformed action has no observations
        try:
            written = read_actions(grammar.parse(turn.action).command, tuple(seen))
        except InvalidAction:
            written = {}
        yield _JointTurn(seen, written, turn.info)


class _AgentView:
    """Collects one agent's turns while the joint turns are read."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._joint_turns, self._written = 0, list[int]()
        self._answer_info: dict[str, Any] = {}
        self.turns: list[Turn] = []
        self.score = 0.0
        self.first_state: str | None = None
        self.unanswered = ""  # the first observation that it did not answer

    def times(self, joint: EpisodeTimes | None) -> EpisodeTimes | None:
        """The times of the joint turns in which this agent wrote something."""
        if joint is None or len(joint.turns) != self._joint_turns:
            return None
        return replace(joint, turns=tuple(joint.turns[number] for number in self._written))

    def add(self, turn: _JointTurn) -> None:
        """Add this agent's part of a joint turn."""
        self._joint_turns += 1
        own = dict(own_info(turn.info, self._agent)) if turn.info.get("stop_reason") != "env_error" else {}
        before = own.pop("state_before", None)
        text = turn.written.get(self._agent)
        if text is None and self._agent in turn.written:
            self.unanswered = self.unanswered or turn.seen[self._agent]
        elif text is not None:
            self.unanswered = ""
            self.first_state = self.first_state or before
            answer = own_info(turn.info, self._agent, "answers")
            self._answer_info = {"invalid_action": own.get("invalid_action"), **answer}
            without = {name: value for name, value in turn.info.items() if name not in _JOINT}
            self.turns.append(Turn(turn.seen[self._agent], text, 0.0, {**without, **self._answer_info}))
            self._written.append(self._joint_turns - 1)
        reward = float(own.get("reward", 0.0))
        self.score += reward
        if self.turns and own:
            last = self.turns[-1]
            self.turns[-1] = replace(last, reward=last.reward + reward, info={**own, **self._answer_info})
