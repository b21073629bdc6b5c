"""Warnings about options that have no effect in this run."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.cli.evaluating.plan import EvalPlan
from agentgym_envs.cli.evaluating.settings import EvalSettings
from agentgym_envs.cli.evaluating.task_files import TaskFile
from agentgym_envs.cli.policies import is_model


def option_warnings(settings: EvalSettings, plan: EvalPlan, *, split_given: bool) -> Iterator[str]:
    """Yield one line per warning. `split_given` is True if --split was given."""
    if settings.agent is not None and not is_model(settings.policy):
        yield (
            f"--agent {settings.agent.name} only sets the form of the answers, because agents do not guide --policy "
            f"{settings.policy}"
        )
    if not isinstance(settings.tasks, TaskFile) or settings.policy.startswith("replay:"):
        return
    if split_given:
        yield f"--split {settings.split} has no effect: the task file names the tasks, of any split"
    for batch in plan.batches:
        if not batch.specs:
            yield f"{batch.env_id} is not played: the task file names none of its tasks"
