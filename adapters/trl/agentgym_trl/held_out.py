"""`HeldOutEvaluation`: success on held-out tasks during training, the best model by it, and a stop on collapse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers import TrainerCallback

from agentgym_envs.evaluate import Estimate, Evaluation, Metrics, evaluate
from agentgym_envs.registration import short_names
from agentgym_envs.rollout.run_directory import record_results
from agentgym_trl.health import stop_run

BEST = "best"
"""The folder of the best model, in the directory of the run."""
_SUCCESS = "eval/success"


class HeldOutEvaluation(TrainerCallback):  # type: ignore[misc]
    """Plays the trainer's `eval_dataset` before the first step, every `eval_every` steps, and at the end.

    Evaluation draws its own random numbers, so training is the same with and without it.
    """

    def __init__(self, trainer: Any, console: Console | None = None) -> None:
        """`trainer` is an `AgentTrainer` with an `eval_dataset`."""
        self._trainer, self._console = trainer, console or Console(stderr=True)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Evaluate the model that training starts from."""
        if state.global_step == 0:
            self._evaluate(args, state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Evaluate if it is time."""
        if state.global_step % args.eval_every == 0 or state.global_step == state.max_steps:
            self._evaluate(args, state, control)

    def _evaluate(self, args: Any, state: Any, control: Any) -> None:
        found = evaluate(_play(self._trainer))
        now = found.overall.success
        if now is None:
            self._print(state, "no held-out episode could be played")
            return
        before = history(state)
        is_best = all(now.mean > past.mean for past in before.values())
        self._log(metrics_of(found), control)
        self._print(state, _line(now, found.overall.tasks, is_best and bool(before)))
        if args.keep_best and is_best:
            save_best(self._trainer, state.global_step, now)
        if state.is_world_process_zero and (Path(args.output_dir) / "run.json").is_file():
            record_results(args.output_dir, results(history(state)))
        if args.stop_on_collapse and (reason := collapse([*before.values(), now])):
            stop_run(state, control, reason, self._console)

    def _log(self, metrics: dict[str, float], control: Any) -> None:
        """Log as an evaluation: TRL would add the metrics of the unfinished step to a line of training."""
        should_log = control.should_log  # transformers clears it after any line, and the step has yet to be logged
        with _evaluating(self._trainer):
            self._trainer.log(metrics)
        control.should_log = should_log

    def _print(self, state: Any, text: str) -> None:
        if state.is_world_process_zero:
            self._console.print(
                f"[cyan]Evaluation at step {state.global_step}:[/] {text}", highlight=False, soft_wrap=True
            )


def history(state: Any) -> dict[int, Estimate]:
    """The held-out success at each evaluated step, from the log in the trainer's state, which checkpoints keep."""
    rows = [row for row in state.log_history if _SUCCESS in row]
    return {row["step"]: Estimate(row[_SUCCESS], row[f"{_SUCCESS}_low"], row[f"{_SUCCESS}_high"]) for row in rows}


def collapse(successes: list[Estimate]) -> str | None:
    """The observation if the interval of the last success lies below half of the highest success; or None."""
    best, last = max(each.mean for each in successes), successes[-1]
    if last.high >= best / 2:
        return None
    return f"held-out success fell from {best:.0%} to {last.mean:.0%} [{last.low:.0%}, {last.high:.0%}]"


def metrics_of(found: Evaluation) -> dict[str, float]:
    """Means over the tasks, overall, by environment and by group; success with the bounds of its 95 % interval."""
    metrics = {f"eval/{name}": value for name, value in _values(found.overall).items()}
    names = short_names([row.env_id or "" for row in found.environments])
    for row in found.environments if len(names) > 1 else ():
        metrics |= {f"eval/{names[row.env_id or '']}/{name}": value for name, value in _values(row).items()}
    for row in found.groups if len(found.groups) > 1 else ():
        prefix = f"{names[row.env_id or '']}/" if len(names) > 1 else ""
        metrics |= {f"eval/group/{prefix}{row.group}/{name}": value for name, value in _values(row).items()}
    return metrics


def results(successes: dict[int, Estimate]) -> dict[str, Any]:
    """The last and the best evaluation, as recorded in `run.json`."""
    last, best = max(successes), max(successes, key=lambda step: (successes[step].mean, -step))
    return {"last": _fact(last, successes[last]), "best": _fact(best, successes[best])}


def save_best(trainer: Any, step: int, success: Estimate) -> None:
    """Save the model as the best one, with the evaluation that chose it; every process must call it."""
    final = Path(trainer.args.output_dir) / BEST
    partial = final.with_name(f"{BEST}.partial")
    partial.mkdir(parents=True, exist_ok=True)
    trainer.save_model(str(partial))
    if trainer.accelerator.is_main_process:
        (partial / "evaluation.json").write_text(json.dumps(_fact(step, success)) + "\n", encoding="utf-8")
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
    trainer.accelerator.wait_for_everyone()


def _play(trainer: Any) -> list[Any]:
    """The trajectories of all processes: one episode per row of `eval_dataset`."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    prompts = [row["prompt"] for row in trainer.eval_dataset]
    with _evaluating(trainer), torch.random.fork_rng(devices=devices):
        torch.manual_seed(trainer.args.seed + trainer.accelerator.process_index)
        trajectories: list[Any] = trainer.rollout.evaluate(prompts, trainer)
    return trajectories


@contextmanager
def _evaluating(trainer: Any) -> Iterator[None]:
    was_training = trainer.model.training
    trainer.model.eval()
    try:
        yield
    finally:
        trainer.model.train(was_training)


def _values(row: Metrics) -> dict[str, float]:
    if row.success is None or row.score is None or row.turns is None:
        return {}
    success = row.success
    bounds = {"success": success.mean, "success_low": success.low, "success_high": success.high}
    return {**bounds, "score": row.score.mean, "turns": row.turns, "tasks": float(row.tasks)}


def _fact(step: int, success: Estimate) -> dict[str, float]:
    return {"step": step, "success": success.mean, "low": success.low, "high": success.high}


def _line(success: Estimate, tasks: int, is_best: bool) -> str:
    bounds = f"[{success.low:.0%}, {success.high:.0%}]"
    return f"success {success.mean:.0%} {bounds} on {tasks} held-out tasks{', the best so far' if is_best else ''}"
