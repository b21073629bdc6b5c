"""`agentgym train` and `agentgym tiny-model`, on TRL's own argument parser."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import gymnasium as gym
import torch
import yaml
from rich.console import Console
from safetensors import SafetensorError
from transformers.utils import logging as transformers_logging
from trl import ModelConfig, SFTConfig, TrlParser, get_peft_config

import agentgym_envs
from agentgym_envs.core import text_env
from agentgym_envs.errors import AgentGymError, UsageError
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_trl.callbacks import run_training
from agentgym_trl.dataset import make_dataset
from agentgym_trl.demonstrations import environment_corpus, oracle_demonstrations
from agentgym_trl.models import load_tokenizer, make_codec, read_template
from agentgym_trl.run_directory import check_run_directory, claim_run_directory, last_checkpoint
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
    _quiet()
    return commands[argv[0]](argv[1:])


def train_grpo(argv: Sequence[str]) -> int:
    """GRPO over episodes. Returns the exit code."""
    env_args, args, model_args = _parse(AgentConfig, argv)
    env = _make_env(env_args)
    codec = make_codec(
        load_tokenizer(model_args.model_name_or_path),
        template=read_template(args.chat_template),
        template_kwargs=args.chat_template_kwargs,
    )
    dataset = make_dataset(
        text_env(env), _task_count(env_args, args), split=env_args.split, groups=env_args.groups, seed=args.seed
    )
    settings = _settings(args, "grpo", env_args, model_args, estimator=args.advantage_estimator)
    with _refusals():
        trainer = AgentTrainer(
            _model(model_args, args),
            lambda: _make_env(env_args),
            args=args,
            processing_class=codec.tokenizer,
            train_dataset=dataset,
            peft_config=get_peft_config(model_args),
        )
    return _run(trainer, settings, resume=env_args.resume)


def train_sft(argv: Sequence[str]) -> int:
    """Supervised training on demonstrations. Returns the exit code."""
    env_args, args, model_args = _parse(SFTConfig, argv)
    _make_env(env_args).close()  # refuse bad arguments before anything is loaded
    template, args.chat_template_path = read_template(args.chat_template_path), None
    codec = make_codec(load_tokenizer(model_args.model_name_or_path), template=template)
    demonstrations = _demonstrations(env_args, args.seed)
    settings = _settings(args, "sft", env_args, model_args, demos=env_args.demos)
    with _refusals():
        trainer = make_sft_trainer(
            _model(model_args, args), demonstrations, codec, args, peft_config=get_peft_config(model_args)
        )
    return _run(trainer, settings, resume=env_args.resume)


def _run(trainer: Any, settings: dict[str, Any], *, resume: bool) -> int:
    """Claim the directory, train and report. Returns 0, or 130 if training was interrupted."""
    console = Console(stderr=True)
    out = trainer.args.output_dir
    if trainer.accelerator.is_main_process:  # only now: what could not begin leaves no directory that looks like a run
        claim_run_directory(out, settings, resume=resume)
    trainer.accelerator.wait_for_everyone()
    if not run_training(trainer, settings["algorithm"], console=console, checkpoint=last_checkpoint(out)):
        step = trainer.state.global_step
        console.print(f"[yellow]Stopped at step {step}.[/] Go on with the same command and --resume.")
        return 130
    console.print(f"[green]Done:[/] model, checkpoints, metrics and trajectories are in {out}")
    return 0


def tiny_model(argv: Sequence[str]) -> int:
    """Make a small model and tokenizer from nothing."""
    parser = _Parser(prog="agentgym tiny-model", description=tiny_model.__doc__)
    parser.add_argument("out", help="directory to make")
    parser.add_argument("--env", action="append", help="environment whose words the tokenizer knows (repeatable)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random weights")
    options = parser.parse_args(list(argv))
    _quiet()
    ids = options.env or ["AgentGym/TextCraft-v0"]
    corpus = [text for env_id in ids for text in environment_corpus(partial(_gym_make, env_id, {}))]
    facts = save_tiny_model(options.out, corpus, seed=options.seed)
    Console(stderr=True).print(
        f"{options.out}: {facts['parameters']:,} parameters, {facts['vocabulary']} tokens, random weights"
    )
    return 0


def _quiet() -> None:
    """No bars but ours, and no warnings that a user can do nothing about: TRL's version is bounded."""
    transformers_logging.disable_progress_bar()
    warnings.filterwarnings("ignore", message=".*gradient_checkpointing.* is deprecated", category=FutureWarning)
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")


class _OneLine:
    """For parsers: a wrong argument is an error of ours, instead of an exit after pages of usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class _Parser(_OneLine, argparse.ArgumentParser):
    """For our own few options."""


class _ConfigParser(_OneLine, TrlParser):  # type: ignore[misc]
    """For the fields of dataclasses, TRL's configs among them."""


def _parse(config: type[Any], argv: Sequence[str]) -> tuple[EnvArguments, Any, ModelConfig]:
    names = {"--model": "--model_name_or_path"}
    rest, defaults = _take_config([names.get(a, a.replace("--model=", "--model_name_or_path=")) for a in argv])
    for name in ("bf16", "gradient_checkpointing"):  # defaults of TRL that are meant for a GPU
        if not torch.cuda.is_available() and not _mentions([*rest, *defaults], name):
            rest += [f"--{name}", "false"]
    with _refusals():
        parser = _ConfigParser((EnvArguments, config, ModelConfig), prog="agentgym train")
        if unknown := [key for key in defaults if parser.set_defaults_with_config(**{key: defaults[key]})]:
            raise UsageError(f"the config file sets {', '.join(unknown)}, which is no option")
        env_args, args, model_args = parser.parse_args_into_dataclasses(rest)
    if model_args.model_name_or_path is None:
        raise UsageError("no model was given: --model NAME_OR_PATH (agentgym tiny-model makes a small one)")
    args.disable_tqdm = True  # the progress line takes its place
    return env_args, args, model_args


def _take_config(argv: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The arguments without `--config FILE`, and what that file sets. TRL's own reader would take `env` for itself."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    found, rest = parser.parse_known_args(argv)
    return rest, {} if found.config is None else _read_config(found.config)


def _read_config(path: str) -> dict[str, Any]:
    """The options in a config file; `path` may name one of ours, without its ending."""
    packaged = resources.files("agentgym_trl") / "configs" / f"{path}.yaml"
    try:
        config = yaml.safe_load((packaged if packaged.is_file() else Path(path)).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"the config file {path} does not read: {error}") from None
    if not isinstance(config, dict):
        raise UsageError(f"the config file {path} must hold options, a line each, as in: max_steps: 100")
    names = {"model": "model_name_or_path", "env": "env_id"}
    config = {names.get(key, str(key).replace("-", "_")): value for key, value in config.items()}
    if not isinstance(config.get("env_id", ""), str):
        raise UsageError(f"env in the config file {path} must be the id of an environment, got {config['env_id']!r}")
    if isinstance(config.get("env_kwargs"), dict):
        config["env_kwargs"] = json.dumps(config["env_kwargs"])
    if isinstance(config.get("groups"), str):
        config["groups"] = [config["groups"]]
    return config


@contextmanager
def _refusals() -> Iterator[None]:
    """What TRL and transformers refuse while a run is set up is a usage error; what the machine refuses is not."""
    try:
        yield
    except SafetensorError as error:
        raise UsageError(f"the model's weights do not load: {error}") from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        if isinstance(error, AgentGymError) or (isinstance(error, OSError) and error.errno):
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(lines[0]) from error


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


def _settings(args: Any, algorithm: str, env: EnvArguments, model: ModelConfig, **more: Any) -> dict[str, Any]:
    """What makes this run another one than others. Raises UsageError if its directory is not for it."""
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
    if args.process_index == 0:  # the other processes may be late, when this one has claimed the directory already
        check_run_directory(args.output_dir, settings, resume=env.resume)
    return settings


def _demonstrations(arguments: EnvArguments, seed: int) -> list[Trajectory]:
    if arguments.demos is not None:
        try:
            return list(read_trajectories(arguments.demos))
        except OSError as error:
            raise UsageError(f"--demos {arguments.demos} cannot be read: {error.strerror}") from None
    kind: dict[str, Any] = {"split": arguments.split, "groups": arguments.groups, "seed": seed}
    try:
        return oracle_demonstrations(lambda: _make_env(arguments), arguments.tasks, **kind)
    except UsageError as error:
        if arguments.tasks is None:
            error.add_note("say how many by --tasks, or give --demos")
        raise
