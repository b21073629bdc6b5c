"""Labels of turns: hand-computed cases, damaged records, and the file next to the trajectories."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.core import ENV_FAILED, Solution
from agentgym_envs.errors import TrajectoryError
from agentgym_envs.evaluate import LabelledEpisode, evaluate_mistakes
from agentgym_envs.labels import EpisodeLabels, LabelTable, TurnLabel, labels_path, read_labels
from agentgym_envs.labels.labeller import Labeller
from agentgym_envs.labels.running import label_file, slow_oracles_last
from agentgym_envs.registration import env_ids, has_slow_oracle
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, ReplayPolicy, play_text, run_sync
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter


def craft(actions: Sequence[str], **kwargs: Any) -> Trajectory:
    """An episode whose goal takes three turns: get logs, craft planks, craft the table."""
    env = gym.make("AgentGym/TextCraft-v0", goal="crafting table", split=None, **kwargs)
    return run_sync(play_text(env, ReplayPolicy(actions), EpisodeSpec(seed=1), limits=Limits(len(actions))))


PLAN = ["get 1 oak logs", "craft 4 oak planks using 1 oak logs", "craft 1 crafting table using 4 oak planks"]


def label(trajectory: Trajectory) -> EpisodeLabels:
    labeller = Labeller()
    try:
        return labeller.label(trajectory, "0" * 16)
    finally:
        labeller.close()


def test_turns_on_plan_have_no_regret() -> None:
    labels = label(craft(PLAN))
    assert [(turn.before, turn.after, turn.regret, turn.verdict) for turn in labels.turns] == [
        (3, 2, 0, "on plan"),
        (2, 1, 0, "on plan"),
        (1, 0, 0, "on plan"),
    ]
    assert labels.exact and labels.regret == 0
    assert labels.first_mistake is None and labels.recovered is None


def test_wasted_turns_have_regret() -> None:
    labels = label(craft([PLAN[0], "wait", "get 1 coal", *PLAN[1:]]))
    assert [turn.regret for turn in labels.turns] == [0, 1, 1, 0, 0]
    assert (labels.first_mistake, labels.regret, labels.recovered) == (2, 2, True)
    assert [turn.verdict for turn in labels.turns][1] == "detour"
    assert label(craft([PLAN[0], "wait", "wait"])).recovered is False


def test_regret_is_the_turns_played_beyond_the_progress() -> None:
    policy = OraclePolicy(slip=0.3, idle=0.2, seed=3)
    env = gym.make("AgentGym/TextCraft-v0")
    played = run_sync(play_text(env, policy, EpisodeSpec(seed=5), limits=Limits(30)))
    labels = label(played)
    first, last = labels.turns[0].before, labels.turns[-1].after
    assert first is not None and last is not None
    assert labels.regret == len(played.turns) - first + last


def test_unproven_distances_are_bounded_by_the_rest_of_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = iter([Solution(("a",) * 7, False), Solution(None, False), Solution(("a",), False), Solution((), True)])
    monkeypatch.setattr("agentgym_envs.core.TextEnv.solution", lambda env: next(plans))
    turns = label(craft(PLAN)).turns
    assert [(turn.before, turn.after) for turn in turns] == [(3, 2), (2, 1), (1, 0)]
    assert not any(turn.exact for turn in turns) and turns[0].method == "oracle plan"


def test_a_failed_environment_leaves_its_turn_without_a_label() -> None:
    played = craft(PLAN[:2])
    failed = replace(played, stop_reason="env_error", final_observation=ENV_FAILED, error="EnvError: gone")
    labels = label(failed)
    assert labels.error is None and [turn.after for turn in labels.turns] == [2]
    assert label(replace(played, turns=(), stop_reason="env_error", final_observation=ENV_FAILED)).turns == ()


def test_an_episode_that_does_not_replay_has_a_reason() -> None:
    played = craft(PLAN)
    wrong = replace(played.turns[1], observation="Got 9 oak logs")
    labels = label(replace(played, turns=(played.turns[0], wrong, played.turns[2])))
    assert labels.turns == () and "differs from the record after turn 1" in str(labels.error)
    assert "cannot be made here" in str(label(replace(played, env_id="AgentGym/Gone-v0")).error)


def test_an_invalid_answer_is_a_wasted_turn() -> None:
    labels = label(craft(["no tag", f"<action>{PLAN[0]}</action>"], grammar="tag"))
    assert [turn.regret for turn in labels.turns] == [1, 0]


def test_a_goal_out_of_reach_is_lost() -> None:
    lost = TurnLabel(3, None, True, False)
    assert (lost.regret, lost.verdict) == (None, "lost")
    assert TurnLabel(None, None, False, None).verdict == "unknown"
    labels = EpisodeLabels("", "e", "t", 0, (TurnLabel(4, 3, True, True), lost, TurnLabel(None, None, True, False)))
    assert (labels.first_mistake, labels.regret, labels.recovered) == (2, None, False)
    hopeless = EpisodeLabels("", "e", "t", 0, (TurnLabel(None, None, True, False),))
    assert hopeless.first_mistake is None  # the goal was out of reach before the turn


def test_a_failed_debug_level_is_lost() -> None:
    env = gym.make("AgentGym/BabyAI-v0", levels="OpenRedBlueDoorsDebug")
    for seed in range(6):
        _, info = env.reset(seed=seed, options={"task": f"babyai/OpenRedBlueDoorsDebug/{seed}"})
        commands = [name for name in info["available_actions"] if name.startswith("toggle and go through blue")]
        if commands:
            spec = EpisodeSpec(f"babyai/OpenRedBlueDoorsDebug/{seed}", seed)
            played = run_sync(play_text(env, ReplayPolicy(commands), spec, limits=Limits(1)))
            labels = label(played)
            if played.stop_reason == "failure":
                assert labels.turns[-1].verdict == "lost" and labels.first_mistake == 1
                return
    pytest.fail("no seed has a blue door in sight that fails the mission")


def write(path: Path, *episodes: Trajectory) -> Path:
    with TrajectoryWriter(path) as writer:
        for episode in episodes:
            writer.write(episode)
    return path


def test_a_file_is_labelled_once(tmp_path: Path) -> None:
    good, bad = craft(PLAN), replace(craft(PLAN), env_id="AgentGym/Gone-v0")
    path = write(tmp_path / "run.jsonl", good, bad)
    counts = label_file(path)
    assert (counts.episodes, counts.turns, counts.exact_turns, counts.failed, counts.present) == (1, 3, 3, 1, 0)
    again = label_file(path)
    assert (again.episodes, again.failed, again.present) == (0, 1, 1)  # a failed one is tried again
    found = LabelTable(read_labels(path).values())
    assert found.find(good) is not None and found.find(good).turns == label(good).turns  # type: ignore[union-attr]
    assert found.find(craft(PLAN[:1])) == found.find(good)  # another line of the same task and seed
    row = json.loads(labels_path(path).read_text().splitlines()[0])
    assert row["turns"][0] == {
        "before": 3,
        "after": 2,
        "regret": 0,
        "reachable": True,
        "method": "exact",
        "verdict": "on plan",
    }


def test_several_episodes_with_one_seed_have_labels_by_line_only(tmp_path: Path) -> None:
    good, slow = craft(PLAN), craft(["wait", *PLAN])
    path = write(tmp_path / "run.jsonl", good, slow)
    label_file(path)
    table = LabelTable(read_labels(path).values())
    assert [labels.regret for labels in map(table.find, (good, slow)) if labels] == [0, 1]
    assert table.find(craft(PLAN[:1])) is None, "either could be meant"


class SlowTextCraftEnv(TextCraftEnv):
    slow_oracle = True


def test_slow_oracles_are_asked_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = craft(PLAN)
    slow = replace(quick, env_id="Slow-v0")
    path = write(tmp_path / "mixed.jsonl", slow, quick)
    fast_run = write(tmp_path / "fast.jsonl", quick)
    monkeypatch.setitem(gym.registry, "Slow-v0", EnvSpec("Slow-v0", f"{__name__}:SlowTextCraftEnv"))
    label_file(path)
    rows = [json.loads(line)["env_id"] for line in labels_path(path).read_text().splitlines()]
    assert rows == ["AgentGym/TextCraft-v0", "Slow-v0"]
    empty = write(tmp_path / "empty.jsonl")
    assert slow_oracles_last([path, fast_run, empty]) == [fast_run, empty, path]


def test_the_simulators_have_slow_oracles() -> None:
    slow = {env_id for env_id in env_ids() if has_slow_oracle(env_id)}
    web = {"WebArena", "MiniWoB", "WebArenaPixels", "MiniWoBPixels", "WebArenaOfficial"}
    assert slow == {f"AgentGym/{name}-v0" for name in {"SciWorld", *web}}
    assert not has_slow_oracle("") and not has_slow_oracle("AgentGym/Gone-v0")


@pytest.mark.slow
def test_several_processes_give_the_same_labels(tmp_path: Path) -> None:
    episodes = craft(PLAN), craft(["wait", *PLAN])
    one, two = (write(tmp_path / name, *episodes) for name in ("one.jsonl", "two.jsonl"))
    label_file(one)
    label_file(two, workers=2)
    assert read_labels(one) == read_labels(two)


def test_damaged_labels_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", craft(PLAN))
    label_file(path)
    file = labels_path(path)
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:20])  # a crash while a line was written
    assert len(read_labels(path)) == 1
    file.write_bytes(b'{"schema": 1, "turns": 3}\n')
    with pytest.raises(TrajectoryError, match=r"run\.labels\.jsonl:1"):
        read_labels(path)
    file.write_bytes(b'{"schema": 9}\n')
    with pytest.raises(TrajectoryError, match="label schema 1, not 9"):
        read_labels(path)


def test_metrics_of_mistakes_are_means_over_tasks() -> None:
    episodes = [craft(PLAN), craft(["wait", *PLAN]), craft([PLAN[0], "wait", "wait"])]
    labelled = [LabelledEpisode(episode, label(episode)) for episode in episodes]
    found = evaluate_mistakes([*labelled, LabelledEpisode(craft(PLAN), None)])
    row = found.overall
    assert (row.episodes, row.unlabelled, row.exact, row.regret_known) == (3, 1, 1.0, 3)
    assert row.regret == pytest.approx((0 + 1 + 2) / 3)
    assert row.mistake is not None and row.mistake.mean == pytest.approx(2 / 3)
    assert row.first_mistake == pytest.approx((1 + 2) / 2)
    assert row.recovered is not None and row.recovered.mean == pytest.approx(1 / 2)
    assert [group.group for group in found.groups] == [episodes[0].task.group]
    failed = replace(craft(PLAN), stop_reason="env_error")
    assert evaluate_mistakes([LabelledEpisode(failed, None)]).overall.unlabelled == 0
