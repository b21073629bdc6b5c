"""The budget of rollout tokens: tokens spent per step, and the schedules that follow from them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

Row = dict[str, float]
_WARM, _LAST = 0.05, 0.1


class Ledger:
    """The tokens of each step's rollouts, one line per step in a file, so that a resumed run continues with them.

    `sampled` counts the tokens that the policy wrote in the kept episodes; `processed` counts all tokens of these
    episodes once, including prompts and observations.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        self.rows: list[Row] = [json.loads(line) for line in lines]

    def rewind(self, step: int) -> None:
        """Forget the steps after this one: they are trained again."""
        self.rows = [row for row in self.rows if row["step"] <= step]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(json.dumps(row) + "\n" for row in self.rows), encoding="utf-8")

    def add(self, row: Row) -> None:
        self.rows.append(row)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def total(self, name: str, step: int | None = None) -> float:
        """The sum over all steps, or those up to `step`."""
        return sum(row[name] for row in self.rows if step is None or row["step"] <= step)


def cost(step: int, episodes: Sequence[Any], cpu_seconds: float) -> Row:
    """The line of a step, from the token trajectories that were played for it."""
    return {
        "step": step,
        "limit": fmean(episode.trajectory.meta["max_turns"] for episode in episodes) if episodes else 0.0,
        "sampled": sum(sum(episode.assistant_mask) for episode in episodes),
        "processed": sum(len(episode.prompt_ids) + len(episode.ids) for episode in episodes),
        "episodes": len(episodes),
        "turns": sum(len(episode.trajectory.turns) for episode in episodes),
        "won": sum(bool(episode.trajectory.success) for episode in episodes),
        "cpu_seconds": round(cpu_seconds, 2),
    }


def rate(share: float) -> float:
    """The learning rate's factor after a share of the budget: it grows for a twentieth, then falls to a tenth.

    By tokens, not by steps: how many steps a run has follows from how long its episodes are.
    """
    return min(0.2 + 0.8 * share / _WARM, 1.0) * (1 - (1 - _LAST) * min(share, 1.0))


def crossed(before: float, after: float, budget: int, marks: int) -> list[int]:
    """Which of the `marks` equal parts of the budget a step has completed."""
    return [mark for mark in range(1, marks + 1) if before < budget * mark / marks <= after]


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time to stop, in seconds since the epoch; None means never."""

    at: float | None = None

    @property
    def passed(self) -> bool:
        return self.at is not None and time.time() >= self.at

    @property
    def left(self) -> float | None:
        """Seconds."""
        return None if self.at is None else max(self.at - time.time(), 0.0)
