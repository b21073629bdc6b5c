"""Datasets of tasks for verl: parquet files with one row per group of episodes (same task, same seed)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from agentgym_envs.core import text_env
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.rollout.mixture import MixtureEnv, draw_mixture
from agentgym_verl.rows import TaskRow, read_row

TRAIN, VAL = "train.parquet", "val.parquet"
ENOUGH, _ENOUGH_EVAL = 1000, 100
_INFO = {
    "index": pa.int64(),
    "env_id": pa.string(),
    "task": pa.string(),
    "seed": pa.int64(),
    "group": pa.string(),
    "split": pa.string(),
    "evaluation": pa.bool_(),
    "env_kwargs": pa.string(),
}
SCHEMA = pa.schema(
    {
        "data_source": pa.string(),
        "agent_name": pa.string(),
        "prompt": pa.list_(pa.struct({"role": pa.string(), "content": pa.string()})),
        "reward_model": pa.struct({"style": pa.string(), "ground_truth": pa.string()}),
        "extra_info": pa.struct(_INFO),
    }
)
"""The columns of every dataset; `TaskRow.as_columns` explains them."""


def draw_train(
    members: Sequence[MixtureEnv],
    count: int | None = None,
    *,
    split: str = "train",
    groups: Sequence[str] | None = None,
    seed: int = 0,
    enough: int = ENOUGH,
) -> list[TaskRow]:
    """Draw rows to train on with `draw_tasks`: by default all tasks of a finite set, and `enough` of an endless one.

    Raises:
        UsageError: as `draw_tasks`.
    """
    return _rows(members, count, enough, split, groups, seed, evaluation=False)


def draw_val(
    members: Sequence[MixtureEnv],
    count: int | None = None,
    *,
    split: str | None = None,
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> list[TaskRow]:
    """Draw rows to validate on: by default up to 100 tasks of `eval_split(members)`.

    Raises:
        UsageError: as `draw_tasks`.
    """
    rows = _rows(members, count, _ENOUGH_EVAL, split or eval_split(members), groups, seed, evaluation=True)
    return rows if count is not None else rows[: max(_ENOUGH_EVAL, len(members))]


def eval_split(members: Sequence[MixtureEnv]) -> str:
    """`validation`, or `test` if an environment has no validation tasks."""
    return "validation" if all(_has(member, "validation") for member in members) else "test"


def write_rows(path: str | Path, rows: Sequence[TaskRow]) -> None:
    """Write rows to a parquet file, or nothing if interrupted; equal rows write equal bytes.

    Raises:
        UsageError: an environment's arguments have a server's token, which must not be in a file.
    """
    if any("token" in row.env_kwargs for row in rows):
        raise UsageError("datasets are shared: set a server's token as AGENTGYM_TOKEN instead")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist([row.as_columns(index) for index, row in enumerate(rows)], schema=SCHEMA)
    part = path.with_name(f".{path.name}.part")
    pq.write_table(table, part)
    os.replace(part, path)


def read_rows(path: str | Path) -> list[TaskRow]:
    """Read the rows of a file. Raises UsageError if it does not exist or `write_rows` did not write it."""
    try:
        table = pq.read_table(path, columns=["extra_info"])
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"the dataset {path} cannot be read: {str(error).splitlines()[0]}") from None
    return [read_row(columns) for columns in table.to_pylist()]


def members_of(rows: Sequence[TaskRow]) -> list[MixtureEnv]:
    """The environments of rows, with their arguments, in order of the first row; the weight is the number of rows."""
    counts = Counter(row.kind for row in rows)
    first = {row.kind: row for row in reversed(rows)}
    return [MixtureEnv(first[kind].env_id, first[kind].env_kwargs, count) for kind, count in counts.items()]


def _rows(
    members: Sequence[MixtureEnv],
    count: int | None,
    enough: int,
    split: str,
    groups: Sequence[str] | None,
    seed: int,
    *,
    evaluation: bool,
) -> list[TaskRow]:
    kwargs = {member.id: member.kwargs for member in members}
    drawn = draw_mixture(members, count, enough=enough, split=split, groups=groups, seed=seed)
    return [
        TaskRow(env, task.id, task_seed, task.group, task.split, evaluation, kwargs[env], task.goal)
        for env, task, task_seed in drawn
    ]


def _has(member: MixtureEnv, split: str) -> bool:
    env = member.make()
    try:
        text_env(env).tasks.draw(0, split=split)
    except UnknownTask:
        return False
    finally:
        env.close()
    return True
