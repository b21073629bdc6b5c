"""`agentgym train grpo | rloo | reinforce++ | reinforce++-baseline | ppo`: one trainer, one word apart."""

from __future__ import annotations

from collections.abc import Sequence

from trl import get_peft_config

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_trl.cli.arguments import parse, refusals
from agentgym_trl.cli.environments import environments, makers
from agentgym_trl.cli.runs import model_name, run, run_settings
from agentgym_trl.dataset import mixed_dataset
from agentgym_trl.models import load_tokenizer, make_codec, read_template
from agentgym_trl.trainer import AgentConfig, AgentTrainer

_FLAG = "advantage_estimator"


def train_online(algorithm: str, estimator: str, argv: Sequence[str]) -> int:
    """Reinforcement learning over episodes. Returns the exit code."""
    env_args, args, model_args = parse(AgentConfig, _with_estimator(algorithm, estimator, argv))
    found = environments(env_args)
    codec = make_codec(
        load_tokenizer(model_args.model_name_or_path),
        template=read_template(args.chat_template),
        template_kwargs=args.chat_template_kwargs,
    )
    dataset = mixed_dataset(
        {environment.id: text_env(environment.make()) for environment in found},
        {environment.id: environment.weight for environment in found},
        env_args.tasks,
        enough=_enough(args),
        split=env_args.split,
        groups=env_args.groups,
        seed=args.seed,
    )
    settings = run_settings(args, algorithm, env_args, model_args, estimator=args.advantage_estimator)
    with refusals():
        trainer = AgentTrainer(
            model_name(model_args, args),
            makers(found),
            args=args,
            processing_class=codec.tokenizer,
            train_dataset=dataset,
            peft_config=get_peft_config(model_args),
        )
    return run(trainer, settings, resume=env_args.resume)


def _with_estimator(algorithm: str, estimator: str, argv: Sequence[str]) -> list[str]:
    """The arguments, with the estimator that the algorithm's name stands for. Raises UsageError if they disagree."""
    if any(a.lstrip("-").replace("-", "_").startswith(_FLAG) for a in argv):
        raise UsageError(f"`train {algorithm}` says the estimator already ({estimator}); leave --{_FLAG} out")
    return [*argv, f"--{_FLAG}", estimator]


def _enough(args: AgentConfig) -> int:
    """How many rows a run over an endless set of tasks needs, so that each is played once."""
    steps = args.max_steps if args.max_steps > 0 else 1000
    return max(1, steps * int(args.generation_batch_size) // int(args.num_generations or 1))
