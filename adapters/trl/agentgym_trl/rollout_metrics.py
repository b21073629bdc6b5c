"""What is logged of the episodes of a rollout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentgym_envs.core import StopReason
from agentgym_envs.registration import short_names
from agentgym_envs.rollout import EpisodeSpec
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.team_roles import Episode, streams

_OWN = ("score", "turns", "invalid_actions", "truncated_answers")


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """What is told of one episode, or of one `agent` of a team in it; small, as processes tell each other."""

    env: str
    max_turns: int
    usable: bool
    success: bool
    score: float
    turns: int
    invalid: int
    cut: int
    stop: str | None
    agent: str = ""


def facts(specs: Sequence[EpisodeSpec], episodes: Sequence[Episode]) -> list[EpisodeFacts]:
    """The facts of episodes, in order, each followed by those of the members of its team."""
    return [told for spec, episode in zip(specs, episodes, strict=True) for told in _told(spec, episode)]


def summarise(episodes: Sequence[EpisodeFacts], envs: Sequence[str] = ()) -> dict[str, float]:
    """The metrics of one rollout over its usable episodes; if `envs` names several environments, of each as well.

    An episode of a team counts once; what each of its agents scored and wrote is told besides.

    Give it the episodes of all processes: a mean of their means would weigh them by where they were played. An
    environment that was not played is left out, and so is what only usable episodes can tell where there are none.
    """
    whole = [episode for episode in episodes if not episode.agent]
    stops = Counter(episode.stop for episode in whole)
    metrics = {
        **_scores(whole),
        # All of them at all times: a mean over steps would leave out those that say nothing.
        **{f"rollout/stop/{reason}": stops[reason] / len(whole) for reason in StopReason if reason != "closed"},
    }
    for env, name in short_names(envs).items() if len(envs) > 1 else ():
        own = [episode for episode in whole if episode.env == env]
        metrics |= {key.replace("rollout/", f"rollout/{name}/"): value for key, value in _scores(own).items()}
    return metrics | _by_agent([episode for episode in episodes if episode.agent])


def _by_agent(members: Sequence[EpisodeFacts]) -> dict[str, float]:
    """What the agents of a team may differ in."""
    metrics: dict[str, float] = {}
    for agent in dict.fromkeys(member.agent for member in members):
        own = _scores([member for member in members if member.agent == agent])
        metrics |= {f"rollout/{agent}/{name}": own[f"rollout/{name}"] for name in _OWN if f"rollout/{name}" in own}
    return metrics


def _told(spec: EpisodeSpec, episode: Episode) -> Iterator[EpisodeFacts]:
    yield _facts(spec, episode.trajectory)
    for agent, stream in streams(episode).items():
        if agent:
            yield _facts(spec, stream.trajectory, agent)


def _facts(spec: EpisodeSpec, trajectory: Trajectory, agent: str = "") -> EpisodeFacts:
    turns = trajectory.turns
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
        agent,
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
        "rollout/truncated_answers": sum(episode.cut for episode in usable) / max(turns, 1),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
