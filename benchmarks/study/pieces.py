"""The CPU study in pieces: every start and every run is a process of one thread that stops at a deadline.

The processes are forked, so `run` starts no threads of its libraries before.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.seed_runs import claimed
from benchmarks.study import collapse
from benchmarks.study.arms import ARMS, seeds_of
from benchmarks.study.budget import Deadline
from benchmarks.study.figures import recorded
from benchmarks.study.settings import FIRST_SEED, SCENARIOS, StudySettings, choose
from benchmarks.study.starts import make_starts, slug

STOPPED = 3
"""The exit code of a piece that the deadline stopped."""
_FORK = multiprocessing.get_context("fork")
"""A new interpreter would import TRL and what it needs for eight seconds, of about 65 that a run takes."""


class Job(NamedTuple):
    """A piece of work: the warm starts of a seed, or a run of an arm."""

    scenario: str
    seed: int
    start: str = ""
    arm: str = ""
    """Both empty: the warm starts."""

    @property
    def title(self) -> str:
        """Its name for the reader."""
        return f"{self.scenario}, seed {self.seed}, {f'{self.start}, {self.arm}' if self.arm else 'warm starts'}"

    def home(self, work: Path) -> Path:
        """The directory of the seed."""
        return work / self.scenario / f"seed-{self.seed}"

    def log(self, work: Path) -> Path:
        """The output of its process."""
        return self.home(work) / f"{slug(f'{self.start} {self.arm}'.strip() or 'start')}.log"

    def result(self, work: Path) -> Path:
        """The file that is written last."""
        if self.arm:
            return self.home(work) / slug(self.start) / slug(self.arm) / "figures.json"
        return self.home(work) / slug(SCENARIOS[self.scenario].starts[-1]) / "start.json"


def jobs_of(
    scenarios: Sequence[StudySettings], seeds: Sequence[int], starts: Sequence[str], arms: Sequence[str]
) -> list[list[Job]]:
    """The jobs of each seed and scenario, in the order in which they can be done: its warm starts come first."""
    found = [[Job(one.scenario, seed), *_runs(one, seed, starts, arms)] for seed in seeds for one in scenarios]
    return [jobs for jobs in found if len(jobs) > 1]


def _runs(settings: StudySettings, seed: int, starts: Sequence[str], arms: Sequence[str]) -> Iterator[Job]:
    """The runs of a seed; a pilot seed has all."""
    for start, arm in product(starts, arms):
        limit = seeds_of(settings, start, arm) if arm in ARMS else collapse.seeds_of(settings.scenario, start)
        if seed - FIRST_SEED < limit:
            yield Job(settings.scenario, seed, start, arm)


def run_study(
    work: Path,
    scenarios: Sequence[StudySettings],
    jobs: Sequence[Sequence[Job]],
    processes: int,
    minutes: float | None,
    changes: Any,
) -> bool:
    """Resume the study for at most `minutes`. Returns True if it is finished."""
    import torch

    import benchmarks.study.training  # noqa: F401 (once for all pieces)
    from agentgym_envs.rollout.run_directory import claim_directory

    torch.set_num_threads(1)  # one core for each process
    for settings in scenarios:
        claim_directory(work / settings.scenario, recorded(settings), resume=True, option="--work")
    deadline = Deadline(None if minutes is None else time.time() + 60 * minutes)

    def work_off(own: Sequence[Job]) -> None:
        for job in own:
            _launch(job, work, deadline, changes)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(work_off, jobs))
    left = [job for own in jobs for job in own if not job.result(work).exists()]
    if left:
        Console(stderr=True).print(f"{len(left)} pieces are left; the same command goes on with them")
    return not left


def _launch(job: Job, work: Path, deadline: Deadline, changes: Mapping[str, Any]) -> None:
    """One job in a process of its own; its output is added to a file beside what it makes."""
    can_begin = not job.arm or Job(job.scenario, job.seed).result(work).exists()
    if deadline.passed or job.result(work).exists() or not can_begin:
        return
    with claimed(job.result(work)) as mine:
        if mine:
            _fork(job, work, deadline, changes)


def _fork(job: Job, work: Path, deadline: Deadline, changes: Mapping[str, Any]) -> None:
    child = _FORK.Process(target=_piece_into_log, args=(job, work, deadline, changes))
    child.start()
    child.join()
    failed = f"failed ({child.exitcode}): see {job.log(work)}"
    said = {0: "done", STOPPED: "stopped, to go on"}.get(child.exitcode or 0, failed)
    Console(stderr=True).print(f"{job.title}: {said}", highlight=False)


def _piece_into_log(job: Job, work: Path, deadline: Deadline, changes: Mapping[str, Any]) -> None:
    """Never returns: the exit of a process that a thread has forked waits for threads that it does not have."""
    with open(job.log(work), "a", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    code = 1
    try:
        code = piece(job, work, deadline, changes)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def piece(job: Job, work: Path, deadline: Deadline, changes: Mapping[str, Any]) -> int:
    """Work on a job until it is done or the deadline is there. Returns the exit code."""
    settings = replace(choose([job.scenario], changes)[0], seed=job.seed)
    home = job.home(work)
    if not job.arm:
        done = make_starts(settings, home, deadline)
    else:
        from benchmarks.study.training import run_arm  # loads TRL

        done = run_arm(settings, (ARMS | collapse.LAB)[job.arm], home / slug(job.start), deadline)
    return 0 if done else STOPPED
