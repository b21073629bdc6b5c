"""The task that every side of `benchmarks.peers` plays, and how it is timed. Standard library and psutil only.

The environment only returns 600 characters and counts, so the measured time is the library's overhead. Each side plays
episodes of 30 steps, resets included, and prints JSON: its version, and the CPU and wall microseconds per step of each
figure. CPU is that of the process and all its children (servers, workers).
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

EPISODE = 30
TEXT = "x" * 580
TOGETHER = 32


class Task:
    """Returns the number of the turn. An episode has 30 turns."""

    def __init__(self) -> None:
        self.turn = 0

    def begin(self) -> str:
        """The first text."""
        self.turn = 0
        return f"Turn {self.turn}. {TEXT}"

    def act(self, action: str) -> tuple[str, bool]:
        """The next text, and whether the episode is over."""
        self.turn += 1
        return f"Turn {self.turn}. {TEXT}", self.turn >= EPISODE


def cpu() -> float:
    """Seconds of this process and of its children."""
    seconds = time.process_time()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            seconds += sum(process.cpu_times()[:2])
    return seconds


def timed(episodes: Callable[[], int], seconds: float) -> dict[str, float]:
    """CPU and wall microseconds a step; `episodes` plays some and returns how many steps these had."""
    episodes()
    steps, spent, began = 0, cpu(), time.perf_counter()
    while not steps or time.perf_counter() - began < seconds:
        steps += episodes()
    wall = time.perf_counter() - began
    return {"cpu": 1e6 * (cpu() - spent) / steps, "wall": 1e6 * wall / steps}


def print_figures(distribution: str, figures: dict[str, Any]) -> None:
    """Print what a side found."""
    json.dump({"version": importlib.metadata.version(distribution), "figures": figures}, sys.stdout)


def seconds() -> float:
    """Seconds of measurement per figure, from the command line."""
    return float(sys.argv[1])
