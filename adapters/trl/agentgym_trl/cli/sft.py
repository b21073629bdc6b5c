"""`agentgym train sft`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trl import ModelConfig, SFTConfig

from agentgym_envs.cli.common import json_object
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec
from agentgym_envs.rollout.mixture import MixtureEnv
from agentgym_trl.cli.arguments import EnvArguments, parse
from agentgym_trl.cli.environments import only_environment
from agentgym_trl.error_messages import as_usage_errors

if TYPE_CHECKING:
    from agentgym_trl.sft import Demonstration


@dataclass
class DemoArguments:
    """The demonstrations and their chat template."""

    demos: str | None = field(
        default=None,
        metadata={
            "help": "File to train on: trajectories (JSONL), or conversations in AgentTraj-L's format (JSON or JSONL "
            "with item_id and conversations). By default the oracle demonstrates --tasks (dagger: none)."
        },
    )
    chat_template_kwargs: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "Variables of the chat template, as JSON: '{\"enable_thinking\": false}'."},
    )

    keep_thoughts: bool = field(
        default=False,
        metadata={
            "help": "Replace a template that drops the thoughts of earlier answers by TRL's template for training; by "
            "default a trajectory has a row for each context that the template shows."
        },
    )

    def __post_init__(self) -> None:
        """Parse the JSON. Raises UsageError."""
        self.chat_template_kwargs = json_object("--chat-template-kwargs", self.chat_template_kwargs)


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
    from agentgym_trl.models import load_tokenizer, make_codec, read_template

    template, args.chat_template_path = read_template(args.chat_template_path), None
    kwargs: Any = demo_args.chat_template_kwargs  # parsed already
    tokenizer = load_tokenizer(str(model_args.model_name_or_path))
    return make_codec(tokenizer, template=template, template_kwargs=kwargs, keep_thoughts=demo_args.keep_thoughts)


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
