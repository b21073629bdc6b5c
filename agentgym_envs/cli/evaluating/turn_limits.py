"""The turn limit of each environment, given or its default, and notes on it before a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from agentgym_envs.registration import default_max_turns
from agentgym_envs.task import Task, TaskSet

TurnLimits = int | Mapping[str, int]
"""One turn limit, or one for each environment id."""
_MAX_CHECKED = 100
"""Tasks whose difficulty is read for a note. BabyAI and servers compute it on request."""


def turn_limits(given: int | None, env_ids: Sequence[str]) -> TurnLimits:
    """The limit of --max-turns; without it the default of the environments, as one number if they have the same."""
    if given is not None:
        return given
    found = {env_id: default_max_turns(env_id) for env_id in env_ids}
    return found if len(set(found.values())) > 1 else next(iter(found.values()))


def limit_of(limits: TurnLimits, env_id: str) -> int:
    """The turn limit of an environment."""
    return limits if isinstance(limits, int) else limits[env_id]


def default_notes(limits: TurnLimits) -> Iterator[str]:
    """Yield a note with each default limit."""
    for where, limit in {"": limits}.items() if isinstance(limits, int) else limits.items():
        yield f"{where}{': ' * bool(where)}at most {limit} turns per episode, by default; --max-turns N changes it"


def oracle_notes(env_id: str, tasks: TaskSet, chosen: Sequence[Task], limit: int) -> Iterator[str]:
    """Yield a note if the oracle needs more turns than the limit for some tasks.

    It reads the difficulties of some of the chosen tasks. The default limit is long enough for the oracle, so there it
    reads none.
    """
    if limit >= default_max_turns(env_id):
        return
    checked = chosen[:: max(1, ceil(len(chosen) / _MAX_CHECKED))]
    turns = [found.turns for task in checked if (found := tasks.difficulty(task)) is not None]
    if longer := [needed for needed in turns if needed > limit]:
        yield (
            f"{env_id}: the oracle needs more than {limit} turns, up to {max(longer)}, for {len(longer)} of "
            f"{len(turns)} tasks{' that were looked up' * (len(checked) < len(chosen))}, so these may be out of reach; "
            f"the default is --max-turns {default_max_turns(env_id)}"
        )
