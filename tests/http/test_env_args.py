"""Arguments that a server gives to its environments, and their precedence over a client's options."""

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
    """An environment that reports its arguments, and needs a worker if its location is far."""

    remote_options = CountEnv.remote_options | {"depth"}

    def __init__(self, *, location: str = "here", depth: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._text = f"{location} {depth}"

    @classmethod
    def needs_worker(cls, options: Mapping[str, Any]) -> bool:
        return options.get("location") == "far"

    def _act(self, command: str) -> Transition:
        return Transition(self._text)


register(FAR, "tests.http.test_env_args:FarEnv")


def describe(options: dict[str, Any], **env_args: Any) -> tuple[str, str]:
    """The process that hosts an environment, and the arguments that the environment reports."""

    async def play() -> tuple[str, str]:
        sessions = Sessions(TOYS, env_args=env_args)
        try:
            session = await sessions.open(FAR, options)
            await sessions.call(session.token, "reset", {"seed": 0})
            reply = await sessions.call(session.token, "step", {"action": "up"})
            fork = await sessions.fork(session.token)
            assert (await sessions.call(fork.token, "step", {"action": "up"}))["observation"] == reply["observation"]
            await sessions.open(COUNT, {})  # which has neither argument
            return sessions.hosted(FAR), reply["observation"]
        finally:
            await sessions.shut_down()

    return asyncio.run(play())


def test_client_options_override_the_servers_arguments() -> None:
    assert describe({}) == ("server", "here 1")
    assert describe({}, location="there", depth=2) == ("server", "there 2")
    assert describe({"depth": 3}, location="there", depth=2) == ("server", "there 3")


def test_a_client_cannot_set_paths_or_addresses() -> None:
    with pytest.raises(UsageError, match=r"takes the options depth, .*not \['location'\]"):
        describe({"location": "/etc"}, location="there")


@pytest.mark.slow
def test_arguments_decide_whether_a_worker_is_needed_and_reach_it() -> None:
    assert describe({"depth": 5}, location="far") == ("worker", "far 5")


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(UsageError, match=rf"no served environment has an argument colour: {COUNT} has .*; {FAR} has"):
        Sessions(TOYS, env_args={"location": "there", "colour": "red"})
    with pytest.raises(UsageError, match="argument location: no environment is served"):
        Sessions([], env_args={"location": "there"})
