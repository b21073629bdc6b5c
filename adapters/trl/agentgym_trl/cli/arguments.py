"""Options of `agentgym train`: our own, TRL's, and those that a config file sets."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
import yaml
from datasets import disable_progress_bars
from transformers.utils import logging as transformers_logging
from trl import ModelConfig, TrlParser

from agentgym_envs.cli.envs import full_name
from agentgym_envs.errors import UsageError
from agentgym_trl.error_messages import refusals

_Config = TypeVar("_Config")


@dataclass
class EnvArguments:
    """What is played."""

    env_id: list[str] = field(
        metadata={
            "help": "Environment ids or short names, with weights if there are several: textcraft:2 babyai:1.",
            "aliases": ["--env"],
        }
    )
    env_kwargs: str = field(
        default="{}",
        metadata={
            "help": 'Arguments for gym.make, as JSON: \'{"worlds": "fictional"}\'. With several environments, such '
            "objects keyed by id."
        },
    )
    split: str = field(default="train", metadata={"help": "Split that tasks are drawn from."})
    groups: list[str] | None = field(default=None, metadata={"help": "Groups that tasks are drawn from."})
    tasks: int | None = field(
        default=None, metadata={"help": "Number of tasks; by default all of a table, enough for the run if endless."}
    )
    resume: bool = field(default=False, metadata={"help": "Go on with the run in --output_dir."})

    def __post_init__(self) -> None:
        self.env_id = [full_name(name) for name in self.env_id]


def parse(
    config: type[_Config], argv: Sequence[str], *more: type[Any], fixed: Mapping[str, str] | None = None
) -> tuple[Any, ...]:
    """Read `EnvArguments`, `config` (one of TRL's), `ModelConfig`, and further dataclasses.

    `fixed` are options that the algorithm's name decides.

    Raises:
        UsageError: an option is wrong or missing, or one of `fixed` is given.
    """
    names = _short_names(config)
    rest, path = _take_config([_renamed(word, names) for word in argv])
    defaults = {} if path is None else _read_config(path, names)
    given = {*_options(rest), *defaults}
    for name, value in (fixed or {}).items():
        if name in given:
            raise UsageError(f"the algorithm's name says --{name} already ({value}); leave it out")
        rest += [f"--{name}", value]
    for name in ("bf16", "gradient_checkpointing", "dataloader_pin_memory"):  # defaults that are meant for a GPU
        if not torch.cuda.is_available() and given.isdisjoint({name, f"no_{name}"}):
            rest += [f"--{name}", "false"]
    with refusals():
        parser = _ConfigParser((EnvArguments, config, ModelConfig, *more), prog="agentgym train", allow_abbrev=False)
        for action in parser._actions:
            if action.dest in (fixed or {}):
                action.help = argparse.SUPPRESS
        if unknown := [key for key in defaults if parser.set_defaults_with_config(**{key: defaults[key]})]:
            raise UsageError(f"the config file sets {', '.join(unknown)}, which is no option")
        env_args, args, model_args, *others = parser.parse_args_into_dataclasses(rest)
    if model_args.model_name_or_path is None:
        raise UsageError("no model was given: --model NAME_OR_PATH (agentgym tiny-model makes a small one)")
    args.disable_tqdm = True  # the progress line takes its place
    return env_args, args, model_args, *others


def quiet() -> None:
    """No bars but ours, and no warnings that a user can do nothing about: TRL's version is bounded."""
    transformers_logging.disable_progress_bar()
    disable_progress_bars()
    warnings.filterwarnings("ignore", message=".*gradient_checkpointing.* is deprecated", category=FutureWarning)
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")


class _OneLine:
    """For parsers: a wrong argument is an error of ours, instead of an exit after pages of usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class Parser(_OneLine, argparse.ArgumentParser):
    """For our own few options."""


class _ConfigParser(_OneLine, TrlParser):  # type: ignore[misc]
    """For the fields of dataclasses, TRL's configs among them."""


def _short_names(config: type[Any]) -> dict[str, str]:
    """Our words for options that have others, on the command line and in config files."""
    names = {"model": "model_name_or_path", "env": "env_id"}
    if "chat_template_path" in config.__dataclass_fields__:
        names["chat_template"] = "chat_template_path"
    return names


def _renamed(word: str, names: Mapping[str, str]) -> str:
    """An argument with its option by its own name, if that has one; any other word as it is."""
    option, equals, value = word.partition("=")
    name = names.get(option[2:].replace("-", "_")) if option.startswith("--") else None
    return word if name is None else f"--{name}{equals}{value}"


def _take_config(argv: list[str]) -> tuple[list[str], str | None]:
    """The arguments without `--config FILE`, and that file. TRL's own reader would take `env` for itself."""
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    found, rest = parser.parse_known_args(argv)
    return rest, found.config


def _read_config(path: str, names: Mapping[str, str]) -> dict[str, Any]:
    """The options in a config file; `path` may name one of ours, without its ending."""
    packaged = resources.files("agentgym_trl") / "configs" / f"{path}.yaml"
    try:
        config = yaml.safe_load((packaged if packaged.is_file() else Path(path)).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"the config file {path} does not read: {error}") from None
    if not isinstance(config, dict):
        raise UsageError(f"the config file {path} must hold options, a line each, as in: max_steps: 100")
    words = [(str(key).replace("-", "_"), value) for key, value in config.items()]
    config = {names.get(key, key): value for key, value in words}
    if "rounds" in config:
        config["rounds"] = _rounds_text(config["rounds"])
    for name in ("env_id", "groups"):
        if isinstance(config.get(name), str):
            config[name] = [config[name]]
    ids = config.get("env_id", [])
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise UsageError(f"env in the config file {path} must be the id of an environment, or a list, got {ids!r}")
    if isinstance(config.get("env_kwargs"), dict):
        config["env_kwargs"] = json.dumps(config["env_kwargs"])
    return config


def _rounds_text(rounds: Any) -> str:
    """A schedule as one writes it in YAML, a number, a list, or one for each environment, as the option has it."""
    if isinstance(rounds, dict):
        return ";".join(f"{name}={_rounds_text(own)}" for name, own in rounds.items())
    return ",".join(map(str, rounds)) if isinstance(rounds, list) else str(rounds)


def _options(argv: Sequence[str]) -> Iterator[str]:
    """The names of the options that are given."""
    return (word[2:].partition("=")[0].replace("-", "_") for word in argv if word.startswith("--"))
