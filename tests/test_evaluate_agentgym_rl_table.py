"""The 27-task table: the rows of all groups of all environments, and the metrics in them."""

import json
import math
from collections import Counter

import gymnasium as gym
import pytest

import agentgym_envs
from agentgym_envs.babyai import levels
from agentgym_envs.evaluate import (
    AGENTGYM_RL_TABLE,
    REPORTED,
    ROW_TASKS,
    SCENARIO_NAMES,
    TEST_TASKS,
    AgentGymRLTable,
    evaluate,
    make_agentgym_rl_table,
)
from agentgym_envs.evaluate.agentgym_rl_table import position_of
from agentgym_envs.search.questions.embedded import KINDS
from agentgym_envs.search.questions.flashrag import PUBLISHED
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.webarena.official.tasks import GROUPS as OFFICIAL_GROUPS

from .episodes import episode, several

TEXTCRAFT, SEARCH, WEB = "AgentGym/TextCraft-v0", "AgentGym/Search-v0", "AgentGym/WebArena-v0"
PIXELS = {"AgentGym/MiniWoBPixels-v0", "AgentGym/WebArenaPixels-v0"}
OUTSIDE = {
    "AgentGym/MiniWoB-v0",
    "AgentGym/PlannerActor-v0",
    "AgentGym/SearchPages-v0",
    "AgentGym/TextCraftCoop-v0",
    *PIXELS,
}
"""Environments that are not in the paper."""


def groups_of(env_id: str) -> tuple[str, ...]:
    """The groups of an environment; empty if it needs packages that may not be installed."""
    if env_id.startswith("AgentGym/WebArenaOfficial"):
        return OFFICIAL_GROUPS
    if env_id.startswith("AgentGym/Search"):
        return tuple(KINDS)
    if env_id.startswith("AgentGym/BabyAI"):
        return tuple(levels.GROUPS)
    env = gym.make(env_id)
    groups = agentgym_envs.core.text_env(env).tasks.groups
    env.close()
    return groups


@pytest.mark.parametrize("env_id", sorted(set(agentgym_envs.env_ids()) - OUTSIDE))
def test_every_group_belongs_to_one_row(env_id: str) -> None:
    for group in groups_of(env_id):
        table = make_agentgym_rl_table([episode("t/1", 1, env_id=env_id, group=group)])
        filled = [row for scenario in table.scenarios for row in scenario.rows if row.metrics]
        assert len(filled) == 1, (env_id, group)
        assert not table.outside


@pytest.mark.parametrize("env_id", sorted(OUTSIDE))
def test_environments_outside_the_paper_belong_to_no_row(env_id: str) -> None:
    table = make_agentgym_rl_table([episode("t/1", 1, env_id=env_id, group=groups_of(env_id)[0])])
    assert not any(row.metrics for scenario in table.scenarios for row in scenario.rows)
    assert table.outside == {env_id: 1}


def test_the_groups_of_all_rows_exist() -> None:
    known = {group for env_id in set(agentgym_envs.env_ids()) - OUTSIDE for group in groups_of(env_id)}
    known |= {part.name for part in PUBLISHED}
    named = [group for scenario in AGENTGYM_RL_TABLE for row in scenario.rows for group in (*row.groups, *row.stand_in)]
    assert set(named) == known
    assert max(Counter(named).values()) == 1


def test_there_are_27_rows_in_five_scenarios() -> None:
    assert [(scenario.name, len(scenario.rows)) for scenario in AGENTGYM_RL_TABLE] == [
        ("WebArena", 4),
        ("Search", 7),
        ("TextCraft", 4),
        ("BabyAI", 6),
        ("SciWorld", 6),
    ]
    assert tuple(TEST_TASKS) == SCENARIO_NAMES


@pytest.mark.parametrize(
    ("env_id", "group", "row", "stand_in"),
    [
        (WEB, "code-and-forum", "GitLab & Reddit", True),
        ("AgentGym/WebArenaOfficial-v0", "gitlab-reddit", "GitLab & Reddit", False),
        (SEARCH, "1hop-country", "NQ", True),
        ("AgentGym/SearchRetry-v0", "nq", "NQ", False),
        (TEXTCRAFT, "depth-4", "Depth 4", False),
        ("AgentGym/BabyAI-v7", "Boss", "Synth & Boss", False),
        ("AgentGym/SciWorld-v0", "inclined-plane-determine-angle", "Measure", False),
    ],
)
def test_groups_have_the_expected_positions(env_id: str, group: str, row: str, stand_in: bool) -> None:
    position = position_of(env_id, group)
    assert position and (position.row, position.stand_in) == (row, stand_in)


@pytest.mark.parametrize(("env_id", "group"), [("Mine/TextCraft-v0", "depth-1"), (TEXTCRAFT, "depth-9"), (WEB, "nq")])
def test_unknown_groups_have_no_position(env_id: str, group: str) -> None:
    assert position_of(env_id, group) is None


def run() -> list[Trajectory]:
    return [
        *[e for n in range(4) for e in several(f"t/{n}", 1, n % 2, env_id=TEXTCRAFT, group="depth-1")],
        episode("t/9", 0, env_id=TEXTCRAFT, group="depth-3"),
        episode("w/1", 0.5, env_id=WEB, group="maps"),
        episode("w/2", 0, env_id=WEB, group="maps", stop="env_error"),
        *several("m/1", 1, 1, env_id="AgentGym/MiniWoB-v0", group="click"),
    ]


def cells(table: AgentGymRLTable) -> dict[str, float]:
    return {
        row.name: row.metrics.score.mean
        for scenario in table.scenarios
        for row in scenario.rows
        if row.metrics and row.metrics.score
    }


def test_the_table_equals_hand_computed_values() -> None:
    table = make_agentgym_rl_table(run())
    web, search, textcraft, *_ = table.scenarios
    assert cells(table) == {"Maps": 0.5, "Depth 1": 0.75, "Depth 3": 0}
    assert textcraft.metrics and textcraft.metrics.score
    assert textcraft.metrics.score.mean == pytest.approx((4 * 0.75 + 0) / 5)  # a mean over tasks, not over rows
    assert textcraft.metrics == evaluate(e for e in run() if e.env_id == TEXTCRAFT).overall
    assert web.metrics and (web.metrics.tasks, web.metrics.excluded) == (1, 1)
    assert search.metrics is None
    assert table.score and table.score.mean == pytest.approx((0.6 + 0.5) / 2)
    assert table.success and table.success.mean == pytest.approx((0.6 + 0) / 2)
    assert (table.played, table.outside, table.left_out) == (2, {"AgentGym/MiniWoB-v0": 2}, 0)


def test_the_interval_of_the_mean_combines_the_scenarios() -> None:
    table = make_agentgym_rl_table(run())
    lows, highs = zip(
        *[
            (found.mean - found.low, found.high - found.mean)
            for scenario in table.scenarios
            if scenario.metrics and (found := scenario.metrics.score)
        ],
        strict=True,
    )
    assert table.score
    assert table.score.mean - table.score.low == pytest.approx(math.hypot(*lows) / 2)
    assert table.score.high - table.score.mean == pytest.approx(math.hypot(*highs) / 2)


def test_stand_ins_are_marked_and_superseded_by_real_tasks() -> None:
    own = [episode("s/1", 1, env_id=SEARCH, group="1hop-airport"), episode("s/2", 1, env_id=SEARCH, group="sum")]
    real = [episode("q/1", 0, env_id=SEARCH, group="popqa")]
    for table in map(make_agentgym_rl_table, ([], own)):
        assert all(row.stand_in for row in table.scenarios[1].rows)
    assert make_agentgym_rl_table(own).scenarios[1].rows[2].note
    both = make_agentgym_rl_table(own + real)
    assert cells(both) == {"PopQA": 0}
    assert both.left_out == 2
    assert not any(row.stand_in or row.note for row in both.scenarios[1].rows)
    assert [row.stand_in for row in both.scenarios[0].rows] == [True] * 4  # those of WebArena are still stand-ins


def test_a_table_without_episodes_is_empty() -> None:
    table = make_agentgym_rl_table([])
    assert (table.score, table.success, table.played) == (None, None, 0)
    assert [scenario.metrics for scenario in table.scenarios] == [None] * 5
    spoiled = make_agentgym_rl_table([episode("t/1", 0, env_id=TEXTCRAFT, group="depth-1", stop="env_error")])
    assert (spoiled.score, spoiled.played) == (None, 0)


def test_the_table_ignores_the_order_and_converts_to_json() -> None:
    table = make_agentgym_rl_table(run())
    assert make_agentgym_rl_table(reversed(run())) == table
    found = table.to_json()
    assert json.loads(json.dumps(found)) == found
    assert found["score"]["mean"] == pytest.approx(0.55)
    assert found["scenarios"][2]["rows"][0]["metrics"]["success"]["mean"] == 0.75
    assert found["scenarios"][1]["rows"][0]["metrics"] is None


def test_the_reported_rows_of_webarena_add_up_to_its_figure() -> None:
    for reported in REPORTED:
        if not reported.tasks:
            whole = sum(reported.rows[row] * tasks for row, tasks in ROW_TASKS.items()) / sum(ROW_TASKS.values())
            assert reported.scenarios["WebArena"] == pytest.approx(whole, abs=0.01)


def test_the_standard_errors_of_reported_figures() -> None:
    first = REPORTED[0]
    assert first.standard_error("WebArena") == pytest.approx(6.2, abs=0.05)
    assert first.standard_error("TextCraft") == pytest.approx(2.9, abs=0.05)
    assert first.standard_error("BabyAI") == pytest.approx(1.9, abs=0.05)
    assert first.standard_error("Search") == pytest.approx(2.4, abs=0.05)
    qwen = next(reported for reported in REPORTED if reported.tasks)
    assert qwen.standard_error("WebArena") == pytest.approx(math.sqrt(9.76 * 90.24 / 41))


def test_names_of_rows_are_unique() -> None:
    names = [row.name for scenario in AGENTGYM_RL_TABLE for row in scenario.rows]
    assert len(set(names)) == len(names)
