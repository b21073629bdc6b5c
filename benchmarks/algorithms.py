"""The algorithms at equal CPU time on the quick start's task: imitation, AgentEvol, DPO and online algorithms.

    python -m benchmarks.algorithms --out benchmarks/results/algorithms.json --plot docs/algorithms.png
    python -m benchmarks.algorithms --scenario babyai --arms "more imitation" "imitation of wins" AgentEvol GRPO \\
        --out benchmarks/results/algorithms-babyai.json

Each seed has its own untrained model, demonstrations of a careless teacher and warm start, which all arms of that seed
begin from. Every arm has a number of steps that takes at least about the CPU time of GRPO; the seconds are in the
result. Settings were chosen with other seeds on validation tasks. Intervals are over seeds (Student's t).

A run takes one process and one thread; finished ones in `--work` are read, so that the whole can be stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rich.console import Console
from rich.table import Table

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

START = "warm start"
ONLINE: dict[str, dict[str, Any]] = {
    "GRPO": {},
    "RLOO": {"algorithm": "rloo"},
    # Without a group to compare with the gradient is noisier, and the steps must be smaller.
    "REINFORCE++": {"algorithm": "reinforce++", "learning_rate": 5e-4},
    "REINFORCE++-baseline": {"algorithm": "reinforce++-baseline"},
    "PPO": {
        "algorithm": "ppo",
        "learning_rate": 5e-4,
        "gamma": 0.95,
        "critic_learning_rate": 1e-3,
        "critic_warmup_steps": 3,
        "critic_lr_warmup_steps": 3,
    },
}
IMITATION = ("more imitation", "imitation of wins")
ARMS = (*IMITATION, "AgentEvol", "DPO", *ONLINE)
PPO_SHARE = 0.7
"""PPO trains a critic as well: the share of GRPO's steps that takes the same time."""
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Student's t for a 95 % interval, by degrees of freedom."""


def main() -> None:
    """Run what is missing, and write the result."""
    options = _parse()
    options.work = options.work or Path(tempfile.mkdtemp(prefix="algorithms-"))
    if options.one:
        run_one(options.one[0], int(options.one[1]), options)
        return
    starts = [(START, seed) for seed in options.seeds]  # they come first: everything else begins from them
    for jobs in (starts, [(name, seed) for seed in options.seeds for name in options.arms]):
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda job: launch(job[0], job[1], options), jobs))
    names = (START, *options.arms)
    runs = {name: [read_figures(options.work, name, seed) for seed in options.seeds] for name in names}
    if options.out:
        options.out.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(options.plot, runs)
    Console().print(*tables_of(runs))


def launch(name: str, seed: int, options: argparse.Namespace) -> None:
    """One run in a process of its own, with one thread; its output goes to a file beside its figures."""
    path = figures_of(options.work, name, seed)
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.algorithms", "--work", str(options.work)]
    command += ["--scenario", options.scenario, "--split", options.split, "--set", json.dumps(options.set)]
    with open(path.with_suffix(".log"), "w", encoding="utf-8") as log:
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        subprocess.run([*command, "--one", name, str(seed)], check=True, stdout=log, stderr=log, env=environ)
    Console(stderr=True).print(f"{name}, seed {seed}: done")


def figures_of(work: Path, name: str, seed: int) -> Path:
    """The file with the figures of a run."""
    return work / f"seed-{seed}" / f"{name.lower().replace(' ', '-').replace(':', '-')}.json"


def read_figures(work: Path, name: str, seed: int) -> dict[str, Any]:
    """The figures of a finished run."""
    figures: dict[str, Any] = json.loads(figures_of(work, name, seed).read_text(encoding="utf-8"))
    return figures


def run_one(name: str, seed: int, options: argparse.Namespace) -> None:
    """Train, measure, and write the figures down."""
    import time

    from agentgym_trl.demo import arms, stages
    from agentgym_trl.demo.quiet import quiet
    from agentgym_trl.demo.settings import SCENARIOS

    quiet()
    arms.use_one_thread()
    settings = replace(SCENARIOS[options.scenario](seed=seed), **options.set)
    if name == "PPO":
        settings = replace(settings, steps=round(PPO_SHARE * settings.steps))
    out, console = options.work / f"seed-{seed}", Console(stderr=True)
    began = time.process_time()
    model, facts = train(name, out, settings, console)
    spent = time.process_time() - began
    figures = {
        "arm": name,
        "seed": seed,
        "scenario": options.scenario,
        "settings": asdict(settings),
        "cpu_seconds": round(spent, 1),
        **facts,
        "results": {m.name: asdict(m.metrics) for m in stages.measure(model, settings, options.split)},
    }
    figures_of(options.work, name, seed).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def train(name: str, out: Path, settings: Any, console: Console) -> tuple[Path, dict[str, Any]]:
    """Train an arm; return its model and further facts: a curve, or the number of demonstrations."""
    from agentgym_trl.demo import arms, stages

    if name == START:
        demonstrations = stages.make_demonstrations(out, settings)
        tiny = stages.make_tiny_model(out, settings, demonstrations)
        won = len(stages.won_in_time(demonstrations, settings))
        warm = stages.warm_start(tiny, out / arms.folder(arms.WARM), demonstrations, settings, console)
        return warm, {"demonstrations": len(demonstrations), "won": won}
    if name == "DPO":
        return dpo(out, settings, console)
    if name not in ONLINE:
        return arms.train_arm(name, out, settings, console), {}
    warm, model = out / arms.folder(arms.WARM), out / arms.folder(name)
    stages.reinforce(warm, model, settings, console, name, **ONLINE[name])
    rows = [row for row in stages.training_curve(model) if "rollout/success" in row]
    return model, {"curve": [[int(row["step"]), row["rollout/success"]] for row in rows]}


def dpo(out: Path, settings: Any, console: Console) -> tuple[Path, dict[str, Any]]:
    """The warm start plays as many episodes as GRPO, and pairs are made of each group."""
    from trl import DPOConfig

    from agentgym_envs.rollout import EpisodeSpec, Limits
    from agentgym_trl.demo import arms, stages
    from agentgym_trl.dpo import make_dpo_trainer
    from agentgym_trl.exploration import PlaySettings, explore
    from agentgym_trl.models import load_engine
    from agentgym_trl.pairs import make_pairs

    model, warm = out / "dpo", out / arms.folder(arms.WARM)
    model.mkdir(parents=True, exist_ok=True)
    engine, codec = load_engine(str(warm))
    specs = [
        EpisodeSpec(row["task"], row["seed"], {"round": 0, "index": index, "sample": sample})
        for index, row in enumerate(stages.training_tasks(settings))
        for sample in range(settings.group_size)
    ]
    limits = Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens)
    played = explore(
        model / "explored.jsonl",
        specs,
        stages.make_env(settings),
        lambda: engine,
        codec,
        PlaySettings(limits),
        seed=settings.seed,
    )
    pairs = make_pairs(played, max_pairs_per_task=3, seed=settings.seed)
    args = DPOConfig(
        output_dir=str(model),
        num_train_epochs=1,
        per_device_train_batch_size=16,
        learning_rate=2e-4,
        warmup_steps=5,
        beta=0.1,
        max_length=None,
        save_strategy="no",
        seed=settings.seed,
        **stages.ON_CPU,
    )
    trainer = make_dpo_trainer(str(warm), pairs.pairs, codec, args)
    trainer.train()
    trainer.save_model(str(model))
    return model, {"pairs": len(pairs.pairs)}


def success(runs: Sequence[dict[str, Any]], label: str) -> list[float]:
    """Success of each seed, in per cent."""
    return [100 * run["results"][label]["success"]["mean"] for run in runs]


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean over seeds and its 95 % interval by Student's t."""
    middle = mean(values)
    if len(values) < 2:
        return middle, float("-inf"), float("inf")
    half = T_95[len(values) - 1] * stdev(values) / len(values) ** 0.5
    return middle, middle - half, middle + half


def labels_of(runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The names of the measurements; sampled and greedy ones alternate."""
    return list(runs[START][0]["results"])


def tables_of(runs: dict[str, list[dict[str, Any]]]) -> list[Table]:
    """For each set of tasks, success by arm, and GRPO's lead over it by paired seeds."""
    labels = labels_of(runs)
    return [_table(runs, sampled, greedy) for sampled, greedy in zip(labels[::2], labels[1::2], strict=True)]


def _table(runs: dict[str, list[dict[str, Any]]], sampled: str, greedy: str) -> Table:
    table = Table(title=f"Success on {sampled.removesuffix(', sampled')}, %: mean over seeds [least, most]")
    for name in ("arm", "sampled", "greedy", "turns", "GRPO's lead, sampled [95 %]", "CPU s"):
        table.add_column(name, justify="left" if name == "arm" else "right")
    for name, own in runs.items():
        turns = mean(run["results"][sampled]["turns"] for run in own)
        cpu = mean(run["cpu_seconds"] for run in own)
        cells = [_spread(success(own, label)) for label in (sampled, greedy)]
        table.add_row(name, *cells, f"{turns:.1f}", lead(runs, name, sampled), f"{cpu:.0f}")
    return table


def markdown(runs: dict[str, list[dict[str, Any]]]) -> str:
    """The tables for a page of the documentation."""
    return "\n\n".join(_markdown(table) for table in tables_of(runs))


def _markdown(table: Table) -> str:
    columns = [[str(column.header), *(str(cell) for cell in column.cells)] for column in table.columns]
    rows = [f"| {' | '.join(cells)} |" for cells in zip(*columns, strict=True)]
    return "\n".join([rows[0], "|---" * len(columns) + "|", *rows[1:]])


def lead(runs: dict[str, list[dict[str, Any]]], name: str, label: str) -> str:
    """GRPO's lead over an arm in points, with its interval; empty without GRPO."""
    if name == "GRPO" or "GRPO" not in runs:
        return ""
    pairs = zip(success(runs["GRPO"], label), success(runs[name], label), strict=True)
    middle, low, high = interval([best - other for best, other in pairs])
    return f"{middle:+.0f} [{low:+.0f}, {high:+.0f}]"


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.0f} [{min(values):.0f}, {max(values):.0f}]"


COLOURS = ("#1f6feb", "#0d9488", "#7c3aed", "#be185d", "#b91c1c")


def plot(path: Path, runs: dict[str, list[dict[str, Any]]]) -> None:
    """Curves of the online algorithms beside the result of every arm."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    colours = dict(zip(ONLINE, COLOURS, strict=True))
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.8), width_ratios=(1, 1.2), layout="constrained")
    for name in [name for name in runs if name in ONLINE]:
        _curve(left, name, runs[name], colours[name])
    left.set(xlabel="training step", ylabel="success in training, %", ylim=(0, 100))
    left.set_title("Training: mean of 5 steps; band: least and most over seeds")
    left.legend(frameon=False, loc="lower right")
    _bars(right, runs, colours)
    for axes in (left, right):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _curve(axes: Any, name: str, own: list[dict[str, Any]], colour: str) -> None:
    steps = [point[0] for point in own[0]["curve"]]
    rows = [_smooth([100 * point[1] for point in run["curve"]]) for run in own]
    columns = list(zip(*rows, strict=True))
    axes.plot(steps, [mean(values) for values in columns], color=colour, linewidth=2, label=name)
    low, high = [min(values) for values in columns], [max(values) for values in columns]
    axes.fill_between(steps, low, high, color=colour, alpha=0.1, linewidth=0)


def _bars(axes: Any, runs: dict[str, list[dict[str, Any]]], colours: dict[str, str]) -> None:
    for row, label in enumerate(labels_of(runs)[:2]):
        for index, (name, own) in enumerate(runs.items()):
            values, at = success(own, label), index + (row - 0.5) * 0.4
            error = [[mean(values) - min(values)], [max(values) - mean(values)]]
            colour = colours.get(name, "#9aa5b1" if name == START else "#d97706")
            axes.bar(at, mean(values), 0.38, yerr=error, color=colour, alpha=1 - 0.45 * row, capsize=2, ecolor="#444")
            axes.text(at, max(values) + 2, f"{mean(values):.0f}", ha="center", fontsize=8)
    axes.set_xticks(
        range(len(runs)),
        [name.replace(" ", "\n").replace("++-", "++\n").replace("FORCE", "-\nFORCE") for name in runs],
        fontsize=8,
    )
    title = labels_of(runs)[0].removesuffix(", sampled")
    axes.set(ylabel="success, %", ylim=(0, 108), title=f"{title.capitalize()}: sampled (dark) and greedy (light)")


def _smooth(values: Sequence[float], width: int = 5) -> list[float]:
    windows = [values[max(0, end - width) : end] for end in range(1, len(values) + 1)]
    return [mean(window) for window in windows]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="textcraft", choices=("textcraft", "babyai"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102, 103, 104, 105])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--split", default="test", help="split to measure on; settings are chosen on validation")
    parser.add_argument("--set", type=json.loads, default={}, help="other settings of the quick start, as JSON")
    parser.add_argument("--work", type=Path, help="directory for the runs; finished ones are read")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--plot", type=Path, help="PNG file of the plot")
    parser.add_argument("--one", nargs=2, metavar=("ARM", "SEED"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
