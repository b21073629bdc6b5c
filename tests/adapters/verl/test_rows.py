"""Rows of verl's datasets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from agentgym_verl.rows import TaskRow, read_row, short_name

ROW = TaskRow(
    "AgentGym/TextCraft-v0", "textcraft/7", 11, "depth-2", "test", True, {"worlds": "fictional", "n": 2}, "a bed"
)


def test_a_row_is_read_from_its_columns() -> None:
    columns = ROW.as_columns(4)
    found = read_row(columns)
    assert found == TaskRow(*(getattr(ROW, name) for name in list(TaskRow.__dataclass_fields__)[:-1]))
    assert columns["data_source"] == "TextCraft" and columns["agent_name"] == "agentgym"
    assert columns["prompt"] == [{"role": "user", "content": "a bed"}]
    assert columns["extra_info"]["index"] == 4


def test_all_rows_have_the_same_fields() -> None:
    """Parquet has one schema for all rows, so the arguments of environments are text."""
    bare = TaskRow("Toy/Count-v0", "count/3", 0)
    one, other = ROW.as_columns(0), bare.as_columns(1)

    def schema(value: Any) -> Any:
        return {key: schema(v) for key, v in value.items()} if isinstance(value, dict) else type(value)

    assert schema(one) == schema(other) and json.loads(other["extra_info"]["env_kwargs"]) == {}
    assert other["prompt"][0]["content"] == "count/3"  # verl requires a value


def test_a_kind_is_an_environment_with_its_arguments() -> None:
    def kind(**kwargs: Any) -> str:
        return TaskRow("Toy/Count-v0", "count/3", 0, env_kwargs=kwargs).kind

    assert kind(a=1, b=2) == kind(b=2, a=1)
    assert len({kind(), kind(a=1), kind(a="1"), ROW.kind}) == 4
    assert TaskRow("Toy/Count-v0", "count/2", 9).kind == kind()


def test_a_default_grammar_does_not_replace_that_of_the_row() -> None:
    assert ROW.with_default_grammar("react").env_kwargs == {"grammar": "react", **ROW.env_kwargs}
    tagged = TaskRow("Toy/Count-v0", "count/3", 0, env_kwargs={"grammar": "tag"})
    assert tagged.with_default_grammar("react") == tagged


@pytest.mark.parametrize(
    "columns, message",
    [
        ({}, "KeyError 'extra_info'"),
        ({"extra_info": None}, "TypeError"),
        ({"extra_info": {"index": 0}}, "KeyError 'env_id'"),
        ({"extra_info": {**ROW.as_columns(0)["extra_info"], "seed": "x"}}, "ValueError"),
        ({"extra_info": {**ROW.as_columns(0)["extra_info"], "env_kwargs": "{"}}, "JSONDecodeError"),
        ({"extra_info": {**ROW.as_columns(0)["extra_info"], "env_kwargs": None}}, "TypeError"),
        ({"extra_info": {**ROW.as_columns(0)["extra_info"], "env_kwargs": "[1]"}}, "TypeError"),
    ],
)
def test_a_row_of_another_dataset_is_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"`agentgym verl data`: .*({message})"):
        read_row(columns)


@pytest.mark.parametrize(
    "env_id, name", [("AgentGym/BabyAI-v0", "BabyAI"), ("mine.envs:Toy/Count-v3", "Count"), ("Plain-v1", "Plain")]
)
def test_short_name_shortens_an_environment_id(env_id: str, name: str) -> None:
    assert short_name(env_id) == name
