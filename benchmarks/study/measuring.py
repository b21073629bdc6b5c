"""Held-out success: one evaluation at the long turn limit gives success within every shorter one.

The policy does not see its turn limit, and token limits do not depend on it. An episode won in its third turn would
therefore be the same under a limit of three.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.study.settings import StudySettings

Game = tuple[str, int, int]
"""The kind of a task, in which turn it was won (0: it was not), and how many turns were played."""
Digest = dict[str, Any]
_EVAL_SEED = 7000
_TEMPERATURES = {"sampled": 1.0, "greedy": 0.0, "slip": 1.0}


def measure(model: Path, settings: StudySettings, rows: Sequence[dict[str, Any]], *, full: bool = True) -> Digest:
    """Success of sampled episodes; if `full`, of greedy ones and after a slip, too."""
    ways = list(_TEMPERATURES) if full else ["sampled"]
    return {way: digest(play(model, settings, rows, way), settings) for way in ways}


def play(model: Path, settings: StudySettings, rows: Sequence[dict[str, Any]], way: str) -> list[Game]:
    """One episode of each task; with the way "slip", its first turn is a random command in place of the policy's."""
    import torch

    from agentgym_envs.rollout import EpisodeSpec, Limits, Sampling, TokenTrajectory, play_forks, play_many, run_sync
    from agentgym_trl.models import load_engine
    from benchmarks.study.prefixes import slips

    engine, codec = load_engine(str(model))
    torch.manual_seed(_EVAL_SEED)
    limits = Limits(settings.very_long, settings.max_tokens, settings.max_turn_tokens)
    sampling = Sampling(settings.max_turn_tokens, _TEMPERATURES[way])
    options: dict[str, Any] = {"limits": limits, "sampling": sampling, "concurrency": 128}
    specs = [EpisodeSpec(row["task"], row["seed"]) for row in rows]

    async def play_all() -> list[TokenTrajectory]:
        if way == "slip":
            forks = await slips(specs, settings.make, codec, limits)
            return await play_forks(forks, settings.make, engine, codec, **options)
        return await play_many(specs, settings.make, engine, codec, **options)

    return [game_of(row["group"], one.trajectory) for row, one in zip(rows, run_sync(play_all()), strict=True)]


def game_of(kind: str, trajectory: Any) -> Game:
    turns = len(trajectory.turns)
    return kind, turns if trajectory.success else 0, turns


def digest(games: Sequence[Game], settings: StudySettings) -> Digest:
    """Success within each turn limit, in all and per kind, and the number of turns."""
    own = {kind.name: [game for game in games if game[0] == kind.name] for kind in settings.kinds}
    return {
        "within": {str(limit): within(games, limit) for limit in settings.limits},
        "kinds": {name: {str(limit): within(some, limit) for limit in settings.limits} for name, some in own.items()},
        "turns": round(fmean(turns for _, _, turns in games), 3),
    }


def within(games: Sequence[Game], limit: int) -> float:
    """The share of episodes won within `turns` turns."""
    return round(fmean(0 < won <= limit for _, won, _ in games), 4)
