"""`agentgym train dagger`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from trl import SFTConfig

from agentgym_envs.errors import UsageError
from agentgym_trl.cli.arguments import EnvArguments, parse
from agentgym_trl.cli.environments import only_environment
from agentgym_trl.cli.rounds import (
    UNRECORDED,
    ExploreArguments,
    evaluation,
    explore_settings,
    only_trajectories,
    run_rounds,
)
from agentgym_trl.cli.sft import DemoArguments, codec_of, load_demonstrations
from agentgym_trl.run_directory import claim_run_directory

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
    env_args, args, model_args, demo_args, dagger_args = parse(SFTConfig, argv, DemoArguments, DaggerArguments)
    from trl import get_peft_config  # with the trainer it takes seconds, which --help need not wait for

    from agentgym_trl.cli.runs import model_name, run_settings
    from agentgym_trl.dagger import dagger, print_rounds
    from agentgym_trl.rounds import Round

    if env_args.tasks is not None:
        raise UsageError("dagger plays --explore-tasks tasks per round; leave out --tasks")
    environment = only_environment(env_args)
    codec = codec_of(args, model_args, demo_args)
    settings = dagger_settings(dagger_args, env_args, args.seed)
    loaded = load_demonstrations(demo_args.demos, env_args, environment, args.seed) if demo_args.demos else []
    demonstrations = only_trajectories(loaded, "dagger")
    evaluate = evaluation(environment, settings, dagger_args.eval_tasks, codec, args)
    options = {name: value for name, value in asdict(dagger_args).items() if name not in UNRECORDED}
    run = run_settings(args, "dagger", env_args, model_args, **asdict(demo_args), **options)

    def train(console: Console) -> list[Round]:
        return dagger(
            model_name(model_args, args),
            demonstrations,
            environment.make,
            codec,
            args,
            settings,
            evaluate=evaluate,
            on_begin=partial(claim_run_directory, args.output_dir, run, resume=env_args.resume),
            console=console,
            peft_config=get_peft_config(model_args),
        )

    return run_rounds(train, print_rounds, args.output_dir)


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
