"""What decides the result of an evaluation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from agentgym_envs.cli.common import recorded_args
from agentgym_envs.cli.evaluating.task_files import TaskFile


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """An agent by what decides the result: its name, its context policy in words, and its tries at most."""

    name: str
    context: str
    tries: int


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the result; a run is resumed only under the same.

    `tasks` is how many tasks, the file that names them, or None for all of the split.
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
    samples: int
    max_turns: int
    max_tokens: int
    max_turn_tokens: int
    temperature: float
    seed: int

    def recorded(self) -> dict[str, Any]:
        """What of them is written down and compared: an episode is the same wherever its environment runs.

        A file of tasks is known by what it names, not by where it lies; an agent and variables of a chat template are
        recorded if they were given.
        """
        row = asdict(self) | {"env_args": recorded_args(self.env_args)}
        if isinstance(self.tasks, TaskFile):
            row["tasks"] = self.tasks.fingerprint()
        for name in ("agent", "chat_template_kwargs"):
            if row[name] is None:
                del row[name]
        return row
