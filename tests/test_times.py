"""Times of episodes: measured by everything that records, ignored by equality, and left out of deterministic files."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentgym_envs
from agentgym_envs.errors import EnvError, TrajectoryError
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, RandomPolicy, play_text
from agentgym_envs.times import EpisodeTimes, TimeSource, TurnTimes, time_source
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_envs.viewer.index import summarize_line
from agentgym_envs.wrappers import RecordTrajectory

LIMITS = Limits(max_turns=4)
START = 1_700_000_000.0


@pytest.fixture
def ticking() -> Iterator[None]:
    """Clocks that advance by a second whenever they are read."""
    ticks = itertools.count()
    token = time_source.set(TimeSource(lambda: START, lambda: float(next(ticks))))
    yield
    time_source.reset(token)


def episode(seed: int = 0, env_id: str = "AgentGym/TextCraft-v0") -> Trajectory:
    import gymnasium as gym

    assert agentgym_envs
    env = gym.make(env_id)
    try:
        return asyncio.run(play_text(env, RandomPolicy(seed), EpisodeSpec(seed=seed), limits=LIMITS))
    finally:
        env.close()


def test_play_measures_the_reset_and_each_turn(ticking: None) -> None:
    played = episode()
    assert len(played.turns) == 4
    # One reading before the reset, one after it, and three in each turn.
    turns = tuple(TurnTimes(2.0 + 3 * number, 1.0, 1.0) for number in range(4))
    assert played.times == EpisodeTimes(START, 1.0, turns)
    assert (played.times.generation, played.times.environment) == (4.0, 5.0)


def test_equality_ignores_times() -> None:
    first, again = episode(), episode()
    assert first.times != again.times and first == again
    assert first != replace(first, score=0.5)


def test_a_record_keeps_its_times(ticking: None) -> None:
    played = episode()
    line = played.to_json()
    read = Trajectory.from_json(line)
    assert read.times == played.times and read.to_json() == line
    assert summarize_line(line.encode()).turns == 4


def test_a_record_without_times_has_no_such_field() -> None:
    line = replace(episode(), times=None).to_json()
    assert "times" not in json.loads(line) and Trajectory.from_json(line).times is None


@pytest.mark.parametrize(
    "times",
    [3, [], {}, {"start": 0}, {"start": "now", "reset": 0, "turns": []}, {"start": 0, "reset": 0, "turns": [1]}],
)
def test_malformed_times_are_refused(times: object) -> None:
    row = {**json.loads(episode().to_json()), "times": times}
    with pytest.raises(TrajectoryError, match="not a trajectory"):
        Trajectory.from_json(json.dumps(row))


SECONDS = st.floats(0, 1e9, allow_nan=False)


@given(SECONDS, SECONDS, st.lists(st.tuples(SECONDS, SECONDS, SECONDS)))
def test_times_survive_json(start: float, reset: float, turns: list[tuple[float, float, float]]) -> None:
    times = EpisodeTimes(start, reset, tuple(TurnTimes(*turn) for turn in turns))
    assert EpisodeTimes.from_json(json.loads(json.dumps(times.to_json()))) == times


def test_the_wrapper_measures_too(ticking: None, tmp_path: Path) -> None:
    import gymnasium as gym

    env = RecordTrajectory(gym.make("AgentGym/TextCraft-v0"), tmp_path / "all.jsonl")
    for _ in range(2):
        env.reset(seed=1)
        env.step("inventory")
        env.step("inventory")
    env.close()
    first, second = read_trajectories(tmp_path / "all.jsonl")
    assert first.times is not None and second.times is not None
    assert first.times.turns == second.times.turns == ((2.0, 1.0, 1.0), (5.0, 1.0, 1.0))


def test_a_turn_in_which_the_policy_fails_has_no_times(ticking: None) -> None:
    import gymnasium as gym

    class Failing(OraclePolicy):
        async def act(self, env: object, messages: object) -> str:
            raise EnvError("the oracle's search engine is gone")

    env = gym.make("AgentGym/TextCraft-v0")
    played = asyncio.run(play_text(env, Failing(), EpisodeSpec(seed=0), limits=LIMITS))
    assert played.stop_reason == "env_error" and played.times == EpisodeTimes(START, 1.0)


def test_an_agent_of_a_team_has_the_times_of_its_turns(ticking: None) -> None:
    import gymnasium as gym

    env = gym.make("AgentGym/PlannerActor-v0", env_id="AgentGym/TextCraft-v0")
    joint = asyncio.run(play_text(env, OraclePolicy(), EpisodeSpec(seed=0), limits=Limits(max_turns=6)))
    env.close()
    assert joint.times is not None and len(joint.times.turns) == len(joint.turns) > 1
    for agent in per_agent_trajectories(joint).values():
        assert agent.times is not None and len(agent.times.turns) == len(agent.turns)
        assert set(agent.times.turns) <= set(joint.times.turns)
