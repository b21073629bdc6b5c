"""`agentgym train sft`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trl import ModelConfig, SFTConfig

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec
from agentgym_envs.rollout.mixture import MixtureEnv
from agentgym_trl.cli.arguments import EnvArguments, TemplateArguments, parse
from agentgym_trl.cli.environments import only_environment
from agentgym_trl.error_messages import as_usage_errors

if TYPE_CHECKING:
    from agentgym_trl.sft import Demonstration


@dataclass
class DemoArguments(TemplateArguments):
    """The demonstrations and their chat template."""

    demos: str | None = field(
        default=None,
        metadata={
            "help": "File to train on: trajectories (JSONL), or conversations in AgentTraj-L's format (JSON or JSONL "
            "with item_id and conversations). By default the oracle demonstrates --tasks (dagger: none)."
        },
    )


def train_sft(argv: Sequence[str]) -> int:
    """Train on demonstrations. Returns the exit code."""
    env_args, args, model_args, demo_args = parse(SFTConfig, argv, DemoArguments)
    from trl import get_peft_config  # with the trainer it takes seconds, which --help need not wait for

    from agentgym_trl.cli.runs import model_name, run, run_settings
    from agentgym_trl.sft import make_sft_trainer

    environment = only_environment(env_args, teams=True)
    codec = codec_of(args, model_args, demo_args)
    demonstrations = load_demonstrations(demo_args.demos, env_args, environment, args.seed)
    data = {"demos": demo_args.demos, "chat_template_kwargs": demo_args.chat_template_kwargs}
    data |= {"keep_thoughts": True} if demo_args.keep_thoughts else {}
    settings = run_settings(args, "sft", env_args, model_args, **data)
    with as_usage_errors():
        trainer = make_sft_trainer(
            model_name(model_args, args), demonstrations, codec, args, peft_config=get_peft_config(model_args)
        )
    return run(trainer, settings, resume=env_args.resume)


def codec_of(args: SFTConfig, model_args: ModelConfig, demo_args: DemoArguments) -> ChatCodec:
    """The codec of the options; clears `chat_template_path`, so that TRL does not apply the template again."""
    template, args.chat_template_path = args.chat_template_path, None
    return demo_args.make_codec(str(model_args.model_name_or_path), template)


def load_demonstrations(
    path: str | None, arguments: EnvArguments, environment: MixtureEnv, seed: int
) -> Sequence[Demonstration]:
    """The trajectories or conversations in a file, or the oracle's own."""
    from agentgym_trl.conversations import read_demonstrations
    from agentgym_trl.demonstrations import oracle_demonstrations

    if path is not None:
        try:
            return read_demonstrations(path)
        except OSError as error:
            raise UsageError(f"--demos {path} cannot be read: {error.strerror}") from None
    try:
        return oracle_demonstrations(
            environment.make, arguments.tasks, split=arguments.split, groups=arguments.groups, seed=seed
        )
    except UsageError as error:
        if arguments.tasks is None:
            error.add_note("give the number of tasks by --tasks, or a file by --demos")
        raise
