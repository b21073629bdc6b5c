"""The settings that determine the result of an evaluation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from agentgym_envs.cli.envs import recorded_args
from agentgym_envs.cli.evaluating.task_files import TaskFile
from agentgym_envs.cli.evaluating.turn_limits import TurnLimits


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """The properties of an agent that affect the result; `attempts` is the maximum."""

    name: str
    context: str
    attempts: int


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """All settings that affect the result; a run can only be resumed with the same settings.

    `tasks` is the number of tasks, the file that names them, or None for all tasks of the split. `max_turns` is one
    limit, or one for each environment.
    """

    env: tuple[str, ...]
    env_args: dict[str, Any]
    policy: str
    agent: AgentChoice | None
    base_url: str | None
    chat_template: str | None
    chat_template_kwargs: dict[str, Any] | None
    split: str
    groups: tuple[str, ...] | None
    tasks: int | TaskFile | None
    episodes_per_task: int
    max_turns: TurnLimits
    max_tokens: int
    max_turn_tokens: int
    temperature: float
    seed: int
    max_images: int | None = None

    def recorded(self) -> dict[str, Any]:
        """The settings as written to `eval.json` and compared on --resume.

        The location of the environments is left out, as it does not affect the episodes. A task file is identified by
        its contents. `agent`, `chat_template_kwargs` and `max_images` are left out if they are not set.
        """
        row = asdict(self) | {"env_args": recorded_args(self.env_args)}
        if isinstance(self.tasks, TaskFile):
            row["tasks"] = self.tasks.fingerprint()
        for name in ("agent", "chat_template_kwargs", "max_images"):
            if row[name] is None:
                del row[name]
        return row
