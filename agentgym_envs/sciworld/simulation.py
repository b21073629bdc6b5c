"""One world of ScienceWorld in a Java machine: a task is loaded and commands are carried out, with few calls each."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.sciworld.jvm import Jvm
from agentgym_envs.sciworld.rooms import walk

SIMPLIFICATIONS = ("teleportAction", "openDoors", "selfWateringFlowerPots", "noElectricalAction", "openContainers")
"""What can be made easier; "easy" alone is a choice of them that depends on the task."""
UNKNOWN = "No known action matches that input."
"""The reply to what is no command."""
_NOTHING_SAID = (
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. "
)
WORDS = frozenset({"help", "objects", "task"})  # the simulator's interface answers these, not its parser


class Outcome(NamedTuple):
    """What came of a command.

    `score` is the simulator's, at most 1; below 0 once the task has failed. `moves` counts its ticks so far.
    """

    observation: str
    score: float
    completed: bool
    moves: int


class Simulation:
    """A world. Others may live in the same machine, and are as if they did not: see `Jvm.turn`."""

    def __init__(self, jvm: Jvm) -> None:
        """Raises EnvError."""
        self.jvm = jvm
        with jvm.turn(self):
            self._lots = jvm.new_globals()[0]
            self._globals = jvm.new_globals()
            self._interface = jvm.java.scienceworld.runtime.pythonapi.PythonInterface()
        self._agent: Any = None
        self._outcome = Outcome("", 0.0, False, 0)

    def load(self, task: str, variation: int, simplifications: str) -> Outcome:
        """Begin a task; what `look around` tells is the observation. Raises EnvError."""
        with self.jvm.turn(self, self._globals):
            self._load(task, variation, simplifications)
            return self._step("look around")

    def step(self, command: str) -> Outcome:
        """Carry out a command. Raises EnvError."""
        with self.jvm.turn(self, self._globals):
            if command.lower() in WORDS:
                return self._outcome._replace(observation=self._interface.step(command))
            return self._step(command)

    def lay_out_search(self, tours: Mapping[str, Sequence[str]]) -> None:
        """Give the simulator's expert its ways through all rooms, for this whole machine, by where they begin.

        Else it tries out ways at random, once a machine (a second or more and 200 MB), and what it does in one task
        depends on the tasks that it did before.
        """
        with self.jvm.turn(self, self._globals):
            array, known = self.jvm.java.java.lang.reflect.Array, self.jvm.java.scienceworld.goldagent.PathFinder
            texts = self.jvm.java.java.lang.Class.forName("[Ljava.lang.String;")
            split = self.jvm.java.java.util.regex.Pattern.compile("/").split
            into = {room: split("/".join(walk([room]))) for room in tours}
            for start, rooms in tours.items():
                stretches = array.newInstance(texts, len(rooms))
                for place, room in enumerate(rooms):
                    array.set(stretches, place, into[room])
                known.precomputedExhaustivePaths().put(start, stretches)

    def gold_path(self, task: str, variation: int) -> list[str]:
        """What the simulator's own expert does from here on, in one call of seconds. It is done in this world.

        Raises EnvError if the expert breaks down, or is stopped because the machine would soon seem to hang.
        """
        interface = self._interface
        with self.jvm.turn(self, self._globals):
            watch = threading.Timer(0.9 * self.jvm.call_seconds, _trip, [interface])
            watch.daemon = True
            watch.start()
            try:
                interface.taskMaker().createGoldActions(task, variation, interface)
                return self._lines(interface.getActionHistory())
            finally:
                watch.cancel()

    def look(self) -> str:
        """What `look around` would tell, for nothing."""
        with self.jvm.turn(self, self._globals):
            return str(self._agent.freeActionLook())

    def inventory(self) -> str:
        """What `inventory` would tell."""
        with self.jvm.turn(self, self._globals):
            return str(self._agent.freeActionInventory())

    def possible_actions(self) -> list[str]:
        """The forms of commands, with OBJ and LOC for the names of things and places."""
        with self.jvm.turn(self, self._globals):
            return self._lines(self._interface.getPossibleActions())

    def possible_objects(self) -> list[str]:
        """A name for each thing within reach."""
        with self._aside():
            return self._lines(self._interface.getPossibleObjects())

    def available_actions(self) -> list[str]:
        """Every command that can be carried out now, thousands in a full room."""
        with self._aside():
            return self._lines(self._interface.getValidActionObjectCombinations())

    def goal_progress(self) -> str:
        """Which subgoals are reached."""
        with self.jvm.turn(self, self._globals):
            return str(self._interface.getGoalProgressStr())

    def object_tree(self) -> str:
        """The things of the world, one in another, as JSON text."""
        with self.jvm.turn(self, self._globals):
            whole = getattr(self._interface, "getObjectTree$default$1")()
            return str(self._interface.getObjectTree(whole))

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """A turn for questions that draw lots: their own, so that the world goes on as if it had not been asked."""
        with self.jvm.turn(self._lots, [self._lots, *self._globals[1:]]):
            self._lots.setSeed(0)
            yield

    def _load(self, task: str, variation: int, simplifications: str) -> None:
        said = self._interface.load(task, variation, simplifications, False)
        if said:
            raise EnvError(f"ScienceWorld could not load {task} {variation} with {simplifications!r}: {said}")
        found, before = self._interface.agentInterface(), self._agent
        self._agent = found.get()
        for unused in (found, before) if before is not None else (found,):
            self.jvm.release(unused)  # each holds a whole house

    def _step(self, command: str) -> Outcome:
        """The interface would look around and take stock before each command, and list what may be named after it."""
        answer = self._agent.step(command)
        told, score, completed = str(answer.toString())[1:-1].rsplit(",", 2)
        self.jvm.release(answer)
        if self._agent.isInErrorState():
            raise EnvError(f"the simulator failed: {self._agent.getErrorStateMessage()}")
        moves = self._agent.getCurIterations()
        self._outcome = Outcome(told or _NOTHING_SAID, float(score), completed == "true", moves)
        return self._outcome

    def _lines(self, texts: Any) -> list[str]:
        """A Java list in one call, not one for each of its members."""
        joined = self.jvm.java.java.lang.String.join("\n", texts)
        self.jvm.release(texts)
        return joined.split("\n") if joined else []


def _trip(interface: Any) -> None:
    """Make an expert fail at its next step, for want of a book to note it in. Only the next load gives a new one."""
    with contextlib.suppress(Exception):
        getattr(interface, "currentHistory_$eq")(None)


def check_simplifications(chosen: str | Sequence[str]) -> str:
    """What makes the world easier, as the simulator reads it. Raises UsageError."""
    names = chosen.split(",") if isinstance(chosen, str) else list(chosen) if isinstance(chosen, Sequence) else [chosen]
    names = [name.strip() if isinstance(name, str) else name for name in names]
    if names in ([""], []):
        return ""
    if names == ["easy"]:
        return "easy"
    if unknown := [name for name in names if name not in SIMPLIFICATIONS]:
        raise UsageError(f'simplifications are "easy" or some of {", ".join(SIMPLIFICATIONS)}, got {unknown!r:.120}')
    return ",".join(name for name in SIMPLIFICATIONS if name in names)
