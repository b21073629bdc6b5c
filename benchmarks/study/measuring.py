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
_TEMPERATURES = {"sampled": 1.0, "greedy": 0.0}


def measure(model: Path, settings: StudySettings, rows: Sequence[dict[str, Any]], *, full: bool = True) -> Digest:
    """Success of sampled episodes; if `full`, of greedy ones and after a slip, too."""
    found = {
        way: digest(play(model, settings, rows, temperature), settings)
        for way, temperature in _TEMPERATURES.items()
        if full or way == "sampled"
    }
    return found | ({"slip": digest(play_after_slip(model, settings, rows), settings)} if full else {})


def play(model: Path, settings: StudySettings, rows: Sequence[dict[str, Any]], temperature: float) -> list[Game]:
    """One episode of each task."""
    import torch

    from agentgym_envs.rollout import EpisodeSpec, Limits, Sampling, play_many, run_sync
    from agentgym_trl.models import load_engine

    engine, codec = load_engine(str(model))
    torch.manual_seed(_EVAL_SEED)
    played = play_many(
        [EpisodeSpec(row["task"], row["seed"]) for row in rows],
        settings.make,
        engine,
        codec,
        limits=Limits(settings.very_long, settings.max_tokens, settings.max_turn_tokens),
        sampling=Sampling(settings.max_turn_tokens, temperature),
        concurrency=128,
    )
    return [game_of(row["group"], one.trajectory) for row, one in zip(rows, run_sync(played), strict=True)]


def play_after_slip(model: Path, settings: StudySettings, rows: Sequence[dict[str, Any]]) -> list[Game]:
    """One episode of each task, whose first turn is a random command in place of the policy's."""
    import torch

    from agentgym_envs.rollout import Limits, Sampling, TokenTrajectory, play_forks, run_sync
    from agentgym_trl.models import load_engine
    from benchmarks.study.prefixes import slips

    engine, codec = load_engine(str(model))
    torch.manual_seed(_EVAL_SEED)
    limits = Limits(settings.very_long, settings.max_tokens, settings.max_turn_tokens)
    sampling = Sampling(settings.max_turn_tokens, 1.0)

    async def play_all() -> list[TokenTrajectory]:
        forks = await slips(settings, rows, codec, limits)
        return await play_forks(forks, settings.make, engine, codec, limits=limits, sampling=sampling, concurrency=128)

    played = run_sync(play_all())
    return [game_of(row["group"], one.trajectory) for row, one in zip(rows, played, strict=True)]


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
