"""Every error the suite raises, and the one place that words a missing extra.

    AgentGymError
    ├── InvalidAction      (ValueError)    the policy's fault: its text goes back to the model and nothing is raised
    ├── UsageError         (ValueError)    the caller's fault: says what was asked, what is wrong, what to do
    │   ├── UnknownTask    (KeyError)
    │   ├── TaskTableError                 a malformed task file or recipe table
    │   ├── TrajectoryError                a malformed trajectory file
    │   ├── TemplateError                  a chat template that cannot be trained on
    │   ├── Unauthorized                   a server wants another token
    │   ├── TooLarge                       more than a server takes in one request
    │   └── OutOfOrder                     a call of a session that is not its next
    ├── EpisodeOver        (RuntimeError)  a step without a running episode
    ├── NoOracle           (RuntimeError)  the current state cannot be solved, or the environment has no oracle
    ├── EnvError           (RuntimeError)  the machine's fault: ends the episode as `env_error`, never becomes a reward
    │   ├── RetrieverError                 a search engine or its server failed
    │   ├── SessionLost                    a server or worker does not hold that session (any more)
    │   └── ServerFull                     a server holds as many sessions as it may
    ├── EngineError        (RuntimeError)  the generation server failed
    └── MissingExtra       (ImportError)   an optional dependency is not installed

Each error also inherits the standard one it stands for, so that `except ValueError` keeps working.
"""

from __future__ import annotations


class AgentGymError(Exception):
    """Base of every error of the suite."""


class InvalidAction(AgentGymError, ValueError):
    """The policy wrote something that is not a valid action; `str(error)` is the reply to the model."""


class UsageError(AgentGymError, ValueError):
    """The caller asked for something that cannot be."""


class UnknownTask(UsageError, KeyError):
    """No task of that id, split or group."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message


class TaskTableError(UsageError):
    """A task file or recipe table is malformed."""


class TrajectoryError(UsageError):
    """A trajectory file is malformed."""


class TemplateError(UsageError):
    """A chat template cannot be used for multi-turn training."""


class Unauthorized(UsageError):
    """A server was asked without its token, or with another."""


class TooLarge(UsageError):
    """A request is larger than a server takes."""


class OutOfOrder(UsageError):
    """A call carries a sequence number that is not its session's next."""


class EpisodeOver(AgentGymError, RuntimeError):
    """A step was asked of an environment that has no running episode."""


class NoOracle(AgentGymError, RuntimeError):
    """The current state cannot be solved, or the environment has no oracle."""


class EnvError(AgentGymError, RuntimeError):
    """The simulator, server or browser behind an environment failed."""


class RetrieverError(EnvError):
    """A search engine, or the server that it is behind, did not answer."""


class SessionLost(EnvError):
    """The server or worker process that held an environment is gone, or has dropped it."""


class ServerFull(EnvError):
    """A server holds as many sessions as it may."""


class EngineError(AgentGymError, RuntimeError):
    """A generation engine or its server failed."""


class MissingExtra(AgentGymError, ImportError):
    """An optional dependency is not installed."""


def missing_extra(what: str, package: str, extra: str) -> MissingExtra:
    """The error for `what` (a feature) that needs `package`, installed by the extra `extra`."""
    return MissingExtra(
        f"{what} needs the package {package!r}, which is not installed. Run: pip install 'agentgym-envs[{extra}]'"
    )
