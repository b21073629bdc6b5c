"""`agentgym train` and `agentgym tiny-model`, on TRL's own argument parser."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from typing import Any

import gymnasium as gym
import torch
import yaml
from rich.console import Console
from trl import ModelConfig, SFTConfig, TrlParser, get_peft_config

import agentgym_envs
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_trl.callbacks import run_training
from agentgym_trl.dataset import make_dataset
from agentgym_trl.demonstrations import environment_corpus, oracle_demonstrations
from agentgym_trl.models import load_tokenizer, make_codec
from agentgym_trl.run_directory import claim_run_directory
from agentgym_trl.sft import make_sft_trainer
from agentgym_trl.tiny import save_tiny_model
from agentgym_trl.trainer import AgentConfig, AgentTrainer

_USAGE = """usage: agentgym train ALGORITHM [options]

algorithms:
  grpo    group-relative policy optimisation over whole episodes, with a growing limit of turns if asked for
  sft     supervised training on demonstrations, with the same masks

`agentgym train ALGORITHM --help` lists the options: those of the environment, and every field of TRL's config.
`--config FILE.yaml` reads options from a file; `--resume` goes on with a run that was stopped."""


@dataclass
class EnvArguments:
    """What is played."""

    # In a config file `env` is TRL's: environment variables. There the id goes by its full name.
    env_id: str = field(metadata={"help": "Environment id: AgentGym/TextCraft-v0.", "aliases": ["--env"]})
    env_kwargs: str = field(
        default="{}", metadata={"help": 'Arguments for gym.make, as JSON: \'{"worlds": "fictional"}\'.'}
    )
    split: str = field(default="train", metadata={"help": "Split that tasks are drawn from."})
    groups: list[str] | None = field(default=None, metadata={"help": "Groups that tasks are drawn from."})
    tasks: int | None = field(
        default=None, metadata={"help": "Number of tasks; by default all of a table, enough for the run if endless."}
    )
    demos: str | None = field(
        default=None, metadata={"help": "sft: trajectories (JSONL) to train on; by default the oracle makes --tasks."}
    )
    resume: bool = field(default=False, metadata={"help": "Go on with the run in --output_dir."})


def train(argv: Sequence[str]) -> int:
    """Train a model on an environment with TRL."""
    commands: dict[str, Callable[[Sequence[str]], int]] = {"grpo": train_grpo, "sft": train_sft}
    if not argv or argv[0] in ("-h", "--help"):
        sys.stdout.write(_USAGE + "\n")
        return 0
    if argv[0] not in commands:
        raise UsageError(f"there is no algorithm {argv[0]!r}; choose from {', '.join(commands)}")
    return commands[argv[0]](argv[1:])


def train_grpo(argv: Sequence[str]) -> int:
    """GRPO over episodes. Returns the exit code."""
    env_args, args, model_args = _parse(AgentConfig, argv)
    env = _make_env(env_args)
    codec = make_codec(load_tokenizer(model_args.model_name_or_path), template_kwargs=args.chat_template_kwargs)
    checkpoint = _claim(args, "grpo", env_args, model_args, estimator=args.advantage_estimator)
    trainer = AgentTrainer(
        _model(model_args, args),
        lambda: _make_env(env_args),
        args=args,
        processing_class=codec.tokenizer,
        train_dataset=make_dataset(
            text_env(env), _task_count(env_args, args), split=env_args.split, groups=env_args.groups, seed=args.seed
        ),
        peft_config=get_peft_config(model_args),
    )
    return _run(trainer, "grpo", checkpoint)


def train_sft(argv: Sequence[str]) -> int:
    """Supervised training on demonstrations. Returns the exit code."""
    env_args, args, model_args = _parse(SFTConfig, argv)
    _make_env(env_args).close()  # refuse bad arguments before anything is loaded
    codec = make_codec(load_tokenizer(model_args.model_name_or_path))
    demonstrations = _demonstrations(env_args, args.seed)
    checkpoint = _claim(args, "sft", env_args, model_args, demos=env_args.demos)
    trainer = make_sft_trainer(
        _model(model_args, args), demonstrations, codec, args, peft_config=get_peft_config(model_args)
    )
    return _run(trainer, "sft", checkpoint)


def _run(trainer: Any, title: str, checkpoint: str | None) -> int:
    """Train and report. Returns 0, or 130 if training was interrupted."""
    console = Console(stderr=True)
    out = trainer.args.output_dir
    if not run_training(trainer, title, console=console, checkpoint=checkpoint):
        step = trainer.state.global_step
        console.print(f"[yellow]Stopped at step {step}.[/] Go on with the same command and --resume.")
        return 130
    console.print(f"[green]Done:[/] model, checkpoints, metrics and trajectories are in {out}")
    return 0


def tiny_model(argv: Sequence[str]) -> int:
    """Make a small model and tokenizer from nothing."""
    parser = argparse.ArgumentParser(prog="agentgym tiny-model", description=tiny_model.__doc__)
    parser.add_argument("out", help="directory to make")
    parser.add_argument("--env", action="append", help="environment whose words the tokenizer knows (repeatable)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random weights")
    options = parser.parse_args(list(argv))
    ids = options.env or ["AgentGym/TextCraft-v0"]
    corpus = [text for env_id in ids for text in environment_corpus(partial(_gym_make, env_id, {}))]
    facts = save_tiny_model(options.out, corpus, seed=options.seed)
    Console(stderr=True).print(
        f"{options.out}: {facts['parameters']:,} parameters, {facts['vocabulary']} tokens, random weights"
    )
    return 0


def _parse(config: type[Any], argv: Sequence[str]) -> tuple[EnvArguments, Any, ModelConfig]:
    names = {"--model": "--model_name_or_path"}
    translated = [names.get(a, a.replace("--model=", "--model_name_or_path=")) for a in _packaged_config(argv)]
    on_cpu = [] if torch.cuda.is_available() or _mentions(argv, "bf16") else ["--bf16", "false"]
    if not torch.cuda.is_available() and not _mentions(argv, "gradient_checkpointing"):
        on_cpu += ["--gradient_checkpointing", "false"]
    parser = TrlParser((EnvArguments, config, ModelConfig), prog="agentgym train")
    try:
        env_args, args, model_args = parser.parse_args_and_config([*translated, *on_cpu])
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"the config file does not read: {error}") from None
    except (ValueError, TypeError) as error:
        raise error if isinstance(error, UsageError) else UsageError(str(error).split("\n")[0]) from None
    if model_args.model_name_or_path is None:
        raise UsageError("no model was given: --model NAME_OR_PATH (agentgym tiny-model makes a small one)")
    args.disable_tqdm = True  # the progress line takes its place
    return env_args, args, model_args


def _packaged_config(argv: Sequence[str]) -> list[str]:
    """`--config NAME` may name a file of ours, without its ending."""
    arguments = list(argv)
    for place, word in enumerate(argv[:-1]):
        packaged = resources.files("agentgym_trl") / "configs" / f"{argv[place + 1]}.yaml"
        if word == "--config" and packaged.is_file():
            arguments[place + 1] = str(packaged)
    return arguments


def _mentions(argv: Sequence[str], name: str) -> bool:
    return any(a.lstrip("-").replace("-", "_").startswith((name, f"no_{name}")) for a in argv)


def _make_env(arguments: EnvArguments) -> Any:
    return _gym_make(arguments.env_id, _json_object(arguments.env_kwargs))


def _gym_make(env_id: str, kwargs: dict[str, Any]) -> Any:
    if env_id not in gym.registry:
        raise UsageError(
            f"there is no environment {env_id!r}; `agentgym list` shows {', '.join(agentgym_envs.env_ids())}"
        )
    try:
        return gym.make(env_id, **kwargs)
    except TypeError as error:
        raise UsageError(f"{env_id} does not take these arguments: {error}") from None


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f'--env_kwargs must be a JSON object, as in \'{{"worlds": "fictional"}}\'; got {text!r}')
    return value


def _model(model_args: ModelConfig, args: Any) -> str:
    """The name of the model; the trainer loads it, with these settings."""
    dtype = model_args.dtype if model_args.dtype not in (None, "auto") else None
    settings = {"revision": model_args.model_revision, "attn_implementation": model_args.attn_implementation}
    given = {key: value for key, value in {**settings, "dtype": dtype}.items() if value is not None}
    args.model_init_kwargs = {**given, **(args.model_init_kwargs or {})}
    return str(model_args.model_name_or_path)


def _task_count(arguments: EnvArguments, args: AgentConfig) -> int | None:
    if arguments.tasks is not None:
        return arguments.tasks
    env = text_env(_make_env(arguments))
    try:
        env.tasks.take(split=arguments.split, groups=arguments.groups)
    except UsageError:  # a set without end: as many as the run needs, each once
        steps = args.max_steps if args.max_steps > 0 else 1000
        return max(1, steps * int(args.generation_batch_size) // int(args.num_generations))
    return None


def _claim(args: Any, algorithm: str, env: EnvArguments, model: ModelConfig, **more: Any) -> str | None:
    settings = {
        "algorithm": algorithm,
        "env": env.env_id,
        "env_kwargs": _json_object(env.env_kwargs),
        "model": model.model_name_or_path,
        "split": env.split,
        "groups": env.groups,
        "seed": args.seed,
        **more,
    }
    return claim_run_directory(args.output_dir, settings, resume=env.resume)


def _demonstrations(arguments: EnvArguments, seed: int) -> list[Trajectory]:
    if arguments.demos is not None:
        try:
            return list(read_trajectories(arguments.demos))
        except OSError as error:
            raise UsageError(f"--demos {arguments.demos} cannot be read: {error.strerror}") from None
    return oracle_demonstrations(
        lambda: _make_env(arguments), arguments.tasks, split=arguments.split, groups=arguments.groups, seed=seed
    )
