"""`TextVectorEnv` and `make_vec`: their interface, their errors, and Gymnasium's wrappers."""

import pickle
import threading
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics, TransformReward

from agentgym_envs import FixedTurnLimit, RecordTrajectory, ScheduledTimeLimit, read_trajectories
from agentgym_envs.core import text_env
from agentgym_envs.errors import EpisodeOver, UnknownTask, UsageError
from agentgym_envs.spaces import Utf8Text
from agentgym_envs.vector import EnvRunner, TextVectorEnv, make_vec
from tests.toy import CountEnv
from tests.toy_envs import HERE
from tests.vector.conftest import Make

UP = ("up", "up", "up")


@pytest.mark.parametrize("mode", [None, "vector_entry_point"])
@pytest.mark.parametrize("env_id", ["AgentGym/TextCraft-v0", HERE + "Toy/Count-v0"])
def test_gymnasium_makes_a_vector_environment(mode: str | None, env_id: str) -> None:
    envs = gym.make_vec(env_id, num_envs=8, vectorization_mode=mode, autoreset_mode="SameStep", split="test")
    assert isinstance(envs, TextVectorEnv)
    assert envs.spec is not None
    assert (envs.spec.id, envs.num_envs) == (env_id.rpartition(":")[2], 8)
    assert envs.spec.kwargs["split"] == "test"
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert {text_env(env).split for env in envs.envs} == {"test"}
    assert envs.step(envs.action_space.sample())[1].shape == (8,)
    envs.close()


def test_make_vec_sets_the_spec(make: Make) -> None:
    envs = make(split="test", grammar="tag")
    assert envs.spec is not None
    assert (envs.spec.id, envs.spec.kwargs) == ("Toy/Count-v0", {"split": "test", "grammar": "tag"})
    assert "Toy/Count-v0" in repr(envs)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("backend", ["inline", "thread", "process", "async"])
def test_wrappers_of_gymnasium_work(make: Make, backend: Any) -> None:
    name = "Toy/Async-v0" if backend == "async" else "Toy/Count-v0"
    envs = RecordEpisodeStatistics(TransformReward(make(name, backend=backend), lambda reward: 10 * reward))
    envs.reset(seed=0, options={"task": "count/2"})
    envs.step(UP)
    *_, infos = envs.step(("up", "give up", "down"))
    assert infos["episode"]["r"].tolist() == [10, 5, 0]
    assert infos["episode"]["l"].tolist() == [2, 2, 0]
    assert infos["_episode"].tolist() == [True, True, False]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_list_of_infos_equals_that_of_gymnasiums_wrapper(make: Make, mode: str) -> None:
    arrays, listed = DictInfoToList(make(autoreset_mode=mode)), make(autoreset_mode=mode, infos="list")
    assert _plain(arrays.reset(seed=1)[1]) == listed.reset(seed=1)[1]
    for actions in (UP, ("up", "crash", "cheat"), UP, ("down", "give up", "up"), UP):
        assert _plain(arrays.step(actions)[4]) == listed.step(actions)[4]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize("backend", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_wrappers_of_single_environments_apply_to_each(make: Make, tmp_path: Any, backend: Any) -> None:
    numbers = iter(range(3))

    def recorded(env: gym.Env[str, str]) -> gym.Env[str, str]:
        return RecordTrajectory(env, tmp_path / f"{next(numbers)}.jsonl")

    wrappers = [lambda env: ScheduledTimeLimit(env, FixedTurnLimit(2)), recorded]
    envs = make(backend=backend, wrappers=wrappers, grammar="tag")
    envs.reset(seed=0, options={"task": "count/9"})
    for _ in range(2):
        *_, truncations, infos = envs.step(["<action>up</action>"] * 3)
    assert truncations.all()
    assert infos["stop_reason"].tolist() == ["turn_limit"] * 3
    envs.close()
    records = [one for number in range(3) for one in read_trajectories(tmp_path / f"{number}.jsonl")]
    assert sorted(one.seed for one in records) == [0, 1, 2]
    for one in records:
        assert (one.env_id, one.env_kwargs, one.task.id) == ("Toy/Count-v0", {"grammar": "tag"}, "count/9")
        assert [turn.action for turn in one.turns] == ["<action>up</action>"] * 2


@pytest.mark.parametrize("backend", ["thread", "async"])
def test_a_wrapped_environment_runs_off_the_calling_thread(make: Make, backend: Any) -> None:
    threads = set[int]()

    class Noting(gym.Wrapper[str, str, str, str]):
        def step(self, action: str) -> Any:
            threads.add(threading.get_ident())
            return self.env.step(action)

    envs = make(backend=backend, wrappers=[Noting])
    envs.reset(seed=0)
    envs.step(UP)
    assert threads and threading.get_ident() not in threads


def test_each_environment_has_its_own_seed_and_options(make: Make) -> None:
    envs = make(infos="list")
    tasks = [{"task": "count/9"}, None, {"group": "large", "split": "test"}]
    _, infos = envs.reset(seed=[5, 6, None], options=tasks)
    alone = [gym.make("Toy/Count-v0").reset(seed=seed, options=tasks[k]) for k, seed in enumerate((5, 6))]
    assert [info for _, info in alone] == infos[:2]
    assert infos[2]["task_id"] == "count/10"
    masked = envs.reset(seed=[1] * 3, options={"reset_mask": np.array([True, False, False])})
    assert len(masked[1]) == 1 and masked[1][0]["seed"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": [1, 2]}, "3 environments need as many seeds, got 2"),
        ({"seed": -1}, "at least 0"),
        ({"seed": [0, 1.5, 2]}, "got 1.5"),
        ({"options": [None]}, "3 environments need as many options, got 1"),
        ({"options": [None, "x", None]}, "mapping or None, got 'x'"),
        ({"options": {"reset_mask": np.zeros(3, bool)}}, "boolean array of shape"),
        ({"options": {"reset_mask": np.ones(4, bool)}}, "boolean array of shape"),
        ({"options": {"reset_mask": [True] * 3}}, "boolean array of shape"),
        ({"options": {"tusk": "x"}}, "environment 0: reset knows the options"),
        ({"options": [None, None, {"task": "x"}]}, "environment 2: .*no task"),
    ],
)
def test_invalid_resets_of_a_vector_are_refused(make: Make, arguments: dict[str, Any], message: str) -> None:
    envs = make()
    with pytest.raises(UsageError, match=message):
        envs.reset(**arguments)
    assert envs.reset(seed=0)[1]["turn"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("backend", ["inline", "thread", pytest.param("process", marks=pytest.mark.slow)])
def test_an_unknown_task_names_the_environment_and_has_no_effect(make: Make, backend: Any) -> None:
    envs = make(backend=backend)
    envs.reset(seed=0, options={"task": "count/9"})
    with pytest.raises(UnknownTask, match=r"environment 1: .*'no/such'"):
        envs.reset(options=[None, {"task": "no/such"}, None])
    assert envs.reset(seed=0, options={"task": "count/9"})[1]["turn"].tolist() == [0, 0, 0]
    assert envs.step(UP)[1].tolist() == [1 / 9] * 3


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ("up!", "need as many actions, got one string"),
        (("up", "up"), "need as many actions, got 2"),
        (("up", "up", 3), "an action is a string, got int"),
        (("up", None, "up"), "an action is a string, got NoneType"),
    ],
)
def test_invalid_action_lists_are_refused(make: Make, actions: Any, message: str) -> None:
    envs = make()
    envs.reset(seed=0)
    with pytest.raises(UsageError, match=message):
        envs.step(actions)
    assert envs.step(UP)[4]["turn"].tolist() == [1, 1, 1], "the refused call has stepped an environment"


def test_a_step_needs_an_episode(make: Make) -> None:
    envs = make(autoreset_mode="Disabled")
    with pytest.raises(EpisodeOver, match="environment 0 has no episode"):
        envs.step(UP)
    envs.reset(seed=0)
    envs.step(("up", "give up", "up"))
    with pytest.raises(EpisodeOver, match=r"environment 1 is over.*reset_mask"):
        envs.step(UP)
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert envs.step(UP)[4]["turn"].tolist() == [2, 1, 2]


def test_a_closed_vector_environment_refuses_every_call(make: Make) -> None:
    envs = make()
    envs.reset(seed=0)
    inner = envs.envs
    envs.close()
    envs.close()
    assert [env.unwrapped.closed for env in inner] == [1, 1, 1]  # type: ignore[attr-defined]
    calls = (envs.reset, lambda: envs.step(UP), envs.recv, envs.render, lambda: envs.envs, lambda: envs.call("status"))
    for call in calls:
        with pytest.raises(EpisodeOver, match="closed"):
            call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 2.0}, "num_envs"),
        ({"backend": "gpu"}, "backend must be one of"),
        ({"backend": "remote"}, "base_url"),
        ({"backend": "inline", "base_url": "http://127.0.0.1:1"}, "base_url"),
        ({"num_workers": 2}, "num_workers"),
        ({"backend": "process", "num_workers": 0}, "at least 1"),
        ({"backend": "process", "num_workers": "2"}, "num_workers must be a whole number"),
        ({"step_seconds": 0}, "step_seconds must be a number of seconds above 0"),
        ({"step_seconds": "1"}, "step_seconds must be"),
        ({"step_seconds": float("inf")}, "step_seconds must be"),
        ({"infos": "dict"}, "infos must be"),
        ({"autoreset_mode": "never"}, "autoreset_mode must be one of"),
        ({"split": "dev"}, "no split"),
        ({"backend": "process", "split": "dev"}, "no split"),
    ],
)
def test_make_vec_refuses_invalid_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_vec(HERE + "Toy/Count-v0", **arguments)


def test_a_vector_environment_cannot_be_pickled(make: Make) -> None:
    with pytest.raises(TypeError, match="make_vec"):
        pickle.dumps(make())


def test_an_unknown_id_raises_the_error_of_gymnasium() -> None:
    with pytest.raises(gym.error.Error, match="NoSuch"):
        make_vec("AgentGym/NoSuch-v0", 2)


def test_environments_with_different_spaces_are_refused() -> None:
    class Longer(CountEnv):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = Utf8Text(7)

    runners = [EnvRunner(CountEnv), EnvRunner(CountEnv), EnvRunner(Longer)]
    with pytest.raises(UsageError, match=r"environments \[2\] have other spaces"):
        TextVectorEnv(runners)
    with pytest.raises(UsageError, match="at least one"):
        TextVectorEnv([])


def test_a_failed_creation_closes_the_other_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[CountEnv] = []

    def make(*_: Any, **__: Any) -> CountEnv:
        if len(made) == 2:
            raise UsageError("the third is one too many")
        made.append(CountEnv())
        return made[-1]

    monkeypatch.setattr(gym, "make", make)
    with pytest.raises(UsageError, match="one too many"):
        make_vec(HERE + "Toy/Count-v0", 3)
    assert [env.closed for env in made] == [1, 1]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("infos", ["arrays", "list"])
def test_a_reset_that_fails_is_a_truncated_step(make: Make, mode: str, infos: Any) -> None:
    envs = make(num_envs=2, autoreset_mode=mode, infos=infos)
    observations, _ = envs.reset(seed=0, options=[{"task": "count/0"}, {"task": "count/9"}])
    assert "failed" in observations[0]
    observations, rewards, terminations, truncations, found = envs.step(("up", "up"))
    assert rewards.tolist() == [0, 1 / 9]
    assert truncations.tolist() == [True, False] and not terminations.any()
    first = found[0] if infos == "list" else {key: value[0] for key, value in found.items() if key != "final_info"}
    if mode == "SameStep":
        first = found[0]["final_info"] if infos == "list" else {k: v[0] for k, v in found["final_info"].items()}
    assert (first["stop_reason"], first["invalid_action"]) == ("env_error", None)
    assert "no power" in first["error"]
    if mode == "Disabled":
        with pytest.raises(EpisodeOver):
            envs.step(("up", "up"))
    else:
        assert envs.step(("up", "up"))[3].tolist() == [False, False]
