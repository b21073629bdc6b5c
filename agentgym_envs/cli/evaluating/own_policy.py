"""`--policy MODULE:NAME`: a policy of the user, checked before any episode is played."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentgym_envs.cli.envs import import_module
from agentgym_envs.errors import UsageError

if TYPE_CHECKING:
    from agentgym_envs.rollout.policies import PolicyFactory

CHOICES = "oracle, oracle:DEFECTS, random, replay:FILE, openai:MODEL, hf:MODEL"
_WANTED = (
    "a class with `async def act(self, env, messages)` and no required arguments, or a function that returns a policy"
)


def check_own(policy: str) -> None:
    """Check that MODULE:NAME is a policy class, or a function that returns a policy. The function is called.

    Raises:
        UsageError: the module cannot be imported, has no such name, or the name is something else.
    """
    found: Any = load_own(policy)
    _check_arguments(policy, found)
    _check_act(policy, found if inspect.isclass(found) else _called(policy, found))


def load_own(policy: str) -> PolicyFactory:
    """Import MODULE:NAME, which makes one policy per episode. The module may be in the current folder.

    Raises:
        UsageError: the module cannot be imported, has no such name, or the name is not callable.
    """
    module, _, name = policy.partition(":")
    try:
        import_module(module)
    except UsageError as error:
        raise UsageError(
            f"--policy {policy}: {error}; put a module of your own into the current folder or on PYTHONPATH, or choose "
            f"a policy of this suite: {CHOICES}"
        ) from None
    try:
        found = getattr(sys.modules[module], name)
    except AttributeError:
        raise UsageError(f"--policy {policy}: the module {module} has no {name}; name {_WANTED}") from None
    if not callable(found):
        raise UsageError(f"--policy {policy}: {name} is not a class or function, but {found!r:.80}; name {_WANTED}")
    factory: PolicyFactory = found
    return factory


def _called(policy: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:  # the function is the user's code
        raise UsageError(f"--policy {policy}: calling it failed: {type(error).__name__}: {error}") from error


def _check_arguments(policy: str, found: Any) -> None:
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"--policy {policy}: a policy is made without arguments, and that fails: {error}; add defaults, or name a "
            "function that passes them"
        ) from None


def _check_act(policy: str, made: Any) -> None:
    """Raise UsageError unless a class, or the result of a function, has an `act` that can be awaited."""
    act = getattr(made, "act", None)
    if not inspect.iscoroutinefunction(act):
        fault = "has no `act`" if act is None else "has an `act` that is not `async def`"
        owner = "it" if inspect.isclass(made) else f"its result ({made!r:.80})"
        raise UsageError(f"--policy {policy}: {owner} {fault}; name {_WANTED}")
    given = ("self", "env", "messages") if inspect.isclass(made) else ("env", "messages")
    try:
        inspect.signature(act).bind(*given)
    except TypeError as error:
        raise UsageError(f"--policy {policy}: its `act` has other arguments ({error}); name {_WANTED}") from None
