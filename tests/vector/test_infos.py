"""Infos as a dict of arrays, compared with Gymnasium's own merging."""

import json
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import VectorEnv
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.vector.infos import batch_infos

KEYS = ("a", "b", "c")
# Here the values of a key have one type, and the two agree; they differ for `kinds` below.
LEAVES = (st.integers(-(2**63), 2**63 - 1), st.text(max_size=3) | st.none(), st.lists(st.integers(), max_size=2))
INFOS = st.fixed_dictionaries(
    {},
    optional={
        **dict(zip(KEYS, LEAVES, strict=True)),
        "x": st.floats(allow_nan=False),
        "yes": st.booleans(),
        "inner": st.fixed_dictionaries({}, optional=dict(zip(KEYS, LEAVES, strict=True))),
    },
)


class Merger(VectorEnv):
    """Gymnasium's merging of infos, without environments."""

    def __init__(self, size: int) -> None:
        self.num_envs = size


def plain(value: Any) -> Any:
    """Arrays as dtype and values, for a complete comparison."""
    if isinstance(value, dict):
        return [(key, plain(inner)) for key, inner in value.items()]
    return value.dtype, value.tolist()


@given(st.lists(st.tuples(st.booleans(), INFOS), max_size=6))
def test_columns_equal_gymnasiums_infos(rows: list[tuple[bool, dict[str, Any]]]) -> None:
    """Merge infos with Gymnasium, which skips environments without info."""
    merger, expected = Merger(len(rows)), dict[str, Any]()
    for index, (there, info) in enumerate(rows):
        if there:
            expected = merger._add_info(expected, info, index)
    assert plain(batch_infos([info if there else {} for there, info in rows])) == plain(expected)


@given(st.lists(INFOS, min_size=1, max_size=5))
def test_every_value_is_in_its_column(infos: list[dict[str, Any]]) -> None:
    merged = batch_infos(infos)
    assert [_row(merged, index) for index in range(len(infos))] == infos


def _row(merged: dict[str, Any], index: int) -> dict[str, Any]:
    row = {}
    for key in [key for key in merged if not key.startswith("_") and merged[f"_{key}"][index]]:
        value = merged[key]
        row[key] = _row(value, index) if isinstance(value, dict) else json.loads(json.dumps(value.tolist()))[index]
    return row


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 0.5], object),
        ([0.5, 1], object),
        ([True, 2], object),
        ([1, None], object),
        ([2**63, 1], object),
        ([{"a": 1}, None], object),
        ([None, None], object),
        ([[1], [2, 3]], object),
        ([1, 2], np.int64),
        ([True, False], np.bool_),
        ([0.5, 1.0], np.float64),
        ([np.float32(0.5), np.float32(1)], np.float32),
    ],
)
def test_an_array_has_a_number_type_only_if_no_value_changes(values: list[Any], dtype: Any) -> None:
    merged = batch_infos([{"key": value} for value in values])
    assert merged["key"].dtype == dtype
    assert merged["key"].tolist() == values
    assert merged["_key"].tolist() == [True, True]


def test_masks_do_not_share_memory() -> None:
    merged = batch_infos([{"a": 1, "b": 2}] * 3)
    merged["_a"][0] = merged["a"][1] = 0
    assert (merged["_b"].all(), merged["b"].tolist(), merged["_a"].tolist()) == (True, [2] * 3, [False, True, True])
