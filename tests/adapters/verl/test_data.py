"""Datasets for verl: the drawn tasks, the contents of the files, and their readers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.cli import main
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.mixture import MixtureEnv

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from agentgym_verl.dataset import SCHEMA, draw_train, draw_val, eval_split, members_of, read_rows, write_rows
from agentgym_verl.rows import TaskRow, read_row

CRAFT, BABY, SCI = "AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0", "AgentGym/SciWorld-v0"
EASY = {"max_distractors": 0}
MIXTURE = [MixtureEnv(CRAFT, EASY, 2.0), MixtureEnv(BABY, {})]
Data = Callable[..., tuple[int, str]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Data:
    """Run `agentgym verl data`; returns the exit code and its stderr."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("AGENTGYM_DEBUG", "")

    def call(*words: object, out: str = "out") -> tuple[int, str]:
        code = main([str(word) for word in ("verl", "data", *words, "--out", tmp_path / out)])
        return code, capfd.readouterr().err

    return call


def test_rows_are_in_proportion_and_of_their_own_split() -> None:
    rows = draw_train(MIXTURE, 9, groups=["depth-1", "GoTo"], seed=3)
    assert Counter(row.env_id for row in rows) == {CRAFT: 6, BABY: 3}
    assert {(row.env_id, row.group) for row in rows} == {(CRAFT, "depth-1"), (BABY, "GoTo")}
    assert {(row.split, row.evaluation) for row in rows} == {("train", False)}
    assert all(row.env_kwargs == (EASY if row.env_id == CRAFT else {}) for row in rows)
    assert [row.env_id for row in rows] != sorted(row.env_id for row in rows)  # shuffled
    assert rows == draw_train(MIXTURE, 9, groups=["depth-1", "GoTo"], seed=3)
    assert rows != draw_train(MIXTURE, 9, groups=["depth-1", "GoTo"], seed=4)


def test_a_finite_set_is_used_whole_and_an_endless_one_is_sampled() -> None:
    assert len({row.task for row in draw_train(MIXTURE[:1])}) == len(draw_train(MIXTURE[:1])) == 382
    assert len(draw_train(MIXTURE[1:], enough=7)) == 7


def test_validation_takes_few_of_the_right_split() -> None:
    assert eval_split(MIXTURE) == "validation"
    rows = draw_val(MIXTURE[:1])
    assert len({row.task for row in rows}) == len(rows) == 54
    assert {(row.split, row.evaluation) for row in rows} == {("validation", True)}
    assert len(draw_val(MIXTURE[:1], split="test")) == 100 < 108
    assert {row.split for row in draw_val(MIXTURE[:1], 3, split="test")} == {"test"}


@pytest.mark.slow
def test_an_environment_without_validation_is_validated_on_its_test_split() -> None:
    assert eval_split([*MIXTURE, MixtureEnv(SCI, {})]) == "test"
    assert {row.split for row in draw_val([MixtureEnv(SCI, {})], 3)} == {"test"}


def test_written_rows_are_read_again(tmp_path: Path) -> None:
    rows = draw_train(MIXTURE, 6)
    write_rows(tmp_path / "new" / "train.parquet", rows)
    found = pq.read_table(tmp_path / "new" / "train.parquet")
    assert found.schema.equals(SCHEMA)
    lines = found.to_pylist()
    assert lines == [row.as_columns(index) for index, row in enumerate(rows)]
    assert [line["prompt"][0]["content"] for line in lines] == [row.goal for row in rows]
    without_goal = [TaskRow(**{**{f: getattr(r, f) for f in TaskRow.__slots__}, "goal": ""}) for r in rows]
    assert [read_row(line) for line in lines] == read_rows(tmp_path / "new" / "train.parquet") == without_goal
    assert [(m.id, m.kwargs, m.weight) for m in sorted(members_of(rows), key=lambda m: m.id)] == [
        (BABY, {}, 2),
        (CRAFT, EASY, 4),
    ]
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / "train.parquet"]


@pytest.mark.parametrize("rows", [[], [TaskRow(CRAFT, "textcraft/1", 0)], draw_train(MIXTURE, 4)])
def test_the_columns_are_equal_for_all_environments(rows: list[TaskRow], tmp_path: Path) -> None:
    write_rows(tmp_path / "x.parquet", rows)
    assert pq.read_schema(tmp_path / "x.parquet").equals(SCHEMA)


def test_a_file_never_contains_the_token(tmp_path: Path, data: Data) -> None:
    with pytest.raises(UsageError, match="set a server's token as AGENTGYM_TOKEN instead"):
        write_rows(tmp_path / "x.parquet", [TaskRow(CRAFT, "textcraft/1", 0, env_kwargs={"token": "secret"})])
    assert not list(tmp_path.iterdir())
    for kwargs in ({"token": "secret"}, {CRAFT: {"token": "secret"}}):
        code, err = data(CRAFT, "--env-kwargs", json.dumps(kwargs))
        assert code == 2 and "AGENTGYM_TOKEN" in err and not (tmp_path / "out").exists()


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the dataset .*none.parquet cannot be read"):
        read_rows(tmp_path / "none.parquet")
    (tmp_path / "x.parquet").write_text("no parquet")
    with pytest.raises(UsageError, match=r"the dataset .*x.parquet cannot be read"):
        read_rows(tmp_path / "x.parquet")


def test_the_command_writes_equal_bytes_and_prints_a_table(data: Data, tmp_path: Path) -> None:
    words = ["textcraft:2", "BabyAI", "--tasks", 9, "--eval-tasks", 4, "--seed", 1]
    code, err = data(*words)
    assert code == 0, err
    for part in ("train.parquet", "val.parquet", "TextCraft", "BabyAI", "validation", " 6 ", " 3 "):
        assert part in err
    assert data(*words, out="again")[0] == 0
    assert data(*words[:-1], 2, out="other")[0] == 0
    names = ("train.parquet", "val.parquet")
    first, again, other = ([(tmp_path / out / n).read_bytes() for n in names] for out in ("out", "again", "other"))
    assert first == again and first[0] != other[0] and first[1] != other[1]
    assert Counter(row.env_id for row in read_rows(tmp_path / "out" / "train.parquet")) == {CRAFT: 6, BABY: 3}
    assert [row.evaluation for row in read_rows(tmp_path / "out" / "val.parquet")] == [True] * 4

    code, err = data(*words)
    assert code == 2 and "has train.parquet and val.parquet already; --overwrite replaces them" in err
    assert data("textcraft", "--tasks", 2, "--overwrite")[0] == 0
    assert len(read_rows(tmp_path / "out" / "train.parquet")) == 2


def test_the_command_selects_groups_and_splits(data: Data, tmp_path: Path) -> None:
    code, err = data("textcraft", "--groups", "depth-1,depth-2", "--split", "test", "--eval-split", "train")
    assert code == 0, err
    train, val = (read_rows(tmp_path / "out" / name) for name in ("train.parquet", "val.parquet"))
    assert {row.group for row in [*train, *val]} == {"depth-1", "depth-2"}
    assert ({row.split for row in train}, {row.split for row in val}) == ({"test"}, {"train"})


@pytest.mark.slow_after(4)
@pytest.mark.parametrize(
    "words, part",
    [
        (["textkraft"], "there is no environment 'textkraft'; did you mean AgentGym/TextCraft-v0"),
        (["AgentGym/TextCraft-v9"], "there is no environment 'AgentGym/TextCraft-v9'"),
        (["no_such_module:Toy/Maze-v0"], "there is no environment 'no_such_module:Toy/Maze-v0'"),
        (["textcraft:0"], "the weight of an environment is a number above 0"),
        (["textcraft", "textcraft:2"], f"{CRAFT} is named twice; give it a weight instead"),
        (["textcraft", "--env-kwargs", "[1]"], "--env-kwargs must be a JSON object"),
        (["textcraft", "--env-kwargs", '{"speed": 1}'], f"{CRAFT} does not take these arguments"),
        (["textcraft", "babyai", "--env-kwargs", '{"speed": 1}'], "with several environments --env-kwargs is keyed"),
        (["textcraft", "babyai", "--tasks", 1], "must be at least 2, since each of 2 environments gives one"),
        (["textcraft", "--groups", "depth-9"], "has no group 'depth-9'; choose from depth-1"),
        (["textcraft", "--split", "dev"], "there is no split 'dev'; choose one of train, validation, test"),
        (["textcraft", "--tasks", 0], "--tasks"),
        (["textcraft", "--speed", 1], "No such option: --speed"),
        ([], "Missing argument"),
    ],
)
def test_invalid_commands_print_one_line(words: list[object], part: str, data: Data, tmp_path: Path) -> None:
    code, err = data(*words)
    lines = [line for line in err.splitlines() if line.strip()]
    assert code == 2 and len(lines) == 1 and part in lines[0], err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("stub")
def test_verl_reads_the_files(data: Data, tmp_path: Path, base_config: Any, tokenizer: Any) -> None:
    """With its own dataset and loader; the result is the input of our agent loop."""
    from omegaconf import OmegaConf
    from torch.utils.data import DataLoader
    from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

    assert data("textcraft:2", "babyai", "--tasks", 6)[0] == 0
    config = OmegaConf.merge(
        OmegaConf.to_container(base_config.data), {"cache_dir": str(tmp_path / "cache"), "dataloader_num_workers": 0}
    )
    path = str(tmp_path / "out" / "train.parquet")
    dataset = RLHFDataset(data_files=path, tokenizer=tokenizer, config=config)
    assert len(dataset) == 6
    batch = next(iter(DataLoader(dataset, batch_size=6, collate_fn=collate_fn)))
    columns = [{"extra_info": info} for info in batch["extra_info"]]
    assert [read_row(one) for one in columns] == read_rows(path)
    assert set(batch["agent_name"]) == {"agentgym"} and set(batch["data_source"]) == {"TextCraft", "BabyAI"}
