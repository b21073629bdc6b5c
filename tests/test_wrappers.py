from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs import (
    FixedTurnLimit,
    RecordTrajectory,
    ScheduledTimeLimit,
    Trajectory,
    TurnLimitCurriculum,
    read_trajectories,
)
from agentgym_envs.errors import EpisodeOver, UsageError
from agentgym_envs.wrappers import make_trajectory
from tests import toy_envs  # noqa: F401 (registers the ids)
from tests.toy import CountEnv

NINE = {"task": "count/9"}


class Clock:
    """A training step that a test sets."""

    def __init__(self) -> None:
        self.step = 0

    def __call__(self) -> int:
        return self.step

    def read(self) -> int:
        return self.step


def turns_until_truncation(env: gym.Env[str, str]) -> int:
    for turn in range(1, 20):
        _, _, terminated, truncated, _ = env.step("down")
        assert not terminated
        if truncated:
            return turn
    raise AssertionError("never truncated")


def records(path: Path) -> list[Trajectory]:
    return list(read_trajectories(path))


def test_the_limit_truncates_at_exactly_that_turn() -> None:
    env = ScheduledTimeLimit(CountEnv(), FixedTurnLimit(3))
    _, info = env.reset(seed=0, options=NINE)
    assert info["max_turns"] == 3
    assert [env.step("up")[3] for _ in range(2)] == [False, False]
    _, reward, terminated, truncated, info = env.step("up")
    assert (reward, terminated, truncated) == (1 / 9, False, True)
    assert (info["stop_reason"], info["success"], info["turn"]) == ("turn_limit", False, 3)


def test_a_step_after_a_truncation_is_refused() -> None:
    env = ScheduledTimeLimit(CountEnv(), FixedTurnLimit(1))
    env.reset(seed=0, options=NINE)
    env.step("up")
    with pytest.raises(EpisodeOver, match="limit of 1 turns; call reset"):
        env.step("up")
    env.reset(seed=0, options=NINE)
    assert env.step("up")[4]["turn"] == 1


def test_the_limit_is_read_at_reset_and_fixed_for_the_episode() -> None:
    clock = Clock()
    env = ScheduledTimeLimit(CountEnv(), TurnLimitCurriculum((2, 4, 6), every=10), clock)
    for at_reset, later, limit in [(0, 10, 2), (9, 25, 2), (10, 0, 4), (19, 20, 4), (20, 0, 6), (500, 0, 6)]:
        clock.step = at_reset
        env.reset(seed=0, options=NINE)
        clock.step = later
        assert env.max_turns == limit
        assert turns_until_truncation(env) == limit


@pytest.mark.parametrize(
    ("task", "actions", "reason"),
    [
        ("count/2", ["up", "up"], "success"),
        ("count/9", ["up", "give up"], "failure"),
        ("count/9", ["up", "crash"], "env_error"),
    ],
)
def test_an_end_on_the_last_turn_keeps_its_own_reason(task: str, actions: list[str], reason: str) -> None:
    env = ScheduledTimeLimit(CountEnv(), FixedTurnLimit(2))
    env.reset(seed=0, options={"task": task})
    for action in actions:
        _, _, terminated, truncated, info = env.step(action)
    assert info["stop_reason"] == reason
    assert truncated == (reason == "env_error")
    assert terminated != truncated


def test_an_env_error_at_reset_is_not_a_turn_limit() -> None:
    env = ScheduledTimeLimit(CountEnv(), FixedTurnLimit(2))
    _, info = env.reset(seed=0, options={"task": "count/0"})
    assert info["stop_reason"] == "env_error"


def test_an_error_of_the_schedule_is_raised_at_once() -> None:
    def broken(step: int) -> int:
        raise UsageError(f"no limit at step {step}")

    with pytest.raises(UsageError, match="no limit at step 0"):
        ScheduledTimeLimit(CountEnv(), broken)


def test_the_spec_remakes_the_wrapped_environment(tmp_path: Path) -> None:
    schedule = TurnLimitCurriculum((2, 4), every=10)
    inner = gym.make("Toy/Count-v0", grammar="tag")
    env = RecordTrajectory(ScheduledTimeLimit(inner, schedule, lambda: 12), tmp_path / "t.jsonl")
    assert env.spec is not None
    again = gym.make(env.spec)
    _, info = again.reset(seed=0, options=NINE)
    assert info["max_turns"] == 4
    assert turns_until_truncation(again) == 4
    assert again.unwrapped.grammar.name == "tag"  # type: ignore[attr-defined]
    again.close()
    env.close()
    assert [one.stop_reason for one in records(tmp_path / "t.jsonl")] == ["turn_limit"]


def test_the_spec_keeps_the_same_clock_object() -> None:
    clock = Clock()
    env = ScheduledTimeLimit(gym.make("Toy/Count-v0"), TurnLimitCurriculum((2, 4), every=10), clock.read)
    assert env.spec is not None
    again = gym.make(env.spec)
    clock.step = 10
    assert again.reset(seed=0, options=NINE)[1]["max_turns"] == 4


def test_every_finished_episode_is_recorded_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    env = RecordTrajectory(gym.make("Toy/Count-v0", grammar="tag", render_mode="ansi"), path)
    first, _ = env.reset(seed=3, options={"task": "count/2"})
    env.step("<action>down</action>")
    env.step("<action>up</action>")
    assert records(path) == []
    env.step("<action>up</action>")
    (one,) = records(path)
    assert one.env_id == "Toy/Count-v0"
    assert one.env_kwargs == {"grammar": "tag"}
    assert (one.task.id, one.seed, one.score, one.success, one.stop_reason) == ("count/2", 3, 1.0, True, "success")
    assert [turn.observation for turn in one.turns] == [first, "Unknown command: down", "1"]
    assert [turn.reward for turn in one.turns] == [0.0, 0.5, 0.5]
    assert one.turns[0].info["invalid_action"] == "Unknown command: down"
    assert one.final_observation == "2"
    assert one.instructions == CountEnv(grammar="tag").instructions
    env.close()
    assert len(records(path)) == 1


def test_an_unfinished_episode_is_recorded_as_closed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    env = RecordTrajectory(CountEnv(), path)
    for _ in range(2):
        env.reset(seed=0, options=NINE)
        env.step("up")
    env.close()
    env.close()
    assert [(one.stop_reason, one.actions, one.success) for one in records(path)] == [("closed", ["up"], False)] * 2


def test_a_truncation_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    env = RecordTrajectory(ScheduledTimeLimit(CountEnv(), FixedTurnLimit(2)), path)
    env.reset(seed=0, options=NINE)
    turns_until_truncation(env)
    (one,) = records(path)
    assert (one.stop_reason, one.truncated, len(one.turns)) == ("turn_limit", True, 2)
    assert one.turns[-1].info["stop_reason"] == "turn_limit"
    env.close()


@pytest.mark.parametrize(("task", "actions"), [("count/9", ["up", "crash"]), ("count/0", [])])
def test_an_env_error_is_recorded_with_its_text(tmp_path: Path, task: str, actions: list[str]) -> None:
    path = tmp_path / "t.jsonl"
    env = RecordTrajectory(CountEnv(), path)
    env.reset(seed=0, options={"task": task})
    for action in actions:
        env.step(action)
    env.close()
    (one,) = records(path)
    assert (one.stop_reason, one.usable, one.actions) == ("env_error", False, actions)
    assert one.error is not None
    assert one.error.startswith("EnvError: ")


def test_a_record_can_be_replayed(tmp_path: Path) -> None:
    env = RecordTrajectory(gym.make("Toy/Count-v0"), tmp_path / "t.jsonl")
    env.reset()
    for action in ["up", "down", "up"]:
        if env.step(action)[2]:
            break
    env.close()
    (one,) = records(tmp_path / "t.jsonl")
    again = gym.make(one.env_id, **one.env_kwargs)
    observation, _ = again.reset(seed=one.seed, options={"task": one.task.id})
    for turn in one.turns:
        assert observation == turn.observation
        observation, reward, _, _, info = again.step(turn.action)
        assert (reward, info) == (turn.reward, turn.info)
    assert observation == one.final_observation


def test_close_raises_a_write_error_and_still_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = CountEnv()
    env = RecordTrajectory(base, tmp_path / "t.jsonl")
    env.reset(seed=0)

    def full(trajectory: Trajectory) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(env._writer, "write", full)
    with pytest.raises(OSError, match="no space left"):
        env.close()
    assert base.closed == 1
    env.close()


def test_fields_of_a_record_can_be_overridden() -> None:
    env = CountEnv()
    with pytest.raises(EpisodeOver, match="nothing to record"):
        make_trajectory(env, (), "", {})
    observation, info = env.reset(seed=0)
    fields: dict[str, Any] = {"stop_reason": "token_limit", "meta": {"step": 3}}
    one = make_trajectory(env, (), observation, info, **fields)
    assert (one.env_id, one.stop_reason, one.meta) == ("CountEnv", "token_limit", {"step": 3})
