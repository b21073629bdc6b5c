"""Train a team: two agents of one tiny policy on cooperative TextCraft, warm start and RL, three seeds.

    python benchmarks/coop.py --seeds 0 1 2 --out benchmarks/results/coop.json --plot docs/coop.png

One agent knows the recipe and collects the items that the other cannot; the other must craft, using the first one's
messages. A game is won only if both do their part in time. In each seed a model of 0.6 million parameters with random
weights first imitates a careless team: the oracle's, in which each agent idles with probability one half in every
round, so that it often exceeds the turn limit. Then it is trained without demonstrations, by REINFORCE++ with the
group's mean as the baseline, on the team's success alone. Both agents share the policy; each agent's trajectory is
trained on separately, and a group is one role on one task.

The result is the team's success on the training tasks: 24 of depth 1, with other goals and roles in each seed. The
model memorises their names, so this says nothing about new goals. Settings were chosen with another seed.

A seed takes one process and one thread; finished ones in `--work` are reused, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.invented_worlds import InventedWorlds

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

WAYS = {"sampled": 1.0, "greedy": 0.0}  # temperatures
ONLINE: dict[str, Any] = {"algorithm": "reinforce++-baseline", "warmup_steps": 3}
_EVAL_SEED = 7000


@dataclass(frozen=True, slots=True)
class CoopSettings(InventedWorlds):
    """The recipe of invented worlds for a team of two. `group_size` counts streams: half as many episodes, twice.

    `goals` tasks are played: by the careless team `demonstrations_each` times, and in what is measured `samples` times.
    """

    goals: int = 24
    demonstrations_each: int = 8
    idle: float = 0.5
    samples: int = 8
    warm_steps: int = 200
    learning_rate: float = 2e-4
    steps: int = 30
    tasks_per_step: int = 12
    group_size: int = 16
    micro_batch: int = 64
    max_turns: str = "7"
    max_turn_tokens: int = 22
    eval_turns: int = 7
    eval_turn_tokens: int = 22

    @property
    def env_id(self) -> str:
        """A team."""
        return "AgentGym/TextCraftCoop-v0"

    @property
    def groups(self) -> tuple[str, ...]:
        """Goals of one recipe."""
        return ("agents-2/depth-1",)

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """The game's own recipes, without distractors and without rules in English."""
        return {
            "num_agents": 2,
            "known_recipes_only": True,
            "groups": self.groups,
            "max_distractors": 0,
            "instructions": "",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--work", type=Path, help="directory for the runs; finished ones are read")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--plot", type=Path, help="PNG file of the plot")
    parser.add_argument("--set", type=json.loads, default={}, metavar="JSON", help="other settings, for a look")
    parser.add_argument("--one", type=int, metavar="SEED", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.work = options.work or Path(tempfile.mkdtemp(prefix="coop-"))
    if options.one is not None:
        run_one(options.one, options)
        return
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(partial(launch, options=options), options.seeds))
    runs = [json.loads(figures_of(options.work, seed).read_text(encoding="utf-8")) for seed in options.seeds]
    if options.out:
        options.out.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(options.plot, runs)
    Console().print(table_of(runs))


def figures_of(work: Path, seed: int) -> Path:
    return work / f"seed-{seed}" / "figures.json"


def launch(seed: int, options: argparse.Namespace) -> None:
    """One seed in a process of its own, with one thread; its output goes to a file beside its figures."""
    figures = figures_of(options.work, seed)
    if figures.exists():
        return
    figures.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--work", str(options.work), "--one", str(seed)]
    command += ["--set", json.dumps(options.set)]
    with open(figures.with_name("log.txt"), "w", encoding="utf-8") as log:
        threads = {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        subprocess.run(command, check=True, stdout=log, stderr=log, env={**os.environ, **threads})
    Console(stderr=True).print(f"seed {seed}: done")


def run_one(seed: int, options: argparse.Namespace) -> None:
    """Train, measure, and write the figures down."""
    from agentgym_trl.demo import stages

    settings = CoopSettings(**{"seed": seed, **options.set})
    home, console, spent = options.work / f"seed-{seed}", Console(stderr=True), Spent()
    tiny = spent("tiny model", lambda: make_tiny(home / "tiny", settings))
    warm = spent(
        "warm start", lambda: stages.warm_start(tiny, home / "warm", demonstrations(settings), settings, console)
    )
    before = spent("measure", lambda: measure(warm, settings))
    console.print({way: found["success"]["mean"] for way, found in before.items()})
    trained = spent(
        "RL", lambda: stages.reinforce(warm, home / "rl", settings, console, tasks=tasks_of(settings), **ONLINE)
    )
    after = spent("measure again", lambda: measure(trained, settings))
    rows = [row for row in stages.training_curve(trained) if "rollout/success" in row]
    figures = {
        "seed": seed,
        "settings": asdict(settings),
        "episodes": settings.steps * settings.tasks_per_step * settings.group_size // 2,
        "cpu_seconds": spent.seconds,
        "curve": [[int(row["step"]), row["rollout/success"]] for row in rows],
        "before": before,
        "after": after,
    }
    figures_of(options.work, seed).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


class Spent:
    """CPU time of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, stage: Any) -> Any:
        began = time.process_time()
        result = stage()
        self.seconds[name] = round(time.process_time() - began, 1)
        return result


def make_tiny(path: Path, settings: CoopSettings) -> Path:
    from agentgym_trl.demonstrations import environment_corpus
    from agentgym_trl.tiny import save_tiny_model

    save_tiny_model(path, environment_corpus(maker(settings), groups=settings.groups), seed=settings.seed)
    return path


def maker(settings: CoopSettings) -> Any:
    import gymnasium as gym

    return partial(gym.make, settings.env_id, **settings.env_kwargs)


def goals(settings: CoopSettings) -> list[Any]:
    """The tasks of a seed."""
    from agentgym_envs.core import text_env

    tasks = text_env(maker(settings)()).tasks
    chosen: list[Any] = tasks.sample(settings.goals, split="train", groups=settings.groups, seed=settings.seed)
    return chosen


def demonstrations(settings: CoopSettings) -> list[Any]:
    """Episodes of the careless team, won or lost."""
    from agentgym_envs.rollout import EpisodeSpec, Limits, play_many_text, run_sync

    rng = random.Random(settings.seed)
    specs = [EpisodeSpec(task.id, number) for number in range(settings.demonstrations_each) for task in goals(settings)]
    policy, limits = partial(Careless, settings.idle, rng), Limits(settings.eval_turns)
    return run_sync(play_many_text(specs, maker(settings), policy, limits=limits, concurrency=1))


class Careless:
    """The oracle's team with agents that sometimes idle."""

    def __init__(self, idle: float, rng: random.Random) -> None:
        self._idle, self._rng = idle, rng

    async def act(self, env: Any, messages: Any) -> str:
        commands = json.loads(next(env.oracle()))
        return json.dumps(
            {agent: "pass" if self._rng.random() < self._idle else text for agent, text in commands.items()}
        )


def tasks_of(settings: CoopSettings) -> Any:
    """A row for each group of episodes: every task as often as any other."""
    from agentgym_envs.rollout.mixture import DrawnTask
    from agentgym_trl.dataset import as_dataset

    chosen = goals(settings)
    return as_dataset(
        [DrawnTask("", chosen[row % len(chosen)], row) for row in range(settings.steps * settings.tasks_per_step)]
    )


def measure(model: Path, settings: CoopSettings) -> dict[str, Any]:
    """Play each task several times, sampled, and once greedily."""
    import torch

    from agentgym_envs.evaluate import evaluate
    from agentgym_envs.multiagent.play import play_many_teams
    from agentgym_envs.rollout import EpisodeSpec, Limits, Sampling, run_sync
    from agentgym_trl.models import load_engine

    engine, codec = load_engine(str(model))
    make, found = maker(settings), {}
    limits = Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens)
    for way, temperature in WAYS.items():
        torch.manual_seed(0)
        attempts = range(settings.samples if temperature else 1)
        specs = [EpisodeSpec(task.id, _EVAL_SEED + number) for number in attempts for task in goals(settings)]
        how: dict[str, Any] = {
            "limits": limits,
            "sampling": Sampling(settings.eval_turn_tokens, temperature),
            "concurrency": 100,
        }
        played = run_sync(play_many_teams(specs, make, engine, codec, **how))
        found[way] = asdict(evaluate([episode.trajectory for episode in played]).overall)
    return found


def success(runs: Sequence[dict[str, Any]], when: str, way: str) -> list[float]:
    return [100 * run[when][way]["success"]["mean"] for run in runs]


def spread(values: Sequence[float]) -> str:
    return f"{mean(values):.0f} ± {stdev(values):.0f}" if len(values) > 1 else f"{values[0]:.0f}"


def table_of(runs: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Success of the team, %: mean and standard deviation over seeds")
    for name in ("how", "warm start", "after RL", "gain of each seed", "CPU minutes a seed"):
        table.add_column(name, justify="left" if name == "how" else "right")
    minutes = f"{mean(sum(run['cpu_seconds'].values()) for run in runs) / 60:.1f}"
    for way in WAYS:
        before, after = (success(runs, when, way) for when in ("before", "after"))
        gains = ", ".join(f"{b - a:+.0f}" for a, b in zip(before, after, strict=True))
        table.add_row(way, spread(before), spread(after), gains, minutes)
    return table


def plot(path: Path, runs: Sequence[dict[str, Any]]) -> None:
    """Success in training, and measured before and after."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(1.6, 1), layout="constrained")
    curve(left, runs)
    for index, way in enumerate(WAYS):
        for side, when, colour in ((-0.2, "before", "#9aa5b1"), (0.2, "after", "#1f6feb")):
            values = success(runs, when, way)
            label = {"before": "warm start", "after": "after RL"}[when] if index == 0 else None
            right.bar(index + side, mean(values), 0.38, color=colour, label=label)
            apart = [index + side + 0.06 * (seed - (len(values) - 1) / 2) for seed in range(len(values))]
            right.scatter(apart, values, color="#222", s=14, zorder=3, clip_on=False)
    right.set_xticks(range(len(WAYS)), list(WAYS))
    right.set(ylabel="success of the team, %", ylim=(0, 100), title="Before and after; a dot is a seed")
    right.legend(frameon=False, loc="upper right")
    for axes in (left, right):
        for spine in ("top", "right"):
            axes.spines[spine].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def curve(axes: Any, runs: Sequence[dict[str, Any]], width: int = 5) -> None:
    """Each seed thinly, their mean thickly, both smoothed; the mean success of the warm starts as a line."""
    steps = [point[0] for point in runs[0]["curve"]]
    rows = [smooth([100 * point[1] for point in run["curve"]], width) for run in runs]
    for row in rows:
        axes.plot(steps, row, color="#1f6feb", alpha=0.3, linewidth=1)
    axes.plot(steps, [mean(values) for values in zip(*rows, strict=True)], color="#1f6feb", linewidth=2.2)
    before = mean(success(runs, "before", "sampled"))
    axes.axhline(before, color="#9aa5b1", linestyle="--", label="warm start")
    axes.set(xlabel="training step", ylabel="success of the team, %", ylim=(0, 100))
    axes.set_title(f"RL: mean of {width} steps, {len(runs)} seeds and their mean")
    axes.legend(frameon=False, loc="upper left")


def smooth(values: Sequence[float], width: int) -> list[float]:
    """The mean of the last `width` values."""
    windows = [values[max(0, end - width) : end] for end in range(1, len(values) + 1)]
    return [mean(window) for window in windows]


if __name__ == "__main__":
    main()
