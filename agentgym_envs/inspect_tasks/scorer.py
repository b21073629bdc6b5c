"""The scorer: score and success of an episode, by group, without episodes in which the environment failed."""

from __future__ import annotations

from inspect_ai.scorer import Score, Scorer, Target, grouped, mean, scorer, stderr
from inspect_ai.solver import TaskState
from inspect_ai.util import store_as

from agentgym_envs.core import StopReason
from agentgym_envs.inspect_tasks.solver import EpisodeState


@scorer(metrics={"score": [mean(), stderr(), grouped(mean(), "group", all=False)], "success": [mean(), stderr()]})
def episode_score() -> Scorer:
    """Read the score from the episode; `env_error` is unscored, as such an episode says nothing about the model."""

    async def score(state: TaskState, target: Target) -> Score:
        episode = store_as(EpisodeState)
        stop = episode.stop_reason or StopReason.CLOSED.value
        metadata = {**episode.model_dump(exclude={"store", "instance"}), "stop_reason": stop}
        if stop == StopReason.ENV_ERROR:
            return Score.unscored(reason=stop, explanation=episode.error, metadata=metadata)
        value = {"score": episode.score, "success": float(episode.success)}
        return Score(value=value, answer=state.output.completion, explanation=stop, metadata=metadata)

    return score
