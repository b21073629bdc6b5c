"""Answers and entropy by what the loss divides by: invented worlds and GRPO, one seed.

    python benchmarks/loss_types.py --out benchmarks/results/loss_types.json

All arms begin from the same warm start. Means over every ten of the first `--steps` steps of training. Runs that are in
`--work` already are read, also unfinished ones with enough steps, so that the whole can be stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import warnings
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

ARMS: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo"},
    "dapo": {"loss_type": "dapo"},
}
SERIES = ("entropy", "rollout/truncated_answers", "rollout/success", "rollout/turns")
EVERY = 10


def measure(work: Path, steps: int, seed: int) -> dict[str, list[dict[str, float]]]:
    """Train every arm that is not in `work` yet, and return its means."""
    import torch
    from rich.console import Console

    from agentgym_trl.callbacks import read_metrics
    from agentgym_trl.demo import stages
    from benchmarks.invented_worlds import InventedWorlds

    torch.set_num_threads(1)
    settings, console = InventedWorlds(seed=seed), Console(stderr=True)
    found = {}
    for name, options in ARMS.items():
        if len(_steps(read_metrics(work / name / "metrics.jsonl"))) < steps:
            if not (work / "warm" / "config.json").exists():
                demonstrations = stages.make_demonstrations(work, settings)
                stages.warm_start(
                    stages.make_tiny_model(work, settings), work / "warm", demonstrations, settings, console
                )
            stages.reinforce(work / "warm", work / name, settings, console, name, **options)
        found[name] = means(stages.training_curve(work / name), steps)
    return found


def means(rows: list[dict[str, Any]], steps: int) -> list[dict[str, float]]:
    """The means over every ten of the first `steps` steps."""
    trained = _steps(rows)[:steps]
    return [
        {"step": first + EVERY, **{name: round(fmean(row[name] for row in part), 3) for name in SERIES}}
        for first in range(0, len(trained), EVERY)
        if (part := trained[first : first + EVERY])
    ]


def _steps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if "entropy" in row]


def main() -> None:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="directory for the runs; by default a temporary one")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = measure(options.work or Path(temporary), options.steps, options.seed)
    result = {"steps": options.steps, "seed": options.seed, "arms": found}
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
