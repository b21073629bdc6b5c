"""Policies that read and write text: random, replay, and a model behind a chat API. `oracle_policy` has the oracle.

A policy object plays one episode; a `PolicyFactory` makes one per episode.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.grammar import tools_of
from agentgym_envs.image_files import to_data_url
from agentgym_envs.model_requests import Pace, post_json
from agentgym_envs.rollout.chat_cassette import ChatCassette
from agentgym_envs.rollout.native_tools import native_messages
from agentgym_envs.trajectory import Message

if TYPE_CHECKING:
    import httpx

_OPENAI = "api.openai.com"
"""Its newer models refuse `max_tokens`, which other servers know."""


class Answer(NamedTuple):
    """The text that a policy wrote. `info` (JSON) is merged into the info of the turn."""

    text: str
    info: Mapping[str, Any] = {}


class Policy(Protocol):
    """Plays one episode, turn by turn."""

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """Return the next action in the environment's grammar.

        `messages` is the conversation so far. If observations have an image, their messages have it as `image` (bytes).
        """


class PolicyWithInfo(Protocol):
    """A policy that adds info to each action."""

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> Answer:
        """Return the next action as `Policy.act` does, with its info."""


PolicyFactory = Callable[[], Policy | PolicyWithInfo]


class RandomPolicy:
    """Plays the environment's random commands: a baseline for comparisons."""

    def __init__(self, seed: int = 0) -> None:
        """Equal seeds give equal choices."""
        self._rng = random.Random(seed)

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """Return a random command."""
        return env.grammar.format(env.random_command(self._rng))


class ReplayPolicy:
    """Repeats recorded actions."""

    def __init__(self, actions: Sequence[str]) -> None:
        """`actions` are texts in the environment's grammar, as the policy wrote them."""
        self._actions = iter(actions)

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """Return the next recorded action. Raises UsageError if none is left."""
        action = next(self._actions, None)
        if action is None:
            raise UsageError("the recorded actions ran out before the episode ended: was the environment another one?")
        return action


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's answer, with the tokens that it read and wrote (None if the server does not count them)."""

    text: str
    finish: Literal["stop", "length"]
    prompt_tokens: int | None
    answer_tokens: int | None

    @property
    def answer(self) -> Answer:
        """The reply as an action with its info."""
        return Answer(self.text, {"finish": self.finish, "tokens": self.answer_tokens})


class ChatClient:
    """An OpenAI-compatible `/v1/chat/completions` server. It keeps no state, so episodes may share it."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        temperature: float = 1.0,
        max_images: int = 1,
        timeout_s: float = 600.0,
        pace: Pace | None = None,
        cassette: ChatCassette | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` ends with `/v1`; `transport` replaces the network in tests.

        Of images, the newest `max_images` are sent with a request; many servers allow one. `pace` limits the rate of
        requests and counts them. With a `cassette`, recorded requests are not sent, and others are recorded.
        """
        import httpx

        self._max_images, self._pace, self._cassette = max_images, pace or Pace(), cassette
        self._limit = "max_completion_tokens" if urlsplit(base_url).hostname == _OPENAI else "max_tokens"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._request: dict[str, Any] = {"model": model, "temperature": temperature}
        self._client = httpx.AsyncClient(
            base_url=base_url.rstrip("/") + "/", headers=headers, timeout=timeout_s, transport=transport
        )

    async def answer(
        self, messages: Sequence[Message], max_tokens: int, tools: Sequence[Mapping[str, Any]] = ()
    ) -> ModelReply:
        """Return the model's next message of at most `max_tokens`. Raises EngineError if the server fails.

        With `tools`, calls and their results have their own roles in the request. A call in the reply becomes text in
        the format of Hermes and Qwen.
        """
        body = {**self._request, self._limit: max_tokens, "messages": with_image_parts(messages, self._max_images)}
        if tools:
            shown = _numbered(native_messages(messages))
            body |= {"messages": with_image_parts(shown, self._max_images, messages), "tools": list(tools)}
        answer = await self._complete(body)
        try:
            choice = answer["choices"][0]
            text = _with_call(choice["message"]) if tools else _text(choice["message"]["content"])
        except (KeyError, IndexError, TypeError):
            raise EngineError(f"{self._client.base_url}chat/completions returned no message: {answer!r:.300}") from None
        finish: Literal["stop", "length"] = "length" if choice.get("finish_reason") == "length" else "stop"
        usage = answer.get("usage")
        return ModelReply(text, finish, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        found = None if self._cassette is None else self._cassette.find(body)
        if found is not None:
            return found
        reply = await post_json(self._client, "chat/completions", body, self._pace)
        if self._cassette is not None:
            self._cassette.record(body, reply)
        return reply


class ChatPolicy:
    """A policy that asks a model behind a `ChatClient`. It keeps no state, so episodes may share it.

    The info of an answer has `finish`, and `tokens` and `prompt_tokens` (None if the server does not count them).
    """

    def __init__(self, model: str, base_url: str, *, max_tokens: int = 512, **options: Any) -> None:
        """`max_tokens` bounds an answer; `options` go to `ChatClient`."""
        self._server, self._max_tokens = ChatClient(model, base_url, **options), max_tokens

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> Answer:
        """Return the model's next message. Raises EngineError if the server fails."""
        reply = await self._server.answer(messages, self._max_tokens, tools_of(env.grammar))
        return Answer(reply.text, {**reply.answer.info, "prompt_tokens": reply.prompt_tokens})

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()


def with_image_parts(
    messages: Sequence[Mapping[str, Any]], most: int, sources: Sequence[Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """The messages with their images as parts of OpenAI's chat protocol; of the images, the newest `most` are kept.

    The images are in the messages or, if these were converted, in `sources`. The result of a tool has only text, so its
    image follows in a message of the user.
    """
    images = [source.get("image") for source in sources or messages]
    shown = {number for number, image in enumerate(images) if image is not None}
    kept = set(sorted(shown)[len(shown) - min(most, len(shown)) :])
    found = list[dict[str, Any]]()
    for number, message in enumerate(messages):
        plain = {name: value for name, value in message.items() if name != "image"}
        part = (
            {"type": "image_url", "image_url": {"url": to_data_url(images[number] or b"")}} if number in kept else None
        )
        if part is None:
            found.append(plain)
        elif plain["role"] == "tool":
            found += [plain, {"role": "user", "content": [part]}]
        else:
            found.append({**plain, "content": [{"type": "text", "text": plain["content"]}, part]})
    return found


def _text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list (some servers add reasoning parts, left out here).

    Raises:
        TypeError: the message has no text.
    """
    if isinstance(content, list) and content:
        texts = [part["text"] for part in content if isinstance(part, dict) and part.get("type") == "text"]
        if not texts:
            raise TypeError
        return "".join(texts)
    if content and not isinstance(content, str):
        raise TypeError
    return content or ""


def _numbered(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with an id for each call and its result, as API servers require, and arguments as JSON."""
    found = list[dict[str, Any]]()
    for number, message in enumerate(messages):
        if "tool_calls" in message:
            (call,) = message["tool_calls"]
            arguments = json.dumps(call["function"]["arguments"], ensure_ascii=False)
            call = {**call, "id": f"call{number:05}", "function": {**call["function"], "arguments": arguments}}
            message = {**message, "tool_calls": [call]}
        elif message["role"] == "tool":
            message = {**message, "tool_call_id": f"call{number - 1:05}"}
        found.append(message)
    return found


def _with_call(message: Mapping[str, Any]) -> str:
    """The text of a message and its last tool call. Raises KeyError or TypeError for a malformed message."""
    text = _text(message.get("content"))
    if not (calls := message.get("tool_calls")):
        return text
    function = calls[-1]["function"]
    arguments = function["arguments"]
    if not isinstance(arguments, str):  # some servers send an object in place of its JSON
        arguments = json.dumps(arguments, ensure_ascii=False)
    call = f'<tool_call>\n{{"name": {json.dumps(function["name"])}, "arguments": {arguments or "{}"}}}\n</tool_call>'
    return f"{text.rstrip()}\n{call}".lstrip("\n")


def _count(usage: Any, name: str) -> int | None:
    """The number of tokens in `usage`, if the server gives it."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) else None
