"""Early ends of a run: Ctrl-C once, Ctrl-C twice, a kill, a full disk. Each in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_trl.run_directory import last_checkpoint
from tests.adapters.trl.forked import Forked
from tests.adapters.trl.small import DEPTH, ENV, limits_by_step, metrics, played
from tests.graded import KWARGS
from tests.plugins.startup import python_path

pytestmark = [
    pytest.mark.train,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and limits"),
]
ROOT = Path(__file__).parents[3]
PROGRAM = "import sys; from agentgym_envs.cli import main; sys.exit(main(sys.argv[1:]))"
SLOWLY = """
import sys, time
from agentgym_trl.rollout import Rollout
call = Rollout.__call__
def slow(self, prompts, trainer):
    time.sleep(0.3)
    return call(self, prompts, trainer)
Rollout.__call__ = slow
"""
HANGS_AFTER_STEP_4 = """
import time
from agentgym_trl.rollout import Rollout
call = Rollout.__call__
def hangs(self, prompts, trainer):
    played = call(self, prompts, trainer)
    time.sleep(600 if trainer.state.global_step == 4 else 0)
    return played
Rollout.__call__ = hangs
"""
FILES_OF = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
"""


Process = subprocess.Popen[str] | Forked


def start(
    model: Path, out: Path, *words: object, algorithm: str = "grpo", before: str = "", fresh: bool = False
) -> Process:
    """Start a run, forked from a process that has imported its packages, or in a new process."""
    fixed = ["--env", ENV, "--env-kwargs", json.dumps(KWARGS), "--groups", *DEPTH, "--model", str(model)]
    small = ["--per_device_train_batch_size", "4", "--num_generations", "2", "--max_completion_length", "200"]
    fixed += ["--max-turns", "2", "--max-turn-tokens", "8", "--use_cpu", "--report_to", "none", "--out", str(out)]
    path = python_path(ROOT, ROOT / "adapters" / "trl")
    code, arguments = before + PROGRAM, ["train", algorithm, *fixed, *small, *map(str, words)]
    environ = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "AGENTGYM_DEBUG": ""}
    if not fresh:
        return Forked(code, arguments, environ, out.with_suffix(".err"))
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, env={**os.environ, **environ}, stderr=subprocess.PIPE, text=True)


def wait_for(something: Callable[[], Any], process: Process) -> None:
    for _ in range(6000):
        if something():
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.kill()
    pytest.fail("it never came")


def finish(process: Process) -> tuple[int, str]:
    try:
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode is not None
    return process.returncode, err


@pytest.mark.parametrize(
    ("algorithm", "sent"), [("grpo", signal.SIGINT), pytest.param("ppo", signal.SIGTERM, marks=pytest.mark.rotating)]
)
def test_a_stopped_run_saves_and_resumes(
    algorithm: str, sent: signal.Signals, model_path: Path, tmp_path: Path
) -> None:
    out, fresh = tmp_path / "out", algorithm == "grpo"
    process = start(model_path, out, "--max_steps", "500", algorithm=algorithm, before=SLOWLY, fresh=fresh)
    wait_for((tmp_path / "out" / "trajectories" / "step-2.jsonl").exists, process)
    process.send_signal(sent)
    code, err = finish(process)
    assert code == 130, err
    assert "Traceback" not in err
    assert "Stopping after this step" in err and "Stopped at step" in err and "--resume" in err
    done = sorted(limits_by_step(tmp_path / "out"))
    assert done == list(range(len(done))) and 3 <= len(done) < 500
    checkpoints = list((tmp_path / "out").glob("checkpoint-*"))
    assert [path.name for path in checkpoints] == [f"checkpoint-{len(done)}"]
    assert (checkpoints[0] / "critic.pt").exists() == (algorithm == "ppo")
    assert (tmp_path / "out" / "model.safetensors").exists()

    again = start(model_path, tmp_path / "out", "--max_steps", len(done) + 1, "--resume", algorithm=algorithm)
    code, err = finish(again)
    assert code == 0, err
    assert sorted(limits_by_step(tmp_path / "out")) == [*done, len(done)]
    assert [row["step"] for row in metrics(tmp_path / "out") if "loss" in row] == list(range(1, len(done) + 2))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.rotating(turns=(0,), of=2)),
        pytest.param(signal.SIGKILL, marks=pytest.mark.rotating(turns=(1,), of=2)),
    ],
)
def test_an_asynchronous_run_ends_with_its_process_and_resumes(
    sent: signal.Signals, model_path: Path, tmp_path: Path
) -> None:
    """The second process has the same stderr: the end of that shows that both have ended."""
    out, words = tmp_path / "out", ["--async", "--max-staleness", "2", "--save_steps", "1"]
    slowly = SLOWLY.replace(
        "agentgym_trl.rollout import Rollout", "agentgym_trl.asynchronous.rollout import AsyncRollout"
    )
    slowly = slowly.replace("Rollout.__call__", "AsyncRollout.__call__").replace("AsyncAsync", "Async")
    process = start(model_path, out, *words, "--max_steps", "500", before=slowly, fresh=True)
    wait_for((out / "trajectories" / "step-2.jsonl").exists, process)
    wait_for((out / "checkpoint-2" / "trainer_state.json").exists, process)
    process.send_signal(sent)
    code, err = finish(process)
    assert code == (130 if sent == signal.SIGINT else -sent), err
    assert "Traceback" not in err
    done = int(last_checkpoint(out).rpartition("-")[2])  # type: ignore[union-attr]
    code, err = finish(start(model_path, out, *words, "--max_steps", done + 1, "--resume", fresh=True))
    assert code == 0, err
    tasks = [(t.task.id, t.seed) for step in range(done + 1) for t in played(out, step)]
    assert len(tasks) == 4 * (done + 1) and set(Counter(tasks).values()) == {2}, "whole groups, none twice"


def test_ctrl_c_twice_ends_at_once(model_path: Path, tmp_path: Path) -> None:
    """The second one is sent after the first was handled: simultaneous signals count as one."""
    out, entered = tmp_path / "out", tmp_path / "entered"
    long = f"(open({str(entered)!r}, 'w').close(), 600)[1]"  # far longer than `finish` waits
    slow = SLOWLY.replace("0.3", f"0.3 if trainer.state.global_step < 1 else {long}")
    process = start(model_path, out, "--max_steps", "500", before=slow)
    wait_for(entered.exists, process)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: "Stopping after this step" in out.with_suffix(".err").read_text(), process)
    process.send_signal(signal.SIGINT)
    code, err = finish(process)
    assert code == 130, err
    assert "Traceback" not in err
    assert len(list(read_trajectories(tmp_path / "out" / "trajectories" / "step-0.jsonl"))) == 4


def test_a_killed_run_resumes_from_its_checkpoint(model_path: Path, tmp_path: Path) -> None:
    """The checkpoint is from the middle of a rollout's use; the step after it is repeated."""
    words = ["--max_steps", 8, "--save_steps", 3, "--num_iterations", 2, "--steps_per_generation", 2, "--tasks", 4]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start(model_path, killed, *words, algorithm="ppo", before=HANGS_AFTER_STEP_4)
    wait_for(lambda: (killed / "trajectories" / "step-4.jsonl").exists(), process)
    process.kill()
    process.communicate()
    assert [path.name for path in killed.glob("checkpoint-*")] == ["checkpoint-3"]
    assert not (killed / "model.safetensors").exists()
    for out, more in ((killed, ["--resume"]), (whole, [])):
        code, err = finish(start(model_path, out, *words, *more, algorithm="ppo"))
        assert code == 0, err
    for name in ("model.safetensors", "checkpoint-6/model.safetensors", "checkpoint-8/scheduler.pt"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert (killed / "trajectories" / "step-4.replaced-1.jsonl").exists()
    assert limits_by_step(killed) == limits_by_step(whole) == {step: Counter({2: 8}) for step in (0, 4)}
    for step in (0, 4):
        ours, theirs = (
            sorted(_task_and_actions(trajectory) for trajectory in played(out, step)) for out in (killed, whole)
        )
        assert ours == theirs
    rows = [[_without_times(row) for row in metrics(out) if "loss" in row] for out in (killed, whole)]
    assert rows[0] == rows[1] and len(rows[0]) == 8


def _task_and_actions(trajectory: Trajectory) -> tuple[str, list[str]]:
    return trajectory.task.id, [turn.action for turn in trajectory.turns]


def _without_times(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if "time" not in key and "per_second" not in key}


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("portion", [0.5, 1.5], ids=["the weights", "the optimizer"])
def test_a_full_disk_is_one_line_and_loses_nothing(portion: float, model_path: Path, tmp_path: Path) -> None:
    """A limit on the file size that part of a checkpoint exceeds, with the error of a full disk."""
    size = int((model_path / "model.safetensors").stat().st_size * portion)
    before = FILES_OF.format(size=size)
    out = tmp_path / "out"
    code, err = finish(start(model_path, out, "--max_steps", "5", "--save_steps", "2", before=before))
    lines = [line for line in err.splitlines() if line.startswith("agentgym: ")]
    assert code == 1 and len(lines) == 1, err
    assert "Traceback" not in err
    assert "too large" in lines[0] or "disk is full" in lines[0]
    assert {step: sum(c.values()) for step, c in limits_by_step(out).items()} == {0: 4, 1: 4}
    assert [row["step"] for row in metrics(out) if "loss" in row] == [1, 2]
    assert (out / "checkpoint-2").is_dir()  # incomplete, and not resumed from

    code, err = finish(start(model_path, out, "--max_steps", "3", "--save_steps", "2", "--resume"))
    assert code == 0, err
    assert sorted(limits_by_step(out)) == [0, 1, 2]
    assert (out / "checkpoint-3" / "trainer_state.json").exists()
