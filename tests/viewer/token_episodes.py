"""Episodes with tokens, from a tokenizer with one token per byte."""

from __future__ import annotations

from dataclasses import replace

from agentgym_envs.rollout import ChatCodec, TokenTrajectory
from tests.rollout.families import FAMILIES, roll

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())


def episode(*answers: str, seen: str = "You see a door.", meta: dict[str, object] | None = None) -> TokenTrajectory:
    """The observation is constant and each reward 0.25; all tokens have different log-probabilities.

    Without times, so that equal answers make equal records.
    """
    says = [seen] * len(answers) + ["The end."]
    one = roll(CODEC, [CODEC.encode_answer(answer) for answer in answers], says, rewards=[0.25] * len(answers))
    logprobs = [-0.013 * index * mask for index, mask in enumerate(one.assistant_mask)]
    return replace(one, logprobs=logprobs, trajectory=replace(one.trajectory, meta=meta or {}, times=None))
