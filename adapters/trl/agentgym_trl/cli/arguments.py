"""Options of `agentgym train`: our own, TRL's, and those of a config file."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
import yaml
from transformers.utils import logging as transformers_logging
from trl import ModelConfig, TrlParser

from agentgym_envs.cli.common import json_object, names_of
from agentgym_envs.cli.envs import full_name
from agentgym_envs.errors import UsageError, meant
from agentgym_envs.rollout import ChatCodec
from agentgym_trl.cli.imports import HELP_ALL, asks_for_help
from agentgym_trl.error_messages import as_usage_errors

_Config = TypeVar("_Config")
_USAGE = "agentgym train ALGORITHM --env ENV --model MODEL --out DIR [--config FILE.yaml] [options]"
_CONFIG_HELP = "YAML file of options, one per line as in `max_steps: 100`, or the name of one of our own files."
_HELP = {
    "output_dir": "Run folder: the model, checkpoints, metrics and trajectories.",
    "model_name_or_path": "The model: a folder, or a name on the hub.",
    "chat_template_path": "File with a Jinja chat template.",
    "max_length": "Max tokens of a trajectory. A longer one is an error (agentevol and dagger skip their "
    "own); none is truncated.",
}
"""Help texts of TRL's options where TRL's own text does not hold here."""


@dataclass(kw_only=True)
class TemplateArguments:
    """Options of the chat template that shows recorded episodes."""

    chat_template_kwargs: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "Variables of the chat template, as JSON: '{\"enable_thinking\": false}'."},
    )
    keep_thoughts: bool = field(
        default=False,
        metadata={
            "help": "Replace a template that drops the thoughts of earlier answers by TRL's template for training; by "
            "default all contexts that the template shows are trained on."
        },
    )

    def __post_init__(self) -> None:
        """Parse the JSON. Raises UsageError."""
        self.chat_template_kwargs = json_object("--chat-template-kwargs", self.chat_template_kwargs)

    def make_codec(self, model: str, template: str | None) -> ChatCodec:
        """The codec of a model, with `template` in place of its own if it is given."""
        from agentgym_trl.models import load_tokenizer, make_codec, read_template

        kwargs: Any = self.chat_template_kwargs  # parsed already
        own = read_template(template)
        return make_codec(load_tokenizer(model), template=own, template_kwargs=kwargs, keep_thoughts=self.keep_thoughts)


@dataclass
class EnvArguments:
    """The environments and tasks of a run."""

    env: list[str] = field(
        metadata={
            "help": "Environment id or short name. The online algorithms also take several, with weights: "
            "textcraft:2 babyai:1."
        }
    )
    env_kwargs: str = field(
        default="{}",
        metadata={
            "help": 'Arguments for gym.make, as JSON: \'{"worlds": "fictional"}\'. With several environments, one '
            "object for each id."
        },
    )
    tools: bool = field(
        default=False,
        metadata={
            "help": "Native tool calls: actions are tools of the chat template, and observations have the role tool. "
            'The same as "grammar": "tools" in --env-kwargs.'
        },
    )
    split: str = field(default="train", metadata={"help": "Split to draw tasks from."})
    groups: list[str] | None = field(default=None, metadata={"help": "Groups to draw tasks from."})
    tasks: int | None = field(
        default=None,
        metadata={
            "help": "Tasks to draw; by default all of a finite set, and of an unlimited one as many as an online run "
            "plays. dpo: max tasks and seeds with pairs."
        },
    )
    resume: bool = field(default=False, metadata={"help": "Continue the run in --out."})

    def __post_init__(self) -> None:
        self.env = [full_name(name) for name in self.env]
        if self.groups is not None:  # as in other commands, commas may separate them
            self.groups = [name for text in self.groups for name in names_of(text) or ()]


def parse(
    config: type[_Config], argv: Sequence[str], *more: type[Any], fixed: Mapping[str, str] | None = None
) -> tuple[Any, ...]:
    """Parse `EnvArguments`, `config` (one of TRL's), `ModelConfig`, and further dataclasses.

    `fixed` are options that the command sets itself.

    Raises:
        UsageError: an option is wrong or missing, or one of `fixed` is given.
    """
    names = _short_names(config) | _ALIASES
    rest, path = _take_config([_renamed(word, names) for word in argv])
    defaults = {} if path is None else _read_config(path, names)
    given = {*_options(rest), *defaults}
    for name, value in (fixed or {}).items():
        if name in given:
            raise UsageError(f"the command sets --{name} already ({value}); leave it out")
        rest += [f"--{name}", value]
    for name in ("bf16", "gradient_checkpointing", "dataloader_pin_memory"):  # TRL's defaults are for a GPU
        if not torch.cuda.is_available() and given.isdisjoint({name, f"no_{name}"}):
            rest += [f"--{name}", "false"]
    with as_usage_errors():
        classes = (EnvArguments, config, ModelConfig, *more)
        parser = _ConfigParser(classes, prog="agentgym train", usage=_USAGE, allow_abbrev=False)
        if asks_for_help(rest):
            parser.add_argument("--config", metavar="FILE", help=_CONFIG_HELP)
        _show_one_spelling(parser, classes, hidden=fixed or {})
        _show_ours_first(parser, classes)
        _check_known(parser, rest, "--help and --help-all list")
        if unknown := [key for key in defaults if parser.set_defaults_with_config(**{key: defaults[key]})]:
            raise UsageError(f"the config file sets {', '.join(unknown)}, which is not an option")
        words = ["--help" if word == HELP_ALL else word for word in rest]
        env_args, args, model_args, *others = parser.parse_args_into_dataclasses(words)
    if model_args.model_name_or_path is None:
        raise UsageError("no model was given: --model NAME_OR_PATH (agentgym tiny-model makes a small one)")
    args.disable_tqdm = True  # our progress line replaces it
    return env_args, args, model_args, *others


def quiet() -> None:
    """Silence progress bars and deprecation warnings of libraries, which the user cannot act on."""
    from datasets import disable_progress_bars

    transformers_logging.disable_progress_bar()
    disable_progress_bars()
    warnings.filterwarnings("ignore", message=".*gradient_checkpointing.* is deprecated", category=FutureWarning)
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")


class _OneLine:
    """Parser mixin: a wrong argument raises UsageError instead of printing pages of usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class Parser(_OneLine, argparse.ArgumentParser):
    """A parser for options of our own."""

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse all words of a command line. Raises UsageError, with options that are like an unknown one."""
        _check_known(self, words, "--help lists")
        return self.parse_args(list(words))


class _ConfigParser(_OneLine, TrlParser):  # type: ignore[misc]
    """A parser for the fields of dataclasses, such as TRL's configs."""


def _show_one_spelling(parser: argparse.ArgumentParser, classes: Sequence[type[Any]], hidden: Container[str]) -> None:
    """Show hyphens in our options and underscores in TRL's, in help and errors; both spellings still parse."""
    ours = {name for each in classes for name in _own_fields(each)}
    short = {long: name for each in classes for name, long in _short_names(each).items()}
    for action in parser._actions:
        action.help = argparse.SUPPRESS if action.dest in hidden else _HELP.get(action.dest, action.help)
        if action.dest in short:
            action.option_strings = [f"--{short[action.dest].replace('_', '-')}"]
            continue
        other = "_" if action.dest in ours else "-"
        action.option_strings = [text for text in action.option_strings if other not in text[2:]]


def _show_ours_first(parser: argparse.ArgumentParser, classes: Sequence[type[Any]]) -> None:
    """Put our options before TRL's in the help: TRL's configs have over 200."""
    ours = {name for each in classes for name in (*_own_fields(each), *_short_names(each).values())} | {"config"}
    titles = {True: "options of agentgym", False: "options of TRL and transformers"}
    groups = {is_ours: parser.add_argument_group(title) for is_ours, title in titles.items()}
    for action in parser._optionals._group_actions[1:]:  # the first is --help
        groups[action.dest in ours]._group_actions.append(action)
    del parser._optionals._group_actions[1:]


def _check_known(parser: argparse.ArgumentParser, words: Sequence[str], where: str) -> None:
    """Raise UsageError for an option that does not exist, with those that are like it."""
    known = {text.replace("-", "_") for text in parser._option_string_actions}
    shown = [text for action in parser._actions for text in action.option_strings if action.help != argparse.SUPPRESS]
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and option != HELP_ALL and option.replace("-", "_") not in known:
            near = meant(option, shown)
            raise UsageError(f"there is no option {option}; {near}{where} the options")


def _own_fields(config: type[Any]) -> set[str]:
    """The fields that one of our configs adds to TRL's; empty for a config of TRL."""
    if not config.__module__.startswith("agentgym_trl"):
        return set()
    bases = [base for base in config.__bases__ if is_dataclass(base) and not base.__module__.startswith("agentgym_trl")]
    return set(config.__dataclass_fields__) - {name for base in bases for name in base.__dataclass_fields__}


def _short_names(config: type[Any]) -> dict[str, str]:
    """Our names for options of TRL's, on the command line and in config files."""
    names = {"model": "model_name_or_path", "out": "output_dir"}
    for short, long in (("chat_template", "chat_template_path"), ("async", "asynchronous")):
        if long in config.__dataclass_fields__:
            names[short] = long
    return names


_ALIASES = {"group": "groups"}
"""Other spellings that are accepted and not shown."""


def _renamed(word: str, names: Mapping[str, str]) -> str:
    """Replace a short option name by the long one; return any other word unchanged."""
    option, equals, value = word.partition("=")
    name = names.get(option[2:].replace("-", "_")) if option.startswith("--") else None
    return word if name is None else f"--{name}{equals}{value}"


def _take_config(argv: list[str]) -> tuple[list[str], str | None]:
    """The arguments without `--config FILE`, and that file. TRL's own reader takes `env` for environment variables."""
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    options, rest = parser.parse_known_args(argv)
    return rest, options.config


def _read_config(path: str, names: Mapping[str, str]) -> dict[str, Any]:
    """The options in a config file; `path` may also be the name of one of our own files, without `.yaml`."""
    folder = resources.files("agentgym_trl") / "configs"
    packaged = folder / f"{path}.yaml"
    try:
        config = yaml.safe_load((packaged if packaged.is_file() else Path(path)).read_text(encoding="utf-8"))
    except FileNotFoundError:
        own = meant(path, [file.name.removesuffix(".yaml") for file in folder.iterdir()])
        raise UsageError(f"there is no config file {path}, nor one of ours of that name. {own}".strip()) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"the config file {path} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise UsageError(f"the config file {path} must have one option per line, as in: max_steps: 100")
    options = [(str(key).replace("-", "_"), value) for key, value in config.items()]
    config = {names.get(key, key): value for key, value in options}
    if "max_turns" in config:
        config["max_turns"] = _schedule_text(config["max_turns"])
    for name in ("env", "groups"):
        if isinstance(config.get(name), str):
            config[name] = [config[name]]
    ids = config.get("env", [])
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise UsageError(f"env in the config file {path} must be the id of an environment, or a list, got {ids!r}")
    if isinstance(config.get("env_kwargs"), dict):
        config["env_kwargs"] = json.dumps(config["env_kwargs"])
    return config


def _schedule_text(schedule: Any) -> str:
    """A schedule of a YAML file (a number, a list, or one per environment) as the text of the option --max-turns."""
    if isinstance(schedule, dict):
        return ";".join(f"{name}={_schedule_text(own)}" for name, own in schedule.items())
    return ",".join(map(str, schedule)) if isinstance(schedule, list) else str(schedule)


def _options(argv: Sequence[str]) -> Iterator[str]:
    """The names of the given options."""
    return (word[2:].partition("=")[0].replace("-", "_") for word in argv if word.startswith("--"))
