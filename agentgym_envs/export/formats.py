"""The table of formats. A format is a row: the function that writes it, its options, and what reads the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentgym_envs.registration import load_object

ATIF_VERSIONS = ("1.8", "1.7")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of all formats; each takes those that `ExportFormat.options` names.

    - `atif_version`: the version of ATIF.
    - `content`: OTLP with observations, answers and instructions.
    - `host`, `port`, `max_turns`: the server of a NeMo-Gym run and its turn limit.
    """

    atif_version: str = ATIF_VERSIONS[0]
    content: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    max_turns: int = 30


@dataclass(slots=True)
class ExportCounts:
    """Counts of what is written so far: episodes, those among them without times, and the rows of a data set.

    `left_out` counts the episodes that the format does not take.
    """

    episodes: int = 0
    without_times: int = 0
    left_out: int = 0
    rows: int | None = None


class ExportFormat(NamedTuple):
    """A format.

    Attributes:
        summary: what it is, for the help.
        writer: "module:function" of a function that writes episodes to a path and counts them while it does. It raises
            OSError if the disk is full.
        out: the ending of the default path. One that begins with "." and has no further one is a folder.
        options: the options that it takes.
        needs: what reads the result.
        tokens: True if it takes the recorded tokens.
        task_writer: "module:function" that writes a `ExportTasks` in place of episodes; None if the format has none.
        at_once: True if its files appear together at the end.
    """

    summary: str
    writer: str
    out: str
    options: frozenset[str]
    needs: str
    tokens: bool = True
    task_writer: str | None = None
    at_once: bool = False

    def load(self, *, tasks: bool = False) -> Callable[..., None]:
        """Import the writer, of tasks if asked.

        Its arguments are the episodes or a `ExportTasks`, the path, `ExportOptions` and `ExportCounts`.
        """
        name = self.task_writer if tasks else self.writer
        assert name is not None
        function: Callable[..., Any] = load_object(name)
        return function


FORMATS: dict[str, ExportFormat] = {
    "atif": ExportFormat(
        "Harbor's trajectory format, with tokens; a team's agents are sub-agents",
        "agentgym_envs.export.writers:write_atif",
        ".atif",
        frozenset({"atif_version"}),
        "Harbor 0.24 or newer, `agentgym view`; version 1.7 for NeMo-Gym",
    ),
    "otlp": ExportFormat(
        "OpenTelemetry traces with GenAI names, as JSON lines",
        "agentgym_envs.export.writers:write_otlp",
        ".otlp.jsonl",
        frozenset({"content"}),
        "an OpenTelemetry collector with the receiver otlpjsonfile",
    ),
    "nemo": ExportFormat(
        "rows and configuration of a NeMo-Gym run on the recorded tasks",
        "agentgym_envs.export.writers:write_nemo",
        ".nemo",
        frozenset({"host", "port", "max_turns"}),
        "NeMo-Gym 0.7 and `agentgym serve --dialect nemo`",
        tokens=False,
        task_writer="agentgym_envs.export.writers:write_nemo_selection",
    ),
    "hf-dataset": ExportFormat(
        "a data set for the Hugging Face Hub: Parquet and a card",
        "agentgym_envs.export.hf_dataset:write_hf_episodes",
        ".hf",
        frozenset(),
        "`datasets.load_dataset` and TRL's SFTTrainer",
        tokens=False,
        task_writer="agentgym_envs.export.hf_dataset:write_hf_tasks",
        at_once=True,
    ),
}
