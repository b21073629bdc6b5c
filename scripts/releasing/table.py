"""The steps of a release with their results and times, as a table."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class StepResult(NamedTuple):
    """A step: its name, what it found, seconds, and True if it succeeded."""

    name: str
    found: str
    seconds: float
    ok: bool


@dataclass
class StepTable:
    """The steps so far. A failed step does not stop the next ones."""

    steps: list[StepResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if no step failed."""
        return all(step.ok for step in self.steps)

    def run(self, name: str, action: Callable[[], str]) -> None:
        """Carry out a step, which returns what it found or raises."""
        print(f"{name} ...", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            found, ok = action(), True
        except StepFailed as error:
            found, ok = str(error), False
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
            found, ok = _last_line(error), False
        self.steps.append(StepResult(name, found, time.monotonic() - began, ok))

    def render(self) -> str:
        """The table as text."""
        width = max(len(step.name) for step in self.steps)
        return "\n".join(
            f"{'ok    ' if step.ok else 'FAILED'}  {step.name:<{width}}  {step.seconds:6.1f} s  {step.found}"
            for step in self.steps
        )


class StepFailed(Exception):
    """A step found a fault."""


def require(faults: list[str], found: str) -> str:
    """Return `found`. Raises StepFailed with the first faults, if there are any."""
    if faults:
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise StepFailed("; ".join(faults[:5]) + more)
    return found


def _last_line(error: Exception) -> str:
    said = (getattr(error, "stderr", "") or getattr(error, "stdout", "") or str(error)).strip().splitlines()
    return said[-1][:300] if said else repr(error)
