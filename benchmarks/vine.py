"""Credit from forks at equal sampled tokens: `--credit vine` and `--tree` against GRPO, turn-level GRPO, GiGPO and PPO.

    python -m benchmarks.vine [--work DIR] [--out benchmarks/results/vine.json] [--seeds 101 102 103 104 105]
    python -m benchmarks.vine --scenario babyai --work runs/vine-babyai [--out benchmarks/results/vine-babyai.json]

The policy and the tasks are those of the quick start, on TextCraft or BabyAI. Every seed has its own warm start, from
which all arms continue for the same number of steps. Continuations count as sampled tokens: an arm that samples more
tokens per task has fewer tasks per step (`TASKS`), so that all arms sample about as many. The number of sampled tokens,
and those until success in training reaches 80 % (mean of five steps), are in the result.

For each seed, "estimates" compares the advantages that each method gives to the turns of the same episodes of the warm
start with reference values (differences of the mean returns of 32 further continuations). PPO's critic is not trained
at that point, so it has no row there.

A run takes one process, one thread and about a minute of CPU time. Finished runs in `--work` are read. Several
processes with the same `--work` share the runs.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.algorithms import ONLINE, START, figures_of, success
from benchmarks.seed_runs import differences, options_parser, run_all, with_interval

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

ARMS: dict[str, dict[str, Any]] = {
    "GRPO": {},
    "turn-level GRPO": {"turn_level_advantage": True},
    "GiGPO": {"step_advantage_weight": 1.0},
    "PPO": ONLINE["PPO"],
    "vine every-turn K2": {"credit": "vine", "branches": 2, "at": "every-turn"},
    "vine random-1 K4": {"credit": "vine", "branches": 4, "at": "random:1"},
    "vine surprising-1 K2": {"credit": "vine", "branches": 2, "at": "surprising:1"},
    "tree 2x2": {"tree": "2x2"},
}
_TASKS = {"vine every-turn K2": 2, "vine random-1 K4": 4, "vine surprising-1 K2": 5, "tree 2x2": 16}
TASKS = {"textcraft": _TASKS, "babyai": _TASKS | {"vine every-turn K2": 4}}
"""Tasks per step; other arms have those of the quick start, 12. Chosen on the tokens of a pilot seed."""
ESTIMATES = "estimates"
REFERENCE = 32
"""Continuations per state for the reference values."""
BRANCHES = 4
"""Continuations per state for the estimates."""
GOAL = 0.8


def run(work: Path, seed: int, name: str, split: str, steps: int | None, scenario: str) -> None:
    """Make a warm start, train an arm or compare estimates, and write the figures down."""
    from agentgym_trl.demo import arms, stages
    from agentgym_trl.demo.settings import SCENARIOS
    from benchmarks import algorithms

    settings, out, console = SCENARIOS[scenario](seed=seed), work / f"seed-{seed}", Console(quiet=True)
    warm, began = out / arms.folder(arms.WARM), time.process_time()
    figures: dict[str, Any] = {"arm": name, "seed": seed}
    if name == ESTIMATES:
        figures["errors"] = estimate_errors(warm, settings)
    else:
        if name == START:
            model, facts = algorithms.train(START, out, settings, console)
        else:
            tasks = TASKS[scenario].get(name, settings.tasks_per_step)
            sizes: dict[str, Any] = {"tasks_per_step": tasks, "micro_batch": tasks * settings.group_size}
            settings = replace(settings, steps=steps or settings.steps, **sizes)
            model = out / figures_of(work, name, seed).stem
            stages.reinforce(warm, model, settings, console, name, **ARMS[name])
            facts = curve_facts(stages.training_curve(model))
        results = {m.name: asdict(m.metrics) for m in stages.measure(model, settings, split)}
        figures |= {**facts, "results": results}
    figures["cpu_seconds"] = round(time.process_time() - began, 1)
    figures_of(work, name, seed).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def curve_facts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Success by sampled tokens, their sum, and the tokens to the goal (None if it is not reached)."""
    rows = [row for row in rows if "rollout/success" in row]
    tokens = [int(total) for total in np.cumsum([row["rollout/tokens"] for row in rows])]
    curve = [[total, row["rollout/success"]] for total, row in zip(tokens, rows, strict=True)]
    reached = [end for end in range(5, len(rows) + 1) if fmean(point[1] for point in curve[end - 5 : end]) >= GOAL]
    forks = {key: fmean(row[key] for row in rows) for key in rows[0] if key.startswith(("vine/", "tree/"))}
    return {
        "curve": curve,
        "tokens": tokens[-1],
        "tokens_to_goal": tokens[reached[0] - 1] if reached else None,
        "final_training_success": fmean(point[1] for point in curve[-5:]),
        **forks,
    }


def estimate_errors(model: Path, settings: Any, tasks: int = 6) -> dict[str, dict[str, float]]:
    """For each method, its advantages of turns against the reference: RMSE, bias, correlation, tokens per episode."""
    import torch

    from agentgym_envs.rollout import EpisodeSpec, Limits, play_many, run_sync
    from agentgym_trl.demo import stages
    from agentgym_trl.models import load_engine

    torch.manual_seed(settings.seed)
    engine, codec = load_engine(str(model))
    size = settings.group_size
    drawn = stages.training_tasks(settings).select(range(tasks))
    specs = [EpisodeSpec(row["task"], row["seed"]) for row in drawn for _ in range(size)]
    limits = Limits(settings.eval_turns, settings.max_tokens, settings.max_turn_tokens)
    make = stages.make_env(settings)
    episodes = run_sync(play_many(specs, make, engine, codec, limits=limits, concurrency=1024))
    returns, tokens = _continuations(specs, episodes, make, engine, codec, limits)
    return _errors(specs, episodes, returns, tokens, size, settings.seed)


def _continuations(specs: Any, episodes: Any, make: Any, engine: Any, codec: Any, limits: Any) -> tuple[Any, Any]:
    """The returns of continuations of every state, and the mean tokens of one, by (episode, turn)."""
    from agentgym_envs.rollout import Fork, play_forks, run_sync
    from agentgym_envs.rollout.forks import return_from

    states = [(i, turn) for i, e in enumerate(episodes) for turn in range(1, len(e.trajectory.turns) + 1)]
    forks = [Fork.of(specs[i], episodes[i], turn) for i, turn in states for _ in range(REFERENCE + BRANCHES)]
    played = run_sync(play_forks(forks, make, engine, codec, limits=limits, concurrency=1024))
    returns, tokens = dict[Any, list[float]](), dict[Any, float]()
    for number, (i, turn) in enumerate(states):
        own = played[number * (REFERENCE + BRANCHES) : (number + 1) * (REFERENCE + BRANCHES)]
        returns[i, turn] = [return_from(p.trajectory, turn) for p in own]
        begin = episodes[i].turn_spans[turn - 1][0]
        tokens[i, turn] = fmean(sum(p.assistant_mask[begin:]) for p in own)
    return returns, tokens


def _errors(
    specs: Any, episodes: Any, returns: dict[Any, list[float]], tokens: dict[Any, float], size: int, seed: int
) -> dict[str, dict[str, float]]:
    import torch

    from agentgym_trl.advantages import AdvantageConfig, grpo
    from agentgym_trl.credit_methods import ForkPoints
    from agentgym_trl.fork_advantages import vine
    from agentgym_trl.vine import choose_turns, turn_facts

    lengths = [len(e.trajectory.turns) for e in episodes]
    exact = [[fmean(returns[i, turn][BRANCHES:]) for turn in range(1, n + 1)] + [0.0] for i, n in enumerate(lengths)]
    rewards = [[turn.reward for turn in e.trajectory.turns] for e in episodes]
    reference = np.array([r + v[1:][t] - v[t] for rs, v in zip(rewards, exact, strict=True) for t, r in enumerate(rs)])
    played = fmean(sum(e.assistant_mask) for e in episodes)
    found: dict[str, dict[str, float]] = {}

    def add(name: str, advantages: Any, extra: float) -> None:
        own = np.array([advantages[i, t] for i, n in enumerate(lengths) for t in range(n)])
        error = own - reference
        found[name] = {
            "rmse": float(np.sqrt(np.mean(error**2))),
            "bias": float(error.mean()),
            "correlation": float(np.corrcoef(own, reference)[0, 1]),
            "tokens_per_episode": played + extra,
        }

    batch = _batch(episodes, rewards, size)
    for name, options in (("GRPO", {}), ("turn-level GRPO", {"turn_level": True}), ("GiGPO", {"step_weight": 1.0})):
        advantages = grpo(batch, AdvantageConfig(scale="none", **options))
        add(name, advantages if advantages.dim() == 2 else advantages[:, None].expand_as(batch.rewards), 0.0)
    for at in ("every-turn", "random:1", "surprising:1"):
        points = ForkPoints.parse(at)
        facts = [turn_facts(episode, points) for episode in episodes]
        chosen = [(i, t) for i in range(len(specs)) for t in choose_turns(points, facts, i, size, (seed,))]
        for branches in (2, BRANCHES):
            values = torch.full_like(batch.rewards, math.nan)
            for i, turn in chosen:
                values[i, turn - 1] = fmean(returns[i, turn][:branches])
            advantages = vine(replace(batch, state_values=values), AdvantageConfig(scale="none"))
            extra = branches * sum(tokens[state] for state in chosen) / len(episodes)
            add(f"vine {at} K{branches}", advantages, extra)
    return found


def _batch(episodes: Any, rewards: Sequence[Sequence[float]], size: int) -> Any:
    """The episodes with one token per turn."""
    import torch

    from agentgym_trl.advantages import AdvantageBatch

    width = max(map(len, rewards))
    keys: dict[str, int] = {}
    table = [[*row, *[0.0] * (width - len(row))] for row in rewards]
    numbers = [[turn + 1 if turn < len(row) else 0 for turn in range(width)] for row in rewards]
    states = torch.zeros(len(rewards), width, dtype=torch.long)
    for row, episode in enumerate(episodes):
        infos = [episode.trajectory.meta, *(turn.info for turn in episode.trajectory.turns[:-1])]
        for turn, info in enumerate(infos):
            states[row, turn] = keys.setdefault(info["state_key"], len(keys) + 1)
    usable = torch.tensor([episode.trajectory.usable for episode in episodes])
    return AdvantageBatch(torch.tensor(table, dtype=torch.float64), torch.tensor(numbers), usable, size, states=states)


def show(runs: dict[str, list[dict[str, Any]]]) -> None:
    arms = [name for name in runs if name != ESTIMATES]
    label = next(iter(runs[START][0]["results"]))
    table = Table(
        "arm", "success, % [95 %]", "less GRPO [95 %]", "tokens", f"tokens to {GOAL:.0%}", "CPU s", title=label
    )
    base = success(runs["GRPO"], label) if "GRPO" in runs else None
    for name in arms:
        own = runs[name]
        values = success(own, label)
        cells = [with_interval(values), with_interval(differences(values, base)) if base else ""]
        goals = [run.get("tokens_to_goal") for run in own]
        reached = [goal for goal in goals if goal]
        goal = f"{fmean(reached):,.0f} ({len(reached)} of {len(own)})" if reached else "-"
        cpu = fmean(run["cpu_seconds"] for run in own)
        table.add_row(name, *cells, f"{fmean(run.get('tokens', 0) for run in own):,.0f}", goal, f"{cpu:.0f}")
    Console(width=120).print(table)
    if ESTIMATES in runs:
        Console(width=120).print(_estimates(runs[ESTIMATES]))


def _estimates(runs: Sequence[dict[str, Any]]) -> Table:
    table = Table(
        "method", "RMSE", "bias", "correlation", "tokens per episode", title="Advantages of turns, warm start"
    )
    for name in runs[0]["errors"]:
        means = [fmean(run["errors"][name][key] for run in runs) for key in ("rmse", "bias", "correlation")]
        tokens = fmean(run["errors"][name]["tokens_per_episode"] for run in runs)
        table.add_row(name, *(f"{value:.3f}" for value in means), f"{tokens:.0f}")
    return table


def main() -> None:
    parser = options_parser(__doc__, [101, 102, 103, 104, 105], "runs/vine")
    parser.add_argument("--scenario", choices=("textcraft", "babyai"), default="textcraft")
    parser.add_argument("--arms", nargs="+", default=[*ARMS, ESTIMATES], choices=[*ARMS, ESTIMATES])
    parser.add_argument("--steps", type=int, help="steps of every arm; by default those of the quick start")
    options = parser.parse_args()
    one = partial(run, options.work, split=options.split, steps=options.steps, scenario=options.scenario)
    run_all(options, [START, *options.arms], one, show)


if __name__ == "__main__":
    main()
