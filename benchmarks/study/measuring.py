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
_EVAL_SEED = 7000


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
        limits=Limits(settings.long, settings.max_tokens, settings.max_turn_tokens),
        sampling=Sampling(settings.max_turn_tokens, temperature),
        concurrency=128,
    )
    return [game_of(row["group"], one.trajectory) for row, one in zip(rows, run_sync(played), strict=True)]


def game_of(kind: str, trajectory: Any) -> Game:
    turns = len(trajectory.turns)
    return kind, turns if trajectory.success else 0, turns


def digest(games: Sequence[Game], limits: Sequence[int]) -> dict[str, Any]:
    """Success within each turn limit and per kind (within the longest), and the number of turns."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in games))
    own = {name: [game for game in games if game[0] == name] for name in kinds}
    return {
        "within": {str(limit): within(games, limit) for limit in limits},
        "kinds": {name: {str(limit): within(own[name], limit) for limit in limits} for name in kinds},
        "turns": round(fmean(turns for _, _, turns in games), 3),
    }


def within(games: Sequence[Game], limit: int) -> float:
    """The share of episodes won within `turns` turns."""
    return round(fmean(0 < won <= limit for _, won, _ in games), 4)
