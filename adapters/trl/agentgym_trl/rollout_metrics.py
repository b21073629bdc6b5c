"""Metrics of the episodes of a rollout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentgym_envs.core import StopReason
from agentgym_envs.registration import short_names
from agentgym_envs.rollout import EpisodeSpec
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.agent_trajectories import Episode, agent_trajectories

_PER_AGENT = ("score", "turns", "invalid_actions", "truncated_answers")


@dataclass(frozen=True, slots=True)
class EpisodeMetrics:
    """The numbers of one episode, or of one `agent` of a team in it; small, as processes gather them."""

    env: str
    max_turns: int
    usable: bool
    success: bool
    score: float
    turns: int
    invalid_actions: int
    truncated_answers: int
    stop: str | None
    agent: str = ""


def facts(specs: Sequence[EpisodeSpec], episodes: Sequence[Episode]) -> list[EpisodeMetrics]:
    """The facts of each episode in order, each followed by those of the members of its team."""
    return [found for spec, episode in zip(specs, episodes, strict=True) for found in _episode_facts(spec, episode)]


def summarise(episodes: Sequence[EpisodeMetrics], envs: Sequence[str] = ()) -> dict[str, float]:
    """The metrics of one rollout over its usable episodes; with several `envs`, also those of each environment.

    A team's episode counts once; each of its agents has further metrics.

    Pass the episodes of all processes: a mean of per-process means would weigh them by process. Environments without
    episodes have no metrics, and without usable episodes there are no means.
    """
    whole = [episode for episode in episodes if not episode.agent]
    stops = Counter(episode.stop for episode in whole)
    metrics = {
        **_scores(whole),
        # Always all reasons: a mean over steps would skip steps without a value.
        **{f"rollout/stop/{reason}": stops[reason] / len(whole) for reason in StopReason if reason != "closed"},
    }
    for env, name in short_names(envs).items() if len(envs) > 1 else ():
        scores = _scores([episode for episode in whole if episode.env == env])
        metrics |= {key.replace("rollout/", f"rollout/{name}/"): value for key, value in scores.items()}
    return metrics | _by_agent([episode for episode in episodes if episode.agent])


def _by_agent(members: Sequence[EpisodeMetrics]) -> dict[str, float]:
    """The metrics in which the agents of a team differ."""
    metrics: dict[str, float] = {}
    for agent in dict.fromkeys(member.agent for member in members):
        scores = _scores([member for member in members if member.agent == agent])
        names = [name for name in _PER_AGENT if f"rollout/{name}" in scores]
        metrics |= {f"rollout/{agent}/{name}": scores[f"rollout/{name}"] for name in names}
    return metrics


def _episode_facts(spec: EpisodeSpec, episode: Episode) -> Iterator[EpisodeMetrics]:
    yield _facts(spec, episode.trajectory)
    for agent, own in agent_trajectories(episode).items():
        if agent:
            yield _facts(spec, own.trajectory, agent)


def _facts(spec: EpisodeSpec, trajectory: Trajectory, agent: str = "") -> EpisodeMetrics:
    turns = trajectory.turns
    return EpisodeMetrics(
        spec.env,
        spec.max_turns or 0,
        trajectory.usable,
        bool(trajectory.success),
        float(trajectory.score),
        len(turns),
        sum(turn.info.get("invalid_action") is not None for turn in turns),
        sum(turn.info.get("finish") == "length" for turn in turns),
        trajectory.stop_reason,
        agent,
    )


def _scores(episodes: Sequence[EpisodeMetrics]) -> dict[str, float]:
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
        "rollout/invalid_actions": sum(episode.invalid_actions for episode in usable) / max(turns, 1),
        "rollout/truncated_answers": sum(episode.truncated_answers for episode in usable) / max(turns, 1),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
