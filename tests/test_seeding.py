"""`SeededEnv` against Gymnasium's own seeding, which makes the generator at once."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.seeding import SeededEnv, episode_generator


class Eager(gym.Env[str, str]):
    """Seeds as Gymnasium's documentation says, and draws as `SeededEnv` does."""

    def _next_seed(self, seed: int | None) -> int:
        gym.Env.reset(self, seed=seed)
        return int(self.np_random.integers(2**31)) if seed is None else seed


SEEDS = st.one_of(st.integers(0, 2**31), st.integers(0, 2**140), st.none(), st.just("draw"), st.just("set"))


def use(env: Any, call: Any) -> Any:
    if call == "draw":
        return env.np_random.random(), env.np_random_seed
    if call == "set":
        env.np_random = np.random.Generator(np.random.PCG64(7))
        return env.np_random_seed
    return env._next_seed(call), env.np_random_seed


@given(st.integers(0, 2**31), st.lists(SEEDS, max_size=8))
def test_seeding_on_first_use_draws_the_same_numbers(first: int, calls: list[Any]) -> None:
    ours, theirs = SeededEnv(), Eager()
    assert [use(ours, call) for call in (first, *calls)] == [use(theirs, call) for call in (first, *calls)]
    assert ours._np_random is not None and theirs._np_random is not None
    assert ours._np_random.bit_generator.state == theirs._np_random.bit_generator.state


def test_an_environment_without_a_seed_gets_a_random_one() -> None:
    one, two = SeededEnv(), SeededEnv()
    assert one._np_random is None
    assert one._next_seed(None) != two._next_seed(None)


@pytest.mark.parametrize("seed", [-1, "1", 1.5, np.int64(3)])
def test_an_invalid_seed_raises_the_error_of_gymnasium(seed: Any) -> None:
    with pytest.raises(gym.error.Error, match="Seed must be"):
        SeededEnv()._next_seed(seed)


@given(st.integers(0, 2**140))
def test_the_number_of_a_task_is_the_first_integer_drawn(seed: int) -> None:
    rng, key = episode_generator(seed)
    reference = np.random.Generator(np.random.PCG64(seed))
    assert key == reference.integers(2**63)
    assert rng.bit_generator.state == reference.bit_generator.state
