"""`agentgym eval --policy MODULE:CLASS`: a policy of the user."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.trajectory import Trajectory, read_trajectories

from .conftest import Run

MINE = """
import functools
import random

from agentgym_envs.rollout import OraclePolicy

SHARED = OraclePolicy()


class Steady:
    def __init__(self):
        self.turns = 0

    async def act(self, env, messages):
        self.turns += 1
        assert len(messages) == 2 * self.turns
        return "up"


class Guessing:
    async def act(self, env, messages):
        return random.Random(env.episode_seed + len(messages)).choice(["up", "down"])


class Named(Steady):
    def __init__(self, model):
        super().__init__()


class Hurried:
    def act(self, env, messages):
        return "up"


class Idle:
    pass


class Silent:
    async def act(self, env, messages):
        return None


class Member:
    async def act(self, env, messages):
        return "pass" if "crafter_" in messages[0]["content"] else "lost"


def make():
    return Named("small")


def make_nothing():
    return Idle()


class Forgetful:
    async def act(self, env):
        return "up"


def make_trouble():
    raise RuntimeError("no weights")


MADE = []


def count():
    MADE.append(len(MADE))
    return Steady()


partial = functools.partial(Named, "small")
"""


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write the module to a package in the current folder."""
    (tmp_path / "mypackage").mkdir()
    (tmp_path / "mypackage" / "__init__.py").touch()
    (tmp_path / "mypackage" / "mymodule.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("import not_there_at_all\n")
    (tmp_path / "torn.py").write_text("class Mine:\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("mypackage.mymodule", "mypackage", "broken", "torn"):
        sys.modules.pop(name, None)


def records(directory: str = "out") -> list[Trajectory]:
    return list(read_trajectories(Path(directory) / "trajectories.jsonl"))


def result(directory: str = "out") -> Any:
    return json.loads((Path(directory) / "eval.json").read_text())


@pytest.mark.parametrize("name", ["Steady", "make", "partial"])
def test_a_class_or_factory_is_evaluated(run: Run, toy: str, name: str) -> None:
    policy = f"mypackage.mymodule:{name}"
    words = ("eval", toy, "--policy", policy, "--split", "train", "-k", 2, "--seed", 3, "--out", "out", "--json")
    outcome = run(*words)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["metrics"]["overall"]["success"]["mean"] == 1
    assert {(t.task.id, t.seed) for t in records()} == {(f"count/{n}", seed) for n in (2, 3, 9) for seed in (3, 4)}
    assert all(t.actions == ["up"] * t.task.data["target"] for t in records())  # each episode has its own policy
    assert {t.meta["policy"] for t in records()} == {result()["settings"]["policy"]} == {policy}
    assert policy in Path("out/report.md").read_text()


def test_random_choices_follow_from_the_seed_of_the_episode(run: Run, toy: str) -> None:
    words = ("eval", toy, "--policy", "mypackage.mymodule:Guessing", "--split", "train", "-k", 3, "--max-turns", 6)
    for directory, seed in (("a", 0), ("b", 0), ("c", 9)):
        assert run(*words, "--seed", seed, "--out", directory).code == 0
    first, same, other = ({(t.task.id, t.seed, *t.actions) for t in records(name)} for name in "abc")
    assert first == same != other


@pytest.mark.slow
def test_runs_can_be_resumed_and_compared(run: Run, refuses: Run, toy: str) -> None:
    words = ("eval", toy, "--split", "train", "--out")
    for name in ("Steady", "Guessing"):
        assert run(*words, name, "--policy", f"mypackage.mymodule:{name}").code == 0
    assert run(*words, "Steady", "--policy", "mypackage.mymodule:Steady", "--resume").code == 0
    assert len(records("Steady")) == 3
    assert "policy" in refuses(*words, "Steady", "--policy", "mypackage.mymodule:Guessing", "--resume").err
    assert run("compare", "Guessing", "Steady").code == 0


def test_an_agent_sets_the_form_of_its_answers_only(run: Run, refuses: Run, toy: str) -> None:
    words = ("eval", toy, "--policy", "mypackage.mymodule:Steady", "--split", "train", "--agent", "react")
    outcome = run(*words, "--out", "out", "--max-turns", 2)
    assert outcome.code == 0
    assert "only sets the form of the answers" in outcome.err
    assert all(turn.info["invalid_action"] for t in records() for turn in t.turns)  # "up" is not in ReAct's form
    assert "agents guide models only" in refuses(*words, "--context", "last:2").err


def test_each_member_of_a_team_has_its_own_policy(run: Run) -> None:
    words = ("eval", "textcraftcoop", "--policy", "mypackage.mymodule:Member", "--tasks", 1, "--max-turns", 2)
    assert run(*words, "--out", "out").code == 0
    (record,) = records()
    assert [set(json.loads(action).values()) for action in record.actions] == [{"pass"}, {"pass"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("nowhere.at_all:Mine", "the module 'nowhere.at_all' cannot be imported: No module named 'nowhere'"),
        ("broken:Mine", "No module named 'not_there_at_all'"),
        ("mypackage.mymodule:Stedy", "the module mypackage.mymodule has no Stedy"),
        ("mypackage.mymodule:Idle", "it has no `act`"),
        ("mypackage.mymodule:Hurried", "it has an `act` that is not `async def`"),
        ("mypackage.mymodule:make_nothing", "has no `act`"),
        ("mypackage.mymodule:Forgetful", "its `act` has other arguments (too many positional arguments)"),
        ("mypackage.mymodule:SHARED", "SHARED is not a class or function"),
        ("mypackage.mymodule:Named", "missing a required argument: 'model'"),
        ("mypackage.mymodule:Steady.act", "; choose oracle"),
        (":Steady", "; choose oracle"),
    ],
)
def test_invalid_policies_are_refused_before_the_run(refuses: Run, toy: str, policy: str, message: str) -> None:
    err = refuses("eval", toy, "--policy", policy, "--out", "out").err
    assert message in err
    assert policy in err
    assert any(
        remedy in err
        for remedy in ("; name a class with `async def act", "; choose oracle", "; add defaults", "on PYTHONPATH")
    )
    assert not Path("out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("torn:Mine", "the module 'torn' cannot be imported: IndentationError: expected an indented block"),
        ("mypackage.mymodule:make_trouble", "calling it failed: RuntimeError: no weights"),
    ],
)
def test_an_error_in_the_code_of_the_user_prints_one_line(refuses: Run, toy: str, policy: str, message: str) -> None:
    assert message in refuses("eval", toy, "--policy", policy, "--out", "out").err
    assert not Path("out").exists()


def test_a_factory_is_checked_once_and_called_once_per_episode(run: Run, toy: str) -> None:
    words = ("eval", toy, "--policy", "mypackage.mymodule:count", "--split", "train", "--tasks", 2)
    assert run(*words).code == 0
    assert sys.modules["mypackage.mymodule"].MADE == [0, 1, 2]


def test_an_answer_that_is_not_text_is_reported(refuses: Run, toy: str) -> None:
    err = refuses("eval", toy, "--policy", "mypackage.mymodule:Silent", "--split", "train", "--max-turns", 30).err
    assert "an action is a string, got NoneType" in err


def test_a_custom_policy_cannot_record_tokens(refuses: Run, toy: str) -> None:
    words = ("eval", toy, "--policy", "mypackage.mymodule:Steady", "--tokens", "--out", "out")
    assert "mypackage.mymodule:Steady does not" in refuses(*words).err


@pytest.mark.slow
def test_a_policy_is_imported_from_the_current_folder(spawn: Run) -> None:
    words = ("eval", "textcraft", "--policy", "mypackage.mymodule:Guessing", "--tasks", 2, "--max-turns", 2, "--json")
    outcome = spawn(*words)
    assert outcome.code == 0 and "agentgym: " not in outcome.err
    assert outcome.json["settings"]["policy"] == "mypackage.mymodule:Guessing"
