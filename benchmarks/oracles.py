"""Teaching with the oracle at equal CPU time: DAgger, distillation and process rewards, with their controls.

    python -m benchmarks.oracles [--work DIR] [--out benchmarks/results/oracles.json] [--seeds 101 102 103 104 105]
    python -m benchmarks.oracles --scenario babyai --work runs/oracles-babyai ...

The policy and the task are those of the quick start: the warm start has imitated a careless teacher. Every seed has its
own warm start, from which all arms continue. Their numbers of steps take about the CPU time of GRPO; the seconds, the
sampled tokens and the labels of the oracle are in the result.

- "DAgger" imitates the oracle in the states that the policy visits, "oracle clone" in those that the oracle visits: the
  same tasks and steps, but another distribution of states. "few labels" play a quarter of the episodes.
- "distill" does the same as DAgger in every step of an online run. On BabyAI it plays each task once and takes several
  optimizer steps per rollout with the learning rate of the warm start, as a user of imitation would.
- "turn-level GRPO" and "PPO" (without bootstrapping) are the controls of the process rewards "regret" and "agreement".
- "more imitation" and "AgentEvol" (of the careless teacher) and "GRPO" ask no oracle.

A run takes one process, one thread and about a minute of CPU time. Finished runs in `--work` are read. Several
processes with the same `--work` share the runs.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import algorithms
from benchmarks.algorithms import START, figures_of, success
from benchmarks.seed_runs import differences, options_parser, run_all, with_interval

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

ROUNDS: dict[str, tuple[float, int]] = {
    "DAgger": (0.0, 4),
    "oracle clone": (1.0, 4),
    "DAgger, few labels": (0.0, 1),
    "oracle clone, few labels": (1.0, 1),
}
"""The arms with rounds: the oracle's share of turns, and the episodes per task of a round."""
TASKS: dict[str, int | None] = {"textcraft": None, "babyai": 75}
STEPS = {"textcraft": 240, "babyai": 100}
"""Tasks and steps of a round, chosen on the CPU seconds of a pilot seed."""
PPO = {**algorithms.ONLINE["PPO"], "bootstrap_truncated_episodes": False}
ONLINE: dict[str, dict[str, Any]] = {
    "GRPO": {},
    "distill": {"algorithm": "distill"},
    "turn-level GRPO": {"turn_level_advantage": True},
    "turn-level GRPO, regret": {"turn_level_advantage": True, "process_reward": "regret"},
    "turn-level GRPO, agreement": {"turn_level_advantage": True, "process_reward": "oracle-agreement"},
    "PPO": PPO,
    "PPO, regret": {**PPO, "process_reward": "regret"},
    "PPO, agreement": {**PPO, "process_reward": "oracle-agreement"},
}
OWN: dict[tuple[str, str], dict[str, Any]] = {
    ("babyai", "distill"): {
        "num_generations": 1,
        "per_device_train_batch_size": 24,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 4,
        "max_steps": 40,
        "learning_rate": 4e-3,
    }
}
"""Further options of an online arm in one scenario, chosen on the validation tasks of pilot seed 11."""
OFFLINE = ("more imitation", "AgentEvol")
ARMS = (*ONLINE, *ROUNDS, *OFFLINE)


def run(work: Path, seed: int, name: str, scenario: str, split: str) -> None:
    """Make a warm start or train an arm, and write the figures down."""
    from agentgym_trl.demo import arms, stages
    from agentgym_trl.demo.settings import SCENARIOS

    settings, out, console = SCENARIOS[scenario](seed=seed), work / f"seed-{seed}", Console(quiet=True)
    began = time.process_time()
    if name in ONLINE:
        own = replace(settings, steps=round(algorithms.PPO_SHARE * settings.steps)) if "PPO" in name else settings
        options = {**ONLINE[name], **OWN.get((scenario, name), {})}
        model = stages.reinforce(out / arms.folder(arms.WARM), out / arms.folder(name), own, console, name, **options)
        facts = online_facts(stages.training_curve(model))
    elif name in ROUNDS:
        model, facts = imitate_oracle(out / arms.folder(arms.WARM), out / arms.folder(name), settings, name, scenario)
    else:
        model, facts = algorithms.train(name, out, settings, console)
    spent = time.process_time() - began
    results = {m.name: asdict(m.metrics) for m in stages.measure(model, settings, split)}
    figures = {"arm": name, "seed": seed, "cpu_seconds": round(spent, 1), **facts, "results": results}
    figures_of(work, name, seed).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def online_facts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Sampled tokens, labels, and the curve of success in training."""
    rows = [row for row in rows if "rollout/success" in row]
    return {
        "tokens": sum(row["rollout/tokens"] for row in rows),
        "labels": sum(row.get("oracle/labelled", 0.0) for row in rows),
        "oracle_seconds": sum(row.get("time/oracle", 0.0) for row in rows),
        "curve": [[int(row["step"]), row["rollout/success"]] for row in rows],
    }


def imitate_oracle(warm: Path, out: Path, settings: Any, name: str, scenario: str) -> tuple[Path, dict[str, Any]]:
    """Rounds of labels of the oracle. A round goes on from the model of the last one."""
    from agentgym_envs.rollout import Limits
    from agentgym_trl.dagger import DaggerSettings, OracleShare, dagger
    from agentgym_trl.demo import stages
    from agentgym_trl.exploration import PlaySettings
    from agentgym_trl.models import load_tokenizer, make_codec

    share, episodes = ROUNDS[name]
    play = PlaySettings(Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens))
    wanted = DaggerSettings(
        rounds=settings.evol_rounds,
        tasks=TASKS[scenario],
        episodes_per_task=episodes,
        groups=settings.groups,
        play=play,
        seed=settings.seed,
        oracle_share=OracleShare((share,)),
        start="last",
    )
    args = stages.sft_config(out, settings, steps=STEPS[scenario], learning_rate=settings.imitation_learning_rate)
    codec = make_codec(load_tokenizer(str(warm)))
    rounds = dagger(warm, [], stages.make_env(settings), codec, args, wanted, console=Console(quiet=True))
    played = [turn for found in rounds for t in found.explored() for turn in t.turns]
    facts = {
        "tokens": sum(turn.info["tokens"] for turn in played if not turn.info["oracle"]["played"]),
        "labels": sum(found.metrics["labelled"] for found in rounds),
        "oracle_seconds": sum(found.metrics["oracle_seconds"] for found in rounds),
        "agreement": [found.metrics["agreement"] for found in rounds],
        "curve": [[found.number, found.metrics["success"]] for found in rounds],
    }
    return rounds[-1].model, facts


def show(runs: dict[str, list[dict[str, Any]]]) -> None:
    for label in list(runs[START][0]["results"])[::2]:
        table = Table("arm", "success, % [95 %]", "less GRPO [95 %]", "turns", "tokens", "labels", "CPU s", title=label)
        base = success(runs["GRPO"], label) if "GRPO" in runs else None
        for name, own in runs.items():
            values = success(own, label)
            cells = [with_interval(values), with_interval(differences(values, base)) if base else ""]
            turns = fmean(run["results"][label]["turns"] for run in own)
            sums = [f"{fmean(run.get(key, 0) for run in own):,.0f}" for key in ("tokens", "labels", "cpu_seconds")]
            table.add_row(name, *cells, f"{turns:.1f}", *sums)
        Console(width=120).print(table)


def main() -> None:
    parser = options_parser(__doc__, [101, 102, 103, 104, 105], "runs/oracles")
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--scenario", default="textcraft", choices=("textcraft", "babyai"))
    options = parser.parse_args()
    one = partial(run, options.work, scenario=options.scenario, split=options.split)
    run_all(options, [START, *options.arms], one, show)


if __name__ == "__main__":
    main()
