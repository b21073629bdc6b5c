"""Train on a GPU: does it agree with the CPU, how fast is it, how much memory does it take, does a larger model learn?

    python -m benchmarks.gpu [--work DIR] [--out benchmarks/results/gpu.json] [--only PART ...] [--quick]

Every run is a command `agentgym train` or `agentgym eval` in a process of its own. Models have random weights: `small`
is the quick start's (0.6 million parameters), `large` has 65 million. `--work` keeps the runs; the same command goes on
with what is missing. Without a GPU everything runs on the CPU, to try the script out.

- agreement: the same warm start on CPU and GPU (losses), and one rollout with top-k 1 (tokens and masks).
- speed: GRPO steps of 128 episodes on the GPU, in float32 and bfloat16 and with gradient checkpointing, with the peak of
  memory; and on the CPU. The runs on the GPU have one half of the cores, those on the CPU the other, at the same time.
- resume: a run that is repeated, and one that goes on from its checkpoint, against the first; also with
  `--full_determinism true`.
- processes: a run of two processes on one GPU over gloo, against one process.
- learning: `large` on three scenarios: a warm start, then GRPO with a fixed and a growing turn limit, side by side.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import machine

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
    """How much is run."""

    losses: int = 40
    speed_steps: int = 5
    warm_steps: int = 800
    warm_batch: int = 64
    demonstrations: int = 4_000
    steps: int = 60
    tasks: int = 16
    eval_tasks: int = 200
    rounds: int = 6
    warm_seconds: float | None = None
    seconds: float | None = None


QUICK = Amounts(
    losses=3, speed_steps=2, warm_steps=2, warm_batch=2, demonstrations=20, steps=3, tasks=1, eval_tasks=4, rounds=2
)


class Bench:
    """Runs commands in a directory, each once."""

    def __init__(self, work: Path, amounts: Amounts, sizes: Mapping[str, Mapping[str, int]]) -> None:
        self.work, self.amounts, self._sizes = work, amounts, sizes
        self.gpu = bool(probe()["gpu"])
        self.halves = halves()
        (work / "logs").mkdir(parents=True, exist_ok=True)

    def run(self, name: str, words: Sequence[object], **settings: Any) -> dict[str, float]:
        """Run `agentgym WORDS` unless it is done; its seconds, peak GPU memory and steps. `settings` are of `launch`."""
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
        self.run(out.name, words, limit=amounts.warm_seconds)
        return out

    def small_steps(self, steps: int, **more: Any) -> list[str]:
        """Options of GRPO for `small`: the quick start's, at one turn limit."""
        amounts = self.amounts
        batch = options(
            gradient_accumulation_steps=max(2, amounts.tasks // 4),
            per_device_train_batch_size=min(32, 4 * amounts.tasks),
        )
        return ["--config", "tiny-grpo", *batch, *options(max_steps=steps, rounds=amounts.rounds, **more)]

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
    limit: float | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run this script with `--command`, on some cores; after `limit` seconds it is asked to stop, as by Ctrl-C."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--command", str(facts), *words]
    quiet = {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false"}
    threads = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"}
    environ = {**os.environ, **quiet, **threads, "COLUMNS": "160", **(env or {})}
    if cores is not None:
        environ |= {"OMP_NUM_THREADS": str(len(cores)), "BENCHMARK_CORES": ",".join(map(str, cores))}
    with (
        open(log, "w", encoding="utf-8") as file,
        subprocess.Popen(command, stdout=file, stderr=file, env=environ) as it,
    ):
        try:
            it.wait(limit)
        except subprocess.TimeoutExpired:
            it.send_signal(signal.SIGINT)
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
    if code in (0, 130) and os.environ.get("RANK", "0") == "0":
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


def sides() -> list[tuple[str, str | None]]:
    """Names of the devices and precisions that are compared; None is the CPU."""
    return [("cpu float32", None), *((f"gpu {precision}", precision) for precision in PRECISIONS)]


def agreement(bench: Bench) -> dict[str, Any]:
    """Losses of one warm start, and tokens and masks of one greedy rollout, against those of the CPU."""
    small, steps = bench.model("small"), bench.amounts.losses
    fixed = ["train", "sft", "--config", "tiny-sft", *options(max_steps=steps, logging_steps=1)]

    def losses(side: tuple[str, str | None]) -> list[float]:
        name = f"agree-{side[0].replace(' ', '-')}"
        words = [*fixed, *bench.device(side[1]), *paths(small, bench.work / name)]
        bench.run(name, words, cores=None if side[1] else bench.halves[0])
        return [row["loss"] for row in bench.rows(name)]

    found = dict(
        zip([name for name, _ in sides()], together([lambda s=side: losses(s) for side in sides()]), strict=True)
    )
    cpu = found["cpu float32"]
    result: dict[str, Any] = {"losses": {name: [values[0], values[-1]] for name, values in found.items()}}
    for name, values in found.items():
        apart = [abs(a / b - 1) for a, b in zip(values, cpu, strict=True)]
        result |= {f"{name}, first loss apart": apart[0], f"{name}, largest apart": max(apart)}
    return result | greedy(bench)


def greedy(bench: Bench) -> dict[str, Any]:
    """One rollout by the most probable tokens on every side: shares of episodes with the same tokens and masks."""
    warm = bench.warm("small")

    def episodes(side: tuple[str, str | None]) -> list[dict[str, Any]]:
        name = f"greedy-{side[0].replace(' ', '-')}"
        one = bench.small_steps(1, top_k=1, record_tokens="true", save_strategy="no")
        words = ["train", "grpo", *one, *bench.device(side[1])]
        bench.run(name, [*words, *paths(warm, bench.work / name)], cores=None if side[1] else bench.halves[0])
        return recorded(bench.work / name)

    found = dict(
        zip([name for name, _ in sides()], together([lambda s=side: episodes(s) for side in sides()]), strict=True)
    )
    cpu = found["cpu float32"]
    result: dict[str, Any] = {"episodes": len(cpu)}
    for name, others in found.items():
        pairs = list(zip(cpu, others, strict=True))
        same = [(a["prompt_ids"], a["ids"]) == (b["prompt_ids"], b["ids"]) for a, b in pairs]
        masks = [a["mask"] == b["mask"] for (a, b), equal in zip(pairs, same, strict=True) if equal]
        result |= {
            f"{name}, same tokens": statistics.mean(same),
            f"{name}, same masks then": statistics.mean(masks or [0]),
        }
        result[f"{name}, masks are of the answers"] = all(one["mask is of the answers"] for one in others)
    return result


def recorded(run: Path) -> list[dict[str, Any]]:
    """The recorded tokens of the first step, in an order that does not depend on the run; are answers what is masked?"""
    from agentgym_envs.rollout.token_file import tokens_path
    from agentgym_envs.trajectory import read_trajectories
    from agentgym_trl.models import load_tokenizer, make_codec

    path, codec = run / "trajectories" / "step-0.jsonl", make_codec(load_tokenizer(str(run)))
    rows = [json.loads(line)["segments"][0] for line in tokens_path(path).read_text(encoding="utf-8").splitlines()]
    for row, trajectory in zip(rows, read_trajectories(path), strict=True):
        texts = [codec.decode(row["ids"][begin:end]) for begin, end in row["turn_spans"]]
        row["mask is of the answers"] = texts == list(trajectory.actions)
    return sorted(rows, key=lambda row: (row["prompt_ids"], row["ids"]))


def speed(bench: Bench) -> dict[str, Any]:
    """Medians over the steps without the first, and peaks."""
    on_gpu = [(size, side, "false") for size in SIZES for side in sides()[1:]]
    on_gpu += [("large", ("gpu bfloat16", "bfloat16"), "true")]
    on_cpu = [(size, sides()[0], "false") for size in SIZES]
    own, others = bench.halves
    together([lambda size=size: bench.warm(size) for size in SIZES])
    lanes = [(on_cpu, own), (on_gpu, others)]
    found = together(
        [lambda runs=runs, cores=cores: dict(timed(bench, *run, cores) for run in runs) for runs, cores in lanes]
    )
    return {**found[0], **found[1]}


def timed(
    bench: Bench, size: str, side: tuple[str, str | None], checkpointing: str, cores: Sequence[int]
) -> tuple[str, dict[str, Any]]:
    """A few steps of GRPO."""
    name = f"{size}, {side[0]}{', gradient checkpointing' if checkpointing == 'true' else ''}"
    out, amounts, scenario = (
        bench.work / f"speed-{name.replace(', ', '-').replace(' ', '-')}",
        bench.amounts,
        SCENARIOS["textcraft"],
    )
    words = grpo(scenario, amounts, rate=1e-6, micro_batch=128, gradient_checkpointing=checkpointing)
    words += options(max_steps=amounts.speed_steps if side[1] else 2, rounds=amounts.rounds)
    words = ["train", "grpo", *task(scenario), *words, *bench.device(side[1]), *paths(bench.warm(size), out)]
    facts = bench.run(out.name, words, cores=cores)
    return name, {**step_figures(bench.rows(out.name)), **facts, "cores": len(cores)}


def step_figures(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Medians of a step, without the first one."""
    later = rows[1:]
    median = {key: statistics.median(row[key] for row in later) for key in ("step_time", "time/generate", "time/train")}
    sampled = [row["rollout/tokens"] / row["time/generate"] for row in later]
    return {
        **{"step, s": median["step_time"], "generate, s": median["time/generate"], "train, s": median["time/train"]},
        "tokens a second": statistics.median(sampled),
        "tokens a step": statistics.median(row["rollout/tokens"] for row in later),
        "losses are finite": all(abs(row["loss"]) < float("inf") for row in rows),
        "steps": len(later),
    }


def resume(bench: Bench) -> dict[str, Any]:
    """How far weights are apart, as a share of what training changed."""
    bench.warm("small")
    calls = [lambda flag=flag: resumed(bench, flag) for flag in ("false", "true")]
    return dict(zip(("default", "full determinism"), together(calls), strict=True))


def resumed(bench: Bench, deterministic: str) -> dict[str, Any]:
    """A run against its repetition, and against a copy that goes on from the middle."""
    warm, half, work = bench.warm("small"), 3, bench.work
    steps = bench.small_steps(2 * half, save_strategy="steps", save_steps=half, full_determinism=deterministic)
    words = ["train", "grpo", *steps, *bench.device("bfloat16")]
    whole, again, later = (work / f"resume-{deterministic}-{name}" for name in ("whole", "again", "later"))
    together([lambda out=out: bench.run(out.name, [*words, *paths(warm, out)]) for out in (whole, again)])
    if not later.exists():
        shutil.copytree(whole, later)
        shutil.rmtree(later / f"checkpoint-{2 * half}")
        (later / "model.safetensors").unlink()
    bench.run(later.name, [*words, *paths(warm, later), "--resume"])
    found = {}
    for name, out in (("repeated", again), ("resumed", later)):
        rewards = [[row["reward"] for row in bench.rows(one.name)] for one in (whole, out)]
        found[name] = {"apart": apart(whole, out) / apart(warm, whole), "same rewards": rewards[0] == rewards[1]}
    return found


def apart(one: Path, other: Path) -> float:
    """The distance between the weights of two models."""
    from safetensors.torch import load_file

    first, second = (load_file(folder / "model.safetensors") for folder in (one, other))
    return sum(float((first[name].double() - second[name].double()).square().sum()) for name in first) ** 0.5


def processes(bench: Bench) -> dict[str, Any]:
    """Two processes over gloo; both on the same GPU, which NCCL does not allow."""
    warm, out = bench.warm("small"), bench.work / "processes-2"
    words = ["train", "grpo", *bench.small_steps(3, ddp_backend="gloo"), *bench.device("bfloat16"), *paths(warm, out)]
    ranks = [{"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2"} for rank in (0, 1)]
    meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"}
    logs = [bench.work / "logs" / f"processes-{rank}.log" for rank in (0, 1)]
    facts = bench.work / "processes-2.json"
    if not facts.exists():
        together(
            lambda r=rank, log=log: launch(words, facts, log, env={**r, **meet})
            for rank, log in zip(ranks, logs, strict=True)
        )
    files = list((out / "trajectories").glob("*.jsonl"))
    return {**step_figures(bench.rows(out.name)), "files of trajectories": len(files)}


def learning(bench: Bench) -> dict[str, Any]:
    """All scenarios at the same time."""
    found = together([lambda name=name: scenario_figures(bench, name) for name in SCENARIOS])
    return dict(zip(SCENARIOS, found, strict=True))


def scenario_figures(bench: Bench, name: str) -> dict[str, Any]:
    """Success after the warm start and after GRPO under both limits."""
    warm, scenario = bench.warm("large", name), SCENARIOS[name]
    arms = {"fixed": scenario.fixed, "growing": scenario.growing}
    losses = [row["loss"] for row in bench.rows(warm.name)]

    def arm(limit: str) -> dict[str, Any]:
        out, amounts = bench.work / f"{name}-{limit}", bench.amounts
        growing = options(every=max(1, amounts.steps // 3)) if limit == "growing" else []
        words = [
            *grpo(scenario, amounts, rate=5e-5, micro_batch=16),
            *options(max_steps=amounts.steps, rounds=arms[limit]),
            *growing,
        ]
        words = ["train", "grpo", *task(scenario), *words, *bench.device("bfloat16"), *paths(warm, out)]
        facts = bench.run(out.name, words, limit=amounts.seconds)
        curve = [row["rollout/success"] for row in bench.rows(out.name)]
        return {"steps": len(curve), "curve": curve, **facts, **evaluated(bench, name, out)}

    before, *after = together([lambda: evaluated(bench, name, warm), *(lambda a=a: arm(a) for a in arms)])
    start = {"losses": [losses[0], losses[-1]], **before}
    gains = {limit: gain(bench, warm.name, f"{name}-{limit}") for limit in arms}
    return {
        "warm start": start,
        **{limit: {**row, "gain": gains[limit]} for limit, row in zip(arms, after, strict=True)},
    }


def evaluated(bench: Bench, name: str, model: Path) -> dict[str, Any]:
    """Success on held-out tasks, sampled at temperature 1."""
    scenario, out = SCENARIOS[name], bench.work / f"{model.name}-eval"
    pairs = [f"{key}={json.dumps(value)}" for key, value in scenario.kwargs.items()]
    words: list[object] = ["eval", scenario.env, "--policy", f"hf:{model}", "--out", out]
    words += options(
        groups=",".join(scenario.groups),
        tasks=bench.amounts.eval_tasks,
        max_turns=scenario.fixed,
        max_turn_tokens=scenario.max_turn_tokens,
        max_tokens=scenario.max_tokens,
        concurrency=bench.amounts.eval_tasks,
    )
    bench.run(out.name, [*words, *(word for pair in pairs for word in ("--env-arg", pair))])
    overall = json.loads((out / "eval.json").read_text(encoding="utf-8"))["metrics"]["overall"]
    return {"success": overall["success"], "turns": overall["turns"]}


def gain(bench: Bench, before: str, after: str) -> dict[str, Any]:
    """The gain in success, paired by task."""
    from agentgym_envs.evaluate import paired_difference
    from agentgym_envs.trajectory import read_trajectories

    files = [bench.work / f"{name}-eval" / "trajectories.jsonl" for name in (before, after)]
    found: dict[str, Any] = paired_difference(*(list(read_trajectories(file)) for file in files)).to_json()
    return found


PARTS: Mapping[str, Callable[[Bench], dict[str, Any]]] = {
    "agreement": agreement,
    "speed": speed,
    "resume": resume,
    "processes": processes,
    "learning": learning,
}


def measure(bench: Bench, parts: Sequence[str], console: Console) -> dict[str, Any]:
    """Every part; one that fails leaves its error."""
    found: dict[str, Any] = {"machine": {**machine(), **probe(), "date": str(datetime.date.today())}}
    for part in parts:
        began = time.perf_counter()
        try:
            found[part] = PARTS[part](bench)
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            found[part] = {"error": f"{type(error).__name__}: {error}"}
        console.print(f"{part}: {time.perf_counter() - began:.0f} s", highlight=False)
    return found


def show(result: Mapping[str, Any]) -> None:
    console = Console(width=120)
    for part, rows in result.items():
        table = Table("", "", title=part)
        for name, row in rows.items():
            table.add_row(
                name, json.dumps({k: v for k, v in row.items() if k != "curve"} if isinstance(row, dict) else row)
            )
        console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--work", type=Path, help="directory of the runs; by default a temporary one")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="PART")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.command:
        return command(Path(given.command[0]), given.command[1:])
    work = given.work or Path(tempfile.mkdtemp(prefix="gpu-"))
    sizes = {"small": SIZES["small"], "large": SIZES["small"]} if given.quick else SIZES
    result = measure(Bench(work, QUICK if given.quick else Amounts(), sizes), given.only, Console(stderr=True))
    show(result)
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
