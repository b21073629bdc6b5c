"""Per-agent trajectories, from joint records of any origin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.errors import UsageError
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.multiagent.play import play_team
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, encode_trajectory, play_text
from agentgym_envs.trajectory import Trajectory, line_mark, read_trajectories
from agentgym_envs.wrappers import RecordTrajectory
from tests.episodes import episode
from tests.multiagent.engines import CODEC, LIMITS, Chatter, coop, counting, soon


def recorded(path: Path, env_id: str, actions: list[str], seed: int, **options: Any) -> Trajectory:
    """Play actions in a Gymnasium loop and return the record."""
    env = RecordTrajectory(gym.make(env_id, **options), path)
    env.reset(seed=seed)
    for action in actions:
        env.step(action)
    env.close()
    [found] = read_trajectories(path)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_joint_record_gives_the_trajectories_that_were_played(seed: int) -> None:
    """Also after writing and reading it."""
    limits = Limits(max_turns=6, max_tokens=600, max_turn_tokens=300)
    words = ("pass", "inventory", "say " + "la " * 20)
    env = coop(num_agents=3, individual=0.2) if seed % 2 else counting()
    played = soon(play_team(env, Chatter(words, seed, most=8), CODEC, EpisodeSpec(seed=seed), limits=limits))
    line = played.trajectory.to_json()
    own = per_agent_trajectories(Trajectory.from_json(line))
    assert own == {agent: tokens.trajectory for agent, tokens in played.per_agent.items()}
    assert {trajectory.meta["episode"] for trajectory in own.values()} == {line_mark(line.encode())}
    for trajectory in own.values():
        assert Trajectory.from_json(trajectory.to_json()) == trajectory
        assert trajectory.task == played.trajectory.task and trajectory.env_kwargs == played.trajectory.env_kwargs


def test_a_short_episode_gives_a_trajectory_per_agent() -> None:
    joint = soon(play_text(counting(), OraclePolicy(), EpisodeSpec("count/2", 1, {"run": "a"}), limits=LIMITS))
    planner, actor = per_agent_trajectories(joint).values()
    assert planner.actions == ["Do this next: up"] * 2 and actor.actions == ["up"] * 2
    assert [turn.reward for turn in planner.turns] == [turn.reward for turn in actor.turns] == [0.5, 0.5]
    assert actor.turns[1].observation == '1\n\nplanner says: "Do this next: up"'
    assert planner.turns[1].observation == 'actor says: "up"\n\n1'
    assert (planner.final_observation, actor.final_observation) == ('actor says: "up"\n\n2', "2")
    assert (planner.score, planner.success, planner.stop_reason) == (1.0, True, "success")
    info = planner.turns[0].info
    assert (info["agent"], info["turn"], info["score"], info["count"]) == ("planner", 1, 0.5, 1)
    assert actor.meta == {
        **joint.meta,
        "run": "a",
        "agent": "actor",
        "state_key": joint.turns[0].info["agents"]["actor"]["state_key"],
        "team": ["planner", "actor"],
        "episode": planner.meta["episode"],
    }
    assert [message["role"] for message in actor.messages()] == ["system", "user", "assistant", "user", "assistant"]
    assert sum(encode_trajectory(actor, CODEC).rewards) == 1.0


def test_malformed_joint_actions_are_left_out(tmp_path: Path) -> None:
    good = json.dumps({"crafter_0": "inventory", "crafter_1": "pass"})
    env_id = "AgentGym/TextCraftCoop-v0"
    joint = recorded(tmp_path / "a.jsonl", env_id, ["hm", good, '{"crafter_0": "pass"}', good, "{}"], 5)
    own = per_agent_trajectories(joint)
    first = json.loads(joint.turns[0].observation)
    for agent, trajectory in own.items():
        assert trajectory.actions == [json.loads(good)[agent]] * 2 and trajectory.stop_reason == "closed"
        assert trajectory.turns[0].observation == first[agent]
        assert trajectory.turns[1].observation == json.loads(joint.turns[2].observation)[agent]
        assert trajectory.final_observation == joint.final_observation  # the reply to the last malformed action
        assert [turn.info["turn"] for turn in trajectory.turns] == [1, 2]


def test_joint_actions_are_read_by_the_grammar_of_the_record(tmp_path: Path) -> None:
    action = "<action>" + json.dumps({"crafter_0": "inventory", "crafter_1": "dance"}) + "</action>"
    joint = recorded(tmp_path / "a.jsonl", "AgentGym/TextCraftCoop-v0", [action], 5, grammar="tag")
    one, other = per_agent_trajectories(joint).values()
    assert (one.actions, other.actions) == (["inventory"], ["dance"])
    assert one.turns[0].info["invalid_action"] is None
    assert other.turns[0].info["invalid_action"] == "Could not execute dance"
    assert joint.turns[0].info["invalid_action"] == "crafter_1: Could not execute dance"


@pytest.mark.parametrize("instructions", ["", "Craft.", "[]", "{}", '{"a": 1}'])
def test_instructions_of_a_single_agent_are_refused(instructions: str) -> None:
    from dataclasses import replace

    with pytest.raises(UsageError, match="not a team"):
        per_agent_trajectories(replace(episode("t", 1.0), instructions=instructions))
