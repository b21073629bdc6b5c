"""Errors of libraries as one-line usage errors, and errors that several algorithms share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from agentgym_envs.errors import AgentGymError, UsageError
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.trajectory import Trajectory


@contextmanager
def as_usage_errors() -> Iterator[None]:
    """Convert errors of TRL and transformers during the setup of a run to UsageError; OS errors propagate."""
    try:
        yield
    except SafetensorError as error:
        raise UsageError(f"the model's weights do not load: {error}") from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        if isinstance(error, AgentGymError) or (isinstance(error, OSError) and error.errno):
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(lines[0]) from error


def reject_teams(trajectories: Iterable[Trajectory], algorithm: str) -> None:
    """Raise UsageError if one is a team's joint record: the algorithm would train on its JSON."""
    if found := next(filter(is_team_record, trajectories), None):
        raise team_error(f"{found.env_id} (from the trajectory of task {found.task.id})", algorithm)


def team_error(env: str, algorithm: str) -> UsageError:
    """The error for the environment of a team, with an algorithm that trains single agents only."""
    return UsageError(
        f"{env} is a team, and {algorithm} trains a single agent; sft and the online algorithms (grpo, rloo, "
        "reinforce++, ppo) train teams"
    )
