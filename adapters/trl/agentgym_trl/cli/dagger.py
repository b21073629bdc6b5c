"""`agentgym train dagger`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from trl import SFTConfig

from agentgym_envs.errors import UsageError
from agentgym_trl.cli.arguments import EnvArguments, parse
from agentgym_trl.cli.rounds import ExploreArguments, explore_settings, run_rounds
from agentgym_trl.cli.sft import DemoArguments

if TYPE_CHECKING:
    from agentgym_trl.dagger import DaggerSettings


@dataclass
class DaggerArguments(ExploreArguments):
    """Options of play, of the oracle, and of the data."""

    rounds: int = field(default=4, metadata={"help": "Rounds of play, labels and training."})
    episodes_per_task: int = field(default=1, metadata={"help": "Episodes per task."})
    oracle_share: str = field(
        default="1,0",
        metadata={
            "help": "Probability that a turn is the oracle's, for each round; the last number holds for all later "
            "rounds. decay:P is P ** (round - 1)."
        },
    )
    oracle_seconds: float | None = field(
        default=None,
        metadata={"help": "Seconds of a round that the oracle may take; states after them have no label."},
    )
    keep: Literal["all", "last"] = field(
        default="all", metadata={"help": "Train on the labels of all rounds (DAgger), or of the last round only."}
    )
    start: Literal["base", "last"] = field(
        default="base", metadata={"help": "The model that a round trains: --model, or that of the last round."}
    )

    def __post_init__(self) -> None:
        """Write a number or a list of a config file as the text of the option."""
        given: Any = self.oracle_share
        self.oracle_share = ",".join(map(str, given if isinstance(given, list) else [given]))


def train_dagger(argv: Sequence[str]) -> int:
    """Play, let the oracle label the visited states, imitate all labels, repeat. Returns the exit code."""
    parsed = parse(SFTConfig, argv, DemoArguments, DaggerArguments)
    from agentgym_trl.dagger import dagger, print_rounds

    env_args, args, *_, dagger_args = parsed
    if env_args.tasks is not None:
        raise UsageError("dagger plays --explore-tasks tasks per round; leave out --tasks")
    settings = dagger_settings(dagger_args, env_args, args.seed)
    return run_rounds("dagger", dagger, print_rounds, parsed, settings, demonstrate=False)


def dagger_settings(options: DaggerArguments, env: EnvArguments, seed: int) -> DaggerSettings:
    """Convert the options to the settings of `dagger`. Raises UsageError."""
    from agentgym_trl.dagger import DaggerSettings, OracleShare

    return DaggerSettings(
        **explore_settings(options, env, seed),
        oracle_share=OracleShare.parse(options.oracle_share),
        oracle_seconds=options.oracle_seconds,
        keep=options.keep,
        start=options.start,
    )
