"""What libraries refuse, in one line of ours, and what several algorithms refuse alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from agentgym_envs.errors import AgentGymError, UsageError
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.trajectory import Trajectory


@contextmanager
def as_usage_errors() -> Iterator[None]:
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


def reject_teams(trajectories: Iterable[Trajectory], algorithm: str) -> None:
    """Raise UsageError if one is a team's joint record, of which the algorithm would train on the JSON."""
    if found := next(filter(is_team_record, trajectories), None):
        raise team_error(f"{found.env_id}, of which there is a trajectory (task {found.task.id}),", algorithm)


def team_error(what: str, algorithm: str) -> UsageError:
    """The refusal of an environment that is a team."""
    return UsageError(
        f"{what} is a team, and {algorithm} trains one that plays alone; teams are trained by sft and by the online "
        "algorithms (grpo, rloo, reinforce++, ppo)"
    )
