"""`agentgym train agentevol`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from trl import SFTConfig

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, Limits
from agentgym_envs.rollout.mixture import MixtureEnv
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.cli.arguments import EnvArguments, parse
from agentgym_trl.cli.environments import only_environment
from agentgym_trl.cli.sft import DemoArguments, codec_of, load_demonstrations
from agentgym_trl.run_directory import claim_run_directory

if TYPE_CHECKING:
    from agentgym_trl.agentevol import Evaluate, EvolSettings
    from agentgym_trl.sft import Demonstration


@dataclass
class EvolArguments:
    """Options of exploration and of the selection of episodes."""

    rounds: int = field(default=3, metadata={"help": "Rounds of exploration, after one of behaviour cloning."})
    explore_tasks: int | None = field(
        default=256, metadata={"help": "Tasks per round, drawn from --split and --groups; 0: all of a finite set."}
    )
    episodes_per_task: int = field(default=4, metadata={"help": "Episodes per task."})
    temperature: float = field(default=1.0, metadata={"help": "Sampling temperature of exploration."})
    threshold: float | None = field(
        default=None, metadata={"help": "Min score of an episode to keep; by default it must succeed."}
    )
    keep: Literal["all", "last"] = field(
        default="all", metadata={"help": "Train on the kept episodes of all rounds, or of the last round only."}
    )
    max_per_task: int | None = field(
        default=None, metadata={"help": "Max kept trajectories per task to train on, the shortest first."}
    )
    max_turns: int = field(default=30, metadata={"help": "Max turns of an episode."})
    max_tokens: int = field(default=8192, metadata={"help": "Max tokens of an episode after its prompt."})
    max_turn_tokens: int = field(default=512, metadata={"help": "Max tokens of an answer."})
    explore_batch: int = field(default=128, metadata={"help": "Episodes that run at the same time."})
    eval_tasks: int = field(default=0, metadata={"help": "Validation tasks to evaluate each round's model on."})


def train_agentevol(argv: Sequence[str]) -> int:
    """Explore, keep the successes, train the base model on them, repeat. Returns the exit code."""
    env_args, args, model_args, demo_args, evol_args = parse(SFTConfig, argv, DemoArguments, EvolArguments)
    from trl import get_peft_config  # with the trainer it takes seconds, which --help need not wait for

    from agentgym_trl.agentevol import agentevol, print_rounds
    from agentgym_trl.cli.runs import model_name, run_settings

    environment = only_environment(env_args)
    codec = codec_of(args, model_args, demo_args)
    settings = evol_settings(evol_args, env_args, args.seed)
    demonstrations = _trajectories(load_demonstrations(demo_args.demos, env_args, environment, args.seed))
    evaluate = _evaluate(environment, settings, evol_args.eval_tasks, codec, args)
    options = {name: value for name, value in asdict(evol_args).items() if name not in ("rounds", "explore_batch")}
    run = run_settings(args, "agentevol", env_args, model_args, **asdict(demo_args), **options)
    console = Console(stderr=True)
    try:
        rounds = agentevol(
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
    except KeyboardInterrupt:
        console.print("[yellow]Stopped.[/] Episodes and models are saved; --resume continues the run.")
        return 130
    print_rounds(console, rounds)
    console.print(f"[green]Done:[/] the last model is in {rounds[-1].model}, every round's in {args.output_dir}")
    return 0


def evol_settings(evol: EvolArguments, env: EnvArguments, seed: int) -> EvolSettings:
    """Convert the options to the settings of `agentevol`. Raises UsageError."""
    from agentgym_trl.agentevol import EvolSettings
    from agentgym_trl.exploration import PlaySettings

    for name in ("max_turns", "max_tokens", "max_turn_tokens", "explore_batch"):
        if getattr(evol, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(evol, name)}")
    return EvolSettings(
        rounds=evol.rounds,
        tasks=evol.explore_tasks or None,
        episodes_per_task=evol.episodes_per_task,
        threshold=evol.threshold,
        keep=evol.keep,
        max_per_task=evol.max_per_task,
        split=env.split,
        groups=env.groups,
        play=PlaySettings(
            Limits(evol.max_turns, evol.max_tokens, evol.max_turn_tokens), evol.temperature, evol.explore_batch
        ),
        seed=seed,
    )


def _trajectories(demonstrations: Sequence[Demonstration]) -> list[Trajectory]:
    trajectories = [d for d in demonstrations if isinstance(d, Trajectory)]
    if len(trajectories) < len(demonstrations):
        raise UsageError(
            "agentevol needs --demos with trajectories of its environment (JSONL), which `agentgym demos` and `eval` "
            "write; conversations do not name the task that they solve (`train sft` accepts them)"
        )
    return trajectories


def _evaluate(
    environment: MixtureEnv, settings: EvolSettings, count: int, codec: ChatCodec, args: SFTConfig
) -> Evaluate | None:
    """Evaluate on validation tasks, sampled as in exploration."""
    if count < 1:
        return None
    from agentgym_trl.engines import HFEngine
    from agentgym_trl.exploration import evaluator
    from agentgym_trl.models import load_model

    tasks = text_env(environment.make()).tasks.sample(count, split="validation", groups=settings.groups, seed=1)

    def load(model: str) -> tuple[Any, ChatCodec]:
        return HFEngine(load_model(model, dtype="auto").to(args.device), codec.tokenizer), codec

    return evaluator(tasks, environment.make, load, settings.play)
