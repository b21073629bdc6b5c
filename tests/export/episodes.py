"""Episodes to export: of every kind of environment, strange ones, and teams with tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
from hypothesis import strategies as st

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.export.episodes import ExportEpisode, read_files
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, RandomPolicy, play_text, run_sync
from agentgym_envs.rollout.token_file import TokenRecord, TokenWriter
from agentgym_envs.times import EpisodeTimes, TurnTimes
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter
from tests.multiagent.engines import CODEC as TEAM_CODEC
from tests.viewer.records import EPISODES
from tests.viewer.teams import with_tokens
from tests.viewer.token_episodes import CODEC, episode

TEXTCRAFT = "AgentGym/TextCraft-v0"
SECONDS = st.floats(0, 1e9, allow_nan=False)
TIMES = st.builds(
    lambda start, reset, turns: EpisodeTimes(start, reset, tuple(TurnTimes(*turn) for turn in turns)),
    SECONDS,
    SECONDS,
    st.lists(st.tuples(SECONDS, SECONDS, SECONDS), max_size=3),
)
STRANGE = st.builds(lambda one, times: replace(one, times=times), EPISODES, st.none() | TIMES)
"""Records as a file may hold them: any texts, numbers and nesting, and times of more or fewer turns."""


def played(policy: Any = None, seed: int = 0, **options: Any) -> Trajectory:
    """An episode of TextCraft; by default the oracle's."""
    env = gym.make(TEXTCRAFT, **options)
    spec = EpisodeSpec(seed=seed, meta={"policy": "oracle" if policy is None else "random"})
    found = run_sync(play_text(env, policy or OraclePolicy(), spec, limits=Limits(max_turns=12)))
    env.close()
    return Trajectory.from_json(found.to_json())


def with_answers(*answers: str, **meta: Any) -> ExportEpisode:
    """An episode with tokens, one answer per turn."""
    one = episode(*answers, meta=meta)
    return ExportEpisode(one.trajectory, [TokenRecord.of(one, CODEC)])


def of_team() -> ExportEpisode:
    """An episode of a team with the tokens of its agents."""
    team = with_tokens()
    segments = [TokenRecord.of(own, TEAM_CODEC) for own in team.per_agent.values()]
    return ExportEpisode(Trajectory.from_json(team.trajectory.to_json()), segments)


def failed_at_reset() -> Trajectory:
    """An episode whose environment did not begin."""
    one = played()
    return replace(one, turns=(), final_observation="", score=0.0, success=False, stop_reason="env_error", error="gone")


def samples() -> list[ExportEpisode]:
    """One of each kind."""
    trajectories = [
        played(),
        played(RandomPolicy(1), 1, grammar="react"),
        played(seed=2, grammar="tools"),
        failed_at_reset(),
    ]
    return [*map(ExportEpisode, trajectories), with_answers("go", "stay"), of_team()]


def write_run(folder: Path) -> Path:
    """A run of three episodes: two with tokens, and a team's without."""
    path = folder / "run" / "trajectories.jsonl"
    with TrajectoryWriter(path) as writer, TokenWriter(path) as tokens:
        for number, answers in enumerate((("go",), ("go", "stay"))):
            one = episode(*answers, meta={"policy": f"p{number}"})
            timed = replace(one.trajectory, times=EpisodeTimes(0.0, 0.5, (TurnTimes(0.5, 1.0, 0.25),) * len(answers)))
            tokens.write(writer.write(timed), [one], CODEC)
        writer.write(of_team().trajectory)
    return path.parent


def read_run(folder: Path) -> list[ExportEpisode]:
    """The episodes of `write_run`."""
    return list(read_files([folder / "trajectories.jsonl"]))
