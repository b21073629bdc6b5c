"""All errors of the suite, and the message for a missing extra.

    AgentGymError
    ├── InvalidAction      (ValueError)    the policy's fault: the text becomes the reply to the model
    ├── UsageError         (ValueError)    the caller's fault: says what was asked, what is wrong, what to do
    │   ├── UnknownTask    (KeyError)
    │   ├── TaskTableError                 a malformed task file or recipe table
    │   ├── TrajectoryError                a malformed trajectory file
    │   ├── TemplateError                  a chat template that is unfit for training
    │   ├── Unauthorized                   a missing or wrong token for a server
    │   ├── TooLarge                       a request that is larger than a server accepts
    │   └── OutOfOrder                     a call with the wrong sequence number
    ├── EpisodeOver        (RuntimeError)  a step without a running episode
    ├── NoOracle           (RuntimeError)  no plan: an unsolvable state, no running episode, or no oracle
    ├── EnvError           (RuntimeError)  an infrastructure failure: ends the episode as `env_error`, never a reward
    │   ├── RetrieverError                 a search engine or its server failed
    │   ├── SessionLost                    a server or worker lost the session
    │   └── ServerFull                     a server has reached its maximum number of sessions
    ├── EngineError        (RuntimeError)  the generation server failed
    └── MissingExtra       (ImportError)   an optional dependency is not installed

Each error also inherits the standard exception in parentheses, so that `except ValueError` works.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AgentGymError(Exception):
    """Base of every error of the suite."""


class InvalidAction(AgentGymError, ValueError):
    """The policy wrote an invalid action. `str(error)` is the reply to the model."""


class UsageError(AgentGymError, ValueError):
    """The caller passed invalid arguments, or called something at the wrong time."""


class UnknownTask(UsageError, KeyError):
    """There is no task of that id, split or group."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message


class TaskTableError(UsageError):
    """A task file or recipe table is malformed."""


class TrajectoryError(UsageError):
    """A trajectory file is malformed."""


class TemplateError(UsageError):
    """A chat template cannot be used for multi-turn training."""


class Unauthorized(UsageError):
    """A request to a server had no token, or a wrong one."""


class TooLarge(UsageError):
    """A request is larger than a server accepts."""


class OutOfOrder(UsageError):
    """A call's sequence number is not the next one of its session."""


class EpisodeOver(AgentGymError, RuntimeError):
    """A step or another call needs a running episode, but it has ended or was never begun."""


class NoOracle(AgentGymError, RuntimeError):
    """There is no plan: the state cannot be solved, no episode is running, or the environment has no oracle."""


class EnvError(AgentGymError, RuntimeError):
    """The simulator, server or browser behind an environment failed."""


class RetrieverError(EnvError):
    """A search engine or its server did not answer."""


class SessionLost(EnvError):
    """The server or worker process of an environment is gone, or has closed the session."""


class ServerFull(EnvError):
    """A server has reached its maximum number of sessions."""


class EngineError(AgentGymError, RuntimeError):
    """A generation engine or its server failed."""


class MissingExtra(AgentGymError, ImportError):
    """An optional dependency is not installed.

    The attributes are the arguments of `missing_extra`; they are empty if the error was made without it.
    """

    what = package = extra = ""

    def naming(self, extra: str) -> MissingExtra:
        """The same error with an extra that contains more than the missing package."""
        return missing_extra(self.what, self.package, extra)


def meant(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A question for an error about an unknown name, "did you mean ...? ", or "" if no known name is like it."""
    near = difflib.get_close_matches(name, list(known), n=2, cutoff=cutoff)
    return f"did you mean {' or '.join(near)}? " if near else ""


def missing_extra(what: str, package: str, extra: str) -> MissingExtra:
    """Make the error for a feature `what` that needs `package` from the extra `extra`."""
    error = MissingExtra(
        f"{what} needs the package {package!r}, which is not installed. Run: pip install 'agentgym-envs[{extra}]'"
    )
    error.what, error.package, error.extra = what, package, extra
    return error
