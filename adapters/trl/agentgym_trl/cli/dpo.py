"""`agentgym train dpo`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from trl import DPOConfig

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.mixture import MixtureEnv
from agentgym_envs.task import check_selection
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.cli.arguments import EnvArguments, TemplateArguments, parse
from agentgym_trl.cli.environments import only_environment
from agentgym_trl.error_messages import as_usage_errors
from agentgym_trl.pairs import PairSet, Preference, load_trajectories, make_pairs


@dataclass
class PairArguments(TemplateArguments):
    """The trajectories and the pairs made of them."""

    trajectories: list[str] = field(
        metadata={"help": "Files of trajectories (JSONL), with several episodes of the same task and seed."}
    )
    max_pairs_per_task: int = field(default=4, metadata={"help": "Max pairs per task and seed."})
    min_margin: float = field(default=0.0, metadata={"help": "Min difference of scores, from 0 to 1."})
    preferences: list[str] = field(
        default_factory=lambda: [preference.value for preference in Preference],
        metadata={
            "help": "Kinds of pairs: success (over failure), score (higher over lower), turns (of two successes with "
            "equal scores, fewer over more)."
        },
    )
    chat_template: str | None = field(default=None, metadata={"help": "File with a Jinja chat template."})

    def __post_init__(self) -> None:
        """Convert single values, which a config file may have, to lists, and parse the JSON. Raises UsageError."""
        super().__post_init__()
        self.trajectories, self.preferences = _as_list(self.trajectories), _as_list(self.preferences)


def train_dpo(argv: Sequence[str]) -> int:
    """Train by direct preference optimisation on pairs of recorded trajectories. Returns the exit code."""
    env_args, args, model_args, pair_args = parse(DPOConfig, argv, PairArguments)
    if env_args.resume and args.sync_ref_model:
        raise UsageError("a run with --sync_ref_model cannot be resumed: TRL does not save the updated reference model")
    pairs = _pairs(pair_args, env_args, only_environment(env_args), args.seed)
    from trl import get_peft_config  # with the trainer it takes seconds, which --help need not wait for

    from agentgym_trl.cli.runs import model_name, run, run_settings
    from agentgym_trl.dpo import make_dpo_trainer
    from agentgym_trl.recorded_tokens import RecordedTokens

    codec = pair_args.make_codec(str(model_args.model_name_or_path), pair_args.chat_template)
    data = {"keep_thoughts": True} if pair_args.keep_thoughts else {}
    settings = run_settings(args, "dpo", env_args, model_args, pairs=pairs.digest(), **data)
    with as_usage_errors():
        trainer = make_dpo_trainer(
            model_name(model_args, args),
            pairs.pairs,
            codec,
            args,
            encode=RecordedTokens(pair_args.trajectories, codec),
            peft_config=get_peft_config(model_args),
        )
    if trainer.accelerator.is_main_process:
        Console(stderr=True).print(str(pairs.summary), highlight=False)
    return run(trainer, settings, resume=env_args.resume)


def _pairs(pair_args: PairArguments, env_args: EnvArguments, environment: MixtureEnv, seed: int) -> PairSet:
    env = environment.make()
    check_selection(text_env(env).tasks, env_args.split, env_args.groups)
    env.close()
    trajectories = load_trajectories(pair_args.trajectories)
    return make_pairs(
        _selected(trajectories, environment, env_args),
        max_pairs_per_task=pair_args.max_pairs_per_task,
        min_margin=pair_args.min_margin,
        preferences=pair_args.preferences,
        tasks=env_args.tasks,
        seed=seed,
    )


def _selected(trajectories: list[Trajectory], environment: MixtureEnv, arguments: EnvArguments) -> list[Trajectory]:
    """Select the trajectories of the run's environment, split and groups, and of its `env_kwargs` if it has any."""

    def matches(trajectory: Trajectory) -> bool:
        return (
            trajectory.env_id == environment.id
            and trajectory.task.split == arguments.split
            and (arguments.groups is None or trajectory.task.group in arguments.groups)
            and (not environment.kwargs or dict(trajectory.env_kwargs) == dict(environment.kwargs))
        )

    selected = [trajectory for trajectory in trajectories if matches(trajectory)]
    if trajectories and not selected:
        wanted = f"{environment.id}, split {arguments.split}"
        wanted += f", groups {' '.join(arguments.groups)}" if arguments.groups else ""
        raise UsageError(
            f"none of the {len(trajectories)} trajectories is of {wanted}; most are of {_most_common(trajectories)}. "
            "Change --env, --split, --groups and --env-kwargs, or give other files"
        )
    return selected


def _most_common(trajectories: list[Trajectory]) -> str:
    """A description of the most common kind of trajectory."""
    kinds = Counter(f"{t.env_id}, split {t.task.split}, with {dict(t.env_kwargs)}" for t in trajectories)
    return kinds.most_common(1)[0][0]


def _as_list(value: list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
