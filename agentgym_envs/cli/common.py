"""What the commands share: options, consoles, and turning what was typed into an environment."""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium as gym
import typer
from gymnasium.envs.registration import load_env_creator

from agentgym_envs.cli import completion
from agentgym_envs.core import TRANSPORT_OPTIONS
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.hosting import session_host
from agentgym_envs.registration import env_class, env_ids
from agentgym_envs.task import SPLITS, Task, TaskSet
from agentgym_envs.trajectory import strict_json

if TYPE_CHECKING:
    from rich.console import Console

Env = gym.Env[str, str]
_MANY = 9
"""Of more groups than this, the first are shown."""

SHORT = {name.partition("/")[2].rpartition("-v")[0].lower(): name for name in env_ids()}
"""The ids by the names that are quicker to type."""

EnvId = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        help=f"An environment id, or its name: {', '.join(SHORT)}.",
        autocompletion=completion.envs,
    ),
]
EnvArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--env-arg",
        metavar="KEY=VALUE",
        help="An argument of the environment; the value is JSON or a word. With base_url=http://... it is a server's.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
Split = Annotated[str, typer.Option(help="train, validation, test, or all.", autocompletion=completion.splits)]
Seed = Annotated[int, typer.Option(min=0, help="Decides every random choice.")]
MaxTurns = Annotated[int, typer.Option(min=1, help="Limit of turns of an episode.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left there.")]


class Interrupted(Exception):
    """Ctrl-C, after everything worth keeping was kept; the text says what that is."""


def stdout() -> Console:
    """A console on stdout as it is now."""
    return _console(sys.stdout)


def stderr() -> Console:
    """A console on stderr as it is now."""
    return _console(sys.stderr)


def print_json(value: Any) -> None:
    """One JSON document on stdout; see `strict_json`."""
    typer.echo(strict_json(value, indent=2))


def find_env(name: str) -> str:
    """The full id for what was typed: an id, a name without namespace and version, or MODULE:ID. Raises UsageError.

    A module is imported: it registers environments of one's own.
    """
    module, colon, rest = name.rpartition(":")
    if colon:
        import_module(module)
        return rest
    if name in gym.registry:
        return name
    if name.lower() in SHORT:
        return SHORT[name.lower()]
    if _of_another(name):
        raise UsageError(
            f"there is no environment {name!r}; one of your own is named with the module that registers it: "
            f"your_module:{name}"
        )
    names = {known.lower(): known for known in env_ids()} | SHORT
    near = dict.fromkeys(names[match] for match in difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5))
    hint = f"did you mean {' or '.join(near)}?" if near else "`agentgym list` shows them all"
    raise UsageError(f"there is no environment {name!r}; {hint}")


def _of_another(name: str) -> bool:
    """Whether an id has a namespace, and one that is not ours, however it is misspelt."""
    namespace, slash, _ = name.partition("/")
    return bool(slash) and not difflib.get_close_matches(namespace.lower(), ["agentgym"], cutoff=0.7)


def full_name(name: str) -> str:
    """The id for a short name, the weight as it was; MODULE:ID, whose module other processes must import, as it is."""
    env, colon, weight = name.rpartition(":")
    if not colon:
        return find_env(name)
    return name if ":" in env or "-v" in weight else f"{find_env(env)}:{weight}"


def parse_env_args(pairs: Sequence[str] | None) -> dict[str, Any]:
    """KEY=VALUE pairs as keyword arguments; a value that is no JSON is taken as a word. Raises UsageError."""
    arguments: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"--env-arg takes KEY=VALUE, for example max_distractors=0, not {pair!r}")
        arguments[key] = _json_or_text(value)
    return arguments


def json_object(option: str, given: Any) -> dict[str, Any] | None:
    """What an option holds that takes a JSON object, as text or read already. Raises UsageError."""
    found = _json_or_text(given) if isinstance(given, str) else given
    if isinstance(found, dict | None):
        return found
    raise UsageError(f"{option} must be a JSON object, as in '{{\"enable_thinking\": false}}'; got {given!r}")


def recorded_args(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those arguments that belong in a record: how an environment was reached, and by which token, does not."""
    return {name: value for name, value in arguments.items() if name not in TRANSPORT_OPTIONS}


def few_groups(groups: list[str]) -> list[str]:
    """The first of many groups, and how many there are."""
    return groups if len(groups) <= _MANY else [*groups[: _MANY - 1], f"… {len(groups)} in all"]


def begin(env: Env, **arguments: Any) -> str:
    """The first observation of an episode. Raises EnvError, with the cause, if the machine failed."""
    observation, info = env.reset(**arguments)
    if "error" in info:
        raise EnvError(str(info["error"]))
    return observation


def make_env(env_id: str, arguments: Mapping[str, Any]) -> Env:
    """The environment. Raises UsageError if it does not know an argument or is not of this suite."""
    return make_env_factory(env_id, arguments)()


def make_env_factory(env_id: str, arguments: Mapping[str, Any]) -> Callable[[], Env]:
    """A function that makes the environment; the arguments are checked now, or by the server that makes it."""
    creator, kwargs = _creator(env_id)
    if "base_url" not in arguments:
        _check_arguments(env_id, creator, {**kwargs, **arguments})
    return lambda: session_host.make_env(env_id, arguments)


def check_writable(option: str, path: Path) -> None:
    """Make sure that a file can be written, before the work that would be lost. Raises UsageError.

    A file that was not there is not there afterwards either; the folder that it is to lie in is. What is neither file
    nor folder is taken as it is: a pipe that was opened and closed again would have told its reader that all is over.
    """
    if path.is_dir():
        raise UsageError(f"{option} names a file to write, and {path} is a folder")
    file = path.resolve()  # a link may lead to a file that is yet to be made
    new = not file.exists()
    if not new and not file.is_file():
        return
    try:
        if not file.parent.exists():
            file.parent.mkdir(parents=True)
        with file.open("ab"):
            pass
    except OSError as error:
        raise cannot_write(option, path, error) from None
    if new:
        file.unlink()


def cannot_write(option: str, path: Path, error: OSError) -> UsageError:
    """The error for a place that was named and does not take what is written."""
    return UsageError(f"cannot write to {option} {path}: {error.strerror or error}; choose another")


def finite(value: float) -> float:
    """The value of an option, which `nan` and `inf` are none of, though they lie in its range."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number to reckon with; give one such as 1.5")
    return value


def choose_tasks(
    tasks: TaskSet, count: int | None, *, split: str, groups: tuple[str, ...] | None, seed: int
) -> list[Task]:
    """The tasks that --tasks, --split, --groups and --seed ask for. Raises UsageError."""
    chosen = split_of(split)
    if count is None and tasks.counts() is None:
        raise UsageError(f"{tasks.name!r} has tasks without end; say how many you want: --tasks 300, for example")
    return tasks.sample(count, split=chosen, groups=groups, seed=seed)


def split_of(name: str) -> str | None:
    """The split for an environment's own selection, where None is all. Raises UsageError."""
    if name not in (*SPLITS, "all"):
        raise UsageError(f"there is no split {name!r}; choose one of {', '.join(SPLITS)}, all")
    return None if name == "all" else name


def names_of(text: str | None) -> tuple[str, ...] | None:
    """Names separated by commas."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _console(stream: Any) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, soft_wrap=False)


def import_module(module: str) -> None:
    """Import a module, also from the current folder, which is not on the path of an installed command."""
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.append(os.getcwd())
    try:
        importlib.import_module(module)
    except (ImportError, ValueError, TypeError) as error:
        raise UsageError(f"the module {module!r} cannot be imported: {error}") from None
    except Exception as error:  # it runs the user's code
        raise UsageError(f"the module {module!r} cannot be imported: {type(error).__name__}: {error}") from error


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _creator(env_id: str) -> tuple[Any, Mapping[str, Any]]:
    """What makes the environment, and the arguments that its registration gives."""
    try:
        spec = gym.spec(env_id)
        try:
            return env_class(env_id), spec.kwargs
        except UsageError:  # a function, perhaps: what it returns is looked at when it has made it
            assert spec.entry_point is not None
            made_by = spec.entry_point
            return load_env_creator(made_by) if isinstance(made_by, str) else made_by, spec.kwargs
    except (gym.error.Error, ImportError) as error:
        raise UsageError(f"there is no environment {env_id!r}: {error}") from None


def _check_arguments(env_id: str, creator: Any, arguments: Mapping[str, Any]) -> None:
    known = inspect.signature(creator).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return
    if unknown := sorted(set(arguments) - set(known)):
        raise UsageError(f"{env_id} has no argument {', '.join(unknown)}; it has {', '.join(sorted(known))}")
