r"""Any environment of this suite as an agent of OpenRLHF (written for 0.11.2).

    AGENTGYM_ENV=AgentGym/TextCraft-v0 AGENTGYM_MAX_TURNS=30 python -m openrlhf.cli.train_ppo_ray \
        --train.agent_func_path examples/openrlhf_agent.py \
        --data.prompt_dataset craft.jsonl --data.input_key input --data.label_key label ...

A line of craft.jsonl is {"input": "textcraft/3", "label": "{\"task\": \"textcraft/3\", \"seed\": 0}"}.

OpenRLHF takes text and encodes it itself. So the agent writes the markup of the chat template around every observation,
and breaks up text that looks like markup inside one: no page or reply can forge a turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import Any

import gymnasium as gym
import torch
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import text_env
from agentgym_envs.errors import EnvError
from agentgym_envs.rollout import ChatCodec
from agentgym_envs.trajectory import prompt_messages


def _any_of(texts: set[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))))


class Markup:
    """The text that a tokenizer's chat template writes around messages."""

    def __init__(self, tokenizer: Any) -> None:
        """Raises TemplateError for a template that changes earlier turns."""
        self.codec = ChatCodec(tokenizer)
        special = {*tokenizer.all_special_tokens, self.codec.turn_end}
        self.special = _any_of(special)
        self.added = _any_of({*special, *(token.content for token in tokenizer.added_tokens_decoder.values())})

    def plain(self, text: str) -> str:
        """Insert a space into each special token of the text, which makes it ordinary text."""
        return self.added.sub(lambda found: f"{found[0][:1]} {found[0][1:]}", text)

    def prompt(self, instructions: str, observation: str) -> str:
        """The conversation up to the beginning of the model's answer."""
        messages = prompt_messages(self.plain(instructions), self.plain(observation))
        return self._text(self.codec.encode_prompt(messages))

    def between(self, answer: str, observation: str) -> str:
        """The text between two answers: the end token, if the model did not write it, and the observation."""
        end = "" if answer.endswith(self.codec.turn_end) else self.codec.turn_end
        return end + self._text(self.codec.encode_observation(self.plain(observation)))

    def command(self, answer: str) -> str:
        """The answer without special tokens, such as the end token that OpenRLHF keeps. A grammar's tags stay."""
        return self.special.sub("", answer)

    def _text(self, ids: list[int]) -> str:
        return str(self.codec.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


class AgentInstance(AgentInstanceBase):
    """One episode. OpenRLHF makes an instance per prompt."""

    markup: Markup

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Read the variables AGENTGYM_ENV, AGENTGYM_ENV_KWARGS (JSON) and AGENTGYM_MAX_TURNS."""
        env_kwargs = json.loads(os.environ.get("AGENTGYM_ENV_KWARGS", "{}"))
        self.env = gym.make(os.environ.get("AGENTGYM_ENV", "AgentGym/TextCraft-v0"), **env_kwargs)
        self.max_turns = int(os.environ.get("AGENTGYM_MAX_TURNS", "30"))

    async def reset(self, states: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Begin the episode of the label, {"task": id, "seed": number}."""
        episode = json.loads(states["label"])
        options = {"seed": episode["seed"], "options": {"task": episode["task"]}}
        observation, info = await asyncio.to_thread(self.env.reset, **options)
        _check(info)
        return {"observation": self.markup.prompt(text_env(self.env).instructions, observation)}

    async def step(self, state_dict: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Take the model's message."""
        answer = state_dict["action_text"]
        outcome = await asyncio.to_thread(self.env.step, self.markup.command(answer))
        observation, reward, terminated, truncated, info = outcome
        _check(info)
        done = terminated or truncated or info["turn"] >= self.max_turns
        return {
            "rewards": torch.tensor(reward),  # OpenRLHF sums them
            "scores": info["score"],
            "environment_feedback": "" if done else self.markup.between(answer, observation),
            "done": done,
            "sampling_params": state_dict["sampling_params"],
            "extra_logs": {"success": float(info["success"]), "turns": info["turn"]},
        }


class AgentExecutor(MultiTurnAgentExecutor):
    """The class that OpenRLHF loads from this file."""

    def __init__(self) -> None:
        """Take no arguments, as OpenRLHF passes none."""
        super().__init__(AgentInstance)

    async def execute(self, *args: Any, hf_tokenizer: Any, **kwargs: Any) -> Any:
        """Play one episode; the first one provides the tokenizer."""
        if not hasattr(AgentInstance, "markup"):
            AgentInstance.markup = Markup(hf_tokenizer)
        return await super().execute(*args, hf_tokenizer=hf_tokenizer, **kwargs)


def _check(info: dict[str, Any]) -> None:
    """Raise EnvError after a failure of the environment: OpenRLHF cannot leave out a single episode."""
    if info["stop_reason"] == "env_error":
        raise EnvError(info["error"])
