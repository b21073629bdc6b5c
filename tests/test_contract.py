"""The contract for every registered id, also with options that change the environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
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
    "AgentGym/MiniWoB-v0": [{"flavour": "webarena"}],
    "AgentGym/WebArena-v0": [{"flavour": "webarena"}],
    "AgentGym/TextCraftCoop-v0": [{"num_agents": 3, "agent_grammar": "tag", "individual": 0.3}],
}


def _plain(value: Any) -> str:
    return "+".join(value) if isinstance(value, list) else str(value)


IDS = [env_id for env_id in env_ids() if env_id not in contract.NEEDS_SITES]
CASES = [(env_id, options) for env_id in IDS for options in ({}, *VARIANTS.get(env_id, []))]
NAMES = [" ".join([env_id, *(_plain(value) for value in options.values())]) for env_id, options in CASES]
HEAVY = {"AgentGym/SciWorld-v0", *contract.BROWSER_ENVS}
"""Environments that need Java or a browser. Checks that others cover too rotate between runs, and so do all options."""
TRANSPORTS = {
    "server": CASES,
    # Without the environments that a server keeps in workers anyway.
    "worker": [case for case in CASES if not env_class(case[0]).needs_worker({})],
}
QUICK = CASES[0]
"""The only case in every run, since the transport is the same for all. The others rotate between runs."""


def _marks(*, slow: bool, rotating: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] * slow + [pytest.mark.rotating] * rotating


def _local_cases() -> Iterator[Any]:
    """Every check of every case, ordered by environment, so that its browser or Java process keeps running."""
    for (env_id, options), name in zip(CASES, NAMES, strict=True):
        heavy = env_id in HEAVY
        pixels = env_id in contract.PIXEL_ENVS
        for check in contract.CHECKS_OF_PIXELS if pixels else contract.CHECKS:
            rotating = bool(options) or pixels or (heavy and check not in contract.DAILY_CHECKS)
            marks = _marks(slow=heavy or bool(options), rotating=rotating)
            yield pytest.param(check, env_id, options, id=f"{name}-{check.__name__}", marks=marks)


def _remote_checks() -> Iterator[Any]:
    """Checks of remote environments besides equal transcripts. Options do not change the transport.

    A server with workers combines the server's transport and that of `tests/hosting/test_contract.py`; each of them
    passes all checks.
    """
    for env_id in IDS:
        quick = env_id == QUICK[0]
        for check in contract.REMOTE_CHECKS_OF_SLOW if env_id in contract.SLOW_ENVS else contract.CHECKS:
            marks = _marks(slow=not quick or check not in contract.REMOTE_CHECKS, rotating=not quick)
            yield pytest.param(check, "server", env_id, id=f"server {env_id}-{check.__name__}", marks=marks)
    for check in contract.REMOTE_CHECKS:
        name = f"worker {QUICK[0]}-{check.__name__}"
        yield pytest.param(check, "worker", QUICK[0], id=name, marks=_marks(slow=True, rotating=False))


def _remote_transcripts() -> Iterator[Any]:
    """Every case with every transport."""
    for transport, cases in TRANSPORTS.items():
        for case in cases:
            always = case == QUICK or (transport == "server" and not case[1] and case[0] not in contract.SLOW_ENVS)
            marks = _marks(slow=(transport, case) != ("server", QUICK), rotating=not always)
            yield pytest.param(transport, *case, id=f"{transport} {NAMES[CASES.index(case)]}", marks=marks)


@cache
def transcript(case: int) -> str:
    """The hash of an environment's transcript in this process."""
    env_id, options = CASES[case]
    return contract.transcript_hash(partial(gym.make, env_id, **options))


@pytest.mark.parametrize(("check", "env_id", "options"), _local_cases())
def test_local_environments_keep_the_contract(
    check: Callable[[contract.Make], None], env_id: str, options: dict[str, Any]
) -> None:
    check(partial(gym.make, env_id, **options))


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], str]]:
    """Addresses of a server with environments in its own process, and of one with worker processes."""
    with ExitStack() as running:

        @cache
        def address(transport: str) -> str:
            return running.enter_context(background_server(IDS, isolate=transport == "worker"))

        yield address


@pytest.fixture
def url(request: pytest.FixtureRequest, servers: Callable[[str], str]) -> str:
    return servers(request.param)


@pytest.mark.parametrize(("check", "url", "env_id"), _remote_checks(), indirect=["url"])
def test_remote_environments_keep_the_contract(check: Callable[[contract.Make], None], env_id: str, url: str) -> None:
    check(partial(gym.make, env_id, base_url=url))


@pytest.mark.parametrize(("url", "env_id", "options"), _remote_transcripts(), indirect=["url"])
def test_remote_environments_give_equal_results(env_id: str, options: dict[str, Any], url: str) -> None:
    make, make_remote = partial(gym.make, env_id, **options), partial(gym.make, env_id, base_url=url, **options)
    contract.remote_agrees(make, make_remote, transcript(CASES.index((env_id, options))))


@pytest.mark.rotating
@pytest.mark.slow
@pytest.mark.parametrize("env_id", sorted(HEAVY))
def test_a_heavy_remote_environment_plays_the_same_episode(env_id: str, servers: Callable[[str], str]) -> None:
    contract.remote_plays_the_same(partial(gym.make, env_id), partial(gym.make, env_id, base_url=servers("server")))


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        pytest.param(*case, id=name, marks=_marks(slow=True, rotating=case != QUICK))
        for case, name in zip(CASES, NAMES, strict=True)
        if case[0] not in contract.PIXEL_ENVS  # only their images differ from those of another id
    ],
)
def test_processes_agree(env_id: str, options: dict[str, Any]) -> None:
    contract.processes_agree(env_id, options, transcript(CASES.index((env_id, options))))


def test_variants_name_registered_ids() -> None:
    assert set(VARIANTS) <= set(env_ids())
