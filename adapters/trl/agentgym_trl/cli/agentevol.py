"""`agentgym train agentevol`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Literal

from rich.console import Console
from trl import SFTConfig

from agentgym_trl.cli.arguments import parse
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
    env_args, args, model_args, demo_args, evol_args = parse(SFTConfig, argv, DemoArguments, EvolArguments)
    from trl import get_peft_config  # with the trainer it takes seconds, which --help need not wait for

    from agentgym_trl.agentevol import EvolSettings, agentevol, print_rounds
    from agentgym_trl.cli.runs import model_name, run_settings
    from agentgym_trl.rounds import Round

    environment = only_environment(env_args)
    codec = codec_of(args, model_args, demo_args)
    chosen = {name: getattr(evol_args, name) for name in ("threshold", "keep", "max_per_task")}
    settings = EvolSettings(**explore_settings(evol_args, env_args, args.seed), **chosen)
    loaded = load_demonstrations(demo_args.demos, env_args, environment, args.seed)
    demonstrations = only_trajectories(loaded, "agentevol")
    evaluate = evaluation(environment, settings, evol_args.eval_tasks, codec, args)
    options = {name: value for name, value in asdict(evol_args).items() if name not in UNRECORDED}
    run = run_settings(args, "agentevol", env_args, model_args, **asdict(demo_args), **options)

    def train(console: Console) -> list[Round]:
        return agentevol(
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
