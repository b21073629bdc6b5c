import pickle
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import LEVELS
from agentgym_envs.core import Snapshot
from agentgym_envs.errors import EpisodeOver, UsageError
from agentgym_envs.textcraft.env import TextCraftEnv
from tests.trying import examples

MIX = ("GoToSeq", "KeyInBox", "UnlockPickup", "PutNextS5N2Carrying", "OpenDoorsOrderN4", "PickupDistDebug", "BossLevel")
OTHER_COMMANDS = ("", "go to nowhere", "check available actions", "drop")


def walk(env: BabyAIEnv, seed: int, turns: int) -> list[tuple[Any, ...]]:
    """Return the results of random play from the current state, at most to the end of the episode."""
    rng, results = random.Random(seed), list[tuple[Any, ...]]()
    for _ in range(turns):
        odd = rng.random() < 0.2
        results.append(env.step(rng.choice(OTHER_COMMANDS) if odd else env.random_command(rng)))
        if results[-1][2] or results[-1][3]:
            break
    return results


def begin(task: str, turns: int = 0, **options: Any) -> BabyAIEnv:
    env = BabyAIEnv(**options)
    env.reset(seed=3, options={"task": task})
    walk(env, 0, turns)
    return env


def replayed(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without its copy, so that restoring replays the episode."""
    bare = pickle.loads(pickle.dumps(snapshot))
    assert snapshot.state_copy is not None and bare.state_copy is None and bare == snapshot
    return bare


def check_restored_alike(env: BabyAIEnv, future: int) -> None:
    snapshot = env.snapshot()
    options: dict[str, Any] = {"numbering": env.numbering, "actions": env.actions}
    copied, again = BabyAIEnv(**options), BabyAIEnv(**options)
    assert copied.restore(snapshot) == again.restore(replayed(snapshot)) == env._observation
    assert copied.status() == again.status() == env.status()
    assert copied.snapshot() == again.snapshot() == snapshot
    if env.status()["stop_reason"] is None:
        assert walk(copied, future, 12) == walk(again, future, 12)
    assert copied.reset() == again.reset()  # the next task is drawn from the environment's own generator
    assert walk(copied, future, 3) == walk(again, future, 3)


@pytest.mark.parametrize("level", MIX)
@pytest.mark.parametrize("options", [{}, {"numbering": "stable"}, {"actions": "primitive"}], ids=str)
def test_restoring_a_copy_equals_a_replay(level: str, options: dict[str, Any]) -> None:
    check_restored_alike(begin(f"babyai/{level}/4", 7, **options), 1)


@pytest.mark.slow
@examples(300)
@given(
    level=st.sampled_from(LEVELS),
    seed=st.integers(0, 3),
    turns=st.integers(0, 40),
    future=st.integers(0, 2**32),
    numbering=st.sampled_from(["nearest", "stable"]),
    actions=st.sampled_from(["macro", "primitive"]),
)
def test_restoring_a_copy_equals_a_replay_in_any_state(
    level: str, seed: int, turns: int, future: int, numbering: Any, actions: Any
) -> None:
    check_restored_alike(begin(f"babyai/{level}/{seed}", turns, numbering=numbering, actions=actions), future)


def test_a_snapshot_can_be_restored_repeatedly() -> None:
    env = begin("babyai/BossLevel/1", 5)
    snapshot = env.snapshot()
    futures = []
    for _ in range(3):
        env.restore(snapshot)
        futures.append(walk(env, 2, 15))
    other = BabyAIEnv()
    other.restore(snapshot)
    assert walk(other, 2, 15) == futures[0] == futures[1] == futures[2]
    assert len(futures[0]) == 15


def test_the_original_is_not_affected_by_a_restored_copy() -> None:
    env, untouched, other = begin("babyai/PutNextLocal/2", 4), begin("babyai/PutNextLocal/2", 4), BabyAIEnv()
    other.restore(env.snapshot())
    results = env.text_view.describe(), env.world.describe_things(), env.world.progress(), env.status()
    walk(other, 9, 30)
    assert (env.text_view.describe(), env.world.describe_things(), env.world.progress(), env.status()) == results
    assert walk(env, 5, 20) == walk(untouched, 5, 20)


def test_later_actions_do_not_change_a_snapshot() -> None:
    env = begin("babyai/UnlockPickup/0", 6)
    snapshot, here = env.snapshot(), env.world.describe_things()
    walk(env, 1, 30)
    env.restore(snapshot)
    assert env.world.describe_things() == here


def test_stable_numbers_are_kept() -> None:
    env = begin("babyai/GoToLocalS8N7/1", 6, numbering="stable")
    numbers = dict(env._names.known)
    assert len(numbers) > 2
    for snapshot in (env.snapshot(), replayed(env.snapshot())):
        other = BabyAIEnv(numbering="stable")
        other.restore(snapshot)
        assert other._names.known == numbers and list(other.text_view.named) == list(env.text_view.named)


def test_stable_numbers_restart_with_each_episode() -> None:
    env, task = BabyAIEnv(numbering="stable"), {"task": "babyai/GoToLocalS8N7/1"}
    first = env.reset(seed=3, options=task)
    numbers = dict(env._names.known)
    walk(env, 5, 12)
    assert len(env._names.known) > len(numbers)
    env.reset(seed=3, options={"task": "babyai/GoToLocalS8N7/2"})
    walk(env, 6, 12)
    assert env.reset(seed=3, options=task) == first and env._names.known == numbers


def test_later_numbers_do_not_change_a_snapshot() -> None:
    env = begin("babyai/GoToLocalS8N7/1", numbering="stable")
    snapshot, numbers = env.snapshot(), dict(env._names.known)
    for future in (5, 6):
        walk(env, future, 12)
        assert len(env._names.known) > len(numbers)
        env.restore(snapshot)
        assert env._names.known == numbers


@pytest.mark.parametrize(
    ("task", "commands", "reason"),
    [
        ("babyai/GoToRedBallNoDists/6", ["go to red ball 1"], "success"),
        ("babyai/PickupDistDebug/0", ["pickup red ball 1"], "failure"),
        ("babyai/GoToRedBallNoDists/2", ["turn left"] * 64, "turn_limit"),
    ],
)
def test_a_restored_snapshot_of_an_ended_episode_has_ended(task: str, commands: list[str], reason: str) -> None:
    env = begin(task)
    for command in commands:
        env.step(command)
    for snapshot in (env.snapshot(), replayed(env.snapshot())):
        other = BabyAIEnv()
        assert other.restore(snapshot) == env._observation
        assert other.status() == env.status() and env.status()["stop_reason"] == reason
        with pytest.raises(EpisodeOver):
            other.step("turn left")


def test_a_closed_environment_cannot_restore() -> None:
    env = begin("babyai/GoToRedBall/0")
    snapshot = env.snapshot()
    env.close()
    with pytest.raises(EpisodeOver):
        env.restore(snapshot)
    with pytest.raises(EpisodeOver):
        BabyAIEnv().snapshot()


@pytest.mark.parametrize("options", [{"numbering": "stable"}, {"actions": "primitive"}])
def test_a_snapshot_of_other_options_is_refused_and_changes_nothing(options: dict[str, Any]) -> None:
    env, other = begin("babyai/GoToLocal/3", 2), begin("babyai/BossLevel/4", 1, **options)
    before = other.status()
    with pytest.raises(UsageError, match="the snapshot is of an environment with"):
        other.restore(env.snapshot())
    assert other.status() == before and other.world.levelname == "BossLevel"


def test_a_snapshot_of_another_scenario_is_refused() -> None:
    env = TextCraftEnv()
    with pytest.raises(UsageError, match="of a BabyAIEnv, this environment is a TextCraftEnv"):
        env.restore(begin("babyai/GoToLocal/3").snapshot())


def test_a_snapshot_of_a_closed_environment_is_replayed() -> None:
    env = begin("babyai/BossLevel/4", 2)
    seen = env._observation
    env.close()
    again = BabyAIEnv()
    assert again.restore(env.snapshot()) == seen
    assert again.status()["stop_reason"] is None
