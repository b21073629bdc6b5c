"""Compare the algorithms at equal rollouts: the quick start's task, every algorithm, three seeds.

    python benchmarks/algorithms.py --seeds 0 1 2 --out benchmarks/results/algorithms.json --plot docs/algorithms.png

Each seed has its own untrained model, demonstrations and warm start, which all algorithms of that seed begin from
(AgentEvol begins from the untrained model and the same demonstrations, as it does by its definition). Each may play
the same number of episodes: online algorithms step by step, DPO all at the beginning, AgentEvol in three rounds.
AgentEvol's own first round, which only clones, is the control for what its longer training does. What is measured is
success on held-out worlds. Settings were chosen with another seed on validation worlds, with little search (DPO's
learning rate was lowered once more after a run on the measured seeds): this is a check that every algorithm learns
here, no ranking of algorithms.

A run takes one process and one thread; finished ones in `--work` are read, so that the whole can be stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rich.console import Console
from rich.table import Table

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

ONLINE: dict[str, dict[str, Any]] = {
    "grpo": {},
    "rloo": {"algorithm": "rloo"},
    # Without a group to compare with the gradient is noisier, and the steps must be smaller.
    "reinforce++": {"algorithm": "reinforce++", "learning_rate": 2e-4},
    "reinforce++-baseline": {"algorithm": "reinforce++-baseline"},
    "ppo": {
        "algorithm": "ppo",
        "learning_rate": 2e-4,
        "gamma": 0.8,  # lost games end only at the turn limit: without a discount their values are undefined
        "critic_learning_rate": 1e-3,
        "critic_warmup_steps": 3,
        "critic_lr_warmup_steps": 3,
    },
}
ALGORITHMS = (*ONLINE, "dpo", "agentevol")
ROUNDS = 3
EVOL_STEPS = 500  # of every round: more data needs more of them than the warm start's 200
CONTROL = "cloning alone (control)"
LABELS = ("held-out worlds, sampled", "held-out worlds, greedy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS)
    parser.add_argument("--steps", type=int, default=50, help="training steps of the online algorithms")
    parser.add_argument("--split", default="test", help="split to measure on; settings are chosen on validation")
    parser.add_argument("--work", type=Path, help="directory for the runs; finished ones are read")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--plot", type=Path, help="PNG file of the plot")
    parser.add_argument("--one", nargs=2, metavar=("ALGORITHM", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.work = options.work or Path(tempfile.mkdtemp(prefix="algorithms-"))
    if options.one:
        run_one(options.one[0], int(options.one[1]), options)
        return
    starts = [("start", seed) for seed in options.seeds]  # they come first: everything else begins from them
    for jobs in (starts, [(name, seed) for seed in options.seeds for name in options.algorithms]):
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda job: launch(job[0], job[1], options), jobs))
    names = ("start", *options.algorithms)
    runs = {name: [read_figures(options.work, name, seed) for seed in options.seeds] for name in names}
    if "agentevol" in runs:
        runs[CONTROL] = [{**run, "results": run["control"], "episodes": 0, "curve": []} for run in runs["agentevol"]]
    if options.out:
        options.out.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(options.plot, runs)
    Console().print(table_of(runs))


def launch(name: str, seed: int, options: argparse.Namespace) -> None:
    """One run in a process of its own, with one thread; its output goes to a file beside its figures."""
    directory = options.work / f"seed-{seed}" / name
    if (directory / "figures.json").exists():
        return
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--work", str(options.work), "--steps", str(options.steps)]
    command += ["--split", options.split, "--one", name, str(seed)]
    with open(directory / "log.txt", "w", encoding="utf-8") as log:
        threads = {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        subprocess.run(command, check=True, stdout=log, stderr=log, env={**os.environ, **threads})
    Console(stderr=True).print(f"{name}, seed {seed}: done")


def read_figures(work: Path, name: str, seed: int) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((work / f"seed-{seed}" / name / "figures.json").read_text(encoding="utf-8"))
    return figures


def run_one(name: str, seed: int, options: argparse.Namespace) -> None:
    """Train, measure, and write the figures down."""
    from agentgym_trl.demo.settings import DemoSettings

    settings = DemoSettings(seed=seed, steps=options.steps, max_turns="3,4", every=options.steps // 2)
    home = options.work / f"seed-{seed}"
    out, console = home / name, Console(stderr=True)
    began, cpu = time.perf_counter(), time.process_time()
    train = partial(reinforce, name) if name in ONLINE else {"start": start, "dpo": dpo, "agentevol": agentevol}[name]
    model, curve = train(home, out, settings, console)
    spent = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    figures = {
        "algorithm": name,
        "seed": seed,
        "episodes": 0 if name == "start" else settings.steps * settings.tasks_per_step * settings.group_size,
        **{key: round(value, 1) for key, value in spent.items()},
        "curve": curve,
        "results": measure(model, settings, console, options.split),
    }
    if name == "agentevol":  # its first round is plain cloning, for as many steps as every round: the control
        figures["control"] = measure(out / "run" / "round-0" / "model", settings, console, options.split)
    (out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure(model: Path, settings: Any, console: Console, split: str) -> dict[str, Any]:
    from agentgym_trl.demo import stages

    measured = stages.measure(model, settings, console, split)
    return {m.name: asdict(m.metrics) for m in measured if m.name in LABELS}


def start(home: Path, out: Path, settings: Any, console: Console) -> tuple[Path, list[Any]]:
    """The starting model that all algorithms of a seed share."""
    from agentgym_trl.demo import stages

    model = stages.make_tiny_model(home, settings)
    return stages.warm_start(model, out / "model", stages.make_demonstrations(home, settings), settings, console), []


def reinforce(name: str, home: Path, out: Path, settings: Any, console: Console) -> tuple[Path, list[Any]]:
    """An online algorithm; its curve is success in training against the number of episodes."""
    from agentgym_trl.demo import stages

    model = stages.reinforce(home / "start" / "model", out / "model", settings, console, name, **ONLINE[name])
    episodes = settings.tasks_per_step * settings.group_size
    rows = [row for row in stages.training_curve(model) if "rollout/success" in row]
    return model, [[episodes * int(row["step"]), row["rollout/success"]] for row in rows]


def dpo(home: Path, out: Path, settings: Any, console: Console) -> tuple[Path, list[Any]]:
    """All episodes are played by the warm start, and pairs are made of each group."""
    from trl import DPOConfig

    from agentgym_envs.rollout import EpisodeSpec, Limits
    from agentgym_trl.demo import stages
    from agentgym_trl.dpo import make_dpo_trainer
    from agentgym_trl.exploration import explore
    from agentgym_trl.models import load_engine
    from agentgym_trl.pairs import make_pairs

    warm = home / "start" / "model"
    engine, codec = load_engine(str(warm))
    rows = enumerate(stages.training_tasks(settings))
    specs = [
        EpisodeSpec(row["task"], row["seed"], {"round": 0, "index": index, "sample": sample})
        for index, row in rows
        for sample in range(settings.group_size)
    ]
    played = explore(
        out / "explored.jsonl",
        specs,
        make_env(settings),
        lambda: engine,
        codec,
        # What follows a lost game teaches nothing, and long rejected sides would be most of the loss.
        replace(how(settings), limits=Limits(3, settings.max_tokens, settings.max_turn_tokens)),
        seed=settings.seed,
    )
    pairs = make_pairs(played, max_pairs_per_task=2, seed=settings.seed)
    console.print(str(pairs.summary))
    args = DPOConfig(
        output_dir=str(out / "model"),
        num_train_epochs=1,
        per_device_train_batch_size=32,
        learning_rate=2e-5,
        warmup_steps=5,
        beta=0.1,
        max_length=None,
        save_strategy="no",
        seed=settings.seed,
        **stages.ON_CPU,
    )
    trainer = make_dpo_trainer(str(warm), pairs.pairs, codec, args)
    trainer.train()
    trainer.save_model(str(out / "model"))
    return out / "model", []


def agentevol(home: Path, out: Path, settings: Any, console: Console) -> tuple[Path, list[Any]]:
    """Three rounds of exploration; its curve is the success of each round's exploration."""
    from agentgym_envs.trajectory import read_trajectories
    from agentgym_trl import agentevol as evol
    from agentgym_trl.demo import stages
    from agentgym_trl.demo.settings import GROUPS
    from agentgym_trl.models import load_tokenizer, make_codec

    demonstrations = list(read_trajectories(home / "demos.jsonl"))
    tasks = settings.steps * settings.tasks_per_step * settings.group_size // ROUNDS
    wanted = evol.EvolSettings(
        rounds=ROUNDS,
        tasks=tasks,
        episodes_per_task=1,
        groups=GROUPS,
        play=how(settings),
        seed=settings.seed,
    )
    base = home / "tiny"
    codec = make_codec(load_tokenizer(str(base)))
    args = stages.sft_config(out / "run", replace(settings, warm_steps=EVOL_STEPS))
    found = evol.agentevol(base, demonstrations, make_env(settings), codec, args, wanted, console=console)
    return found[-1].model, [[tasks * r.number, r.metrics["success"]] for r in found[1:]]


def make_env(settings: Any) -> Any:
    import gymnasium as gym

    from agentgym_trl.demo.settings import ENV_ID

    return partial(gym.make, ENV_ID, **settings.env_kwargs)


def how(settings: Any) -> Any:
    """AgentEvol's exploration settings: the limits of evaluation. DPO shortens them."""
    from agentgym_envs.rollout import Limits
    from agentgym_trl.exploration import PlaySettings

    return PlaySettings(Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens))


def success(runs: Iterable[dict[str, Any]], label: str) -> list[float]:
    return [100 * run["results"][label]["success"]["mean"] for run in runs]


def spread(values: Sequence[float]) -> str:
    return f"{mean(values):.0f} ± {stdev(values):.0f}" if len(values) > 1 else f"{values[0]:.0f}"


def table_of(runs: dict[str, list[dict[str, Any]]]) -> Table:
    table = Table(title="Success on held-out worlds, %: mean and standard deviation over seeds")
    for name in ("algorithm", "episodes", "sampled", "greedy", "gain, sampled", "CPU minutes"):
        table.add_column(name, justify="left" if name == "algorithm" else "right")
    before = success(runs["start"], LABELS[0])
    for name, own in runs.items():
        sampled, greedy = (success(own, label) for label in LABELS)
        gains = [after - first for first, after in zip(before, sampled, strict=True)]
        gain = "" if name == "start" else f"{mean(gains):+.0f} ({', '.join(f'{g:+.0f}' for g in gains)})"
        minutes = "" if name == CONTROL else f"{mean(run['cpu_seconds'] for run in own) / 60:.1f}"
        title = "warm start" if name == "start" else name
        table.add_row(title, f"{own[0]['episodes']:,}", spread(sampled), spread(greedy), gain, minutes)
    return table


COLOURS = ("#1f6feb", "#0d9488", "#d97706", "#b91c1c", "#7c3aed", "#64748b", "#be185d", "#c4a5b3")


def plot(path: Path, runs: dict[str, list[dict[str, Any]]]) -> None:
    """Curves of the online algorithms beside what every algorithm came to."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.8), width_ratios=(1.2, 1), layout="constrained")
    names = [name for name in runs if name != "start"]
    colours = dict(zip(names, COLOURS, strict=False))
    for name in names:
        curve(left, name, runs[name], colours[name])
    left.set(xlabel="episodes played", ylabel="success in training, %", ylim=(0, 100))
    left.set_title("Training: mean of 5 steps; band: standard deviation over seeds")
    left.legend(frameon=False, loc="lower right")
    bars(right, runs, ["start", *names], {"start": "#9aa5b1", **colours})
    for axes in (left, right):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def curve(axes: Any, name: str, own: list[dict[str, Any]], colour: str) -> None:
    if not own[0]["curve"]:
        return
    episodes = [point[0] for point in own[0]["curve"]]
    width = 5 if len(episodes) > 10 else 1
    rows = [smooth([100 * point[1] for point in run["curve"]], width) for run in own]
    middle = [mean(values) for values in zip(*rows, strict=True)]
    wide = [stdev(values) if len(values) > 1 else 0.0 for values in zip(*rows, strict=True)]
    axes.plot(episodes, middle, color=colour, linewidth=2, label=name, marker="o" if width == 1 else None)
    low, high = ([m + sign * w for m, w in zip(middle, wide, strict=True)] for sign in (-1, 1))
    axes.fill_between(episodes, low, high, color=colour, alpha=0.12, linewidth=0)


def bars(axes: Any, runs: dict[str, list[dict[str, Any]]], names: list[str], colours: dict[str, str]) -> None:
    for row, label in enumerate(LABELS):
        for index, name in enumerate(names):
            values = success(runs[name], label)
            error = stdev(values) if len(values) > 1 else 0.0
            at = index + (row - 0.5) * 0.4
            face = colours[name] if row == 0 else "none"
            axes.bar(at, mean(values), 0.36, yerr=error, color=face, edgecolor=colours[name], capsize=3, ecolor="#444")
            axes.plot([at] * len(values), values, ".", color="#222", markersize=4)
    axes.set_xticks(range(len(names)), ["warm start" if n == "start" else n for n in names], rotation=30, ha="right")
    axes.set(ylabel="success, %", ylim=(0, 100), title="Held out: sampled (filled) and greedy; dots are seeds")


def smooth(values: Sequence[float], width: int) -> list[float]:
    windows = [values[max(0, end - width) : end] for end in range(1, len(values) + 1)]
    return [mean(window) for window in windows]


if __name__ == "__main__":
    main()
