"""Stock verl trains on our environments: four runs of its `main_ppo` on the CPU, two of them at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from agentgym_envs.trajectory import Trajectory, read_trajectories
from tests.adapters.verl.training import OURS, STOCK, Run, launch, make_rows, prepare
from tests.adapters.verl.training_envs import FLAKY, GRADED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("verl") is None, reason="verl is not installed"),
    pytest.mark.skipif(find_spec("trl") is None, reason="the tiny model is made in TRL's adapter"),
]
TEXTCRAFT = "AgentGym/TextCraft-v0"
SCHEDULE = ("++agentgym.rounds='2,3,4'", "++agentgym.every=2", "++agentgym.eval_max_turns=4")
GRPO = (
    *STOCK,
    "algorithm.adv_estimator=grpo",
    *SCHEDULE,
    "trainer.total_training_steps=5",
    "trainer.save_freq=2",
    "trainer.test_freq=2",
)


def grpo(folder: Path) -> tuple[Run, Run]:
    """Interrupted in its third step, and taken up again after the second. Files are named for the steps before."""
    train = [*make_rows(GRADED, "train", 8), *make_rows(TEXTCRAFT, "train", 4)]
    val = [*make_rows(GRADED, "validation", 2, group="depth-2"), *make_rows(TEXTCRAFT, "validation", 2)]
    prepare(folder, train, [*make_rows(GRADED, "validation", 2), *val])
    third = folder / "trajectories" / "step-2.rank0.jsonl"
    begun = launch(folder, *GRPO, until=lambda: third.exists() and third.stat().st_size > 0, name="begun")
    return begun, launch(folder, *GRPO, name="resumed")


def reinforce(folder: Path) -> Run:
    """One environment in five fails, and every one of a group; none is tried again."""
    *train, doomed = make_rows(FLAKY, "train", 4, every=5)
    doomed = replace(doomed, env_kwargs={**doomed.env_kwargs, "every": 1})
    prepare(folder, [*train, doomed], make_rows(FLAKY, "validation", 6, every=3))
    more = ("++agentgym.rounds=2", "++agentgym.env_retries=0", "trainer.total_training_steps=3", "trainer.test_freq=3")
    return launch(folder, *STOCK, "algorithm.adv_estimator=reinforce_plus_plus", *more)


def ppo(folder: Path) -> Run:
    """With the adapter's configuration: a critic, and the KL term in the reward."""
    prepare(folder, make_rows(GRADED, "train", 8), make_rows(GRADED, "validation", 2))
    more = ("agentgym.rounds=3", "trainer.total_training_steps=4", "trainer.val_before_train=False")
    return launch(folder, *OURS, "algorithm=ppo", *more)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Any]]]:
    """All runs, begun at once: most of a run is a chain of processes that load verl one after the other."""
    chains: tuple[Callable[[Path], Any], ...] = (grpo, reinforce, ppo)
    with ThreadPoolExecutor(2) as pool:
        yield {chain.__name__: pool.submit(chain, tmp_path_factory.mktemp(chain.__name__)) for chain in chains}


@pytest.fixture
def begun(runs: dict[str, Future[Any]]) -> Run:
    return runs["grpo"].result()[0]


@pytest.fixture
def resumed(runs: dict[str, Future[Any]]) -> Run:
    return runs["grpo"].result()[1]


@pytest.fixture
def flaky(runs: dict[str, Future[Any]]) -> Run:
    return runs["reinforce"].result()


@pytest.fixture
def with_critic(runs: dict[str, Future[Any]]) -> Run:
    return runs["ppo"].result()


def scores(trajectories: Iterable[Trajectory]) -> list[float]:
    return [trajectory.score for trajectory in trajectories if trajectory.usable]


def check(run: Run, steps: list[int]) -> None:
    """What holds of every run: it trained on what was played, as the model that it trains would say it."""
    assert run.steps == steps, run.log
    assert run.killed == []
    for step in steps:
        metrics, found = run.metrics[step], scores(run.played(f"step-{step - 1}"))
        assert metrics["training/rollout_actor_probs_pearson_corr"] >= 0.99
        assert metrics["training/rollout_probs_diff_max"] < 1e-4
        assert metrics["training/off_policy/trajectory_staleness/max"] == 0
        assert metrics["critic/score/mean"] == pytest.approx(fmean(found), abs=1e-6)
        assert metrics["critic/score/max"] == pytest.approx(max(found), abs=1e-6)
        assert metrics["critic/score/min"] == pytest.approx(min(found), abs=1e-6)
        assert metrics["critic/advantages/max"] > metrics["critic/advantages/min"]
        assert metrics["actor/grad_norm"] > 0


def test_grpo_trains(begun: Run, resumed: Run) -> None:
    check(begun, [1, 2])
    check(resumed, [3, 4, 5])
    assert begun.returncode != 0 and resumed.returncode == 0
    assert all(len(run.played(f"step-{step - 1}")) == 16 for run in (begun, resumed) for step in run.steps)


def test_the_limit_of_turns_grows_and_goes_on_after_a_resume(begun: Run, resumed: Run) -> None:
    expected = {1: 2, 2: 2, 3: 3, 4: 3, 5: 4}
    for run in begun, resumed:
        for step in run.steps:
            assert {trajectory.meta["max_turns"] for trajectory in run.played(f"step-{step - 1}")} == {expected[step]}
            assert {len(trajectory.turns) for trajectory in run.played(f"step-{step - 1}")} == {expected[step]}
            assert run.metrics[step]["training/num_turns/max"] == 2 * expected[step]


def test_what_an_interrupted_step_played_is_set_aside(begun: Run, resumed: Run) -> None:
    aside = list(read_trajectories(resumed.folder / "trajectories" / "step-2.rank0.replaced-1.jsonl"))
    again = resumed.played("step-2")
    assert aside and {trajectory.task.id for trajectory in aside} <= {trajectory.task.id for trajectory in again}
    assert {trajectory.meta["step"] for trajectory in again} == {2}
    names = {path.name for path in (resumed.folder / "trajectories").glob("*.replaced-*.jsonl")}
    assert names == {"step-2.rank0.replaced-1.jsonl", "eval-2.rank0.replaced-1.jsonl"}


def test_validation_is_reported_by_environment_and_group(begun: Run, resumed: Run) -> None:
    assert [step for step in (0, 2) if "val-aux/num_turns/mean" in begun.metrics[step]] == [0, 2]
    assert [step for step in (2, 4, 5) if "val-aux/num_turns/mean" in resumed.metrics[step]] == [2, 4, 5]
    for step in 4, 5:
        played, metrics = resumed.played(f"eval-{step}"), resumed.metrics[step]
        assert {trajectory.meta["max_turns"] for trajectory in played} == {4}
        for env, env_id in (("GradedCraft", "Test/GradedCraft-v0"), ("TextCraft", TEXTCRAFT)):
            own = [trajectory for trajectory in played if trajectory.env_id == env_id]
            assert metrics[f"val-core/{env}/reward/mean@1"] == pytest.approx(fmean(scores(own)), abs=1e-6)
            for group in {trajectory.task.group for trajectory in own}:
                found = scores(trajectory for trajectory in own if trajectory.task.group == group)
                assert metrics[f"val-aux/{env}/score/{group}/mean@1"] == pytest.approx(fmean(found), abs=1e-6)
                assert f"val-aux/{env}/success/{group}/mean@1" in metrics
    assert "val-aux/TextCraft/score/depth-2/mean@1" not in resumed.metrics[4]


def test_reinforce_goes_on_where_environments_fail(flaky: Run) -> None:
    check(flaky, [1, 2, 3])
    assert flaky.returncode == 0
    for step in flaky.steps:
        failed = [
            trajectory for trajectory in flaky.played(f"step-{step - 1}") if trajectory.stop_reason == "env_error"
        ]
        assert max(Counter(trajectory.task.id for trajectory in failed).values()) == 4  # a whole group
        assert len(failed) > 4
        assert any(trajectory.score > 0 for trajectory in failed)  # would show in the mean


def test_failures_do_not_enter_a_validation(flaky: Run) -> None:
    for step in 0, 3:
        played = flaky.played(f"eval-{step}")
        assert 0 < len(scores(played)) < len(played)
        mean = flaky.metrics[step]["val-core/FlakyCraft/reward/mean@1"]
        assert mean == pytest.approx(fmean(scores(played)), abs=1e-6)


def test_ppo_trains_a_critic(with_critic: Run) -> None:
    check(with_critic, [1, 2, 3, 4])
    assert with_critic.returncode == 0
    first, last = with_critic.metrics[1], with_critic.metrics[4]
    assert last["critic/vf_loss"] < first["critic/vf_loss"]
    assert all(with_critic.metrics[step]["critic/grad_norm"] > 0 for step in with_critic.steps)
