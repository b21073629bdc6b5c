"""Environments by the name that was typed: ids, short names, arguments, and making the environment."""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from agentgym_envs.core import TRANSPORT_OPTIONS
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.hosting import session_host
from agentgym_envs.image_observations import text_of
from agentgym_envs.registration import env_class, env_ids

Env = gym.Env[str, str]

SHORT_NAMES = {name.partition("/")[2].rpartition("-v")[0].lower(): name for name in env_ids()}
"""Environment ids by their short names: "textcraft" for "AgentGym/TextCraft-v0"."""


def find_env(name: str) -> str:
    """Return the full id for an id, a short name (without namespace and version) or MODULE:ID. Raises UsageError.

    The module of MODULE:ID is imported, so that it can register environments of the user.
    """
    module, colon, rest = name.rpartition(":")
    if colon:
        import_module(module)
        return rest
    if name in gym.registry:
        return name
    if name.lower() in SHORT_NAMES:
        return SHORT_NAMES[name.lower()]
    if _has_foreign_namespace(name):
        raise UsageError(
            f"there is no environment {name!r}; name an environment of your own with the module that registers it: "
            f"your_module:{name}"
        )
    names = {known.lower(): known for known in env_ids()} | SHORT_NAMES
    near = dict.fromkeys(names[match] for match in difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5))
    hint = f"did you mean {' or '.join(near)}?" if near else "`agentgym list` shows all of them"
    raise UsageError(f"there is no environment {name!r}; {hint}")


def find_subject(name: str) -> str:
    """Return the name of an environment for `load_subject`, which keeps MODULE:NAME for other processes."""
    module, colon, _ = name.rpartition(":")
    if colon:
        import_module(module)
        return name
    return find_env(name)


def full_name(name: str) -> str:
    """Return the id for a short name and keep the weight after the colon.

    MODULE:ID stays as it is, because other processes must import the module, too.
    """
    env, colon, weight = name.rpartition(":")
    if not colon:
        return find_env(name)
    return name if ":" in env or "-v" in weight else f"{find_env(env)}:{weight}"


def parse_env_args(
    pairs: Sequence[str] | None, option: str = "--env-arg", example: str = "max_distractors=0"
) -> dict[str, Any]:
    """Convert KEY=VALUE pairs to keyword arguments. A value that is not JSON is a string. Raises UsageError."""
    arguments: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"{option} takes KEY=VALUE, for example {example}, not {pair!r}")
        arguments[key] = json_or_text(value)
    return arguments


def with_native_tools(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an environment whose actions are native tool calls (`--tools`).

    Raises UsageError if the arguments have another grammar.
    """
    if (grammar := arguments.get("grammar", "tools")) != "tools":
        raise UsageError(f"--tools selects the grammar 'tools', and the environment has {grammar!r}: leave one out")
    return {**arguments, "grammar": "tools"}


_CONSTANTS = {"True": True, "False": False, "None": None}
"""Names that users of Python write for JSON's true, false and null."""


def json_or_text(value: str) -> Any:
    """Parse a value as JSON or as Python's True, False or None; return the text itself if it is neither."""
    try:
        return json.loads(value)
    except ValueError:
        return _CONSTANTS.get(value, value)


def recorded_args(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Environment arguments without those of the transport (address, token, ...), which are never recorded."""
    return {name: value for name, value in arguments.items() if name not in TRANSPORT_OPTIONS}


def begin(env: Env, **arguments: Any) -> str:
    """Reset the environment and return the first observation.

    Raises:
        EnvError: an infrastructure error, with its cause.
    """
    observation, info = env.reset(**arguments)
    if "error" in info:
        raise EnvError(str(info["error"]))
    return text_of(observation)


def make_env(env_id: str, arguments: Mapping[str, Any]) -> Env:
    """Make the environment. Raises UsageError for an unknown argument or an environment of another suite."""
    return make_env_factory(env_id, arguments)()


def make_env_factory(env_id: str, arguments: Mapping[str, Any]) -> Callable[[], Env]:
    """Return a function that makes the environment.

    Arguments of a local environment are checked now. With `base_url`, the server checks them.
    """
    creator, kwargs = _creator(env_id)
    if "base_url" not in arguments:
        _check_arguments(env_id, creator, {**kwargs, **arguments})
    return lambda: session_host.make_env(env_id, arguments)


def import_module(module: str) -> None:
    """Import a module; the current folder is searched as well, even for an installed command. Raises UsageError."""
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.append(os.getcwd())
    try:
        importlib.import_module(module)
    except (ImportError, ValueError, TypeError) as error:
        raise UsageError(f"the module {module!r} cannot be imported: {error}") from None
    except Exception as error:  # the module is the user's code
        raise UsageError(f"the module {module!r} cannot be imported: {type(error).__name__}: {error}") from error


def _has_foreign_namespace(name: str) -> bool:
    """True for an id whose namespace is not ours, not even misspelt."""
    namespace, slash, _ = name.partition("/")
    return bool(slash) and not difflib.get_close_matches(namespace.lower(), ["agentgym"], cutoff=0.7)


def _creator(env_id: str) -> tuple[Any, Mapping[str, Any]]:
    """The class or function that makes the environment, and the arguments of its registration."""
    try:
        spec = gym.spec(env_id)
        try:
            return env_class(env_id), spec.kwargs
        except UsageError:  # perhaps a function: the environment that it returns is checked when it is made
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
