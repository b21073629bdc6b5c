"""Stock verl trains on our environments on the CPU; estimators and modes take turns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from agentgym_envs.trajectory import Trajectory, read_trajectories
from tests.adapters.verl.training import DUMP, OURS, STOCK, Run, launch, make_rows, prepare
from tests.adapters.verl.training_envs import FLAKY, GRADED, LATE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("verl") is None, reason="verl is not installed"),
    pytest.mark.skipif(find_spec("trl") is None, reason="the tiny model is made in TRL's adapter"),
]
ppo = pytest.mark.rotating(turns=[2], of=5)
TEXTCRAFT = "AgentGym/TextCraft-v0"
MEMBERS = 4
PPO = (
    *OURS,
    *("algorithm=ppo", "agentgym.env_retries=0", "agentgym.agent=act", "agentgym.context=last:1"),
    *("agentgym.max_turns='2,3'", "agentgym.every=2", "agentgym.eval_max_turns=4"),
    *("trainer.total_training_steps=4", "trainer.save_freq=2", "trainer.test_freq=2"),
)
"""With the adapter's configuration: a critic, the KL term in the reward, and a second context for a third turn."""

SEVERAL = (
    *("++agentgym.agent=act", "++agentgym.context=last:1"),
    "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean",
)
"""An agent that sees the first observation and its last turn, so that a third turn has a context of its own."""


def prepare_ppo(folder: Path) -> None:
    """Every step plays four groups. One environment in three fails, and all of the last group."""
    *flaky, doomed = make_rows(FLAKY, "train", 3, every=3)
    doomed = replace(doomed, env_kwargs={**doomed.env_kwargs, "every": 1})
    shallow, deep = (
        make_rows(FLAKY, "validation", count, group=group, every=2) for group, count in (("depth-1", 4), ("depth-2", 2))
    )
    train = [*flaky, *make_rows(TEXTCRAFT, "train", 1), doomed]
    prepare(folder, train, [*shallow, *deep, *make_rows(TEXTCRAFT, "validation", 2)])


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run interrupted in its third step. Files are named by the number of finished steps."""
    folder = tmp_path_factory.mktemp("ppo")
    prepare_ppo(folder)
    third = folder / "trajectories" / "step-2.rank0.jsonl"
    return launch(folder, *PPO, until=lambda: third.exists() and third.stat().st_size > 0, name="begun")


@pytest.fixture(scope="module")
def resumed(begun: Run) -> Run:
    """The run resumed after the second step."""
    return launch(begun.folder, *PPO, name="resumed")


def scores(trajectories: Iterable[Trajectory]) -> list[float]:
    return [trajectory.score for trajectory in trajectories if trajectory.usable]


def check(run: Run, steps: list[int]) -> None:
    """Checks of every run: it trained on the recorded episodes, with the probabilities of the trained model."""
    assert run.steps == steps, run.log
    assert run.killed == []
    for step in steps:
        played, metrics = run.played(f"step-{step - 1}"), run.metrics[step]
        found = scores(played)
        assert len(played) == 4 * MEMBERS
        assert metrics["training/rollout_actor_probs_pearson_corr"] >= 0.99
        assert metrics["training/rollout_probs_diff_max"] < 1e-4
        assert metrics["training/off_policy/trajectory_staleness/max"] == 0
        assert metrics["critic/score/mean"] == pytest.approx(fmean(found), abs=1e-6)
        assert metrics["rollout/score"] == pytest.approx(fmean(found), abs=1e-6)
        assert metrics["rollout/turns"] == fmean(len(episode.turns) for episode in played if episode.usable)
        assert metrics["critic/score/max"] == pytest.approx(max(found), abs=1e-6)
        assert metrics["critic/score/min"] == pytest.approx(min(found), abs=1e-6)
        assert metrics["critic/advantages/max"] > metrics["critic/advantages/min"]
        assert metrics["actor/grad_norm"] > 0


def check_several_contexts(run: Run, steps: list[int], micro_batch: int) -> None:
    for step in steps:
        check_contexts(run.played(f"step-{step - 1}"), run.metrics[step], micro_batch)


def check_contexts(trained: list[Trajectory], metrics: dict[str, Any], micro_batch: int) -> None:
    """Every third turn begins a context, and the rows fill micro-batches; 1 where verl fills them by tokens."""
    turns = [len(trajectory.turns) for trajectory in trained if trajectory.usable]
    contexts = [2 if count > 2 else 1 for count in turns]
    assert metrics["training/contexts/mean"] == pytest.approx(fmean(contexts)) and max(contexts) == 2
    assert metrics["training/num_turns/mean"] == pytest.approx(2 * fmean(turns))
    assert metrics["training/padding_rows"] == -sum(contexts) % micro_batch
    weights = [value for name, value in metrics.items() if name.endswith("/context_weight")]
    assert weights and all(0 < weight < 1 for weight in weights), "every loss is weighted"


def check_failures(run: Run, steps: list[int]) -> None:
    """In every step a whole group fails, and a part of others; their scores would change the mean."""
    failed = [
        [trajectory for trajectory in run.played(f"step-{step - 1}") if trajectory.stop_reason == "env_error"]
        for step in steps
    ]
    groups = [Counter(trajectory.task.id for trajectory in of_a_step) for of_a_step in failed]
    assert all(max(group.values()) == MEMBERS for group in groups)
    assert any(count < MEMBERS for group in groups for count in group.values())
    assert any(trajectory.score > 0 for of_a_step in failed for trajectory in of_a_step)


@ppo
def test_training_continues_after_failures_and_a_resume(begun: Run, resumed: Run) -> None:
    check(begun, [1, 2])
    check(resumed, [3, 4])
    check_several_contexts(resumed, [3, 4], micro_batch=1)
    assert begun.returncode != 0 and resumed.returncode == 0
    check_failures(begun, [1, 2])
    check_failures(resumed, [3, 4])


@ppo
def test_a_critic_is_trained_and_resumed(begun: Run, resumed: Run) -> None:
    """Its values start at 0; a critic that was not loaded would start there again."""
    steps = begun.metrics[1], begun.metrics[2], resumed.metrics[3], resumed.metrics[4]
    first, second, *later = values = [metrics["critic/values/mean"] for metrics in steps]
    assert first == 0 < second < min(later), values
    assert all(metrics["critic/returns/mean"] > 0 for metrics in steps)
    assert all(metrics["critic/grad_norm"] > 0 for metrics in steps)


@ppo
def test_max_turns_follow_the_schedule_after_a_resume(begun: Run, resumed: Run) -> None:
    for run, step, limit in ((begun, 1, 2), (begun, 2, 2), (resumed, 3, 3), (resumed, 4, 3)):
        played = run.played(f"step-{step - 1}")
        assert {trajectory.meta["max_turns"] for trajectory in played} == {limit}
        assert {len(trajectory.turns) for trajectory in played if trajectory.usable} == {limit}
        assert run.metrics[step]["training/num_turns/max"] == 2 * limit


@ppo
def test_records_of_an_interrupted_step_are_set_aside(begun: Run, resumed: Run) -> None:
    aside = list(read_trajectories(resumed.folder / "trajectories" / "step-2.rank0.replaced-1.jsonl"))
    again = resumed.played("step-2")
    assert aside and {trajectory.task.id for trajectory in aside} <= {trajectory.task.id for trajectory in again}
    assert {trajectory.meta["step"] for trajectory in again} == {2}
    names = {path.name for path in (resumed.folder / "trajectories").glob("*.replaced-*.jsonl")}
    assert names == {"step-2.rank0.replaced-1.jsonl", "eval-2.rank0.replaced-1.jsonl"}


@ppo
def test_validation_is_reported_per_environment_and_group(begun: Run, resumed: Run) -> None:
    """Without failed episodes, which are played as well."""
    assert [step for step in (0, 1, 2) if "val-aux/num_turns/mean" in begun.metrics[step]] == [0, 2]
    assert [step for step in (2, 3, 4) if "val-aux/num_turns/mean" in resumed.metrics[step]] == [2, 4]
    played, metrics = resumed.played("eval-4"), resumed.metrics[4]
    assert {trajectory.meta["max_turns"] for trajectory in played} == {4}
    assert len(played) == 8
    # The episodes of a process vary from run to run, and so does the number of every second one.
    assert 0 < sum(trajectory.stop_reason == "env_error" for trajectory in played) < 6
    for env, env_id in (("FlakyCraft", "Test/FlakyCraft-v0"), ("TextCraft", TEXTCRAFT)):
        own = [trajectory for trajectory in played if trajectory.env_id == env_id and trajectory.usable]
        assert metrics[f"val-core/{env}/reward/mean@1"] == pytest.approx(fmean(scores(own)), abs=1e-6)
        for group in {trajectory.task.group for trajectory in own}:
            found = scores(trajectory for trajectory in own if trajectory.task.group == group)
            assert metrics[f"val-aux/{env}/score/{group}/mean@1"] == pytest.approx(fmean(found), abs=1e-6)
            assert f"val-aux/{env}/success/{group}/mean@1" in metrics
    assert "val-aux/TextCraft/score/depth-2/mean@1" not in metrics


@pytest.mark.parametrize(
    "estimator, agent",
    [
        pytest.param("grpo", (), marks=pytest.mark.rotating(turns=[0], of=5)),
        pytest.param("reinforce_plus_plus", SEVERAL, marks=pytest.mark.rotating(turns=[1], of=5)),
    ],
)
def test_estimators_without_a_critic_train_with_verls_own_configuration(
    estimator: str, agent: tuple[str, ...], tmp_path: Path
) -> None:
    """One environment in five fails, and all of one group; none is retried."""
    *train, doomed = make_rows(FLAKY, "train", 4, every=5)
    doomed = replace(doomed, env_kwargs={**doomed.env_kwargs, "every": 1})
    prepare(tmp_path, [*train, doomed], make_rows(FLAKY, "validation", 2, every=3))
    settings = ("++agentgym.max_turns=3", "++agentgym.env_retries=0", f"algorithm.adv_estimator={estimator}", *agent)
    run = launch(tmp_path, *STOCK, *settings, "trainer.total_training_steps=3", "trainer.val_before_train=False")
    check(run, [1, 2, 3])
    check_failures(run, [1, 2, 3])
    if agent:
        check_several_contexts(run, [1, 2, 3], micro_batch=16)
    assert run.returncode == 0


ASYNCHRONOUS = (
    *OURS,
    *("algorithm=grpo", "agentgym.env_retries=0", "agentgym.agent=act", "agentgym.context=last:1"),
    *("agentgym.max_turns='2,3'", "agentgym.every=1", "data.shuffle=false"),
    *("trainer.val_before_train=false", "trainer.save_freq=1", DUMP),
)
ORDER = ["doomed", *["early"] * 3, *["version 1"] * 4, "early", *["version 2"] * 4, *["early"] * 8]
"""Of the tasks, four a step. Another task replaces the first, whose episodes all fail.

Episodes of "version 1" begin in the first step and finish their first answer in the second, those of "version 2" in
the third.
"""


def prepare_asynchronous(folder: Path) -> dict[str, list[str]]:
    """Returns the tasks of each kind in `ORDER`."""
    doomed, *rows = make_rows(GRADED, "train", len(ORDER))
    rows = [replace(doomed, env_id=FLAKY, env_kwargs={**doomed.env_kwargs, "every": 1}), *rows]
    tasks: dict[str, list[str]] = defaultdict(list)
    for number, (kind, row) in enumerate(zip(ORDER, rows, strict=True)):
        tasks[kind].append(row.task)
        if kind.startswith("version"):
            rows[number] = replace(row, env_id=LATE, env_kwargs={**row.env_kwargs, "version": int(kind[-1])})
    prepare(folder, rows, make_rows(GRADED, "validation", 1))
    return tasks


def check_asynchronous(runs: dict[int, Run], tasks: dict[str, list[str]]) -> None:
    """Checks of the steps of both modes; `runs` has the run of each step.

    No episode is lost or used twice, each has the versions of its record, and unfinished ones continue.
    """
    recorded = runs[1].recorded()
    trained = {step: [recorded[name][-1] for name in run.trained(step)] for step, run in runs.items()}
    names = [episode.meta["uid"] for episodes in trained.values() for episode in episodes]
    assert len(set(names)) == len(names) == 4 * MEMBERS * len(runs)
    for step, run in runs.items():
        check_staleness(trained[step], run.metrics[step], step)
    found = {step: {episode.task.id for episode in episodes} for step, episodes in trained.items()}
    assert found[1] == set(tasks["early"][:4]) and found[2] == set(tasks["version 1"])
    assert any(episode.meta["versions"] == [0, 1] for episode in trained[2])
    assert runs[1].metrics[1]["training/rollout_failure/evicted_samples"] == 1
    check_contexts(trained[3], runs[3].metrics[3], micro_batch=1)


def check_staleness(trained: list[Trajectory], metrics: dict[str, Any], step: int) -> None:
    spans = [episode.meta["versions"] for episode in trained]
    assert len(trained) == 4 * MEMBERS
    assert all(0 <= first <= last < step for first, last in spans)
    assert metrics["training/off_policy/trajectory_spans/max"] == max(last - first + 1 for first, last in spans)
    assert metrics["training/off_policy/trajectory_staleness/max"] == max(step - 1 - last for _, last in spans)
    assert {episode.meta["max_turns"] == (3 if episode.meta["step"] else 2) for episode in trained} == {True}
    assert metrics["critic/score/mean"] == pytest.approx(fmean(scores(trained)), abs=1e-6)
    assert metrics["critic/advantages/max"] > metrics["critic/advantages/min"]
    assert metrics["actor/grad_norm"] > 0


@pytest.mark.rotating(turns=[3], of=5)
def test_unfinished_episodes_continue_in_the_next_step(tmp_path: Path) -> None:
    """And after a resume: the episodes that were unfinished at the checkpoint begin again."""
    tasks, metrics = prepare_asynchronous(tmp_path), tmp_path / "begun.jsonl"
    steps = ("trainer.total_training_steps=4", "actor_rollout_ref.actor.ppo_mini_batch_size=2")
    settings = (*ASYNCHRONOUS, "mode=colocate_async", *steps)

    def two_steps_done() -> bool:
        return metrics.exists() and metrics.read_text().count("\n") == 2

    begun = launch(tmp_path, *settings, until=two_steps_done, name="begun")
    resumed = launch(tmp_path, *settings, name="resumed")
    assert (begun.steps, resumed.steps, resumed.returncode) == ([1, 2], [3, 4], 0), resumed.log
    assert begun.killed == resumed.killed == []
    check_asynchronous({1: begun, 2: begun, 3: resumed, 4: resumed}, tasks)
    recorded = resumed.recorded()
    again = [recorded[name][-1] for step in (3, 4) for name in resumed.trained(step)]
    assert {episode.task.id for episode in again} & set(tasks["version 2"])


@pytest.mark.rotating(turns=[4], of=5)
def test_separate_devices_train_while_episodes_continue(tmp_path: Path) -> None:
    """The weights go from the training process to the server's process. A step has two optimizer steps."""
    tasks = prepare_asynchronous(tmp_path)
    run = launch(
        tmp_path,
        *(*ASYNCHRONOUS, "mode=separate_async", "trainer.total_training_steps=3", "trainer.save_freq=-1"),
        *("actor_rollout_ref.actor.ppo_mini_batch_size=2", "trainer.v1.separate_async.parameter_sync_step=2"),
        *("actor_rollout_ref.rollout.checkpoint_engine.backend=gloo", "ray_kwargs.ray_init.num_gpus=2"),
    )
    assert (run.steps, run.returncode, run.killed) == ([1, 2, 3], 0, []), run.log
    check_asynchronous({1: run, 2: run, 3: run}, tasks)
