"""Measure the overhead of each library around the same small environment, in microseconds per step.

    python -m benchmarks.peers [--out benchmarks/results/peers.json] [--repeats 5] [--seconds 1] [--cache DIR]

An environment that returns 600 characters and counts its turns (`benchmarks.peer_sides.task`), written for each library
after its documentation: ours, Gymnasium's vector environments, OpenEnv's server and client, SkyRL Gym and TextArena.
Episodes have 30 steps, resets included. A library that this Python lacks in the pinned version is first installed into
its own virtual environment. The libraries alternate in every repeat. CPU is that of the process with its workers and
servers. A library that cannot be installed, or fails in every repeat, is reported as not run; one that fails in some
repeats keeps the others, and its failures are reported. If ours fails, there is no result.

The libraries do different work. Ours parses actions by a grammar, returns infos and a state key, and turns failures
into data; OpenEnv checks types and uses a socket; TextArena returns the whole game at every turn. A ratio compares
costs, not quality.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import machine
from benchmarks.report.text import gaps
from benchmarks.report.venvs import ROOT, Venv, cache_folder, lacking, thread_limits

SIDES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "gymnasium": ("benchmarks.peer_sides.gymnasium_side", ("gymnasium==1.4.0", "psutil")),
    "openenv": ("benchmarks.peer_sides.openenv_side", ("openenv==0.10.0", "psutil")),
    "skyrl-gym": ("benchmarks.peer_sides.skyrl_side", ("skyrl-gym==0.4.0", "psutil")),
    "textarena": ("benchmarks.peer_sides.textarena_side", ("textarena==0.7.4", "psutil")),
}
OURS = "agentgym-envs"
TIMEOUT = 600.0
"""Seconds that a side may take for a repeat."""
PAIRS = (
    ("one environment", "one", "gymnasium", "one"),
    ("one environment", "one", "skyrl-gym", "one"),
    ("one environment", "one", "textarena", "one"),
    ("32 environments", "make_vec, inline", "gymnasium", "SyncVectorEnv"),
    ("32 environments in processes", "make_vec, processes", "gymnasium", "AsyncVectorEnv"),
    ("one environment on a server", "served, one", "openenv", "one"),
    ("32 environments on a server", "served, make_vec", "openenv", "together"),
)
"""Comparisons: a title, our figure, the baseline library and its figure."""


def pythons(cache: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The Python of each available library, and the reasons for the missing ones."""
    found, missing = dict[str, str](), dict[str, str]()
    for name, (_, requirements) in SIDES.items():
        if not lacking(requirements):
            found[name] = sys.executable
            continue
        try:
            found[name] = str(Venv(cache / f"peer-{name}").ensure(requirements))
        except subprocess.CalledProcessError as error:
            missing[name] = _reason(error)
    return found, missing


def play(python: str, module: str, seconds: float) -> dict[str, Any]:
    """The figures of one side. Raises CalledProcessError and TimeoutExpired; nothing it started is left running."""
    command, pipe = [python, "-m", module, str(seconds)], subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=thread_limits(), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as side:
        try:
            out, said = side.communicate(timeout=TIMEOUT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(side.pid, signal.SIGKILL)  # a side that dies does not stop its server
    if side.returncode:
        raise subprocess.CalledProcessError(side.returncode, command, out, said)
    return json.loads(out.strip().splitlines()[-1])


def measure(repeats: int, seconds: float, cache: Path) -> dict[str, Any]:
    """Every figure; the libraries take turns."""
    there, missing = pythons(cache)
    sides = {OURS: (sys.executable, "benchmarks.peer_sides.ours")}
    sides |= {name: (python, SIDES[name][0]) for name, python in there.items()}
    rows: dict[str, Any] = {}
    failed: dict[str, list[str]] = {}
    for _ in range(repeats):
        for name, (python, module) in sides.items():
            try:
                found = play(python, module, seconds)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                if name == OURS:
                    raise SystemExit(f"{name}: {_reason(error)}") from error
                failed.setdefault(name, []).append(_reason(error))
                continue
            note(rows.setdefault(name, {"version": found["version"], "samples": {}}), found["figures"])
    for name, row in rows.items():
        row["median"] = {figure: statistics.median(values) for figure, values in row["samples"].items()}
        row["failed"] = failed.get(name, [])
    missing |= {name: reasons[-1] for name, reasons in failed.items() if name not in rows}
    return {"machine": machine(), "repeats": repeats, "seconds": seconds, "sides": rows, "not run": missing}


def note(row: dict[str, Any], figures: Mapping[str, Mapping[str, float]]) -> None:
    """Add a repeat to the samples."""
    for figure, kinds in figures.items():
        for kind, value in kinds.items():
            row["samples"].setdefault(f"{figure}, {kind} us", []).append(round(value, 3))


def _reason(error: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"not done after {error.timeout:g} seconds"
    said = (error.stderr or "").strip().splitlines()
    return said[-1][:200] if said else f"exit status {error.returncode}"


def show(result: Mapping[str, Any]) -> None:
    table = Table(title=f"CPU microseconds a step, resets included; median of {result['repeats']} repeats")
    for column in ("", "ours", "", "theirs", "theirs / ours"):
        table.add_column(column, justify="right" if column else "left")
    for title, own, name, other in PAIRS:
        if name not in result["sides"]:
            continue
        ours = result["sides"][OURS]["median"][f"{own}, cpu us"]
        theirs = result["sides"][name]["median"][f"{other}, cpu us"]
        whose = f"{name} {result['sides'][name]['version']}, {other}"
        table.add_row(title, f"{ours:,.1f}", whose, f"{theirs:,.1f}", f"{theirs / ours:.2f}")
    Console(width=120).print(table)
    for line in gaps(result):
        Console().print(line, markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--repeats", type=int, default=5, help="how often everything is measured (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each figure (default: 1)")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="where virtual environments are kept")
    options = parser.parse_args()
    result = measure(options.repeats, options.seconds, options.cache)
    show(result)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
