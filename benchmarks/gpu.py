"""Train on a GPU: does it agree with the CPU, how fast is it, how much memory does it take, does a larger model learn?

    python -m benchmarks.gpu [--work DIR] [--out benchmarks/results/gpu.json] [--only PART ...] [--quick]

Every run is a command `agentgym train` or `agentgym eval` in a process of its own. Models have random weights: `small`
has 0.6 million parameters, `large` has 65 million. `--work` keeps the runs; the same command goes on
with what is missing. Without a GPU everything runs on the CPU, to try the script out.

- agreement: the same warm start on CPU and GPU (losses), and one rollout with top-k 1 (tokens and masks).
- speed: GRPO steps of 128 episodes on the CPU and on the GPU, there in float32, in bfloat16, and with gradient
  checkpointing; peaks of GPU memory. Runs on the GPU have one half of the cores; those on the CPU have the other half,
  at the same time.
- resume: a run that is repeated, and one that goes on from its checkpoint, against the first; also with
  `--full_determinism true`.
- processes: a run of two processes on one GPU over gloo, against one process.
- learning: `large` on three scenarios: a warm start, then GRPO with a fixed and a growing turn limit, side by side.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import machine
from benchmarks.gpu_runs import (
    PRECISIONS,
    QUICK,
    SCENARIOS,
    SIZES,
    Amounts,
    Bench,
    grpo,
    launch,
    options,
    paths,
    probe,
    task,
    together,
)

Side = tuple[str, str | None]


def sides() -> list[Side]:
    """Names of the devices and precisions that are compared; None is the CPU."""
    return [("cpu float32", None), *((f"gpu {precision}", precision) for precision in PRECISIONS)]


def agreement(bench: Bench) -> dict[str, Any]:
    """Losses of one warm start, and tokens and masks of one greedy rollout, against those of the CPU."""
    small, steps = bench.model("small"), bench.amounts.losses
    fixed = ["train", "sft", "--config", "tiny-sft", *options(max_steps=steps, logging_steps=1)]

    def losses(side: Side) -> list[float]:
        name = f"agree-{side[0].replace(' ', '-')}"
        words = [*fixed, *bench.device(side[1]), *paths(small, bench.work / name)]
        bench.run(name, words, cores=None if side[1] else bench.halves[0])
        return [row["loss"] for row in bench.rows(name)]

    found = dict(zip([name for name, _ in sides()], together([partial(losses, side) for side in sides()]), strict=True))
    cpu = found["cpu float32"]
    result: dict[str, Any] = {"losses": {name: [values[0], values[-1]] for name, values in found.items()}}
    for name, values in found.items():
        apart = [abs(a / b - 1) for a, b in zip(values, cpu, strict=True)]
        result |= {f"{name}, first loss apart": apart[0], f"{name}, largest apart": max(apart)}
    return result | greedy(bench)


def greedy(bench: Bench) -> dict[str, Any]:
    """One rollout by the most probable tokens on every side: shares of episodes with the same tokens and masks."""
    warm = bench.warm("small")

    def episodes(side: Side) -> list[dict[str, Any]]:
        name = f"greedy-{side[0].replace(' ', '-')}"
        one = bench.small_steps(1, top_k=1, record_tokens="true", save_strategy="no")
        words = ["train", "grpo", *one, *bench.device(side[1])]
        bench.run(name, [*words, *paths(warm, bench.work / name)], cores=None if side[1] else bench.halves[0])
        return recorded(bench.work / name)

    found = dict(
        zip([name for name, _ in sides()], together([partial(episodes, side) for side in sides()]), strict=True)
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
    """The recorded tokens of the first step, sorted, and whether the mask covers the answers."""
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
    together([partial(bench.warm, size) for size in SIZES])
    lanes = [(on_cpu, own), (on_gpu, others)]
    found = together([partial(one_lane, bench, *lane) for lane in lanes])
    return {**found[0], **found[1]}


def one_lane(bench: Bench, runs: Sequence[tuple[str, Side, str]], cores: Sequence[int]) -> dict[str, Any]:
    """The runs one after another, on the same cores."""
    return dict(timed(bench, *run, cores) for run in runs)


def timed(bench: Bench, size: str, side: Side, checkpointing: str, cores: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """A few steps of GRPO."""
    name = f"{size}, {side[0]}{', gradient checkpointing' if checkpointing == 'true' else ''}"
    out, amounts, scenario = (
        bench.work / f"speed-{name.replace(', ', '-').replace(' ', '-')}",
        bench.amounts,
        SCENARIOS["textcraft"],
    )
    words = grpo(scenario, amounts, rate=1e-6, micro_batch=128, gradient_checkpointing=checkpointing)
    words += options(max_steps=amounts.speed_steps if side[1] else 2, max_turns=amounts.turns)
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
    """Distances between weights, as shares of the distance that training covered."""
    bench.warm("small")

    def outcome(flag: str) -> dict[str, Any]:
        try:
            return resumed(bench, flag)
        except RuntimeError as error:  # torch refuses some operations in deterministic mode
            return {"error": str(error)}

    names, found = ("default", "full determinism"), together(partial(outcome, flag) for flag in ("false", "true"))
    return dict(zip(names, found, strict=True))


def resumed(bench: Bench, deterministic: str) -> dict[str, Any]:
    """A run against its repetition, and against a copy that goes on from the middle."""
    warm, half, work = bench.warm("small"), 3, bench.work
    steps = bench.small_steps(2 * half, save_strategy="steps", save_steps=half, full_determinism=deterministic)
    words = ["train", "grpo", *steps, *bench.device("bfloat16")]
    whole, again, later = (work / f"resume-{deterministic}-{name}" for name in ("whole", "again", "later"))
    together([partial(bench.run, out.name, [*words, *paths(warm, out)]) for out in (whole, again)])
    if not later.exists():
        shutil.copytree(whole, later)
        shutil.rmtree(later / f"checkpoint-{2 * half}")
        (later / "model.safetensors").unlink()
    bench.run(later.name, [*words, *paths(warm, later), "--resume"])
    found = {}
    for name, out in (("repeated", again), ("resumed", later)):
        rewards = [[row["reward"] for row in bench.rows(one.name)] for one in (whole, out)]
        share = apart(whole, out) / (apart(warm, whole) or 1.0)
        found[name] = {"apart": share, "same rewards": rewards[0] == rewards[1]}
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
            partial(launch, words, facts, log, env={**rank, **meet}) for rank, log in zip(ranks, logs, strict=True)
        )
    files = list((out / "trajectories").glob("*.jsonl"))
    return {**step_figures(bench.rows(out.name)), "files of trajectories": len(files)}


def learning(bench: Bench) -> dict[str, Any]:
    """All scenarios at the same time."""
    found = together([partial(scenario_figures, bench, name) for name in SCENARIOS])
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
            *options(max_steps=amounts.steps, max_turns=arms[limit]),
            *growing,
        ]
        words = ["train", "grpo", *task(scenario), *words, *bench.device("bfloat16"), *paths(warm, out)]
        facts = bench.run(out.name, words)
        curve = [row["rollout/success"] for row in bench.rows(out.name)]
        return {"steps": len(curve), "curve": curve, **facts, **evaluated(bench, name, out)}

    before, *after = together([partial(evaluated, bench, name, warm), *(partial(arm, limit) for limit in arms)])
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
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp(prefix="gpu-"))
    sizes = {"small": SIZES["small"], "large": SIZES["small"]} if given.quick else SIZES
    result = measure(Bench(work, QUICK if given.quick else Amounts(), sizes), given.only, Console(stderr=True))
    show(result)
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
