"""Episodes split into contexts that do not change them."""

from __future__ import annotations

from agentgym_envs.rollout import TokenTrajectory
from agentgym_envs.rollout.tokens import join_contexts


def split(episode: TokenTrajectory) -> TokenTrajectory:
    """The same episode with a context for each turn, whose prompt is everything before."""
    if len(episode.turn_spans) < 2:
        return episode
    parts = []
    for number, (begin, end) in enumerate(episode.turn_spans, 1):
        last = number == len(episode.turn_spans)
        parts.append(
            TokenTrajectory(
                episode.trajectory,
                [*episode.prompt_ids, *episode.ids[:begin]],
                episode.ids[begin:end],
                [1] * (end - begin),
                episode.rewards[begin:end],
                ((0, end - begin),),
                None if episode.logprobs is None else episode.logprobs[begin:end],
                episode.bootstrap_ids if last else [],
                answer_turns=(number,),
            )
        )
    return join_contexts(parts)
