"""`agentgym train agentevol`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from trl import SFTConfig

from agentgym_trl.cli.arguments import parse
from agentgym_trl.cli.rounds import ExploreArguments, explore_settings, run_rounds
from agentgym_trl.cli.sft import DemoArguments


@dataclass
class EvolArguments(ExploreArguments):
    """Options of exploration and of the selection of episodes."""

    threshold: float | None = field(
        default=None, metadata={"help": "Min score of an episode to keep; by default it must succeed."}
    )
    keep: Literal["all", "last"] = field(
        default="all", metadata={"help": "Train on the kept episodes of all rounds, or of the last round only."}
    )
    max_per_task: int | None = field(
        default=None, metadata={"help": "Max kept trajectories per task to train on, the shortest first."}
    )


def train_agentevol(argv: Sequence[str]) -> int:
    """Explore, keep the successes, train the base model on them, repeat. Returns the exit code."""
    parsed = parse(SFTConfig, argv, DemoArguments, EvolArguments)
    from agentgym_trl.agentevol import EvolSettings, agentevol, print_rounds

    env_args, args, *_, evol_args = parsed
    chosen = {name: getattr(evol_args, name) for name in ("threshold", "keep", "max_per_task")}
    settings = EvolSettings(**explore_settings(evol_args, env_args, args.seed), **chosen)
    return run_rounds("agentevol", agentevol, print_rounds, parsed, settings, demonstrate=True)
