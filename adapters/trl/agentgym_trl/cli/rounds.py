"""Options and steps that the commands with rounds of exploration share: agentevol and dagger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from trl import SFTConfig

from agentgym_envs.cli.common import note
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.registration import default_max_turns
from agentgym_envs.rollout import ChatCodec, Limits
from agentgym_envs.rollout.mixture import MixtureEnv
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.cli.arguments import EnvArguments
from agentgym_trl.cli.environments import only_environment
from agentgym_trl.cli.sft import codec_of, load_demonstrations
from agentgym_trl.run_directory import claim_run_directory

if TYPE_CHECKING:
    from agentgym_trl.rounds import Evaluate, Round, RoundSettings
    from agentgym_trl.sft import Demonstration

UNRECORDED = ("rounds", "explore_batch")
"""Options that may change when a run is resumed."""


@dataclass
class ExploreArguments:
    """Options of exploration."""

    rounds: int = field(default=3, metadata={"help": "Rounds of exploration, after one of behaviour cloning."})
    explore_tasks: int | None = field(
        default=256, metadata={"help": "Tasks per round, drawn from --split and --groups; 0: all of a finite set."}
    )
    episodes_per_task: int = field(default=4, metadata={"help": "Episodes per task."})
    temperature: float = field(default=1.0, metadata={"help": "Sampling temperature of exploration."})
    max_turns: int | None = field(
        default=None, metadata={"help": "Max turns of an episode; by default those of the environment."}
    )
    max_tokens: int = field(default=8192, metadata={"help": "Max tokens of an episode after its prompt."})
    max_turn_tokens: int = field(default=512, metadata={"help": "Max tokens of an answer."})
    explore_batch: int = field(default=128, metadata={"help": "Episodes that run at the same time."})
    eval_tasks: int = field(default=0, metadata={"help": "Validation tasks to evaluate each round's model on."})


def explore_settings(explore: ExploreArguments, env: EnvArguments, seed: int) -> dict[str, Any]:
    """The options as arguments of `RoundSettings`. Raises UsageError."""
    from agentgym_trl.exploration import PlaySettings

    if explore.max_turns is None:
        explore.max_turns = default_max_turns(env.env[0])
        note(f"at most {explore.max_turns} turns per episode, by default; --max-turns changes it")
    for name in ("max_turns", "max_tokens", "max_turn_tokens", "explore_batch"):
        if getattr(explore, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(explore, name)}")
    limits = Limits(explore.max_turns, explore.max_tokens, explore.max_turn_tokens)
    return {
        "rounds": explore.rounds,
        "tasks": explore.explore_tasks or None,
        "episodes_per_task": explore.episodes_per_task,
        "split": env.split,
        "groups": env.groups,
        "play": PlaySettings(limits, explore.temperature, explore.explore_batch),
        "seed": seed,
    }


def only_trajectories(demonstrations: Sequence[Demonstration], algorithm: str) -> list[Trajectory]:
    """The demonstrations. Raises UsageError if one is a conversation."""
    trajectories = [d for d in demonstrations if isinstance(d, Trajectory)]
    if len(trajectories) < len(demonstrations):
        raise UsageError(
            f"{algorithm} needs --demos with trajectories of its environment (JSONL), which `agentgym demos` and "
            "`eval` write; conversations do not name the task that they solve (`train sft` accepts them)"
        )
    return trajectories


def evaluation(
    environment: MixtureEnv, settings: RoundSettings, count: int, codec: ChatCodec, args: SFTConfig
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


def run_rounds(
    algorithm: str,
    method: Callable[..., Sequence[Round]],
    show: Callable[[Console, Sequence[Round]], None],
    parsed: Sequence[Any],
    settings: RoundSettings,
    *,
    demonstrate: bool,
) -> int:
    """Do all rounds and show their table. Returns 0, or 130 if the run was interrupted.

    `parsed` are the arguments of the environment, of training, of the model, of demonstrations and of exploration. With
    `demonstrate`, the oracle demonstrates if there is no --demos.
    """
    from trl import get_peft_config  # with the trainer it takes seconds, which --help need not wait for

    from agentgym_trl.cli.runs import model_name, run_settings

    env_args, args, model_args, demo_args, explore = parsed
    environment, codec = only_environment(env_args), codec_of(args, model_args, demo_args)
    wanted = demonstrate or demo_args.demos
    loaded = load_demonstrations(demo_args.demos, env_args, environment, args.seed) if wanted else []
    demonstrations = only_trajectories(loaded, algorithm)
    evaluate = evaluation(environment, settings, explore.eval_tasks, codec, args)
    options = {name: value for name, value in asdict(explore).items() if name not in UNRECORDED}
    run = run_settings(args, algorithm, env_args, model_args, **asdict(demo_args), **options)
    console = Console(stderr=True)
    try:
        rounds = method(
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
    show(console, rounds)
    console.print(f"[green]Done:[/] the last model is in {rounds[-1].model}, every round's in {args.output_dir}")
    return 0
