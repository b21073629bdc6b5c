"""The contract over every registered id, and over the options that change what an environment is."""

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
    "AgentGym/TextCraftCoop-v0": [{"num_agents": 3, "agent_grammar": "tag", "individual": 0.3}],
}


def _plain(value: Any) -> str:
    return "+".join(value) if isinstance(value, list) else str(value)


IDS = [env_id for env_id in env_ids() if env_id not in contract.NEEDS_SITES]
CASES = [(env_id, options) for env_id in IDS for options in ({}, *VARIANTS.get(env_id, []))]
NAMES = [" ".join([env_id, *(_plain(value) for value in options.values())]) for env_id, options in CASES]
HEAVY = {"AgentGym/SciWorld-v0", "AgentGym/MiniWoB-v0", "AgentGym/WebArena-v0"}
"""They need a Java machine or a browser: what takes seconds of them, and can be seen in others too, takes turns."""
ALWAYS_OF_THE_HEAVY = {
    contract.infos_are_complete,
    contract.close_is_final,
    contract.restores_a_snapshot,
    contract.refuses_what_cannot_be,
    contract.tasks_are_sound,
    contract.renders_text,
    contract.random_commands_are_repeatable_actions,
}
WAYS = {
    "server": CASES,
    # What a server keeps in workers anyway need not be asked for there a second time.
    "worker": [case for case in CASES if not env_class(case[0]).needs_worker({})],
}
QUICK = CASES[0]
"""It stands for all on each way, since the way there is the same for all; the others take turns."""


def _marks(*, slow: bool, rotating: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] * slow + [pytest.mark.rotating] * rotating


def _here() -> Iterator[Any]:
    """Every check of every case; an environment's in a row, so that they find its browser or machine running."""
    for (env_id, options), name in zip(CASES, NAMES, strict=True):
        heavy = env_id in HEAVY
        for check in contract.CHECKS:
            rotating = heavy and (bool(options) or check not in ALWAYS_OF_THE_HEAVY)
            marks = _marks(slow=heavy or bool(options), rotating=rotating)
            yield pytest.param(check, env_id, options, id=f"{name}-{check.__name__}", marks=marks)


def _checked_there() -> Iterator[Any]:
    """What a twin has to show besides the same bytes. Options change what an environment is, not the way to it.

    Behind a worker's server are both that server's way and that of `tests/hosting/test_contract.py`, each of which
    passes all checks.
    """
    for env_id in IDS:
        quick = env_id == QUICK[0]
        for check in contract.THERE_TOO_OF_ITS_OWN if env_id in contract.TAKES_LONG else contract.CHECKS:
            marks = _marks(slow=not quick, rotating=not quick)
            yield pytest.param(check, "server", env_id, id=f"server {env_id}-{check.__name__}", marks=marks)
    for check in contract.THERE_TOO:
        name = f"worker {QUICK[0]}-{check.__name__}"
        yield pytest.param(check, "worker", QUICK[0], id=name, marks=_marks(slow=True, rotating=False))


def _same_there() -> Iterator[Any]:
    """Every case on every way."""
    for way, cases in WAYS.items():
        for case in cases:
            always = case == QUICK or (way == "server" and not case[1] and case[0] not in contract.TAKES_LONG)
            marks = _marks(slow=(way, case) != ("server", QUICK), rotating=not always)
            yield pytest.param(way, *case, id=f"{way} {NAMES[CASES.index(case)]}", marks=marks)


@cache
def transcript(case: int) -> str:
    """The hash of what an environment gives in this process."""
    env_id, options = CASES[case]
    return contract.transcript_hash(partial(gym.make, env_id, **options))


@pytest.mark.parametrize(("check", "env_id", "options"), _here())
def test_contract(check: Callable[[contract.Make], None], env_id: str, options: dict[str, Any]) -> None:
    check(partial(gym.make, env_id, **options))


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], str]]:
    """The address of a server that keeps environments in its own process, or of one that keeps them in workers."""
    with ExitStack() as running:

        @cache
        def address(way: str) -> str:
            return running.enter_context(background_server(IDS, isolate=way == "worker"))

        yield address


@pytest.fixture
def url(request: pytest.FixtureRequest, servers: Callable[[str], str]) -> str:
    return servers(request.param)


@pytest.mark.parametrize(("check", "url", "env_id"), _checked_there(), indirect=["url"])
def test_contract_of_the_remote_twin(check: Callable[[contract.Make], None], env_id: str, url: str) -> None:
    check(partial(gym.make, env_id, base_url=url))


@pytest.mark.parametrize(("url", "env_id", "options"), _same_there(), indirect=["url"])
def test_the_remote_twin_is_the_same_byte_for_byte(env_id: str, options: dict[str, Any], url: str) -> None:
    make, make_twin = partial(gym.make, env_id, **options), partial(gym.make, env_id, base_url=url, **options)
    contract.twins_agree(make, make_twin, transcript(CASES.index((env_id, options))))


@pytest.mark.slow
@pytest.mark.parametrize("env_id", sorted(HEAVY))
def test_the_remote_twin_of_a_heavy_one_plays_the_same_episode(env_id: str, servers: Callable[[str], str]) -> None:
    contract.twins_play_alike(partial(gym.make, env_id), partial(gym.make, env_id, base_url=servers("server")))


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        pytest.param(*case, id=name, marks=_marks(slow=True, rotating=bool(case[1]) or case[0] in contract.TAKES_LONG))
        for case, name in zip(CASES, NAMES, strict=True)
    ],
)
def test_processes_agree(env_id: str, options: dict[str, Any]) -> None:
    contract.processes_agree(env_id, options, transcript(CASES.index((env_id, options))))


def test_variants_name_registered_ids() -> None:
    assert set(VARIANTS) <= set(env_ids())
