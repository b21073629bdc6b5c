"""Engines that answer with known texts, and a fork of an episode at each of its turns."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Fork,
    Generation,
    Limits,
    Sampling,
    TokenTrajectory,
    play_forks,
    play_many,
    play_many_as_agent,
)
from tests.rollout.families import FAMILIES

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
LIMITS = Limits(max_turns=5, max_tokens=4000, max_turn_tokens=60)


class TextEngine:
    """Answers with one of some texts, chosen by the tokens that it reads."""

    def __init__(self, codec: ChatCodec, texts: Sequence[str], salt: str = "") -> None:
        self.codec, self.texts, self.salt = codec, texts, salt
        self.calls = 0

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        self.calls += 1
        number = hashlib.blake2b(f"{self.salt}{list(prompt_ids)}".encode(), digest_size=4).digest()[0]
        ids = self.codec.encode_answer(self.texts[number % len(self.texts)])[: sampling.max_tokens]
        return Generation(ids, "stop" if ids[-1] in self.codec.stop_ids else "length", [-number / 100] * len(ids))


class PlanEngine(TextEngine):
    """Answers with the texts in their order: the n-th in the n-th turn."""

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        [end] = self.codec.stop_ids
        ids = self.codec.encode_answer(self.texts[list(prompt_ids).count(end) // 2 - 1])
        return Generation(ids, "stop", [0.0] * len(ids))


def fork_every_turn(
    make: Callable[[], Any],
    engine: Any,
    codec: ChatCodec = CODEC,
    agent: Any = None,
    task: str | None = None,
    limits: Limits = LIMITS,
) -> tuple[TokenTrajectory, list[TokenTrajectory]]:
    async def run() -> Any:
        specs = [EpisodeSpec(task, 3, {"step": 1})]
        if agent is None:
            [played] = await play_many(specs, make, engine, codec, limits=limits)
        else:
            [played] = await play_many_as_agent(specs, make, agent, engine, codec, limits=limits)
        forks = [Fork.of(specs[0], played, turn) for turn in range(1, len(played.trajectory.turns) + 1)]
        return played, await play_forks(forks, make, engine, codec, limits=limits, agent=agent)

    return asyncio.run(run())
