"""The index equals the result of parsing every file completely."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs import Trajectory
from agentgym_envs.errors import TrajectoryError
from agentgym_envs.viewer.index import (
    MAX_GOAL_CHARS,
    EpisodeSummary,
    Index,
    lines_of,
    read_episode,
    summarize_line,
    to_text,
)

from .records import EPISODES, VALUES, logged, record, save, save_log


def slowly(episode: Trajectory, step: int | None = None) -> EpisodeSummary:
    """The summary, computed from the parsed episode."""
    meta = episode.meta
    agent = meta["agent"].get("name") if isinstance(meta.get("agent"), dict) else meta.get("agent")
    policy = meta.get("policy")
    return EpisodeSummary(
        env=episode.env_id,
        group=episode.task.group,
        split=episode.task.split,
        task=episode.task.id,
        goal=episode.task.goal[:MAX_GOAL_CHARS],
        seed=episode.seed,
        score=episode.score,
        success=episode.success,
        reward=sum(float(turn.reward) for turn in episode.turns),
        turns=len(episode.turns),
        invalid=sum(turn.info.get("invalid_action") is not None for turn in episode.turns),
        stop=episode.stop_reason,
        step=meta["step"] if type(meta.get("step")) is int else step,
        training=meta["training"] if type(meta.get("training")) is bool else None,
        max_turns=meta["max_turns"] if type(meta.get("max_turns")) is int else None,
        policy=None if policy is None else str(policy)[:MAX_GOAL_CHARS],
        agent=None if agent is None else str(agent)[:MAX_GOAL_CHARS],
    )


def shown(facts: EpisodeSummary) -> str:
    """A summary as text, for comparison: NaN equals NaN and 1 equals 1.0."""
    fields = {name: getattr(facts, name) for name in facts.__struct_fields__}
    return repr({name: float(value) if name in ("score", "reward") else value for name, value in fields.items()})


def encoded(episode: Trajectory) -> bytes:
    return episode.to_json().encode("utf-8", "surrogatepass")


@given(EPISODES)
def test_summary_equals_that_of_the_parsed_episode(episode: Trajectory) -> None:
    assert shown(summarize_line(encoded(episode))) == shown(slowly(episode))


@given(EPISODES, st.data())
def test_lines_without_a_trajectory_are_rejected(episode: Trajectory, data: st.DataObject) -> None:
    row: dict[str, Any] = json.loads(episode.to_json())
    parent = data.draw(st.sampled_from([row, row["task"], *row["turns"]]))
    name = data.draw(st.sampled_from([*parent, "new"]))
    if data.draw(st.booleans()):
        parent.pop(name, None)
    else:
        parent[name] = data.draw(VALUES)
    line = json.dumps(row).encode()
    try:
        found = summarize_line(line)
    except TrajectoryError:
        return  # the index is stricter, as it checks types
    try:
        whole = Trajectory.from_json(line.decode())
    except TrajectoryError:
        return  # the index does not check texts and objects; opening the episode reports them
    assert shown(found) == shown(slowly(whole))


@pytest.mark.parametrize(
    "line", [b"", b"null", b"[]", b"{}", b'{"schema": 3}', b"\xff\xfe", b"[" * 100_000, b'{"a": "\xff"}', b"1" * 5_000]
)
def test_invalid_line_has_an_error_message(line: bytes) -> None:
    with pytest.raises(TrajectoryError):
        summarize_line(line)


def test_invalid_utf8_is_replaced() -> None:
    line = encoded(record("t", "act")).replace(b"Be brief.", b"Be \xff brief.").replace(b"solve", b"\xffsolve")
    assert summarize_line(line).goal == "\ufffdsolve t"
    assert Trajectory.from_json(to_text(line)).instructions == "Be \ufffd brief."


def test_episodes_are_numbered_by_file_and_line(tmp_path: Path) -> None:
    for step in (10, 2):
        save(tmp_path / "run" / "trajectories" / f"step-{step}.jsonl", record(f"a{step}"), record(f"b{step}"))
    snapshot = Index([tmp_path]).refresh()
    assert [(entry.id, entry.summary.task) for entry in snapshot.entries] == [
        (0, "a2"),
        (1, "b2"),
        (2, "a10"),
        (3, "b10"),
    ]


def test_training_step_is_read_from_file_name(tmp_path: Path) -> None:
    folder = tmp_path / "trajectories"
    save(folder / "step-7.rank1.jsonl", record("a"), record("b", meta={"step": 3, "training": False}))
    save(folder / "eval-8.jsonl", record("c"))
    facts = {entry.summary.task: entry.summary for entry in Index([tmp_path]).refresh().entries}
    assert {task: (one.step, one.training) for task, one in facts.items()} == {
        "a": (8, True),  # the file has the number of finished steps
        "b": (3, False),
        "c": (8, False),
    }


def test_invalid_lines_are_problems_and_others_are_listed(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "env_id": "x"}\n\n' + encoded(record("b")) + b"\n" + encoded(record("c"))[:50])
    snapshot = Index([path]).refresh()
    assert [entry.summary.task for entry in snapshot.entries] == ["a", "b"]
    assert ["byte" in text or "incomplete" in text for text in snapshot.problems] == [True, True, True]
    assert all(str(path) in text for text in snapshot.problems)


def test_number_of_listed_problems_is_limited(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a"))
    with path.open("ab") as file:
        file.write(b"{}\n" * 1_000)
    problems = Index([path]).refresh().problems
    assert len(problems) == 51
    assert problems[-1] == "... and 950 more"


def test_huge_line_is_read_from_disk(tmp_path: Path) -> None:
    large = "x" * 5_000_000
    path = save(tmp_path / "t.jsonl", record("a"), record("b", large), record("c"))
    index = Index([path])
    entries = index.refresh().entries
    assert [entry.summary.task for entry in entries] == ["a", "b", "c"]
    assert read_episode(entries[1]).turns[0].action == large
    assert [(entry.id, len(line)) for entry, line in lines_of(entries)] == [(e.id, e.length) for e in entries]


@given(st.lists(EPISODES, max_size=4))
def test_every_episode_is_read_as_written(tmp_path_factory: pytest.TempPathFactory, many: list[Trajectory]) -> None:
    path = save(tmp_path_factory.mktemp("t") / "t.jsonl", *many)
    entries = Index([path]).refresh().entries
    assert [read_episode(entry).to_json() for entry in entries] == [episode.to_json() for episode in many]


def test_agentgym_rl_log_is_read_as_episodes(tmp_path: Path) -> None:
    texts = ("Goal: craft stick.", "Thought: é\n\nAction: get 1 log", "Got 1 log", "Action: craft", "Crafted")
    save_log(tmp_path / "log" / "step12" / "3.json", logged(17, 1.0, *texts), logged(18, 0.0, *texts[:-1]))
    entries = Index([tmp_path]).refresh().entries
    assert [entry.summary.task for entry in entries] == ["item/17", "item/18"]
    first, second = (read_episode(entry) for entry in entries)
    assert (first.env_id, first.success, first.score, first.stop_reason) == (
        "AgentGym-RL/TextCraft",
        True,
        1.0,
        "success",
    )
    assert first.instructions == "Craft with these crafting commands."
    assert [turn.observation for turn in first.turns] == ["Goal: craft stick.", "Got 1 log"]
    assert first.actions == [texts[1], texts[3]]
    assert [turn.reward for turn in first.turns] == [0.0, 1.0]
    assert (first.final_observation, second.final_observation) == ("Crafted", "")
    assert (second.success, second.stop_reason) == (False, "unknown")
    assert (entries[0].summary.step, entries[0].summary.training) == (12, True)
    assert entries[0].summary.goal == "Goal: craft stick."
    assert entries[0].file.source.name == "log"


@pytest.mark.parametrize(
    ("rules", "reward", "env", "score", "success"),
    [
        ("You are an agent for science world.", 50.0, "/SciWorld", 0.5, False),
        ("You are an agent for science world.", 100.0, "/SciWorld", 1.0, True),
        ("You are an agent for science world.", -100.0, "/SciWorld", 0.0, False),
        ("You are an exploration master.", 0.7, "/BabyAI", 0.7, True),
        ("You navigate a web browser.", 0.0, "/WebArena", 0.0, False),
        ("Ask a search engine.", 1.0, "/Search", 1.0, True),
        ("Play.", 1.0, "", 1.0, True),
    ],
)
def test_environment_of_a_log_is_inferred(
    tmp_path: Path, rules: str, reward: float, env: str, score: float, success: bool
) -> None:
    save_log(tmp_path / "step1" / "0.json", logged(1, reward, "Look.", "go", rules=rules))
    (entry,) = Index([tmp_path]).refresh().entries
    assert (entry.summary.env, entry.summary.score, entry.summary.success) == (f"AgentGym-RL{env}", score, success)


def test_malformed_logs_are_problems_or_empty_episodes(tmp_path: Path) -> None:
    save_log(tmp_path / "step1" / "0.json", {"item_id": 1, "conversations": [], "reward": None})
    save_log(tmp_path / "step1" / "1.json", {"item_id": 1})
    (tmp_path / "step1" / "2.json").write_text('[{"item_id": 1, "conv')
    (tmp_path / "step1" / "3.json").write_text(" [ ] ")
    snapshot = Index([tmp_path]).refresh()
    assert [(entry.summary.turns, entry.summary.score) for entry in snapshot.entries] == [(0, 0.0)]
    assert [Path(text.partition(":")[0]).name for text in snapshot.problems] == ["1.json", "2.json"]


def test_mean_score_of_nan_is_nan_in_one_row(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a", score=math.nan))
    (entry,) = Index([path]).refresh().entries
    assert math.isnan(entry.summary.score)


@pytest.mark.parametrize("depth", [500, 900, 990])
def test_deeply_nested_policy_is_ignored(depth: int) -> None:
    line = encoded(record("t", meta={"policy": "x"})).replace(b'"x"', b"[" * depth + b"]" * depth)
    try:
        found = summarize_line(line).policy
    except TrajectoryError:
        return
    assert found is None or found.startswith("[[")
