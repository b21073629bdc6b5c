"""`TextVectorEnv` returns the same values as Gymnasium's `SyncVectorEnv` over the same environments, step by step."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs import FixedTurnLimit, ScheduledTimeLimit
from agentgym_envs.core import text_env
from agentgym_envs.vector import TextVectorEnv, make_vec
from tests.toy_envs import HERE

MODES = list(AutoresetMode)
COUNT = HERE + "Toy/Count-v0"
TEXTCRAFT = "AgentGym/TextCraft-v0"
COMMANDS = ("up", "up", "up", "down", "crash", "give up", "cheat", "")
Both = tuple[SyncVectorEnv, TextVectorEnv]


def short(env: gym.Env[str, str]) -> gym.Env[str, str]:
    return ScheduledTimeLimit(env, FixedTurnLimit(4))


@contextmanager
def both(env_id: str, size: int, mode: AutoresetMode, **options: Any) -> Iterator[Both]:
    wrap: Callable[[Any], Any] = short if "wrappers" in options else lambda env: env
    theirs = SyncVectorEnv([lambda: wrap(gym.make(env_id))] * size, autoreset_mode=mode)
    ours = make_vec(env_id, size, autoreset_mode=mode, **options)
    try:
        yield theirs, ours
    finally:
        theirs.close()
        ours.close()


def assert_same(ours: Any, theirs: Any) -> None:
    """Check that types, dtypes, shapes, order of keys and values are equal."""
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key])
    elif isinstance(ours, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert ours.tolist() == theirs.tolist()
    elif isinstance(ours, tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    else:
        assert ours == theirs


def advance(envs: Both, actions: tuple[str, ...], seed: int) -> None:
    """Step both, and without autoreset also reset the environments whose episodes are over."""
    theirs, ours = envs
    expected = theirs.step(actions)
    assert_same(ours.step(actions), expected)
    over = expected[2] | expected[3]
    if ours.autoreset_mode is AutoresetMode.DISABLED and over.any():
        seeds = [seed + index if index % 2 else None for index in range(ours.num_envs)]
        expected_reset = theirs.reset(seed=seeds, options={"reset_mask": over})
        assert_same(ours.reset(seed=seeds, options={"reset_mask": over}), expected_reset)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 3])
def test_results_equal_gymnasiums_for_any_actions(mode: AutoresetMode, size: int) -> None:
    step = st.lists(st.sampled_from(COMMANDS), min_size=size, max_size=size).map(tuple)
    with both(COUNT, size, mode) as envs:

        @given(st.integers(0, 1000), st.lists(step, max_size=12))
        def check(seed: int, steps: list[tuple[str, ...]]) -> None:
            assert_same(envs[1].reset(seed=seed), envs[0].reset(seed=seed))
            for actions in steps:
                advance(envs, actions, seed)

        check()


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", ["thread", pytest.param("process", marks=pytest.mark.slow), "async", "remote"])
def test_results_equal_gymnasiums_with_every_backend(mode: AutoresetMode, backend: str, server: str) -> None:
    rng = random.Random(4)
    where = {"base_url": server} if backend == "remote" else {}
    with both(HERE + "Toy/Async-v0" if backend == "async" else COUNT, 3, mode, backend=backend, **where) as envs:
        for seed in range(5):
            assert_same(envs[1].reset(seed=seed), envs[0].reset(seed=seed))
            for _ in range(12):
                advance(envs, tuple(rng.choices(COMMANDS, k=3)), seed)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", ["inline", "thread"])
def test_results_equal_gymnasiums_in_textcraft_with_a_turn_limit(mode: AutoresetMode, backend: str) -> None:
    rng = random.Random(1)
    with both(TEXTCRAFT, 4, mode, backend=backend, wrappers=[short]) as envs:
        for seed in range(3):
            assert_same(envs[1].reset(seed=seed), envs[0].reset(seed=seed))
            for _ in range(20):
                actions = [text_env(env).random_command(rng) for env in envs[0].envs]
                advance(envs, tuple(actions), seed)


def test_resets_with_seeds_and_options_equal_gymnasiums() -> None:
    mask = np.array([False, True, True])
    with both(COUNT, 3, AutoresetMode.NEXT_STEP) as (theirs, ours):
        seeds: tuple[int | list[int | None] | None, ...] = (5, None, 7, [1, None, 3], [0, 0, 0])
        for seed in seeds:
            assert_same(ours.reset(seed=seed), theirs.reset(seed=seed))
            assert_same(ours.reset(options={"task": "count/9"}), theirs.reset(options={"task": "count/9"}))
            masked = {"reset_mask": mask, "group": "small"}
            assert_same(ours.reset(seed=seed, options=dict(masked)), theirs.reset(seed=seed, options=dict(masked)))
            assert_same(ours.reset(), theirs.reset())


def test_the_remaining_interface_equals_gymnasiums() -> None:
    with both(COUNT, 3, AutoresetMode.NEXT_STEP, render_mode="ansi") as (theirs, ours):
        theirs.close()
        theirs = SyncVectorEnv([lambda: gym.make(COUNT, render_mode="ansi")] * 3)
        for name in ("num_envs", "observation_space", "action_space", "single_action_space", "render_mode", "metadata"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert_same(ours.reset(seed=3), theirs.reset(seed=3))
        assert_same(ours.render(), theirs.render())
        assert ours.call("status") == theirs.call("status")
        assert ours.get_attr("count") == theirs.get_attr("count") == (0, 0, 0)
        for envs in (ours, theirs):
            envs.set_attr("count", [1, 0, 1])
            assert envs.get_attr("count") == (1, 0, 1)
            envs.set_attr("count", 0)
        assert_same(ours.step(("up",) * 3), theirs.step(("up",) * 3))
        theirs.close()


def test_the_intended_differences_from_gymnasium_hold() -> None:
    """A failed reset becomes a truncated step, and every caller error is a `UsageError`."""
    broken = {"task": "count/0"}
    with both(COUNT, 1, AutoresetMode.NEXT_STEP) as (theirs, ours):
        assert_same(ours.reset(seed=0, options=broken), theirs.reset(seed=0, options=broken))
        with pytest.raises(RuntimeError):
            theirs.step(("up",))
        assert ours.step(("up",))[3].tolist() == [True]
