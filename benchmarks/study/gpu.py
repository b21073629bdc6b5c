"""The part for a GPU: `agentgym train` and `agentgym eval` on a chat model, in pieces that resume.

For each scenario: a warm start on the oracle's demonstrations, then each algorithm under each horizon from it, and
success on held-out tasks before and after. All is done by the commands that a user has, so what is equal here are
steps and episodes; tokens are counted. What is trained are LoRA adapters, so that checkpoints are small; models to
begin from are merged out of them where they are missing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.study.budget import Deadline
from benchmarks.study.settings import GPU, HORIZONS, GpuSettings
from benchmarks.study.starts import read_json, whole

ALGORITHMS = ("grpo", "ppo")
_MARGIN, _GRACE = 20.0, 120.0
"""Seconds before the deadline at which a command is asked to stop, and after which it is ended."""


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """Settings of the GPU runs. `tasks` is per step, with `group_size` episodes each."""

    model: str
    work: Path
    scenarios: tuple[str, ...]
    algorithms: tuple[str, ...] = ALGORITHMS
    horizons: tuple[str, ...] = ("scalinginter", "long")
    steps: int = 60
    tasks: int = 8
    group_size: int = 8
    micro_batch: int = 16
    lora: int = 16
    seed: int = 0
    warm_steps: int | None = None
    demonstrations: int | None = None
    eval_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do once: the words of a command, or a function, that make `out`."""

    words: Sequence[str] | Callable[[], object]
    out: Path

    @property
    def done(self) -> Path:
        """The result of a finished piece. The function writes `out` completely or not at all."""
        return self.out.with_name(f"{self.out.name}.done") if isinstance(self.words, Sequence) else self.out


def run_gpu(plan: GpuPlan, deadline: Deadline) -> bool:
    """Go on where it was; returns whether all is done."""
    for command in commands(plan):
        if command.done.exists():
            continue
        if deadline.passed or not _run(command, deadline):
            Console(stderr=True).print("stopped, to go on with the same command", highlight=False)
            return False
        command.done.touch()  # of a merged model: it is there
    return True


def commands(plan: GpuPlan) -> Iterator[Command]:
    """All that is to do, in order."""
    for name in plan.scenarios:
        settings, home = GPU[name], plan.work / name
        yield Command(_sft(plan, settings, home / "warm"), home / "warm")
        start = home / "warm"
        if plan.lora:
            start = home / "warm-merged"
            yield Command(partial(merge, plan.model, home / "warm", start), start)
        yield Command(_eval(plan, settings, start, home / "before"), home / "before")
        for algorithm in plan.algorithms:
            for horizon in plan.horizons:
                yield from _arm(plan, settings, start, home / f"{algorithm}-{horizon}", algorithm, horizon)


def _arm(
    plan: GpuPlan, settings: GpuSettings, start: Path, out: Path, algorithm: str, horizon: str
) -> Iterator[Command]:
    yield Command(_online(plan, settings, start, out, algorithm, horizon), out)
    after, model = out.with_name(f"{out.name}-after"), out
    if plan.lora:
        model = out.with_name(f"{out.name}-merged")
        yield Command(partial(merge, str(start), out, model), model)
    yield Command(_eval(plan, settings, model, after), after)


def _sft(plan: GpuPlan, settings: GpuSettings, out: Path) -> list[str]:
    return [
        *_train(plan, settings, "sft", plan.model, out),
        *_options(
            tasks=plan.demonstrations or settings.demonstrations,
            max_steps=plan.warm_steps or settings.warm_steps,
            per_device_train_batch_size=8,
            learning_rate=5e-4 if plan.lora else 2e-5,
            max_length=4096,
        ),
    ]


def _online(plan: GpuPlan, settings: GpuSettings, start: Path, out: Path, algorithm: str, horizon: str) -> list[str]:
    max_turns = settings.max_turns[horizon]
    episodes = plan.tasks * plan.group_size
    words = _options(
        max_turns=max_turns,
        **({"every": max(plan.steps // 3, 1)} if "," in max_turns else {}),
        max_steps=plan.steps,
        num_generations=plan.group_size,
        per_device_train_batch_size=plan.micro_batch,
        gradient_accumulation_steps=max(episodes // plan.micro_batch, 1),
        learning_rate=1e-4 if plan.lora else 1e-6,
        beta=0.0,
        max_completion_length=settings.max_tokens,
        max_turn_tokens=settings.max_turn_tokens,
    )
    if algorithm == "ppo":
        words += _options(gamma=0.8, critic_warmup_steps=min(3, plan.steps - 1))  # docs/algorithms.md says why 0.8
    return [*_train(plan, settings, algorithm, str(start), out), *words]


def _train(plan: GpuPlan, settings: GpuSettings, algorithm: str, model: str, out: Path) -> list[str]:
    lora = _options(use_peft="true", lora_r=plan.lora, lora_alpha=2 * plan.lora, lora_target_modules="all-linear")
    return [
        *("train", algorithm, "--env", settings.env_id, "--env-kwargs", json.dumps(dict(settings.env_kwargs))),
        *("--groups", *settings.groups),
        *_options(model=model, output_dir=out, seed=plan.seed, save_steps=10, save_total_limit=1, report_to="none"),
        *(lora if plan.lora else []),
    ]


def _eval(plan: GpuPlan, settings: GpuSettings, model: Path, out: Path) -> list[str]:
    limits = (("--max-turns", settings.max_turns["long"]), ("--max-turn-tokens", settings.max_turn_tokens))
    kwargs = [f"{name}={json.dumps(value)}" for name, value in settings.env_kwargs.items()]
    return [
        *("eval", settings.env_id, "--policy", f"hf:{model}", "--groups", ",".join(settings.groups)),
        *("--tasks", str(plan.eval_tasks or settings.eval_tasks), "--out", str(out)),
        *(str(word) for pair in limits for word in pair),
        *(word for pair in kwargs for word in ("--env-arg", pair)),
    ]


def _options(**values: Any) -> list[str]:
    return [str(word) for name, value in values.items() for word in (f"--{name}", value)]


def merge(base: str, adapter: Path, out: Path) -> None:
    """The base model with an adapter's weights added, as a model of its own."""
    from peft import PeftModel

    from agentgym_trl.models import load_model, load_tokenizer

    def make(part: Path) -> None:
        PeftModel.from_pretrained(load_model(base), str(adapter)).merge_and_unload().save_pretrained(part)
        load_tokenizer(base).save_pretrained(part)

    whole(out, make)


def _run(command: Command, deadline: Deadline) -> bool:
    """True if it finished. Raises CalledProcessError if it failed."""
    if not isinstance(command.words, Sequence):
        command.words()
        return True
    resume = ["--resume"] if command.out.is_dir() and any(command.out.iterdir()) else []
    words = [sys.executable, "-m", "agentgym_envs", *command.words, *resume]
    command.out.parent.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "COLUMNS": "200"}
    with (
        open(command.out.with_name(f"{command.out.name}.log"), "a", encoding="utf-8") as log,
        subprocess.Popen(words, stdout=log, stderr=log, env=env) as process,
    ):
        asked = _wait(process, deadline)
    if process.returncode and not asked:
        raise subprocess.CalledProcessError(process.returncode, words)
    return process.returncode == 0


def _wait(process: subprocess.Popen[bytes], deadline: Deadline) -> bool:
    """Wait for the end; ask for it as the deadline comes near. Returns whether it was asked for."""
    left = deadline.left
    try:
        process.wait(None if left is None else max(left - _MARGIN, 0.0))
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # training stops after its step, with a checkpoint
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()  # the last checkpoint but this one is there
        process.wait()
    return True


def gpu_figures(plan: GpuPlan) -> dict[str, Any]:
    """All finished runs under `plan.work`, with success before and after and what was sampled."""
    adapter = f"LoRA of rank {plan.lora}" if plan.lora else "all weights trained"
    runs = [run for name in GPU for run in _finished(plan.work / name)]
    return {"model": Path(plan.model).name, "adapter": adapter, "seed": plan.seed, "runs": runs}


def _finished(home: Path) -> Iterator[dict[str, Any]]:
    for algorithm, horizon in product(ALGORITHMS, HORIZONS):
        out = home / f"{algorithm}-{horizon}"
        if not out.with_name(f"{out.name}-after.done").exists():
            continue
        rows = [row for row in _lines(out / "metrics.jsonl") if "rollout/success" in row]
        yield {
            **{"scenario": home.name, "algorithm": algorithm, "horizon": horizon, "steps": len(rows)},
            "tokens": sum(row["rollout/tokens"] for row in rows),
            "curve": [[row["step"], row["rollout/tokens"], row["rollout/success"]] for row in rows],
            "before": success_of(home / "before"),
            "after": success_of(home / f"{out.name}-after"),
        }


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def success_of(evaluation: Path) -> dict[str, float]:
    """Mean and interval of success, from what `agentgym eval` wrote."""
    found: dict[str, float] = read_json(evaluation / "eval.json")["metrics"]["overall"]["success"]
    return found
