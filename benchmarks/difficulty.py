"""Calibration of the dial of difficulty: success of three policies by the oracle's turns.

    python -m benchmarks.difficulty --out benchmarks/results/difficulty.json --plot docs/difficulty.png \\
        [--model WORK/seed-N/warm-start]

Each cell plays train tasks of `gym.make(id, difficulty=(low, high))` with a turn limit; `SCENARIOS` has the numbers.
The careless oracle plays a random command in a share of its turns, and plans again after each. The random policy plays
the scenario's random commands. The web oracle plans in a second browser session, which takes seconds, and cannot plan
once the sites have changed; so there the number of tasks, the limit and the share are smaller. The model is a warm
start of `benchmarks.samplers`, on the table that it was trained on, with a limit of seven turns. Cells that `--out`
has already are kept. A policy is monotone in the dial if no cell is significantly above the one before it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import StopReason, TextEnv, text_env
from agentgym_envs.rollout import EpisodeSpec
from agentgym_envs.rollout.mixture import draw_from

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

EPISODES = 150


class Scenario(NamedTuple):
    """The cells of one scenario, and the tasks of a cell.

    slip: the share of random commands of the careless oracle.
    """

    env_id: str
    kwargs: dict[str, Any]
    ranges: list[tuple[int, int]]
    tasks: int = EPISODES
    limit: int = 30
    slip: float = 0.6


SCENARIOS = {
    "TextCraft, invented worlds": Scenario(
        "AgentGym/TextCraft-v0",
        {"worlds": "invented"},
        [(2, 2), (3, 3), (4, 4), (5, 6), (7, 8), (9, 12), (13, 20), (21, 48)],
    ),
    "Search": Scenario("AgentGym/Search-v0", {}, [(2, 2), (3, 3), (4, 4), (5, 5), (6, 7)]),
    "BabyAI": Scenario("AgentGym/BabyAI-v0", {}, [(1, 2), (3, 4), (5, 6), (7, 9), (10, 14), (15, 22)]),
    "WebArena, embedded sites": Scenario(
        "AgentGym/WebArena-v0", {}, [(2, 3), (4, 5), (6, 8), (9, 13)], tasks=30, limit=15, slip=0.2
    ),
}
Play = Callable[[TextEnv, EpisodeSpec, random.Random, Scenario], bool]


def careless(env: TextEnv, spec: EpisodeSpec, rng: random.Random, scenario: Scenario) -> bool:
    """Follow the oracle, but play a random command in a share of the turns."""
    env.reset(seed=spec.seed, options={"task": spec.task or ""})
    plan = env.oracle()
    for _ in range(scenario.limit):
        slips = rng.random() < scenario.slip
        command = env.random_command(rng) if slips else next(plan, None)
        if command is None:
            plan = env.oracle()
            command = next(plan)
        *_, terminated, truncated, info = env.step(command)
        if terminated or truncated:
            return bool(info["success"])
        if slips:
            plan = env.oracle()
    return False


def at_random(env: TextEnv, spec: EpisodeSpec, rng: random.Random, scenario: Scenario) -> bool:
    """Play random commands."""
    env.reset(seed=spec.seed, options={"task": spec.task or ""})
    for _ in range(scenario.limit):
        *_, terminated, truncated, info = env.step(env.random_command(rng))
        if terminated or truncated:
            return bool(info["success"])
    return False


POLICIES: dict[str, Play] = {"careless oracle": careless, "random": at_random}


def measure(play: Play, scenario: Scenario, turns: tuple[int, int]) -> float:
    """Success on the tasks of a range."""
    from agentgym_envs.errors import NoOracle

    env, won = text_env(gym.make(scenario.env_id, **scenario.kwargs, difficulty=turns)), 0
    for number, item in enumerate(draw_from(env, scenario.tasks, seed=1)):
        try:
            won += play(env, EpisodeSpec(item.task.id, item.seed), random.Random(number), scenario)
        except NoOracle:  # after a slip there is no way on
            continue
        if env.status()["stop_reason"] == StopReason.ENV_ERROR.value:
            raise RuntimeError(f"{item.task.id} failed, so the cell has no share of success; measure it again")
    env.close()
    return won / scenario.tasks


def interval(share: float, n: int = EPISODES) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `n`."""
    z = 1.96
    middle, half = share + z * z / (2 * n), z * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def rises(cells: Sequence[float], n: int = EPISODES) -> list[int]:
    """The indices of the cells that are significantly above the one before: the intervals do not overlap."""
    ends = [interval(share, n) for share in cells]
    return [at for at in range(1, len(cells)) if ends[at][0] > ends[at - 1][1]]


def measure_model(model: Path, ranges: Sequence[tuple[int, int]]) -> list[float]:
    """Success of a trained model on the table that it was trained on, by range."""
    from agentgym_envs.rollout import Limits, Sampling, play_many, run_sync
    from agentgym_trl.models import load_engine
    from benchmarks.samplers import Graded, write_recipes

    settings = Graded(recipes=write_recipes(model.parents[1] / "recipes.json"))
    engine, codec = load_engine(str(model))
    found = []
    for turns in ranges:
        kwargs = {**settings.env_kwargs, "difficulty": turns}
        drawn = draw_from(text_env(gym.make(settings.env_id, **kwargs)), EPISODES, seed=9_000_000)
        specs = [EpisodeSpec(item.task.id, item.seed) for item in drawn]
        limits = Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens)
        options: dict[str, Any] = {"limits": limits, "sampling": Sampling(settings.eval_turn_tokens, 1.0)}
        played = run_sync(
            play_many(specs, lambda: gym.make(settings.env_id, **kwargs), engine, codec, concurrency=100, **options)  # noqa: B023
        )
        found.append(sum(bool(episode.trajectory.success) for episode in played) / len(played))
    return found


def _write(path: Path | None, found: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


MODEL = "TextCraft, the table of benchmarks/samplers.py"
MODEL_RANGES = [(2, 2), (3, 3), (4, 4), (5, 5)]


def plot(path: Path, found: dict[str, Any]) -> None:
    """One panel per scenario, one line per policy."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    colours = {"careless oracle": "#1f6feb", "random": "#d97706", "tiny model": "#0d9488"}
    figure, panels = plt.subplots(1, len(found), figsize=(4.2 * len(found), 3.8), layout="constrained", sharey=True)
    for axes, (title, cells) in zip(panels, found.items(), strict=True):
        for name, shares in cells["success"].items():
            ends = [interval(share, cells["tasks"]) for share in shares]
            error = [[max(0, s - low) for s, (low, _) in zip(shares, ends, strict=True)]]
            error.append([max(0, high - s) for s, (_, high) in zip(shares, ends, strict=True)])
            percent = [[100 * value for value in side] for side in error]
            at = range(len(shares))
            axes.errorbar(
                at, [100 * s for s in shares], percent, color=colours[name], marker="o", capsize=3, label=name
            )
        labels = [f"{low}" if low == high else f"{low}-{high}" for low, high in cells["turns"]]
        axes.set_xticks(range(len(labels)), labels, fontsize=8)
        axes.set(xlabel="oracle's turns", ylim=(-3, 103))
        axes.set_title(title.replace(", the", ",\nthe"), fontsize=10)
        axes.legend(frameon=False, fontsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].set_ylabel("success, %")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Measure, show whether the cells fall, write and plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a model of benchmarks/samplers.py: WORK/seed-N/warm-start")
    parser.add_argument("--out", type=Path, help="JSON file for the figures; cells that it has are kept")
    parser.add_argument("--plot", type=Path, help="PNG file of the plot")
    options = parser.parse_args()
    found = json.loads(options.out.read_text("utf-8")) if options.out and options.out.exists() else {}
    for title, scenario in SCENARIOS.items():
        cells = found.setdefault(title, {"success": {}})
        cells.update(turns=scenario.ranges, tasks=scenario.tasks)
        for name, play in POLICIES.items():
            shares = cells["success"].setdefault(name, [])
            for turns in scenario.ranges[len(shares) :]:
                shares.append(measure(play, scenario, turns))
                _write(options.out, found)
    if options.model:
        shares = {"tiny model": measure_model(options.model, MODEL_RANGES)}
        found[MODEL] = {"turns": MODEL_RANGES, "tasks": EPISODES, "success": shares}
    for title, cells in found.items():
        for name, shares in cells["success"].items():
            higher = rises(shares, cells["tasks"])
            verdict = f"rises at cells {higher}" if higher else "monotone"
            print(f"{title}, {name}: {', '.join(f'{100 * share:.0f}' for share in shares)} % ({verdict})")
    _write(options.out, found)
    if options.plot:
        plot(options.plot, found)


if __name__ == "__main__":
    main()
