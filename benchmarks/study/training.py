"""One run: an arm from a warm start of a seed, until the token budget is spent; then its marks are measured."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset
from rich.console import Console
from transformers import TrainerCallback, set_seed

from agentgym_trl.adapter_reset import save_merged
from agentgym_trl.callbacks import run_training
from agentgym_trl.demo.stages import ON_CPU
from agentgym_trl.models import load_model, load_tokenizer
from agentgym_trl.run_directory import last_checkpoint
from agentgym_trl.trainer import AgentConfig, AgentTrainer
from benchmarks.study.arms import Arm
from benchmarks.study.budget import Deadline, Ledger, cost, crossed, rate
from benchmarks.study.figures import run_figures
from benchmarks.study.measuring import measure
from benchmarks.study.prefixes import BackwardPlayer
from benchmarks.study.settings import StudySettings
from benchmarks.study.starts import read_json, slug, whole, write_json

HEALTH = (
    "rollout/score",
    "rollout/success",
    "rollout/turns",
    "rollout/truncated_answers",
    "rollout/invalid_actions",
    "rollout/zero_variance_groups",
    "entropy",
    "grad_norm",
    "kl",
    "clip_ratio/region_mean",
)
"""The logged series that are kept."""


def run_arm(settings: StudySettings, arm: Arm, home: Path, deadline: Deadline) -> bool:
    """Go on with a run where it was; `home` is that of the warm start. Returns whether it is finished, with figures."""
    settings, out = replace(settings, **arm.settings), home / slug(arm.name)
    marks = [out / "marks" / str(mark) for mark in range(1, settings.marks + 1)]
    if not marks[-1].exists() and not train(settings, arm, home, deadline):
        return False
    rows = read_json(home.parent / "tasks.json")["test"]
    for mark in marks:
        if (mark / "success.json").exists():
            continue
        if deadline.passed:
            return False
        write_json(mark / "success.json", measure(mark, settings, rows, full=mark == marks[-1]))
    write_json(out / "figures.json", run_figures(settings, arm.name, Ledger(out / "ledger.jsonl"), marks))
    for spent in (out / "run", *marks):  # what was measured is kept
        shutil.rmtree(spent)
    return True


def train(settings: StudySettings, arm: Arm, home: Path, deadline: Deadline) -> bool:
    """Train until the budget is spent or the deadline is there; returns which of the two."""
    out, warm = home / slug(arm.name), str(home / "warm")
    set_seed(settings.seed)
    trainer = AgentTrainer(
        load_model(warm),
        settings.make,
        args=_config(settings, arm, out / "run"),
        processing_class=load_tokenizer(warm),
        train_dataset=Dataset.from_list(read_json(home.parent / "tasks.json")["train"]),
        peft_config=_adapter(arm.lora),
    )
    ledger = Ledger(out / "ledger.jsonl")
    rollout: Any = trainer.rollout
    rollout.schedule = arm.limit(settings, ledger)
    if arm.is_backward:
        rollout._player = BackwardPlayer(rollout._player, partial(_turns_left, settings, ledger), settings.seed)
    budget = Budget(trainer, ledger, settings, out / "marks", deadline)
    trainer.add_callback(budget)
    run_training(trainer, arm.name, console=Console(stderr=True), checkpoint=last_checkpoint(out / "run"))
    write_json(out / "log.json", logged(trainer.state.log_history))
    return budget.is_spent


def _adapter(rank: int) -> Any:
    if not rank:
        return None
    from peft import LoraConfig

    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")


def logged(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The series of the health of a policy, with a value for each rollout."""
    of_rollouts = [row for row in rows if "rollout/score" in row]
    return {name: [round(row[name], 4) for row in of_rollouts] for name in HEALTH if name in of_rollouts[0]}


def _turns_left(settings: StudySettings, ledger: Ledger) -> float:
    """The share of the oracle's turns that the policy plays: it grows over the first half of the budget."""
    return min(1.0, 0.25 + 1.5 * ledger.total("sampled") / settings.budget)


class Budget(TrainerCallback):  # type: ignore[misc]
    """Keeps the ledger, sets the learning rate, saves the model at the marks, and stops when the budget is spent."""

    def __init__(self, trainer: Any, ledger: Ledger, settings: StudySettings, marks: Path, deadline: Deadline) -> None:
        self._trainer, self._ledger, self._settings = trainer, ledger, settings
        self._marks, self._deadline = marks, deadline
        self._began = 0.0
        self._seen: Any = None

    @property
    def is_spent(self) -> bool:
        return self._ledger.total("sampled") >= self._settings.budget

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._ledger.rewind(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **_: Any) -> None:
        self._began = time.process_time()
        share = self._ledger.total("sampled") / self._settings.budget
        for group in optimizer.param_groups:
            group["lr"] = self._settings.learning_rate * rate(share)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        rollout, before = self._trainer.rollout, self._ledger.total("sampled")
        new = [] if rollout.last is self._seen else rollout.last  # several steps may learn from one rollout
        self._seen = rollout.last
        self._ledger.add(cost(state.global_step, new, time.process_time() - self._began))
        after = self._ledger.total("sampled")
        for mark in crossed(before, after, self._settings.budget, self._settings.marks):
            whole(self._marks / str(mark), self._save)
        if self.is_spent or self._deadline.passed:
            control.should_training_stop = True
            control.should_save = not self.is_spent

    def _save(self, part: Path) -> None:
        part.parent.mkdir(parents=True, exist_ok=True)
        if hasattr(self._trainer.model, "peft_config"):  # what is measured is a whole model
            save_merged(self._trainer.model, part)
            self._trainer.processing_class.save_pretrained(part)
        else:
            self._trainer.save_model(str(part))
        names = ("sampled", "processed", "episodes")
        step = int(self._ledger.rows[-1]["step"])
        write_json(part / "mark.json", {"step": step, **{name: self._ledger.total(name) for name in names}})


def _config(settings: StudySettings, arm: Arm, out: Path) -> AgentConfig:
    episodes = settings.tasks_per_step * settings.group_size
    fields: dict[str, Any] = {
        "output_dir": str(out),
        "max_steps": 100_000,  # the budget ends it
        "per_device_train_batch_size": settings.micro_batch,
        "gradient_accumulation_steps": episodes // settings.micro_batch,
        "num_generations": settings.group_size,
        "max_turns": str(settings.long),  # the arm's limit replaces it
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "constant",  # the budget sets it
        "adam_beta2": 0.99,
        "beta": 0.0,
        "loss_type": "dapo",
        "max_completion_length": settings.max_tokens,
        "max_turn_tokens": settings.max_turn_tokens,
        "shuffle_dataset": False,
        "save_strategy": "steps",
        "save_steps": settings.save_steps,
        "save_total_limit": 1,
        "logging_steps": 1,
        "disable_tqdm": True,
        "seed": settings.seed,
        **ON_CPU,
    }
    return AgentConfig(**{**fields, **arm.options})
