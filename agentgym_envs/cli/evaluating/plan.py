"""The plan of an evaluation: the episodes to play, with their tasks, seeds and limits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentgym_envs.cli.common import choose_tasks
from agentgym_envs.cli.envs import make_env, make_env_factory, recorded_args
from agentgym_envs.cli.evaluating.settings import EvalSettings
from agentgym_envs.cli.evaluating.task_files import TaskFile
from agentgym_envs.cli.evaluating.turn_limits import limit_of, oracle_notes
from agentgym_envs.cli.policies import EpisodeRequest, read_recorded
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.task import Task, TaskSet
from agentgym_envs.trajectory import Trajectory

if TYPE_CHECKING:
    from agentgym_envs.rollout import EpisodeSpec


_REMEDY = "choose fewer tasks, give --tasks a file of ids, or evaluate it separately"


@dataclass(slots=True)
class EvalPlan:
    """The episodes to play.

    `group_order` is the order of the groups in a report, `digests` the hashes of the task tables. `skipped` are the ids
    of the task file that belong to none of the environments, `notes` what to say before the run.
    """

    batches: list[EpisodeRequest] = field(default_factory=list)
    group_order: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def episodes(self) -> int:
        """The total number of episodes."""
        return sum(len(batch.specs) for batch in self.batches)


def make_plan(settings: EvalSettings, *, skip_unknown: bool) -> EvalPlan:
    """Plan the episodes for the settings.

    Raises:
        UsageError: there is no episode to play, or a task of the file belongs to none of the environments and
            `skip_unknown` is False.
    """
    plan = EvalPlan()
    recorded = read_recorded(settings.policy.partition(":")[2]) if settings.policy.startswith("replay:") else None
    known: set[str] = set()
    for env_id in settings.env:
        made = make_env(env_id, settings.env_args)
        table = text_env(made).tasks
        plan.group_order += [group for group in table.groups if group not in plan.group_order]
        plan.digests[env_id] = table.digest
        limit = limit_of(settings.max_turns, env_id)
        if recorded is not None:
            plan.batches += _replayed(env_id, settings, recorded)
        else:
            tasks = _tasks(env_id, settings, table, known)
            plan.batches.append(_batch(env_id, settings, _specs(tasks, settings), limit))
            plan.notes += oracle_notes(env_id, table, tasks, limit)
        made.close()
    _check(plan, settings, known, skip_unknown)
    return plan


def _tasks(env_id: str, settings: EvalSettings, table: TaskSet, known: set[str]) -> list[Task]:
    if not isinstance(settings.tasks, TaskFile):
        try:
            return choose_tasks(table, settings.tasks, split=settings.split, groups=settings.groups, seed=settings.seed)
        except UsageError as error:
            if len(settings.env) > 1:
                error.add_note(f"this is {env_id}, one of {len(settings.env)} environments: {_REMEDY}")
            raise
    found = settings.tasks.find(env_id, settings.env_args, table)
    known |= set(found)
    return list({task.id: task for task in found.values()}.values())


def _specs(tasks: Sequence[Task], settings: EvalSettings) -> list[EpisodeSpec]:
    from agentgym_envs.rollout import EpisodeSpec

    meta = {"policy": settings.policy}
    seeds = range(settings.seed, settings.seed + settings.episodes_per_task)
    return [EpisodeSpec(task.id, seed, meta) for task in tasks for seed in seeds]


def _check(plan: EvalPlan, settings: EvalSettings, known: set[str], skip_unknown: bool) -> None:
    if isinstance(settings.tasks, TaskFile) and not settings.policy.startswith("replay:"):
        plan.skipped = [name for name in settings.tasks.names if name not in known]
        if plan.skipped and not (skip_unknown and known):
            raise settings.tasks.unknown_tasks_error(plan.skipped, settings.env)
    if not plan.episodes:
        raise UsageError(f"{settings.policy} holds no episode of {', '.join(settings.env)}")


def _replayed(env_id: str, settings: EvalSettings, recorded: Sequence[Trajectory]) -> list[EpisodeRequest]:
    """Batches of the recorded episodes. A truncated episode gets its own length as the turn limit."""
    from agentgym_envs.rollout import EpisodeSpec

    by_limit: dict[int, list[EpisodeSpec]] = {}
    limit = limit_of(settings.max_turns, env_id)
    for episode in recorded:
        if episode.env_id == env_id:
            _check_replay(episode, settings)
            turns = len(episode.turns) if episode.truncated else limit
            spec = EpisodeSpec(episode.task.id, episode.seed, {"policy": settings.policy})
            by_limit.setdefault(min(turns, limit), []).append(spec)
    return [_batch(env_id, settings, specs, turns) for turns, specs in sorted(by_limit.items())]


def _check_replay(episode: Trajectory, settings: EvalSettings) -> None:
    recorded = _deciding(episode.env_kwargs)
    if recorded != _deciding(recorded_args(settings.env_args)):
        arguments = " ".join(f"--env-arg {key}={json.dumps(value)}" for key, value in recorded.items())
        raise UsageError(
            f"{episode.task.id} was recorded with {arguments or 'no --env-arg'}; its actions need the same arguments, "
            "so give them"
        )


def _deciding(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that affect what an action does. The others only affect which tasks are drawn."""
    return {name: value for name, value in arguments.items() if name not in ("split", "groups", "difficulty")}


def _batch(env_id: str, settings: EvalSettings, specs: list[EpisodeSpec], max_turns: int) -> EpisodeRequest:
    from agentgym_envs.rollout import Limits

    limits = Limits(max_turns, settings.max_tokens, settings.max_turn_tokens)
    return EpisodeRequest(env_id, make_env_factory(env_id, settings.env_args), specs, limits)
