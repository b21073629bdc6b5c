"""CPU seconds until a training command can begin, against TRL's own commands.

    python -m benchmarks.startup [--out FILE.json] [--repeats 5]

Each command runs in a process of its own, in turns. "help" prints the options of GRPO; "imports" is all that a training
command imports before it loads a model: for TRL the module of `trl grpo`, with the trainer. These processes end as soon
as the imports are done: taking thousands of modules down again takes a second, after the training.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import machine, run

BIN = Path(sys.executable).parent
GOAL = 5.0
"""CPU seconds of our imports, on a quiet machine."""
_END = "import os; os._exit(0)"
_OURS = f"""
import sys
from agentgym_trl.cli.imports import only_needed
sys.argv[1:] = ["train", "grpo"]
with only_needed(["grpo"]):
    import agentgym_trl.cli.online, agentgym_trl.trainer
{_END}
"""
_THEIRS = f"import trl.scripts.grpo; from trl import GRPOTrainer; {_END}"
COMMANDS: dict[str, tuple[Sequence[str | Path], Sequence[str | Path]]] = {
    "help": ([BIN / "agentgym", "train", "grpo", "--help"], [BIN / "trl", "grpo", "--help"]),
    "imports": ([sys.executable, "-c", _OURS], [sys.executable, "-c", _THEIRS]),
}
"""Our command and TRL's."""
_SIDES = ("ours", "TRL")


def cpu_seconds(command: Sequence[str | Path]) -> float:
    """User and system time of a command, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    offline = {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **offline}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(repeats: int) -> dict[str, Any]:
    """The seconds of every command and repeat; the first, which fills caches of files, is left out."""
    seconds: dict[str, list[float]] = {f"{side}, {name}": [] for name in COMMANDS for side in _SIDES}
    for repeat in range(repeats + 1):
        for name, commands in COMMANDS.items():
            for side, command in zip(_SIDES, commands, strict=True):
                took = cpu_seconds(command)
                if repeat:
                    seconds[f"{side}, {name}"].append(round(took, 2))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {"machine": machine(), "repeats": repeats, "median": medians, "samples": seconds}


def show(result: dict[str, Any]) -> None:
    """Medians, ranges and the ratio."""
    table = Table("CPU seconds", *_SIDES, "TRL / ours", "goal")
    for name in COMMANDS:
        ours, theirs = (result["samples"][f"{side}, {name}"] for side in _SIDES)
        cells = [f"{statistics.median(v):.1f} ({min(v):.1f} – {max(v):.1f})" for v in (ours, theirs)]
        table.add_row(name, *cells, f"{statistics.median(theirs) / statistics.median(ours):.2f}", f"<= {GOAL:g}")
    Console().print(table)


if __name__ == "__main__":
    run(__doc__, measure, show, repeats=5)
