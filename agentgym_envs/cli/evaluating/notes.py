"""What was asked for and comes to nothing: no error, but something to know before a run is played."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.cli.evaluating.planning import Plan
from agentgym_envs.cli.evaluating.settings import Settings
from agentgym_envs.cli.evaluating.task_files import TaskFile
from agentgym_envs.cli.policies import is_model


def notes(settings: Settings, plan: Plan, *, split_given: bool) -> Iterator[str]:
    """A line for each, in words; `split_given` says whether --split was typed."""
    if settings.agent is not None and not is_model(settings.policy):
        yield (
            f"--agent {settings.agent.name} sets the form of the answers only, as no agent guides --policy "
            f"{settings.policy}"
        )
    if not isinstance(settings.tasks, TaskFile) or settings.policy.startswith("replay:"):
        return
    if split_given:
        yield f"--split {settings.split} has no effect, as the file of tasks names them, of whatever split"
    for batch in plan.batches:
        if not batch.specs:
            yield f"{batch.env_id} is not played, as the file of tasks names none of its tasks"
