"""The card of a data set for the Hugging Face Hub: YAML for programs, then a text for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import agentgym_envs
from agentgym_envs.export.hf_columns import FLOATS, MESSAGES, Column
from agentgym_envs.export.hf_origin import EpisodeOrigin, TableUse, licence_of
from agentgym_envs.export.tasks import ExportTasks
from agentgym_envs.export.text import valid_unicode
from agentgym_envs.trajectory import strict_json

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_FEATURES: Mapping[str, Mapping[str, Any]] = {
    FLOATS: {"list": "float64"},
    MESSAGES: {"list": [{"name": "role", "dtype": "string"}, {"name": "content", "dtype": "string"}]},
}
_TRAINING = """\
```python
from datasets import load_dataset

episodes = load_dataset("PATH", "episodes", split="SPLIT")
solved = episodes.filter(lambda row: row["success"])
```

`messages` and `tools` are the columns of TRL's `SFTTrainer`. Token ids and masks are left out, because they belong to a
tokenizer: `SFTConfig(assistant_only_loss=True)` makes a mask of the actions if the chat template marks them, and
`agentgym train sft` makes it for every template, from the recorded file. Images of observations are left out, too.
"""
_TASK_USE = """\
```python
import gymnasium as gym
import agentgym_envs
from datasets import load_dataset

rows = load_dataset("PATH", "tasks", split="SPLIT")
env = gym.make(ENV)
observation, info = env.reset(seed=0, options={"task": rows[0]["task"]})
```

`prompt` has the instructions and the goal; the first observation of an episode comes from the reset.
"""


class SplitSize(NamedTuple):
    """The size of a split: rows, bytes in memory, and bytes of its file."""

    rows: int
    num_bytes: int
    file_bytes: int


class ConfigSize(NamedTuple):
    """A configuration of a data set: its name, which is that of its folder, its columns and its splits."""

    name: str
    columns: Mapping[str, Column]
    splits: Mapping[str, SplitSize]

    @property
    def rows(self) -> int:
        """The rows of all splits."""
        return sum(split.rows for split in self.splits.values())


def card_of_episodes(config: ConfigSize, origin: EpisodeOrigin, left_out: int) -> str:
    """The card of recorded episodes."""
    tables = origin.tables
    policies = ", ".join(f"{name} ({count:,})" for name, count in origin.policies.most_common())
    missing = f" {left_out:,} more failed in their environment or have no turn, and were left out." if left_out else ""
    made = (
        f"{origin.episodes:,} episodes, {origin.successes:,} of them solved, by the policy {policies}.{missing} "
        "A split has the episodes of the tasks of that split."
    )
    return _card("episodes", config, tables, made, _TRAINING)


def card_of_tasks(config: ConfigSize, selection: ExportTasks) -> str:
    """The card of tasks."""
    use = TableUse(
        selection.env, selection.options, selection.table, dict.fromkeys((t.id for t in selection.tasks), True)
    )
    counts = selection.table.counts()
    total = None if counts is None else sum(sum(splits.values()) for splits in counts.values())
    whole = total == len(selection.tasks)
    made = (
        "The whole task table."
        if whole
        else f"{config.rows:,} tasks of {'an unlimited number' if total is None else f'{total:,}'}, chosen with "
        f"the seed {selection.seed}."
    )
    return _card("tasks", config, [use], made, _TASK_USE)


def _card(what: str, config: ConfigSize, tables: Sequence[TableUse], made: str, use: str) -> str:
    envs = list(dict.fromkeys(table.env for table in tables))
    title = f"{', '.join(envs)}: {what}"
    arguments = f", **{dict(tables[0].options)!r}" if tables[0].options else ""
    use = use.replace("SPLIT", next(iter(config.splits))).replace("ENV", json.dumps(envs[0]) + arguments)
    parts = [
        f"---\n{_yaml(_front_matter(title, config, envs))}---\n",
        f"# {title}\n",
        f"{made}\n",
        f"Made by `agentgym export --format hf-dataset` of agentgym-envs {agentgym_envs.__version__}.\n",
        "## Use\n",
        use,
        "## Task tables\n",
        _table(("environment", "arguments", "table", "version", "tasks here", "SHA-256"), map(_table_row, tables)),
        "Equal digests mean equal tasks: compare with `agentgym list --json`.\n",
        "## Columns\n",
        _table(("column", "type", ""), ((f"`{n}`", c.kind, c.about) for n, c in config.columns.items())),
        "## Licence\n",
        "\n".join(f"- {env}: {licence_of(env).about}" for env in envs),
        "\nThe code and texts of AgentGym Envs are under Apache-2.0. The actions of a model may have other terms.\n",
    ]
    return valid_unicode("\n".join(parts))


def _front_matter(title: str, config: ConfigSize, envs: Sequence[str]) -> dict[str, Any]:
    licences = list(dict.fromkeys(name for env in envs for name in licence_of(env).names))
    files = [{"split": name, "path": f"{config.name}/{name}-*"} for name in config.splits]
    splits = [
        {"name": name, "num_bytes": split.num_bytes, "num_examples": split.rows}
        for name, split in config.splits.items()
    ]
    return {
        "license": licences,
        "pretty_name": title,
        "language": ["en"],
        "task_categories": ["text-generation"],
        "tags": ["agent", "gymnasium", "multi-turn", "agentgym-envs"],
        "size_categories": [next((name for limit, name in _SIZES if config.rows < limit), "n>1M")],
        "configs": [{"config_name": config.name, "data_files": files, "default": True}],
        "dataset_info": {
            "config_name": config.name,
            "features": [{"name": name, **_feature(column)} for name, column in config.columns.items()],
            "splits": splits,
            "download_size": sum(split.file_bytes for split in config.splits.values()),
            "dataset_size": sum(split.num_bytes for split in config.splits.values()),
        },
    }


def _feature(column: Column) -> Mapping[str, Any]:
    return _FEATURES.get(column.kind, {"dtype": column.kind})


def _table_row(use: TableUse) -> tuple[str, ...]:
    arguments = f"`{strict_json(dict(use.options))}`" if use.options else ""
    if use.table is None:
        return f"`{use.env}`", arguments, "not available where this was exported", "", f"{len(use.tasks):,}", ""
    count = f"{len(use.tasks):,}" + (f", {use.other:,} of them differ from the table" if use.other else "")
    return f"`{use.env}`", arguments, use.table.name, str(use.table.version), count, f"`{use.table.digest}`"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _yaml(value: Any) -> str:
    return "".join(f"{line}\n" for line in _yaml_lines(value))


def _yaml_lines(value: Any) -> Iterator[str]:
    """The lines of a nested value as YAML; scalars are written as JSON, which YAML contains."""
    items = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    for name, item in items:
        if isinstance(item, Mapping | list):
            inner = list(_yaml_lines(item))
            if name is None:
                yield from (f"{'- ' if number == 0 else '  '}{line}" for number, line in enumerate(inner))
            else:
                yield f"{name}:"
                yield from (f"  {line}" for line in inner)
        else:
            yield f"{'-' if name is None else f'{name}:'} {json.dumps(item)}"
