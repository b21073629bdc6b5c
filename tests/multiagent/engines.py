"""Engines that play teams in tests."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from agentgym_envs.multiagent.joint import JointEnv
from agentgym_envs.multiagent.joint_envs import PlannerActorEnv, TextCraftCoopEnv
from agentgym_envs.rollout import BatchEngine, ChatCodec, Generation, Limits, Sampling, ScriptedEngine
from tests.rollout.families import FAMILIES

_T = TypeVar("_T")
CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
LIMITS = Limits(max_turns=40, max_tokens=100_000)
COUNT = "tests.toy_envs:Toy/Count-v0"


def coop(**options: Any) -> TextCraftCoopEnv:
    return TextCraftCoopEnv(**options)


def counting(env_id: str = COUNT, **options: Any) -> PlannerActorEnv:
    return PlannerActorEnv(env_id=env_id, **options)


def soon(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine; a deadlock fails the test."""
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def says(*texts: str, codec: ChatCodec = CODEC) -> ScriptedEngine:
    return ScriptedEngine([codec.encode_answer(text) for text in texts], codec.stop_ids)


def scripts(rounds: Sequence[Mapping[str, str]], agents: Sequence[str], codec: ChatCodec = CODEC) -> dict[str, Any]:
    """An engine per agent that writes its part of the rounds."""
    return {agent: says(*(texts[agent] for texts in rounds if agent in texts), codec=codec) for agent in agents}


def plan_of(env: JointEnv, task: str, seed: int = 0) -> list[dict[str, str]]:
    """The oracle's rounds."""
    env.reset(seed=seed, options={"task": task})
    return [json.loads(command) for command in env.oracle()]


class Chatter(BatchEngine):
    """Writes random words, and records the size of each batch."""

    def __init__(self, words: Sequence[str], seed: int = 0, most: int = 3) -> None:
        super().__init__()
        self._words, self._rng, self._most = words, random.Random(seed), most
        self.sizes: list[int] = []

    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        self.sizes.append(len(prompts))
        return [self._say(sampling) for sampling in samplings]

    def _say(self, sampling: Sampling) -> Generation:
        text = " ".join(self._rng.choices(self._words, k=self._rng.randint(1, self._most)))
        ids = CODEC.encode_answer(text)
        kept = ids[: sampling.max_tokens]
        return Generation(kept, "stop" if kept == ids else "length", [-self._rng.random() for _ in kept])


class Listener(BatchEngine):
    """Answers with `answer(text of the prompt)`."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        super().__init__()
        self._answer = answer

    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        texts = [CODEC.tokenizer.decode(list(prompt)) for prompt in prompts]
        return [Generation(CODEC.encode_answer(self._answer(text)), "stop") for text in texts]


def name_in(prompt: str) -> str:
    """The name of the agent in a prompt."""
    found = re.search(r"You are (crafter_\d)", prompt)
    assert found
    return found[1]
