"""What is logged of the episodes of a rollout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.core import StopReason
from agentgym_envs.registration import short_names
from agentgym_envs.rollout import EpisodeSpec, TokenTrajectory


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """What is told of one episode; small, since the processes of a run tell each other."""

    env: str
    max_turns: int
    usable: bool
    success: bool
    score: float
    turns: int
    invalid: int
    cut: int
    stop: str | None


def facts(specs: Sequence[EpisodeSpec], episodes: Sequence[TokenTrajectory]) -> list[EpisodeFacts]:
    """The facts of episodes, in order."""
    return [_facts(spec, episode) for spec, episode in zip(specs, episodes, strict=True)]


def summarise(episodes: Sequence[EpisodeFacts], envs: Sequence[str] = ()) -> dict[str, float]:
    """The metrics of one rollout over its usable episodes; if `envs` names several environments, of each as well.

    Give it the episodes of all processes: a mean of their means would weigh them by where they were played. An
    environment that was not played is left out, and so is what only usable episodes can tell where there are none.
    """
    stops = Counter(episode.stop for episode in episodes)
    metrics = {
        **_scores(episodes),
        # All of them at all times: a mean over steps would leave out those that say nothing.
        **{f"rollout/stop/{reason}": stops[reason] / len(episodes) for reason in StopReason if reason != "closed"},
    }
    for env, name in short_names(envs).items() if len(envs) > 1 else ():
        own = [episode for episode in episodes if episode.env == env]
        metrics |= {key.replace("rollout/", f"rollout/{name}/"): value for key, value in _scores(own).items()}
    return metrics


def _facts(spec: EpisodeSpec, episode: TokenTrajectory) -> EpisodeFacts:
    trajectory, turns = episode.trajectory, episode.trajectory.turns
    return EpisodeFacts(
        spec.env,
        spec.max_turns or 0,
        trajectory.usable,
        bool(trajectory.success),
        float(trajectory.score),
        len(turns),
        sum(turn.info.get("invalid_action") is not None for turn in turns),
        sum(turn.info.get("finish") == "length" for turn in turns),
        trajectory.stop_reason,
    )


def _scores(episodes: Sequence[EpisodeFacts]) -> dict[str, float]:
    limits = {"rollout/max_turns": _mean([float(episode.max_turns) for episode in episodes])} if episodes else {}
    usable = [episode for episode in episodes if episode.usable]
    if not usable:
        return limits
    turns = sum(episode.turns for episode in usable)
    return {
        "rollout/success": _mean([float(episode.success) for episode in usable]),
        "rollout/score": _mean([episode.score for episode in usable]),
        "rollout/turns": turns / len(usable),
        **limits,
        "rollout/invalid_actions": sum(episode.invalid for episode in usable) / max(turns, 1),
        "rollout/cut_answers": sum(episode.cut for episode in usable) / max(turns, 1),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
