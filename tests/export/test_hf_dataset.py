"""Data sets for the Hugging Face Hub, as `datasets` itself loads them: every row equals its source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.formats import FORMATS, ExportCounts, ExportOptions
from agentgym_envs.export.hf_columns import EPISODE_COLUMNS, TASK_COLUMNS, cells, episode_rows
from agentgym_envs.export.hf_dataset import arrow_schema
from agentgym_envs.export.hf_origin import LICENCES, UNKNOWN_LICENCE, licence_of
from agentgym_envs.export.tasks import ExportTasks
from agentgym_envs.export.text import valid_json
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.registration import env_ids
from agentgym_envs.trajectory import Trajectory
from tests.export.episodes import STRANGE, failed_at_reset, played, samples

datasets = pytest.importorskip("datasets")
pytestmark = pytest.mark.slow
FORMAT = FORMATS["hf-dataset"]
TEAM = "AgentGym/TextCraftCoop-v0"


def write(source: Any, out: Path, *, tasks: bool = False) -> ExportCounts:
    counts = ExportCounts()
    FORMAT.load(tasks=tasks)(source, out, ExportOptions(), counts)
    return counts


def load(out: Path, config: str) -> Any:
    return datasets.load_dataset(str(out), config, cache_dir=str(out.parent / "cache"))


def selection(count: int | None = None, split: str | None = None, **options: Any) -> ExportTasks:
    env: Any = gym.make("AgentGym/TextCraft-v0", **options).unwrapped
    chosen = env.tasks.sample(count, split=split, seed=3)
    return ExportTasks("AgentGym/TextCraft-v0", options, env.tasks, chosen, 3, env.instructions)


def agrees(row: dict[str, Any], one: ExportEpisode, view: Trajectory, agent: str) -> bool:
    """Compare a loaded row with its episode, without the table of columns."""
    said = [message for message in row["messages"] if message["role"] == "assistant"]
    seen = [message for message in row["messages"] if message["role"] == "user"]
    return bool(
        [message["content"] for message in said] == valid_json(view.actions)
        and [message["content"] for message in seen] == valid_json([turn.observation for turn in view.turns])
        and (row["messages"][0]["role"] == "system") == bool(view.instructions)
        and row["rewards"] == [turn.reward for turn in view.turns]
        and row["turns"] == len(view.turns)
        and row["invalid_actions"] == len([turn for turn in view.turns if turn.info.get("invalid_action") is not None])
        and json.loads(row["task_data"]) == json.loads(json.dumps(valid_json(view.task.data)))
        and json.loads(row["env_args"]) == valid_json(view.env_kwargs)
        and (row["env"], row["task"], row["seed"]) == (view.env_id, view.task.id, view.seed)
        and (row["group"], row["goal"], row["agent"]) == (view.task.group, view.task.goal, agent)
        and (row["score"], row["success"], row["stop_reason"]) == (view.score, view.success, view.stop_reason)
        and (row["final_observation"], row["episode"]) == (valid_json(view.final_observation), one.id)
    )


def test_every_row_of_every_kind_of_episode_equals_its_source(tmp_path: Path) -> None:
    episodes = [one for one in samples() if one.trajectory.usable]
    counts = write([*episodes, ExportEpisode(failed_at_reset())], tmp_path / "out")
    assert (counts.episodes, counts.left_out) == (len(episodes) + 1, 1)
    loaded = load(tmp_path / "out", "episodes")
    rows = [row for split in sorted(loaded) for row in loaded[split]]
    assert len(rows) == counts.rows == len(episodes) + 1  # a team has two agents
    for one in episodes:
        whole = one.trajectory
        views = per_agent_trajectories(whole) if whole.env_id == TEAM else {"": whole}
        own = [row for row in rows if row["episode"] == one.id]
        assert len(own) == len(views)
        assert all(agrees(row, one, *pair) for row, pair in zip(own, ((v, a) for a, v in views.items()), strict=True))


@settings(max_examples=25, deadline=None)
@given(st.lists(STRANGE, min_size=1, max_size=3))
def test_strange_episodes_survive_parquet(found: Sequence[Trajectory]) -> None:
    """Lone surrogates become U+FFFD; everything else is kept. Parquet's own conversion is in the test above."""
    pyarrow = pytest.importorskip("pyarrow")
    episodes = [ExportEpisode(replace(one, seed=one.seed % 2**63)) for one in found]
    rows = [cells(EPISODE_COLUMNS, row) for one in episodes for row in episode_rows(one)]
    read = pyarrow.Table.from_pylist(rows, arrow_schema(EPISODE_COLUMNS)).to_pylist()
    assert read == rows
    assert all(row["turns"] == len(one.trajectory.turns) for row, one in zip(rows, episodes, strict=True))


def test_tasks_of_all_splits_equal_the_table(tmp_path: Path) -> None:
    chosen = selection()
    assert write(chosen, tmp_path / "out", tasks=True).rows == 544
    loaded = load(tmp_path / "out", "tasks")
    assert {name: len(split) for name, split in loaded.items()} == {"train": 382, "validation": 54, "test": 108}
    rows = [(name, row) for name, split in loaded.items() for row in split]
    for (name, row), task in zip(rows, sorted(chosen.tasks, key=lambda t: list(loaded).index(t.split)), strict=True):
        assert (name, row["task"], row["group"], row["goal"]) == (task.split, task.id, task.group, task.goal)
        assert json.loads(row["task_data"]) == task.data
        assert row["prompt"] == [
            {"role": "system", "content": chosen.instructions},
            {"role": "user", "content": task.goal},
        ]
        assert json.loads(row["difficulty"])["turns"] > 0
    card = (tmp_path / "out/README.md").read_text()
    assert "The whole task table." in card and chosen.table.digest in card


def test_the_code_of_a_card_plays_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(selection(3, "test", grammar="react"), tmp_path / "PATH", tasks=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    names: dict[str, Any] = {}
    exec((tmp_path / "PATH/README.md").read_text().split("```python\n")[1].split("```")[0], names)
    assert names["rows"][0]["goal"] in names["observation"] and names["env"].unwrapped.grammar.name == "react"


def front_matter(out: Path) -> Any:
    return yaml.safe_load((out / "README.md").read_text().split("---\n")[1])


@pytest.mark.parametrize("columns", [EPISODE_COLUMNS, TASK_COLUMNS], ids=["episodes", "tasks"])
def test_the_card_has_the_features_of_the_files(tmp_path: Path, columns: Any) -> None:
    if columns is EPISODE_COLUMNS:
        write([ExportEpisode(played())], tmp_path / "out")
    else:
        write(selection(5), tmp_path / "out", tasks=True)
    features = datasets.Features.from_arrow_schema(arrow_schema(columns))
    assert front_matter(tmp_path / "out")["dataset_info"]["features"] == features._to_yaml_list()


def test_a_wrong_count_in_the_card_is_refused_by_datasets(tmp_path: Path) -> None:
    write([ExportEpisode(played())], tmp_path / "out")
    card = tmp_path / "out/README.md"
    assert "num_examples: 1" in card.read_text()
    card.write_text(card.read_text().replace("num_examples: 1", "num_examples: 2"))
    with pytest.raises(datasets.exceptions.NonMatchingSplitsSizesError, match="num_examples=2"):
        load(tmp_path / "out", "episodes")


def test_the_card_names_tables_policies_and_licences(tmp_path: Path) -> None:
    one = played(seed=2, grammar="react")
    other = replace(one, task=replace(one.task, goal="another"))
    unknown = replace(one, env_id="Your/Env-v0")
    write([*map(ExportEpisode, (one, other, unknown))], tmp_path / "out")
    card, top = (tmp_path / "out/README.md").read_text(), front_matter(tmp_path / "out")
    digest = selection().table.digest
    assert f"| textcraft | 1 | 1, 1 of them differ from the table | `{digest}` |" in card
    assert "not available where this was exported" in card and "by the policy oracle (3)" in card
    assert top["license"] == ["apache-2.0", "mit", "other"] and UNKNOWN_LICENCE.about in card
    write([ExportEpisode(one)], tmp_path / "same")
    assert f"| textcraft | 1 | 1 | `{digest}` |" in (tmp_path / "same/README.md").read_text()


def test_every_environment_of_the_suite_has_a_licence() -> None:
    assert all(licence_of(env_id) in LICENCES.values() for env_id in env_ids())


def test_an_interruption_leaves_the_earlier_files(tmp_path: Path) -> None:
    def some() -> Iterator[ExportEpisode]:
        yield from [ExportEpisode(played(seed=seed)) for seed in range(3)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(some(), tmp_path / "out")
    assert not list(tmp_path.iterdir())
    write([ExportEpisode(played())], tmp_path / "out")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(KeyboardInterrupt):
        write(some(), tmp_path / "out")
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_episodes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    one = played()
    for wrong, part in (
        (replace(one, seed=2**63), "does not fit into the 64 bits"),
        (replace(one, task=replace(one.task, split="a/b")), "cannot be a split"),  # type: ignore[arg-type]
        (failed_at_reset(), "nothing to write"),
    ):
        with pytest.raises(UsageError, match=part):
            write([ExportEpisode(wrong)], tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_equal_records_give_equal_bytes(tmp_path: Path) -> None:
    episodes = [ExportEpisode(played(seed=seed)) for seed in range(2)]
    for name in "ab":
        write(episodes, tmp_path / name)
    first, second = ([file.read_bytes() for file in sorted((tmp_path / n).rglob("*")) if file.is_file()] for n in "ab")
    assert first == second
