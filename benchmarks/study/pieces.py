"""The CPU study in pieces: every start and every run is a process of one thread that stops at a deadline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.study.budget import Deadline
from benchmarks.study.figures import recorded
from benchmarks.study.settings import HORIZONS, StudySettings, choose
from benchmarks.study.starts import make_start

STOPPED = 3
"""The exit code of a piece that the deadline stopped."""
START = "start"


class Job(NamedTuple):
    scenario: str
    name: str
    seed: int

    def home(self, work: Path) -> Path:
        return work / self.scenario / f"seed-{self.seed}"

    def is_done(self, work: Path) -> bool:
        return (self.home(work) / ("start.json" if self.name == START else f"{self.name}/figures.json")).exists()


def run_study(
    work: Path, scenarios: Sequence[StudySettings], seeds: Sequence[int], jobs: int, minutes: float | None, changes: Any
) -> bool:
    """Resume the study for at most `minutes`. Returns True if it is finished."""
    from agentgym_envs.rollout.run_directory import claim_directory

    for settings in scenarios:
        claim_directory(work / settings.scenario, recorded(settings), resume=True, option="--work")
    deadline = Deadline(None if minutes is None else time.time() + 60 * minutes)
    names = [settings.scenario for settings in scenarios]
    starts = [Job(name, START, seed) for seed in seeds for name in names]
    arms = [Job(name, horizon, seed) for seed in seeds for name in names for horizon in HORIZONS]
    todo = [job for job in (*starts, *arms) if not job.is_done(work)]
    for wave in (starts, arms):  # the runs of a seed begin from its start
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda job: _launch(job, work, deadline, changes), [job for job in wave if job in todo]))
    left = [job for job in todo if not job.is_done(work)]
    if left:
        Console(stderr=True).print(f"{len(left)} pieces are left; the same command goes on with them")
    return not left


def _launch(job: Job, work: Path, deadline: Deadline, changes: Mapping[str, Any]) -> None:
    """One job in a process of its own; its output is added to a file beside what it makes."""
    is_begun = job.name == START or Job(job.scenario, START, job.seed).is_done(work)
    if deadline.passed or not is_begun:
        return
    home = job.home(work)
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.study", "piece", job.scenario, job.name, str(job.seed)]
    command += ["--work", str(work), "--set", json.dumps(changes)]
    command += [] if deadline.at is None else ["--deadline", str(deadline.at)]
    threads = {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    with open(home / f"{job.name}.log", "a", encoding="utf-8") as log:
        code = subprocess.run(command, stdout=log, stderr=log, env={**os.environ, **threads}, check=False).returncode
    said = {0: "done", STOPPED: "stopped, to go on"}.get(code, f"failed ({code}): see {home / job.name}.log")
    Console(stderr=True).print(f"{job.scenario}, seed {job.seed}, {job.name}: {said}", highlight=False)


def piece(job: Job, work: Path, deadline: Deadline, changes: Mapping[str, Any]) -> int:
    """Work on a job until it is done or the deadline is there. Returns the exit code."""
    settings = replace(choose([job.scenario], changes)[0], seed=job.seed)
    home = job.home(work)
    if job.name == START:
        done = make_start(settings, home, deadline)
    else:
        from benchmarks.study.training import run_arm  # loads TRL

        done = run_arm(settings, job.name, home, deadline)
    return 0 if done else STOPPED
