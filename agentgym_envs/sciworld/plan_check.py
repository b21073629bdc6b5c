"""A separate world in which plans are made and played."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.errors import EnvError
from agentgym_envs.sciworld.jvm import Jvm
from agentgym_envs.sciworld.rooms import ROOMS, room_in, tour
from agentgym_envs.sciworld.simulation import WORDS, CommandOutcome, Simulation

_MENU = "Ambiguous request"


class PlanningTask(NamedTuple):
    """A task, as the simulator identifies it."""

    task: str
    variation: int
    simplifications: str


class PlayedCommand(NamedTuple):
    """A command and its outcome.

    `effect` is the command in lower case, after the command whose menu it answers, if any; "" if it changed nothing.
    `room` is the room where it was given. `menu` is true if a menu is open after it.
    """

    command: str
    outcome: CommandOutcome
    effect: str
    room: str
    menu: bool


class PlanChecker:
    """Plays plans in a world of its own. Threads share it, so hold `lock` while planning."""

    def __init__(self, jvm: Jvm) -> None:
        """Create the world. Raises EnvError."""
        self.lock = threading.Lock()
        self.room = ROOMS[0]
        """The room at the end of the last commands played."""
        self._world = Simulation(jvm)
        self._world.set_search_paths({room: tour(room) for room in ROOMS})

    def play(self, problem: PlanningTask, commands: Sequence[str]) -> list[PlayedCommand]:
        """Play commands from the initial state, until the episode ends or the simulator fails."""
        before, steps, menu = self._world.load(*problem), list[PlayedCommand](), ""
        self.room = room_in(before.observation) or ROOMS[0]
        for command in commands:
            try:
                outcome = self._world.step(command)
            except EnvError:
                self._check_jvm()
                break
            idle = (outcome.moves, outcome.score) == (before.moves, before.score)
            effect = "" if idle else f"{menu}{command}".lower()
            if command.lower() not in WORDS:  # these do not close a menu
                menu = f"{command}\n" if outcome.observation.startswith(_MENU) else ""
            steps.append(PlayedCommand(command, outcome, effect, self.room, bool(menu)))
            self.room, before = room_in(outcome.observation) or self.room, outcome
            if outcome.completed or outcome.score < 0:
                break
        return steps

    def gold_path(self, problem: PlanningTask, done: Sequence[str]) -> list[str]:
        """Return the expert's path after `done`, which may not solve the task; [] if the expert crashes."""
        self.play(problem, done)
        try:
            return self._world.gold_path(problem.task, problem.variation)
        except EnvError:
            self._check_jvm()
            return []

    def _check_jvm(self) -> None:
        """Re-raise the EnvError that is being handled if the JVM has ended."""
        if not self._world.jvm.alive:
            raise
