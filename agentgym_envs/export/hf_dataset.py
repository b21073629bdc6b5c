"""A data set in the form of the Hugging Face Hub: Parquet files, one per split, and a card that describes them.

`datasets.load_dataset(folder, "episodes")`, or `"tasks"`, reads it. The folder can be uploaded as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError, missing_extra
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.formats import ExportCounts, ExportOptions
from agentgym_envs.export.hf_card import ConfigSize, SplitSize, card_of_episodes, card_of_tasks
from agentgym_envs.export.hf_columns import (
    EPISODE_COLUMNS,
    FLOATS,
    MESSAGES,
    TASK_COLUMNS,
    Column,
    HubTaskRow,
    cells,
    episode_rows,
)
from agentgym_envs.export.hf_origin import EpisodeOrigin
from agentgym_envs.export.tasks import ExportTasks
from agentgym_envs.task import SPLITS
from agentgym_envs.whole_files import replacing_files, write_whole

CARD = "README.md"
EPISODES, TASKS = "episodes", "tasks"
_BATCH = 256


def write_hf_episodes(
    episodes: Iterable[ExportEpisode], out: Path, options: ExportOptions, counts: ExportCounts
) -> None:
    """Write episodes as a data set. Those that the environment failed, or that have no turn, are left out.

    Raises:
        UsageError: no episode is left, or one does not fit into the columns.
        MissingExtra: pyarrow is not installed.
    """
    origin = EpisodeOrigin()
    with replacing_files(out, [f"{EPISODES}/*.parquet", f"{TASKS}/*.parquet"]) as folder:
        config = _ConfigWriter(folder / EPISODES, EPISODE_COLUMNS)
        for episode in episodes:
            counts.episodes += 1
            if not episode.trajectory.usable:
                counts.left_out += 1
                continue
            origin.add(episode.trajectory)
            for row in episode_rows(episode):
                config.add(episode.trajectory.task.split, row)
        size = config.close()
        counts.rows = size.rows
        write_whole(folder / CARD, card_of_episodes(size, origin, counts.left_out))


def write_hf_tasks(selection: ExportTasks, out: Path, options: ExportOptions, counts: ExportCounts) -> None:
    """Write tasks of an environment as a data set. Raises as `write_hf_episodes` does."""
    with replacing_files(out, [f"{EPISODES}/*.parquet", f"{TASKS}/*.parquet"]) as folder:
        config = _ConfigWriter(folder / TASKS, TASK_COLUMNS)
        for task in selection.tasks:
            config.add(task.split, HubTaskRow(selection, task))
        size = config.close()
        counts.rows = size.rows
        write_whole(folder / CARD, card_of_tasks(size, selection))


def arrow_schema(columns: Mapping[str, Column]) -> Any:
    """The Arrow schema of columns. Raises MissingExtra."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise missing_extra("a data set in Parquet", "pyarrow", "parquet") from None
    kinds = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        FLOATS: pa.list_(pa.float64()),
        MESSAGES: pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])),
    }
    return pa.schema([(name, kinds[column.kind]) for name, column in columns.items()])


@dataclass(slots=True)
class _SplitWriter:
    """Writes the Parquet file of one split in batches of rows."""

    path: Path
    schema: Any
    rows: int = 0
    num_bytes: int = 0
    _waiting: list[dict[str, Any]] = field(default_factory=list)
    _file: Any = None

    def add(self, row: dict[str, Any]) -> None:
        self._waiting.append(row)
        self.rows += 1
        if len(self._waiting) == _BATCH:
            self._flush()

    def close(self) -> SplitSize:
        if self._waiting:
            self._flush()
        self._file.close()
        return SplitSize(self.rows, self.num_bytes, self.path.stat().st_size)

    def _flush(self) -> None:
        import pyarrow
        from pyarrow import parquet

        if self._file is None:
            self.path.parent.mkdir(exist_ok=True)
            self._file = parquet.ParquetWriter(self.path, self.schema, compression="zstd")
        table = pyarrow.Table.from_pylist(self._waiting, self.schema)
        self._file.write_table(table)
        self.num_bytes += table.nbytes
        self._waiting.clear()


class _ConfigWriter:
    """Writes the rows of one configuration, into a file per split."""

    def __init__(self, folder: Path, columns: Mapping[str, Column]) -> None:
        self._folder, self._columns, self._schema = folder, columns, arrow_schema(columns)
        self._splits: dict[str, _SplitWriter] = {}

    def add(self, split: str, row: Any) -> None:
        if not re.fullmatch("[A-Za-z0-9_]+", split):
            raise UsageError(f"{split!r} cannot be a split of a data set, whose names have letters, digits and _")
        if split not in self._splits:
            self._splits[split] = _SplitWriter(self._folder / f"{split}-00000-of-00001.parquet", self._schema)
        self._splits[split].add(cells(self._columns, row))

    def close(self) -> ConfigSize:
        if not self._splits:
            raise UsageError("there is nothing to write: every episode failed in its environment or has no turn")
        known = [name for name in SPLITS if name in self._splits]
        names = [*known, *sorted(self._splits.keys() - set(known))]
        return ConfigSize(self._folder.name, self._columns, {name: self._splits[name].close() for name in names})
