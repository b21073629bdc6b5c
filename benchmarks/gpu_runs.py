"""Runs of `benchmarks.gpu`: what is trained, and commands in processes of their own.

`python -m benchmarks.gpu_runs FACTS WORDS...` runs `agentgym WORDS` and writes its seconds and its peak of GPU memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIZES = {"small": {}, "large": {"hidden_size": 1024, "layers": 6, "heads": 16}}
PRECISIONS = {"float32": "false", "bfloat16": "true"}
ENVS = ("textcraft", "babyai", "search")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Options of a scenario for `large`."""

    env: str
    kwargs: Mapping[str, Any]
    groups: tuple[str, ...]
    fixed: int
    growing: str
    max_tokens: int
    max_turn_tokens: int


SCENARIOS = {
    "textcraft": Scenario(
        "AgentGym/TextCraft-v0",
        {"worlds": "invented", "groups": ["depth-1", "depth-2"], "max_distractors": 0, "instructions": ""},
        ("depth-1", "depth-2"),
        *(10, "4,7,10", 768, 30),
    ),
    "babyai": Scenario(
        "AgentGym/BabyAI-v0",
        {"levels": ["GoToObj", "UnlockLocal"], "instructions": ""},
        ("GoTo", "Unlock"),
        *(8, "3,5,8", 1536, 24),
    ),
    "search": Scenario(
        "AgentGym/Search-v0",
        {"top_k": 1, "max_chars": 600, "instructions": ""},
        ("1hop-country", "1hop-airport", "1hop-element"),
        *(5, "2,3,5", 1536, 48),
    ),
}


@dataclass(frozen=True, slots=True)
class Amounts:
    """Steps, tasks and demonstrations of the runs."""

    losses: int = 40
    speed_steps: int = 5
    warm_steps: int = 800
    warm_batch: int = 64
    demonstrations: int = 4_000
    steps: int = 60
    tasks: int = 16
    eval_tasks: int = 200
    turns: int = 6


QUICK = Amounts(
    losses=3, speed_steps=2, warm_steps=2, warm_batch=2, demonstrations=20, steps=3, tasks=1, eval_tasks=4, turns=2
)


class Bench:
    """Runs commands in a directory, each once."""

    def __init__(self, work: Path, amounts: Amounts, sizes: Mapping[str, Mapping[str, int]]) -> None:
        self.work, self.amounts, self._sizes = work, amounts, sizes
        self.gpu = bool(probe()["gpu"])
        self.halves = halves()
        (work / "logs").mkdir(parents=True, exist_ok=True)

    def run(self, name: str, words: Sequence[object], **settings: Any) -> dict[str, float]:
        """Run `agentgym WORDS` unless it is done; seconds and peak memory. `settings` are of `launch`."""
        facts = self.work / f"{name}.json"
        if not facts.exists():
            launch([str(word) for word in words], facts, self.work / "logs" / f"{name}.log", **settings)
        found: dict[str, float] = json.loads(facts.read_text(encoding="utf-8"))
        return found

    def model(self, size: str) -> Path:
        """An untrained model."""
        out = self.work / f"model-{size}"
        envs = ENVS if size == "large" else ENVS[:1]
        words = ["tiny-model", out, *(word for env in envs for word in ("--env", env)), *options(**self._sizes[size])]
        self.run(out.name, words)
        return out

    def device(self, precision: str | None) -> list[str]:
        """Options of `agentgym train` for a precision on the GPU; None is the CPU."""
        if precision is None or not self.gpu:
            return options(use_cpu="true", bf16="false", gradient_checkpointing="false")
        return options(bf16=PRECISIONS[precision])

    def warm(self, size: str, name: str = "textcraft") -> Path:
        """A model after its warm start."""
        out, scenario, amounts = self.work / f"{name}-{size}", SCENARIOS[name], self.amounts
        if size == "small":
            words = ["--config", "tiny-sft", *options(max_steps=min(200, amounts.warm_steps))]
        else:
            words = [*task(scenario), *large_sft(amounts)]
        words = ["train", "sft", *words, *self.device("bfloat16"), *paths(self.model(size), out)]
        self.run(out.name, words)
        return out

    def small_steps(self, steps: int, **more: Any) -> list[str]:
        """Options of GRPO for `small`: at one turn limit."""
        amounts = self.amounts
        batch = options(
            gradient_accumulation_steps=max(2, amounts.tasks // 4),
            per_device_train_batch_size=min(32, 4 * amounts.tasks),
        )
        return ["--config", "tiny-grpo", *batch, *options(max_steps=steps, max_turns=amounts.turns, **more)]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The logged steps of a run."""
        lines = (self.work / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [row for row in map(json.loads, lines) if "loss" in row]


def large_sft(amounts: Amounts) -> list[str]:
    return options(
        tasks=amounts.demonstrations,
        max_steps=amounts.warm_steps,
        per_device_train_batch_size=amounts.warm_batch,
        learning_rate=6e-4,
        warmup_steps=min(50, amounts.warm_steps // 2),
        adam_beta2=0.98,
        weight_decay=0.01,
        max_length=4096,
        gradient_checkpointing="false",
        train_sampling_strategy="group_by_length",
        logging_steps=max(1, amounts.warm_steps // 40),
        save_strategy="no",
    )


def grpo(scenario: Scenario, amounts: Amounts, *, rate: float, micro_batch: int = 32, **more: Any) -> list[str]:
    """Options of GRPO with groups of 8; `more` comes last and so replaces others."""
    episodes = 8 * amounts.tasks
    micro_batch = min(micro_batch, episodes)
    return options(
        num_generations=8,
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=episodes // micro_batch,
        max_completion_length=scenario.max_tokens,
        max_turn_tokens=scenario.max_turn_tokens,
        learning_rate=rate,
        adam_beta2=0.99,
        beta=0.0,
        loss_type="grpo",
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=3,
        **{"gradient_checkpointing": "false", "save_strategy": "no", **more},
    )


def task(scenario: Scenario) -> list[str]:
    return ["--env", scenario.env, "--env-kwargs", json.dumps(scenario.kwargs), "--groups", *scenario.groups]


def paths(model: Path, out: Path) -> list[str]:
    return options(model=model, out=out, report_to="none")


def options(**values: Any) -> list[str]:
    return [str(word) for name, value in values.items() for word in (f"--{name.replace('_', '-')}", value)]


def launch(
    words: Sequence[str],
    facts: Path,
    log: Path,
    cores: Sequence[int] | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run the command in another process, on some cores; raise RuntimeError if it fails."""
    command = [sys.executable, "-m", "benchmarks.gpu_runs", str(facts), *words]
    quiet = {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false"}
    threads = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"}
    environ = {**os.environ, **quiet, **threads, "COLUMNS": "160", **(env or {})}
    if cores is not None:
        environ |= {"OMP_NUM_THREADS": str(len(cores)), "BENCHMARK_CORES": ",".join(map(str, cores))}
    with (
        open(log, "w", encoding="utf-8") as file,
        subprocess.Popen(command, stdout=file, stderr=file, env=environ) as it,
    ):
        it.wait()
    if not facts.exists():
        raise RuntimeError(f"{log.stem} failed; the end of its log:\n{log.read_text(encoding='utf-8')[-1500:]}")


def command(facts: Path, words: Sequence[str]) -> int:
    """Run `agentgym WORDS` in this process, and write what it took."""
    if cores := os.environ.get("BENCHMARK_CORES"):
        os.sched_setaffinity(0, set(map(int, cores.split(","))))
    import torch

    from agentgym_envs.cli import main as agentgym

    began = time.perf_counter()
    code = agentgym(list(words))
    peak = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0
    if code == 0 and os.environ.get("RANK", "0") == "0":
        facts.write_text(json.dumps({"seconds": time.perf_counter() - began, "peak, MiB": peak}), encoding="utf-8")
    return code


def probe() -> dict[str, Any]:
    """The GPU and the versions, found in another process, so that this one holds no GPU memory."""
    text = (
        "import json, torch, transformers, trl; g = torch.cuda.is_available(); print(json.dumps({'gpu': "
        "torch.cuda.get_device_name() if g else None, 'cuda': torch.version.cuda if g else None, 'torch': "
        "torch.__version__, 'transformers': transformers.__version__, 'trl': trl.__version__}))"
    )
    found = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout
    return dict(json.loads(found.splitlines()[-1]))


def halves() -> tuple[list[int], list[int]]:
    """The cores in two halves; both are all of them if there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    middle = len(cores) // 2
    return (cores[:middle], cores[middle:]) if middle else (cores, cores)


def together(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Call all at the same time; their results in order."""
    calls = list(calls)
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


if __name__ == "__main__":
    sys.exit(command(Path(sys.argv[1]), sys.argv[2:]))
