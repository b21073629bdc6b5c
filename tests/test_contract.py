"""The contract over every registered id, and over the options that change what an environment is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs import env_ids
from agentgym_envs.http.run import background_server
from agentgym_envs.registration import env_class
from tests import contract

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "AgentGym/TextCraft-v0": [{"worlds": "fictional"}, {"worlds": "invented", "max_distractors": 0}],
    "AgentGym/BabyAI-v0": [{"actions": "primitive", "levels": "agentgym"}, {"numbering": "stable"}],
    "AgentGym/SciWorld-v0": [
        {"simplifications": "easy", "tasks": "agentgym", "info": ["inventory", "possible_actions"]}
    ],
    "AgentGym/Search-v0": [{"format": "plain", "metric": "em_plus", "format_reward": 0.2, "top_k": 5}],
    "AgentGym/TextCraftCoop-v0": [{"num_agents": 3, "agent_grammar": "tag", "individual": 0.3}],
}


def _plain(value: Any) -> str:
    return "+".join(value) if isinstance(value, list) else str(value)


IDS = [env_id for env_id in env_ids() if env_id not in contract.NEEDS_SITES]
CASES = [(env_id, options) for env_id in IDS for options in ({}, *VARIANTS.get(env_id, []))]
NAMES = [" ".join([env_id, *(_plain(value) for value in options.values())]) for env_id, options in CASES]
# For daily use: the quick environments here, and one behind a server, since the way there is the same for all.
QUICK = ("server", CASES[0])
HERE = [
    pytest.param(*case, marks=pytest.mark.slow) if case[1] or case[0] in contract.TAKES_LONG else case for case in CASES
]
# What a server keeps in workers anyway need not be asked for there a second time.
WAYS = {
    "server": CASES,
    "worker": [case for case in CASES if not env_class(case[0]).needs_worker({})],
}
THERE = [
    pytest.param(
        way, *case, id=f"{way} {NAMES[CASES.index(case)]}", marks=[pytest.mark.slow] if (way, case) != QUICK else []
    )
    for way, cases in WAYS.items()
    for case in cases
]
there = pytest.mark.parametrize(("url", "env_id", "options"), THERE, indirect=["url"])


def _asked(check: Callable[[contract.Make], None], way: str, env_id: str, options: dict[str, Any]) -> bool:
    """Whether a twin has to pass a check.

    Options change what an environment is, not the way to it: they pass all checks here. Behind a worker's server are
    both that server's way and that of `tests/hosting/test_contract.py`, each of which passes all checks.
    """
    if env_id in contract.TAKES_LONG:
        return check in contract.THERE_TOO_OF_ITS_OWN
    return check in contract.THERE_TOO or (way == "server" and not options)


CHECKED_THERE = [
    pytest.param(check, *there.values, id=f"{check.__name__}-{there.id}", marks=there.marks)
    for there in THERE  # outermost: what is asked of an environment in a row finds its browser or machine running
    for check in contract.CHECKS
    if _asked(check, *there.values)  # type: ignore[arg-type]
]


@cache
def transcript(case: int) -> str:
    """The hash of what an environment gives in this process."""
    env_id, options = CASES[case]
    return contract.transcript_hash(partial(gym.make, env_id, **options))


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("env_id", "options"), HERE, ids=NAMES)
def test_contract(check: Callable[[contract.Make], None], env_id: str, options: dict[str, Any]) -> None:
    check(partial(gym.make, env_id, **options))


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that keeps environments in its own process, and one that keeps them in workers."""
    with background_server(IDS, isolate=request.param == "worker") as address:
        yield address


@pytest.mark.parametrize(("check", "url", "env_id", "options"), CHECKED_THERE, indirect=["url"])
def test_contract_of_the_remote_twin(
    check: Callable[[contract.Make], None], env_id: str, options: dict[str, Any], url: str
) -> None:
    check(partial(gym.make, env_id, base_url=url, **options))


@there
def test_the_remote_twin_is_the_same_byte_for_byte(env_id: str, options: dict[str, Any], url: str) -> None:
    make, make_twin = partial(gym.make, env_id, **options), partial(gym.make, env_id, base_url=url, **options)
    contract.twins_agree(make, make_twin, transcript(CASES.index((env_id, options))))


@pytest.mark.slow
@pytest.mark.parametrize(("env_id", "options"), CASES, ids=NAMES)
def test_processes_agree(env_id: str, options: dict[str, Any]) -> None:
    contract.processes_agree(env_id, options, transcript(CASES.index((env_id, options))))


def test_variants_name_registered_ids() -> None:
    assert set(VARIANTS) <= set(env_ids())
