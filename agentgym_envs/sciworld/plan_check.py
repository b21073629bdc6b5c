"""A world beside those of the episodes, in which plans are made and tried out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.errors import EnvError
from agentgym_envs.sciworld.jvm import Jvm
from agentgym_envs.sciworld.rooms import ROOMS, room_told, tour
from agentgym_envs.sciworld.simulation import WORDS, Outcome, Simulation

_MENU = "Ambiguous request"


class Problem(NamedTuple):
    """A task as the simulator knows it."""

    task: str
    variation: int
    simplifications: str


class Step(NamedTuple):
    """A command and what came of it.

    `deed` is the command, with that whose menu it answers before it; "" if it changed nothing. `room` is where it was
    given; `menu` says that a menu waits for an answer after it.
    """

    command: str
    outcome: Outcome
    deed: str
    room: str
    menu: bool


class Scratch:
    """The world. Hold `lock` while something is planned: threads share it."""

    def __init__(self, jvm: Jvm) -> None:
        """Raises EnvError."""
        self.lock = threading.Lock()
        self.room = ROOMS[0]
        """Where what was played last ended."""
        self._world = Simulation(jvm)
        self._world.lay_out_search({room: tour(room) for room in ROOMS})

    def play(self, problem: Problem, commands: Sequence[str]) -> list[Step]:
        """What comes of commands from the beginning on; up to the end of the episode, or until the simulator fails."""
        before, steps, menu = self._world.load(*problem), list[Step](), ""
        self.room = room_told(before.observation) or ROOMS[0]
        for command in commands:
            try:
                outcome = self._world.step(command)
            except EnvError:
                self._check_machine()
                break
            idle = (outcome.moves, outcome.score) == (before.moves, before.score)
            deed = "" if idle else f"{menu}{command}".lower()
            if command.lower() not in WORDS:  # these leave a menu open
                menu = f"{command}\n" if outcome.observation.startswith(_MENU) else ""
            steps.append(Step(command, outcome, deed, self.room, bool(menu)))
            self.room, before = room_told(outcome.observation) or self.room, outcome
            if outcome.completed or outcome.score < 0:
                break
        return steps

    def gold_path(self, problem: Problem, done: Sequence[str]) -> list[str]:
        """What the simulator's expert does after the commands `done`, be it a solution or not; [] if it breaks down."""
        self.play(problem, done)
        try:
            return self._world.gold_path(problem.task, problem.variation)
        except EnvError:
            self._check_machine()
            return []

    def _check_machine(self) -> None:
        """To be called while an EnvError is handled: raises it again unless only the world is broken."""
        if not self._world.jvm.alive:
            raise
