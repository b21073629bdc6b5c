"""Policies that read and write text: oracle, random, replay, and a model behind a chat API.

A policy object plays one episode; `PolicyFactory` makes one for each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import httpx

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.rollout.engines import post_json
from agentgym_envs.trajectory import Message


class Policy(Protocol):
    """Plays one episode, turn by turn."""

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """The next action, in the environment's grammar. `messages` is the conversation so far."""


PolicyFactory = Callable[[], Policy]


class OraclePolicy:
    """Follows the environment's own oracle."""

    def __init__(self) -> None:
        self._plan: Iterator[str] | None = None

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """The next command of the plan, which is made once; a plan that runs out is made anew."""
        command = next(self._plan, None) if self._plan is not None else None
        if command is None:
            self._plan = env.oracle()
            command = next(self._plan)
        return env.grammar.format(command)


class RandomPolicy:
    """Draws uniformly from what the environment suggests; a floor for every comparison."""

    def __init__(self, seed: int = 0) -> None:
        """Equal seeds make equal choices."""
        self._rng = random.Random(seed)

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """A random command."""
        return env.grammar.format(env.random_command(self._rng))


class ReplayPolicy:
    """Repeats recorded actions."""

    def __init__(self, actions: Sequence[str]) -> None:
        """`actions` as the policy wrote them, in the environment's grammar."""
        self._actions = iter(actions)

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """The next recorded action. Raises UsageError when there is none left."""
        action = next(self._actions, None)
        if action is None:
            raise UsageError("the recorded actions ran out before the episode ended: was it recorded elsewhere?")
        return action


class ChatPolicy:
    """A model behind an OpenAI-compatible `/v1/chat/completions` server. Keeps no state, so episodes may share it."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        temperature: float = 1.0,
        max_tokens: int = 512,
        timeout_s: float = 600.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` is the address up to and including `/v1`; `transport` replaces the network (tests)."""
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._request: dict[str, Any] = {"model": model, "temperature": temperature, "max_tokens": max_tokens}
        self._client = httpx.AsyncClient(
            base_url=base_url.rstrip("/") + "/", headers=headers, timeout=timeout_s, transport=transport
        )

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """The model's next message. Raises EngineError if the server fails."""
        body = {**self._request, "messages": list(messages)}
        answer = await post_json(self._client, "chat/completions", body)
        try:
            return answer["choices"][0]["message"]["content"] or ""
        except (KeyError, IndexError, TypeError):
            raise EngineError(f"{self._client.base_url}chat/completions returned no message: {answer!r:.300}") from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
