"""Models that agents talk to: token ids in and out, or messages over HTTP.

All episodes share a `Model`, which opens a `Dialogue` for each attempt. A dialogue answers lists of messages and keeps
the budget: a context with its answer is at most `Limits.max_tokens` longer than the first prompt of the attempt, and a
token engine also keeps to `Limits.max_context`. For an agent that never rewrites its context, this is the bound of
`play`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import BatchEngine, Engine, Sampling
from agentgym_envs.rollout.play import Limits, sample_answer
from agentgym_envs.rollout.policies import ChatClient, ModelReply
from agentgym_envs.rollout.tokens import ContextDraft, TokenBuilder, TokenTrajectory
from agentgym_envs.trajectory import Message, Trajectory

_TOKENS_PER_CHARACTER = 0.25


@dataclass(slots=True)
class Usage:
    """Calls and tokens of a model so far. A token count becomes `None` with the first reply that lacks it."""

    calls: int = 0
    prompt_tokens: int | None = 0
    answer_tokens: int | None = 0

    def add(self, other: Usage | ModelReply) -> None:
        """Add a reply, or the usage of another dialogue."""
        self.calls += other.calls if isinstance(other, Usage) else 1
        self.prompt_tokens = _sum(self.prompt_tokens, other.prompt_tokens)
        self.answer_tokens = _sum(self.answer_tokens, other.answer_tokens)


class Dialogue(ABC):
    """The calls to a model in one attempt at an episode."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.usage = Usage()
        self.tools: list[dict[str, Any]] = []
        """Native tools of the environment, set before the first call."""

    async def reply(self, messages: Sequence[Message], max_tokens: int | None = None) -> ModelReply | None:
        """The model's answer of at most `max_tokens`; None if the budget is used up.

        The last message must be the user's. Raises EngineError if the model fails.
        """
        cap = min(self.room(messages), self.limits.max_turn_tokens)
        cap = cap if max_tokens is None else min(cap, max_tokens)
        if cap < 1:
            return None
        reply = await self.ask(list(messages), cap)
        self.usage.add(reply)
        return reply

    @abstractmethod
    def room(self, messages: Sequence[Message]) -> int:
        """The number of tokens that the budget leaves for an answer to these messages; may be below 1."""

    @abstractmethod
    def add_reward(self, reward: float) -> None:
        """Record that the last answer was an action, with this reward."""

    @abstractmethod
    def segments(self, trajectory: Trajectory) -> list[TokenTrajectory]:
        """The token sequences to train on, one per context that the model answered in; empty without token ids."""

    @abstractmethod
    async def ask(self, messages: list[Message], cap: int) -> ModelReply:
        """Ask the model for at most `cap` tokens."""


class Model(Protocol):
    """Opens dialogues. `batch` is the engine that `play_many_agents` announces its workers to."""

    @property
    def batch(self) -> BatchEngine | None: ...  # noqa: D102

    def open(self, limits: Limits) -> Dialogue:
        """Open a dialogue for one attempt."""


class TokenModel:
    """A token engine that reads messages. It counts tokens exactly and keeps the sampled ids for training."""

    def __init__(self, engine: Engine, codec: ChatCodec, sampling: Sampling | None = None) -> None:
        """The limits of the episode bound `sampling.max_tokens`."""
        self._engine, self._codec, self._sampling = engine, codec, sampling

    @property
    def batch(self) -> BatchEngine | None:
        """The engine if it answers in batches, else None."""
        return self._engine if isinstance(self._engine, BatchEngine) else None

    def open(self, limits: Limits) -> Dialogue:
        """Open a dialogue for one attempt."""
        return _TokenDialogue(self._engine, self._codec, self._sampling or Sampling(limits.max_turn_tokens), limits)


class ChatModel:
    """A model behind an OpenAI-compatible `/v1/chat/completions` server.

    Token counts come from the server's `usage`. Before an answer they are estimated from the number of characters: four
    per token at first, then at the rate of the last prompt that the server counted.
    """

    batch = None

    def __init__(self, model: str, base_url: str, **options: Any) -> None:
        """`base_url` ends with `/v1`; `options` go to `ChatClient`."""
        self._server = ChatClient(model, base_url, **options)

    def open(self, limits: Limits) -> Dialogue:
        """Open a dialogue for one attempt."""
        return _ChatDialogue(self._server, limits)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()


class _TokenDialogue(Dialogue):
    def __init__(self, engine: Engine, codec: ChatCodec, sampling: Sampling, limits: Limits) -> None:
        super().__init__(limits)
        self._engine, self._any_codec, self._sampling = engine, codec, sampling
        self._builders: list[TokenBuilder] = []  # one for each context
        self._encoded: list[Message] = []  # the messages in the last context
        self._draft: ContextDraft | None = None
        self._acted = False
        self._actions = 0

    @property
    def _codec(self) -> ChatCodec:
        return self._any_codec.with_tools(self.tools)

    def room(self, messages: Sequence[Message]) -> int:
        size = self._encode(list(messages)).size
        first = len(self._builders[0].prompt_ids) if self._builders else size
        room, context = first + self.limits.max_tokens - size, self.limits.max_context
        return room if context is None else min(room, context - size)

    def add_reward(self, reward: float) -> None:
        self._builders[-1].add_reward(reward)
        self._acted = True
        self._actions += 1

    def segments(self, trajectory: Trajectory) -> list[TokenTrajectory]:
        segments = [builder.build(trajectory) for builder in self._builders]
        # The final observation follows only the last action, so only that segment keeps its bootstrap_ids.
        others = segments[:-1] if self._acted else segments
        return [*(replace(segment, bootstrap_ids=[]) for segment in others), *segments[len(others) :]]

    async def ask(self, messages: list[Message], cap: int) -> ModelReply:
        draft, self._draft = self._encode(messages), None
        prompt_tokens = draft.size
        if draft.between:
            draft.builder.add_between(draft.between)
        else:
            self._builders.append(draft.builder)
        turn = self._actions + 1
        generation = await sample_answer(self._engine, self._codec, draft.builder, self._sampling, cap, turn)
        text = self._codec.decode(generation.ids)
        self._encoded = [*messages, {"role": "assistant", "content": text}]
        self._acted = False
        return ModelReply(text, generation.finish, prompt_tokens, len(generation.ids))

    def _encode(self, messages: list[Message]) -> ContextDraft:
        """Encode the messages: as a continuation of the last context if they continue it, else from scratch."""
        if self._draft is None or self._draft.messages != messages:
            if self._builders and messages[:-1] == self._encoded and self._codec.continues(messages):
                builder = self._builders[-1]
                self._draft = ContextDraft(builder, builder.between(messages[-1]["content"]), messages)
            else:
                self._draft = ContextDraft(TokenBuilder(self._codec, self._codec.encode_prompt(messages)), [], messages)
        return self._draft


class _ChatDialogue(Dialogue):
    def __init__(self, server: ChatClient, limits: Limits) -> None:
        super().__init__(limits)
        self._server = server
        self._rate = _TOKENS_PER_CHARACTER
        self._first: int | None = None  # characters of the first prompt

    def room(self, messages: Sequence[Message]) -> int:
        size = _characters(messages)
        first = size if self._first is None else self._first
        return self.limits.max_tokens - math.ceil((size - first) * self._rate)

    def add_reward(self, reward: float) -> None:
        """Ignore the reward: messages without ids are not trained on."""

    def segments(self, trajectory: Trajectory) -> list[TokenTrajectory]:
        return []

    async def ask(self, messages: list[Message], cap: int) -> ModelReply:
        size = _characters(messages)
        self._first = size if self._first is None else self._first
        reply = await self._server.answer(messages, cap, self.tools)
        if reply.prompt_tokens and size:
            self._rate = reply.prompt_tokens / size
        return reply


def _characters(messages: Sequence[Message]) -> int:
    return sum(len(message["content"]) for message in messages)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
