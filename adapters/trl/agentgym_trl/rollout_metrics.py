"""What is logged of the episodes of a rollout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentgym_envs.core import StopReason
from agentgym_envs.rollout import EpisodeSpec, TokenTrajectory
from agentgym_envs.trajectory import Trajectory


def summarise(specs: Sequence[EpisodeSpec], episodes: Sequence[TokenTrajectory]) -> dict[str, float]:
    """The metrics of one rollout over its usable episodes; with several environments, of each as well."""
    trajectories = [episode.trajectory for episode in episodes]
    stops = Counter(trajectory.stop_reason for trajectory in trajectories)
    metrics = {
        **_scores(specs, trajectories),
        # All of them at all times: a mean over steps or processes would leave out those that say nothing.
        **{f"rollout/stop/{reason}": stops[reason] / len(episodes) for reason in StopReason if reason != "closed"},
    }
    names = short_names(sorted({spec.env for spec in specs if spec.env}))
    for env, name in names.items() if len(names) > 1 else ():
        own = [place for place, spec in enumerate(specs) if spec.env == env]
        scores = _scores([specs[place] for place in own], [trajectories[place] for place in own])
        metrics |= {key.replace("rollout/", f"rollout/{name}/"): value for key, value in scores.items()}
    return metrics


def short_names(ids: Sequence[str]) -> dict[str, str]:
    """`AgentGym/TextCraft-v0` as `TextCraft`, wherever that is one of a kind."""
    short = {env_id: env_id.rpartition("/")[2].rpartition("-v")[0] or env_id for env_id in ids}
    count = Counter(short.values())
    return {env_id: name if count[name] == 1 else env_id for env_id, name in short.items()}


def _scores(specs: Sequence[EpisodeSpec], trajectories: Sequence[Trajectory]) -> dict[str, float]:
    usable = [trajectory for trajectory in trajectories if trajectory.usable]
    turns = [turn for trajectory in usable for turn in trajectory.turns]
    return {
        "rollout/success": _mean([float(trajectory.success) for trajectory in usable]),
        "rollout/score": _mean([trajectory.score for trajectory in usable]),
        "rollout/turns": _mean([len(trajectory.turns) for trajectory in usable]),
        "rollout/max_turns": _mean([float(spec.max_turns or 0) for spec in specs]),
        "rollout/invalid_actions": _mean([float(turn.info.get("invalid_action") is not None) for turn in turns]),
        "rollout/cut_answers": _mean([float(turn.info.get("finish") == "length") for turn in turns]),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
