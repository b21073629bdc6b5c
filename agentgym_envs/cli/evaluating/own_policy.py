"""`--policy MODULE:NAME`: a policy of one's own, looked at before anything is played."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentgym_envs.cli.common import import_module
from agentgym_envs.errors import UsageError

if TYPE_CHECKING:
    from agentgym_envs.rollout.policies import PolicyFactory

CHOICES = "oracle, random, replay:FILE, openai:MODEL, hf:MODEL_PATH"
_WANTED = (
    "a class with `async def act(self, env, messages)` that is made without arguments, or a function that makes one"
)


def check_own(policy: str) -> None:
    """Look at what MODULE:NAME stands for: a class at itself, a function at what it makes, for which it is called.

    Raises:
        UsageError: the module cannot be imported, has no such name, or the name stands for something else.
    """
    found: Any = load_own(policy)
    _check_arguments(policy, found)
    _check_act(policy, found if inspect.isclass(found) else _called(policy, found))


def load_own(policy: str) -> PolicyFactory:
    """What makes the policy MODULE:NAME, once an episode. The module may lie in the current folder.

    Raises:
        UsageError: the module cannot be imported, has no such name, or the name stands for nothing that makes one.
    """
    module, _, name = policy.partition(":")
    try:
        import_module(module)
    except UsageError as error:
        raise UsageError(
            f"--policy {policy}: {error}; a module of your own lies in the current folder or on PYTHONPATH, and the "
            f"policies of this suite are {CHOICES}"
        ) from None
    try:
        found = getattr(sys.modules[module], name)
    except AttributeError:
        raise UsageError(f"--policy {policy}: the module {module} has no {name}; name {_WANTED}") from None
    if not callable(found):
        raise UsageError(f"--policy {policy}: {name} is no class and no function, but {found!r:.80}; name {_WANTED}")
    factory: PolicyFactory = found
    return factory


def _called(policy: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:  # it is the user's code
        raise UsageError(f"--policy {policy}: it makes no policy, but {type(error).__name__}: {error}") from error


def _check_arguments(policy: str, found: Any) -> None:
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"--policy {policy}: a policy is made without arguments, and that fails: {error}; give defaults, or name a "
            "function that fills them in"
        ) from None


def _check_act(policy: str, made: Any) -> None:
    """Raise UsageError unless a class, or what a function made, has an `act` that can be awaited."""
    act = getattr(made, "act", None)
    if not inspect.iscoroutinefunction(act):
        what = "has no `act`" if act is None else "has an `act` that is no `async def`"
        whose = "it" if inspect.isclass(made) else f"what it made ({made!r:.80})"
        raise UsageError(f"--policy {policy}: {whose} {what}; name {_WANTED}")
    given = ("self", "env", "messages") if inspect.isclass(made) else ("env", "messages")
    try:
        inspect.signature(act).bind(*given)
    except TypeError as error:
        raise UsageError(f"--policy {policy}: its `act` does not take that ({error}); name {_WANTED}") from None
