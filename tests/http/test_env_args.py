"""What a server gives to the environments that it makes, under what a client asks for."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agentgym_envs.core import Transition
from agentgym_envs.errors import UsageError
from agentgym_envs.http.sessions import Sessions
from agentgym_envs.registration import register
from tests.toy import CountEnv

from .tools import COUNT

FAR = "Toy/Far-v0"
TOYS = [f"tests.toy_envs:{COUNT}", f"tests.http.test_env_args:{FAR}"]


class FarEnv(CountEnv):
    """Tells where its things are; what is far away is waited for."""

    remote_options = CountEnv.remote_options | {"depth"}

    def __init__(self, *, place: str = "here", depth: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._told = f"{place} {depth}"

    @classmethod
    def needs_worker(cls, options: Mapping[str, Any]) -> bool:
        return options.get("place") == "far"

    def _act(self, command: str) -> Transition:
        return Transition(self._told)


register(FAR, "tests.http.test_env_args:FarEnv")


def tell(options: dict[str, Any], **env_args: Any) -> tuple[str, str]:
    """Where an environment is hosted, and what it tells of its arguments."""

    async def play() -> tuple[str, str]:
        sessions = Sessions(TOYS, env_args=env_args)
        try:
            session = await sessions.open(FAR, options)
            await sessions.call(session.token, "reset", {"seed": 0})
            reply = await sessions.call(session.token, "step", {"action": "up"})
            fork = await sessions.fork(session.token)
            assert (await sessions.call(fork.token, "step", {"action": "up"}))["observation"] == reply["observation"]
            await sessions.open(COUNT, {})  # which knows neither place nor depth
            return sessions.hosted(FAR), reply["observation"]
        finally:
            await sessions.shut_down()

    return asyncio.run(play())


def test_defaults_lie_under_what_a_client_asks_for() -> None:
    assert tell({}) == ("server", "here 1")
    assert tell({}, place="there", depth=2) == ("server", "there 2")
    assert tell({"depth": 3}, place="there", depth=2) == ("server", "there 3")


def test_a_client_names_no_place() -> None:
    with pytest.raises(UsageError, match=r"takes the options depth, .*not \['place'\]"):
        tell({"place": "/etc"}, place="there")


@pytest.mark.slow
def test_arguments_reach_the_workers_that_they_ask_for() -> None:
    assert tell({"depth": 5}, place="far") == ("worker", "far 5")


def test_arguments_that_nothing_knows() -> None:
    with pytest.raises(UsageError, match=rf"no served environment has an argument colour: {COUNT} has .*; {FAR} has"):
        Sessions(TOYS, env_args={"place": "there", "colour": "red"})
    with pytest.raises(UsageError, match="argument place: there is none"):
        Sessions([], env_args={"place": "there"})
