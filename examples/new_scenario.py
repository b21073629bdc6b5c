"""A complete custom scenario: find the commit that broke a test, with as few builds as possible.

    agentgym play  examples.new_scenario:Tutorial/Bisect-v0
    agentgym solve examples.new_scenario:Tutorial/Bisect-v0 --task bisect/64/3

Run from the root of the repository, so that Python finds the folder `examples`. docs/tutorials/new-scenario.md explains
how to write a scenario.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from agentgym_envs import InvalidAction, Task, TaskTable, TextEnv, Transition, register

SIZES = (8, 64, 512)
SYMPTOMS = ("test_login", "test_checkout", "test_unicode", "test_leap_year", "test_retry", "test_empty_file")
VERBS = ("fix", "speed up", "tidy", "document", "rewrite", "simplify", "revert")
THINGS = ("the parser", "the cache", "date handling", "logging", "the retry loop", "the tests", "the config reader")
SHOWN = 64
"""The maximum number of lines to show. `log A B` shows other parts of a longer log."""


def make_tasks() -> list[Task]:
    """Make up to forty culprits per size, each in one split only."""
    tasks = []
    for size in SIZES:
        culprits = random.Random(size).sample(range(1, size), min(40, size - 1))
        for number, culprit in enumerate(culprits):
            split = ("train", "train", "train", "validation", "test")[number % 5]
            symptom = SYMPTOMS[culprit % len(SYMPTOMS)]
            goal = f"find the commit, one of {size}, that broke {symptom} (case {number})"
            data = {"size": size, "culprit": culprit, "symptom": symptom}
            tasks.append(Task(f"bisect/{size}/{number}", split, f"commits-{size}", goal, data))
    return tasks


class BisectEnv(TextEnv):
    """Find the first bad commit.

    The task sets the number of commits and the culprit. The seed determines hashes and messages, so that each task has
    many histories that cannot be memorized. A correct answer is worth 1 if it took at most the builds of a binary
    search, otherwise that number divided by the builds. A wrong answer ends the episode.
    """

    tasks = TaskTable("bisect", 1, make_tasks())
    rules = (
        "A test passes at the first commit of a history and fails at the last. Find the commit that broke it, with as "
        "few builds as you can. You know three actions:\n"
        "build <number>\n    Build that commit and run the test.\n"
        "log <first> <last>\n    Show a part of the history.\n"
        "blame <number>\n    Name the commit that broke the test. This ends the episode."
    )

    def __init__(self, **options: Any) -> None:
        """`options` are those of `TextEnv`: grammar, split, groups, instructions, render_mode."""
        super().__init__(**options)
        self._log: list[str] = []
        self._good, self._bad, self._builds, self._culprit = 0, 0, 0, 0

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        size = task.data["size"]
        self._log = [f"{n} {rng.bytes(3).hex()} {rng.choice(VERBS)} {rng.choice(THINGS)}" for n in range(size)]
        self._good, self._bad, self._builds, self._culprit = 0, size - 1, 0, task.data["culprit"]
        shown = self._log if size <= SHOWN else [*self._log[:3], "...", *self._log[-3:]]
        return "\n".join([*shown, f"{task.data['symptom']} passes at 0 and fails at {size - 1}."])

    def _act(self, command: str) -> Transition:
        match command.split():
            case ["build", text]:
                return self._build(self._number(text))
            case ["log", first, last]:
                return Transition(
                    "\n".join(self._log[self._number(first) : self._number(last) + 1][:SHOWN]) or "Empty."
                )
            case ["blame", text]:
                return self._blame(self._number(text))
        raise InvalidAction(
            f"Unknown action: {command[:80]}. Use build <number>, log <first> <last> or blame <number>."
        )

    def _build(self, commit: int) -> Transition:
        self._builds += 1
        if broken := commit >= self._culprit:
            self._bad = min(self._bad, commit)
        else:
            self._good = max(self._good, commit)
        return Transition(
            f"Commit {commit}: the test {'fails' if broken else 'passes'}.", info={"builds": self._builds}
        )

    def _blame(self, commit: int) -> Transition:
        if commit != self._culprit:
            return Transition(f"No, it was {self._log[self._culprit]}.", 0.0, True, success=False)
        needed = math.ceil(math.log2(len(self._log) - 1))
        return Transition("Yes, that is the one.", needed / max(needed, self._builds), True, success=True)

    def _number(self, text: str) -> int:
        """Parse a commit number. Raises InvalidAction, whose text is the reply to the policy."""
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1
        if not 0 <= number < len(self._log):
            raise InvalidAction(f"Commits have the numbers 0 to {len(self._log) - 1}, and {text[:20]} is none.")
        return number

    def _state(self) -> str:
        """Equal texts mean equal states: the known range and the builds, independent of their order."""
        return f"{self._good} {self._bad} {self._builds}"

    def _plan(self) -> Sequence[str]:
        """Plan a binary search that uses only the results of its own builds."""
        return list(self._search(self._good, self._bad))

    def _search(self, good: int, bad: int) -> Iterator[str]:
        while bad - good > 1:
            middle = (good + bad) // 2
            yield f"build {middle}"
            good, bad = (good, middle) if middle >= self._culprit else (middle, bad)
        yield f"blame {bad}"

    def _details(self) -> dict[str, Any]:
        return {"builds": self._builds, "commits": len(self._log)}

    def random_command(self, rng: random.Random) -> str:
        """Guess within the known range: the lower bound for comparisons."""
        command = "blame" if self._bad - self._good == 1 else rng.choice(("build", "build", "blame"))
        return f"{command} {rng.randint(self._good + 1, self._bad)}"


register("Tutorial/Bisect-v0", "examples.new_scenario:BisectEnv")
