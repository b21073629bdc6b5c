"""The contract over every registered id, and over the options that change what an environment is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs import env_ids
from tests import contract

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "AgentGym/TextCraft-v0": [{"worlds": "fictional"}, {"worlds": "invented", "max_distractors": 0}],
}
CASES = [(env_id, options) for env_id in env_ids() for options in ({}, *VARIANTS.get(env_id, []))]
NAMES = [" ".join([env_id, *(str(value) for value in options.values())]) for env_id, options in CASES]


@pytest.mark.parametrize(("env_id", "options"), CASES, ids=NAMES)
@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[contract.Make], None], env_id: str, options: dict[str, Any]) -> None:
    check(partial(gym.make, env_id, **options))


@pytest.mark.parametrize(("env_id", "options"), CASES, ids=NAMES)
def test_processes_agree(env_id: str, options: dict[str, Any]) -> None:
    contract.processes_agree(env_id, options)


def test_variants_name_registered_ids() -> None:
    assert set(VARIANTS) <= set(env_ids())
