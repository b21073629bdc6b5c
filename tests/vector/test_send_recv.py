"""`send` and `recv`: continue with the environments whose results are ready, without waiting for the others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentgym_envs.errors import EpisodeOver, UnknownTask, UsageError
from tests.toy_envs import RELEASE
from tests.vector.conftest import Make
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow  # too slow for the fast run

NINE = {"task": "count/9"}
NAMES = {
    "inline": "Toy/Tricky-v0",
    "thread": "Toy/Tricky-v0",
    "process": "Toy/Tricky-v0",
    "async": "Toy/Async-v0",
    "remote": "Toy/Slow-v0",
}
WAITING = tuple(NAMES)[1:]


@pytest.mark.rotating(always=4)
@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize("infos", ["arrays", "list"])
def test_send_and_recv_are_the_halves_of_step(make: Make, backend: Any, infos: Any) -> None:
    whole, halves = (make(NAMES[backend], backend=backend, infos=infos) for _ in range(2))
    assert str(whole.reset(seed=0)) == str(halves.reset(seed=0))
    for actions in (("up", "down", "crash"), ("up", "give up", "up"), ("cheat", "up", "up"), ("up", "up", "up")):
        expected = whole.step(actions)
        halves.send(actions)
        *batch, found = halves.recv()
        if infos == "arrays":
            assert found.pop("env_id").tolist() == [0, 1, 2]
        else:
            assert [info.pop("env_id") for info in found] == [0, 1, 2]
        assert str((*batch, found)) == str(expected)


@pytest.mark.parametrize("backend", WAITING)
def test_a_slow_environment_does_not_delay_others(make: Make, backend: Any, tmp_path: Path) -> None:
    envs = make(NAMES[backend], backend=backend)
    envs.reset(seed=0, options=NINE)
    envs.send((f"await {tmp_path}/go", "up", "up"))
    for turn in range(1, 6):
        observations, rewards, _, _, infos = envs.recv(min_num=2)
        assert infos["env_id"].tolist() == [1, 2] and rewards.shape == (2,)
        assert observations == (str(turn), str(turn))
        envs.send(("up", "up"), env_ids=infos["env_id"])
    envs.recv(min_num=2)
    (tmp_path / "go").touch()
    observations, *_, infos = envs.recv()
    assert (observations, infos["env_id"].tolist()) == (("slept",), [0])
    assert envs.step(("up", "up", "up"))[0] == ("1", "7", "7")


@pytest.mark.parametrize("backend", WAITING)
def test_steps_of_different_environments_overlap(make: Make, backend: Any, tmp_path: Path) -> None:
    """Each step waits for a file that exists only after all steps have started."""
    envs = make(NAMES[backend], 6, backend=backend)
    envs.reset(seed=0, options=NINE)
    envs.send([f"await {tmp_path}/{index}" for index in range(6)])
    until(lambda: all((tmp_path / f"{index}.begun").exists() for index in range(6)))
    for index in range(6):
        (tmp_path / str(index)).touch()
    assert envs.recv()[0] == ("slept",) * 6


@pytest.mark.parametrize("backend", WAITING)
def test_recv_returns_after_its_timeout_and_no_result_is_lost(make: Make, backend: Any, tmp_path: Path) -> None:
    envs = make(NAMES[backend], 2, backend=backend, infos="list")
    envs.reset(seed=0, options=NINE)
    envs.send((f"await {tmp_path}/go",), env_ids=[1])
    for timeout in (0, 0.05):
        observations, *_, infos = envs.recv(timeout=timeout)
        assert (observations, infos) == ((), [])
    envs.send(("up",), env_ids=[0])
    batches = iter(lambda: envs.recv(min_num=2, timeout=0.1)[0], None)
    assert next(batch for batch in batches if batch) == ("1",)
    (tmp_path / "go").touch()
    assert envs.recv(timeout=SECONDS)[0] == ("slept",)


def test_recv_without_running_steps_is_an_empty_batch(make: Make) -> None:
    envs = make()
    envs.reset(seed=0)
    observations, rewards, terminations, truncations, infos = envs.recv()
    assert observations == () and list(infos) == ["env_id"]
    assert [array.shape for array in (rewards, terminations, truncations, infos["env_id"])] == [(0,)] * 4


@pytest.mark.parametrize("backend", WAITING)
def test_an_environment_with_a_running_step_refuses_other_calls(make: Make, backend: Any, tmp_path: Path) -> None:
    envs = make(NAMES[backend], backend=backend)
    envs.reset(seed=0, options=NINE)
    envs.send((f"await {tmp_path}/go",), env_ids=[1])
    for call in (
        lambda: envs.send(("up",), env_ids=[1]),
        lambda: envs.step(("up",) * 3),
        envs.reset,
        envs.render,
        lambda: envs.call("status"),
        lambda: envs.set_attr("count", 1),
        lambda: envs.async_reset(env_ids=[0, 1]),
    ):
        with pytest.raises(UsageError, match=r"steps of the environments \[1\] are running"):
            call()
    envs.send(("up",), env_ids=[0])
    (tmp_path / "go").touch()
    assert envs.recv()[0] == ("1", "slept")


def test_a_result_must_be_received_before_the_next_step(make: Make) -> None:
    envs = make()
    envs.reset(seed=0, options=NINE)
    envs.send(("up",), env_ids=[2])
    with pytest.raises(UsageError, match="environment 2 has a result that was not received"):
        envs.step(("up",) * 3)
    assert envs.recv()[0] == ("1",)
    assert envs.step(("up",) * 3)[0] == ("1", "1", "2")


@pytest.mark.parametrize("env_ids", [[0, 0], [3], [-1], [0, 1, 2, 1]])
def test_env_ids_are_distinct_numbers_of_environments(make: Make, env_ids: list[int]) -> None:
    envs = make()
    envs.reset(seed=0)
    with pytest.raises(UsageError, match="distinct numbers from 0 to 2"):
        envs.send(["up"] * len(env_ids), env_ids=env_ids)
    assert envs.step(("up",) * 3)[4]["turn"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("backend", NAMES)
def test_recv_returns_the_results_of_async_reset(make: Make, backend: Any) -> None:
    envs = make(NAMES[backend], backend=backend)
    with pytest.raises(EpisodeOver, match="no episode"):
        envs.send(("up",), env_ids=[0])
    envs.async_reset(seed=5, env_ids=[2, 0])
    observations, *_, infos = envs.recv()
    assert infos["env_id"].tolist() == [0, 2]
    assert infos["seed"].tolist() == [5, 7]
    assert envs.reset(seed=5)[0][::2] == observations
    mask = np.array([False, True, False])
    envs.async_reset(options={"reset_mask": mask, "task": "count/9"})
    assert envs.recv()[4]["task_id"].tolist() == ["count/9"]
    with pytest.raises(UsageError, match="give one"):
        envs.async_reset(options={"reset_mask": mask}, env_ids=[0])


def test_a_refused_reset_keeps_the_results_of_others(make: Make) -> None:
    envs = make(backend="thread")
    envs.async_reset(seed=0, options=[NINE, {"task": "x"}, NINE])
    with pytest.raises(UnknownTask, match="environment 1"):
        envs.recv()
    assert envs.recv()[4]["env_id"].tolist() == [0, 2]


@pytest.mark.parametrize("backend", WAITING)
def test_autoreset_continues_while_a_slow_environment_runs(make: Make, backend: Any, tmp_path: Path) -> None:
    for mode in ("NextStep", "SameStep"):
        envs = make(NAMES[backend], 2, backend=backend, autoreset_mode=mode)
        envs.reset(seed=0, options={"task": "count/2"})
        envs.send((f"await {tmp_path}/{mode}", "up"))
        ends = []
        for _ in range(4):
            *_, terminations, _, infos = envs.recv(min_num=1)
            assert infos["env_id"].tolist() == [1]
            ends.append(bool(terminations[0]))
            envs.send(("give up",), env_ids=[1])
        assert ends == ([False, True, False, True] if mode == "NextStep" else [False, True, True, True])
        (tmp_path / mode).touch()
        envs.close()


@pytest.mark.parametrize("backend", ["thread", "async"])
def test_a_deadline_passes_while_recv_waits_for_others(make: Make, backend: Any) -> None:
    envs = make(NAMES[backend], backend=backend, step_seconds=1.0)
    envs.reset(seed=0, options=NINE)
    envs.send(("sleep 30", "up", "up"))
    assert envs.recv(min_num=2)[4]["env_id"].tolist() == [1, 2]
    *_, truncations, infos = envs.recv()
    assert truncations.tolist() == [True]
    assert "did not answer within 1.0 s" in infos["error"][0]
    RELEASE.set()
