"""Speedup of a whole GRPO step by the cache of keys and values and by rows without padding.

    python -m benchmarks.training_step [--out FILE.json] [--repeats 5] [--quick]

Steps of `AgentTrainer` on TextCraft: episodes, advantages, loss, gradient, optimizer. "before" has
`reuse_kv_cache=False` and `padding_free=False`, "after" has the defaults. The sides take turns in one process, with
one thread, on the same tasks and weights (the learning rate is 0). The figure is CPU seconds of a step, environments,
tokenizer and event loop included, and the checks with which a new trainer finds out what its model can do. Since
answers are sampled, the sides play slightly different episodes: their tokens are in the result. Peak memory is that of
a process that only trains one side for one step of 6 turns.

- tiny: a Llama of 0.6 million parameters after a short warm start, 16 groups of 8 episodes, micro-batches of 32.
- 52M: a Qwen2 with random weights, one group of 8 episodes in one micro-batch. One token in twenty ends an answer, at
  most 12 tokens, and no answer wins, so that every episode has all its turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import machine
from benchmarks.large_model import large_model

SIDES: dict[str, dict[str, Any]] = {
    "before": {"reuse_kv_cache": False, "padding_free": False},
    "after": {"reuse_kv_cache": True, "padding_free": True},
}
SETTINGS = {f"{model}, {turns} turns": (model, turns) for model in ("tiny", "52M") for turns in (3, 6)}
GOAL = 2.5
NOTE = "Other programs may run on the machine: wall times say little, and CPU times vary; compare the ratios."
STOP_EVERY = 20
_ENV = "AgentGym/TextCraft-v0"
_KWARGS: dict[str, Any] = {"worlds": "invented", "groups": ("depth-1",), "instructions": ""}
_DISTRACTORS = {"tiny": 0, "52M": 8}


def make_env(model: str) -> Any:
    import gymnasium as gym

    return gym.make(_ENV, **_KWARGS, max_distractors=_DISTRACTORS[model])


def save_models(folder: Path) -> None:
    """A tiny model after a warm start, and a larger one with random weights and the same tokenizer."""
    from trl import SFTConfig

    from agentgym_trl.demonstrations import environment_corpus, oracle_demonstrations
    from agentgym_trl.models import load_model, load_tokenizer, make_codec
    from agentgym_trl.sft import make_sft_trainer
    from agentgym_trl.tiny import save_tiny_model

    env = partial(make_env, "tiny")
    save_tiny_model(folder / "start", environment_corpus(env))
    tokenizer = load_tokenizer(str(folder / "start"))
    args = SFTConfig(
        str(folder / "tiny"),
        max_steps=120,
        per_device_train_batch_size=16,
        learning_rate=3e-3,
        warmup_steps=20,
        max_length=None,
        train_sampling_strategy="group_by_length",
        **_plain(),
    )
    demonstrations = oracle_demonstrations(env, 200, groups=_KWARGS["groups"])
    trainer = make_sft_trainer(load_model(str(folder / "start")), demonstrations, make_codec(tokenizer), args)
    trainer.train()
    trainer.save_model()
    tokenizer.save_pretrained(folder / "tiny")
    large_model(tokenizer).save_pretrained(folder / "52M")
    tokenizer.save_pretrained(folder / "52M")


def _plain() -> dict[str, Any]:
    common = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": []}
    return {**common, "save_strategy": "no", "disable_tqdm": True, "logging_strategy": "no"}


def make_trainer(folder: Path, model: str, turns: int, side: str, seed: int, steps: int) -> Any:
    import torch
    from transformers import set_seed

    from agentgym_envs.core import text_env
    from agentgym_trl.dataset import make_dataset
    from agentgym_trl.models import load_model, load_tokenizer
    from agentgym_trl.trainer import AgentConfig, AgentTrainer

    set_seed(seed)
    large = model == "52M"
    groups, micro = (1, 8) if large else (16, 32)
    tokenizer = load_tokenizer(str(folder / model))
    args = AgentConfig(
        str(folder / "run"),
        max_steps=steps,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=8 * groups // micro,
        num_generations=8,
        max_turns=str(turns),
        learning_rate=0.0,
        loss_type="dapo",
        max_completion_length=2048,
        max_turn_tokens=12 if large else 30,
        seed=seed,
        **_plain(),
        **SIDES[side],
    )
    env = partial(make_env, model)
    tasks = make_dataset(
        text_env(env()),
        steps * groups,
        groups=_KWARGS["groups"],
        seed=1_000_000 + seed,
        max_prompt_chars=None if large else 260,  # as in the quick start
    )
    loaded = load_model(str(folder / model), dtype=torch.float32)
    trainer = AgentTrainer(loaded, env, args=args, processing_class=tokenizer, train_dataset=tasks)
    if large:
        trainer.eos_token_ids = [*trainer.eos_token_ids, *range(20, 20 + len(tokenizer) // STOP_EVERY)]
    return trainer


def steps_of(folder: Path, model: str, turns: int, side: str, seed: int, steps: int) -> list[dict[str, float]]:
    """Train `steps` steps with a new trainer; a row per step."""
    from transformers import TrainerCallback

    trainer = make_trainer(folder, model, turns, side, seed, steps)
    rows: list[dict[str, float]] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            self._cpu, self._wall = time.process_time(), time.perf_counter()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
            episodes = trainer.rollout.last
            metrics = {name: values[-1] for name, values in trainer._metrics["train"].items() if name in _PARTS}
            rows.append(
                {
                    "cpu, s": cpu,
                    "wall, s": wall,
                    "sampled": sum(sum(e.assistant_mask) for e in episodes),
                    "tokens": sum(len(e.prompt_ids) + len(e.ids) for e in episodes) / len(episodes),
                    "turns": sum(len(e.trajectory.turns) for e in episodes) / len(episodes),
                    **{f"wall {label}, s": metrics[name] for name, label in _PARTS.items()},
                }
            )

    trainer.add_callback(Clock())
    trainer.train()
    return rows


_PARTS = {"time/generate": "generate", "time/train": "train", "time/env": "environment"}


def compare(folder: Path, model: str, turns: int, repeats: int) -> dict[str, Any]:
    """All repeats of both sides, alternating; each is the first step of a trainer."""
    samples: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for repeat in range(repeats):
        for side in sorted(SIDES, reverse=bool(repeat % 2)):
            samples[side] += steps_of(folder, model, turns, side, repeat, 1)
    return {"samples": samples, **summary(samples), "peak, MB": peaks(folder, model, turns) if turns > 3 else {}}


def summary(samples: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """The medians of both sides, and of the ratio of each repeat."""
    seconds = "cpu, s"
    ratios = [a[seconds] / b[seconds] for a, b in zip(samples["before"], samples["after"], strict=True)]
    median = {s: {n: statistics.median(row[n] for row in rows) for n in rows[0]} for s, rows in samples.items()}
    return {"median": median, "ratios": ratios, "ratio": statistics.median(ratios)}


def peaks(folder: Path, model: str, turns: int) -> dict[str, float]:
    """The largest resident memory of a process that trains one step, of both sides."""
    found = {}
    for side in SIDES:
        command = [sys.executable, "-m", "benchmarks.training_step", "--one", str(folder), model, str(turns), side]
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        out = subprocess.run(command, check=True, env=environ, capture_output=True, text=True).stdout
        found[side] = float(out.split()[-1])
    return found


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The result after each setting."""
    chosen = {"tiny, 2 turns": ("tiny", 2)} if options.quick else {name: SETTINGS[name] for name in options.only}
    repeats = 1 if options.quick else options.repeats
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="training-step-") as name:
        folder = options.models or Path(name)
        if not (folder / "52M").exists():
            save_models(folder)
        for side in SIDES:  # loads what is only imported when needed
            steps_of(folder, "tiny", 1, side, 0, 1)
        for key, (model, turns) in chosen.items():
            rows[key] = compare(folder, model, turns, repeats)
            yield {"machine": machine(), "repeats": repeats, "settings": rows, "note": NOTE}


def show(result: Mapping[str, Any]) -> None:
    table = Table("setting", "tokens, turns an episode", "before, s", "after, s", "ratio (all repeats)", "peak, MB")
    for name, row in result["settings"].items():
        seconds = [f"{row['median'][side]['cpu, s']:.2f}" for side in SIDES]
        size = f"{row['median']['after']['tokens']:,.0f}, {row['median']['after']['turns']:.1f}"
        ratios = f"{row['ratio']:.2f} ({min(row['ratios']):.2f} - {max(row['ratios']):.2f})"
        peak = " → ".join(f"{value:,.0f}" for value in row["peak, MB"].values())
        table.add_row(name, size, *seconds, ratios, peak)
    Console(width=120).print(f"CPU seconds of a GRPO step, one thread (goal: {GOAL} times faster)", table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--repeats", type=int, default=5, help="counted repeats of both sides (default: 5)")
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), metavar="SETTING")
    parser.add_argument("--models", type=Path, help="folder of the models, to use them again")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--one", nargs=4, metavar=("FOLDER", "MODEL", "TURNS", "SIDE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false"}
    import torch

    torch.set_num_threads(1)
    if options.one:
        folder, model, turns, side = options.one
        steps_of(Path(folder), model, int(turns), side, 0, 1)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    for result in measure(options):
        show(result)
        if options.out:
            options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
