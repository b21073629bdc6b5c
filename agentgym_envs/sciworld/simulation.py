"""A world of ScienceWorld in a JVM: loading a task and carrying out commands, with few calls to Java."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.sciworld.jvm import Jvm
from agentgym_envs.sciworld.rooms import walk_commands

SIMPLIFICATIONS = ("teleportAction", "openDoors", "selfWateringFlowerPots", "noElectricalAction", "openContainers")
"""The simulator's simplifications; "easy" alone selects its choice for the task."""
UNKNOWN = "No known action matches that input."
"""The reply to an unknown command."""
_NO_RESULT = (
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. "
)
EXPERT_COMMANDS = 1_500
"""The largest number of commands of the expert. The longest of its paths that we know has 761."""
WORDS = frozenset({"help", "objects", "task"})  # the simulator's interface answers these, not its parser


class CommandOutcome(NamedTuple):
    """The outcome of a command.

    `score` is the simulator's score: at most 1, and below 0 once the task has failed. `moves` counts the ticks so far.
    """

    observation: str
    score: float
    completed: bool
    moves: int


class Simulation:
    """A world. Several worlds in a JVM do not affect each other; see `Jvm.exclusive`."""

    def __init__(self, jvm: Jvm) -> None:
        """Create the world. Raises EnvError."""
        self.jvm = jvm
        with jvm.exclusive(self):
            self._query_random = jvm.new_globals()[0]
            self._globals = jvm.new_globals()
            self._interface = jvm.java.scienceworld.runtime.pythonapi.PythonInterface()
        self._agent: Any = None
        self._outcome = CommandOutcome("", 0.0, False, 0)

    def load(self, task: str, variation: int, simplifications: str) -> CommandOutcome:
        """Load a task. The observation is that of `look around`. Raises EnvError."""
        with self.jvm.exclusive(self, self._globals):
            self._load(task, variation, simplifications)
            return self._step("look around")

    def step(self, command: str) -> CommandOutcome:
        """Carry out a command. Raises EnvError."""
        with self.jvm.exclusive(self, self._globals):
            if command.lower() in WORDS:
                return self._outcome._replace(observation=self._interface.step(command))
            return self._step(command)

    def set_search_paths(self, tours: Mapping[str, Sequence[str]]) -> None:
        """Set the expert's tours of the house for the whole JVM, by their first room.

        Otherwise the expert searches for tours at random, once per JVM (a second or more and 200 MB). Its solutions
        then depend on the tasks that it solved before.
        """
        with self.jvm.exclusive(self, self._globals):
            array, known = self.jvm.java.java.lang.reflect.Array, self.jvm.java.scienceworld.goldagent.PathFinder
            texts = self.jvm.java.java.lang.Class.forName("[Ljava.lang.String;")
            split = self.jvm.java.java.util.regex.Pattern.compile("/").split
            into = {room: split("/".join(walk_commands([room]))) for room in tours}
            for start, rooms in tours.items():
                stretches = array.newInstance(texts, len(rooms))
                for index, room in enumerate(rooms):
                    array.set(stretches, index, into[room])
                known.precomputedExhaustivePaths().put(start, stretches)

    def gold_path(self, task: str, variation: int) -> list[str]:
        """Let the simulator's own expert act in this world, and return its commands. One call takes seconds.

        The limit is the number of commands, so the result does not depend on the load of the computer: each command may
        take as long as any other call. Raises EnvError if the expert crashes, or gives more than `EXPERT_COMMANDS`.
        """
        interface = self._interface
        with self.jvm.exclusive(self, self._globals):
            act = interface.taskMaker().createGoldActions
            with self.jvm.watched(_ExpertWatch(interface, self.jvm)):
                act(task, variation, interface)
            path = self._lines(interface.getActionHistory())
        if len(path) > EXPERT_COMMANDS:
            raise EnvError(f"the expert gave more than {EXPERT_COMMANDS} commands")
        return path

    def look(self) -> str:
        """Return the result of `look around`, without a move."""
        with self.jvm.exclusive(self, self._globals):
            return str(self._agent.freeActionLook())

    def inventory(self) -> str:
        """Return the result of `inventory`."""
        with self.jvm.exclusive(self, self._globals):
            return str(self._agent.freeActionInventory())

    def possible_actions(self) -> list[str]:
        """Return the command templates, with OBJ and LOC for the names of objects and rooms."""
        with self.jvm.exclusive(self, self._globals):
            return self._lines(self._interface.getPossibleActions())

    def possible_objects(self) -> list[str]:
        """Return a name for each object within reach."""
        with self._separate_random():
            return self._lines(self._interface.getPossibleObjects())

    def available_actions(self) -> list[str]:
        """Return ScienceWorld's list of commands, thousands in a full room.

        The parser does not know about a tenth of them, since the list includes things in closed containers.
        """
        with self._separate_random():
            return self._lines(self._interface.getValidActionObjectCombinations())

    def goal_progress(self) -> str:
        """Describe the subgoals that have been reached."""
        with self.jvm.exclusive(self, self._globals):
            return str(self._interface.getGoalProgressStr())

    def object_tree(self) -> str:
        """Return the tree of all objects of the world, as JSON text."""
        with self.jvm.exclusive(self, self._globals):
            whole = getattr(self._interface, "getObjectTree$default$1")()
            return str(self._interface.getObjectTree(whole))

    def discard(self) -> None:
        """Free the memory of the world at the JVM's next call. The world must not be used afterwards."""
        for unused in (self._interface, self._agent, self._query_random, *self._globals):
            if unused is not None:
                self.jvm.release(unused)

    @contextlib.contextmanager
    def _separate_random(self) -> Iterator[None]:
        """Use a separate random generator for queries that draw numbers, so that they do not affect the world."""
        with self.jvm.exclusive(self._query_random, [self._query_random, *self._globals[1:]]):
            self._query_random.setSeed(0)
            yield

    def _load(self, task: str, variation: int, simplifications: str) -> None:
        message = self._interface.load(task, variation, simplifications, False)
        if message:
            raise EnvError(f"ScienceWorld could not load {task} {variation} with {simplifications!r}: {message}")
        found, before = self._interface.agentInterface(), self._agent
        self._agent = found.get()
        for unused in (found, before) if before is not None else (found,):
            self.jvm.release(unused)  # each one references a whole house

    def _step(self, command: str) -> CommandOutcome:
        """Step the agent directly: the interface would also look around and list objects at every command."""
        answer = self._agent.step(command)
        text, score, completed = str(answer.toString())[1:-1].rsplit(",", 2)
        self.jvm.release(answer)
        if self._agent.isInErrorState():
            raise EnvError(f"the simulator failed: {self._agent.getErrorStateMessage()}")
        moves = self._agent.getCurIterations()
        self._outcome = CommandOutcome(text or _NO_RESULT, float(score), completed == "true", moves)
        return self._outcome

    def _lines(self, texts: Any) -> list[str]:
        """Read a Java list in one call, not one call per member."""
        joined = self.jvm.java.java.lang.String.join("\n", texts)
        self.jvm.release(texts)
        return joined.split("\n") if joined else []


class _ExpertWatch:
    """Stops the expert after too many commands, or if one command takes nearly as long as a call may take."""

    def __init__(self, interface: Any, jvm: Jvm) -> None:
        self._interface, self._jvm = interface, jvm
        self._commands, self._since = 0, time.monotonic()
        self._stopped = False

    def __call__(self) -> None:
        """Look at the progress. Raises TimeoutError if the expert did not end after it was stopped."""
        commands = self._commands if self._stopped else self._count()
        now = time.monotonic()
        if commands != self._commands:
            self._commands, self._since = commands, now
        late = (now - self._since) / self._jvm.call_seconds
        if late >= 1:
            raise TimeoutError
        if not self._stopped and (commands > EXPERT_COMMANDS or late >= 0.9):
            self._stop()

    def _count(self) -> int:
        history = self._interface.currentHistory()
        count = int(history.length())
        self._jvm.release(history)
        return count

    def _stop(self) -> None:
        """Make the expert fail at its next command, by removing its history. The next `load` creates a new one."""
        self._stopped = True
        getattr(self._interface, "currentHistory_$eq")(None)


def check_simplifications(chosen: str | Sequence[str]) -> str:
    """Return simplifications in the simulator's format. Raises UsageError."""
    names = chosen.split(",") if isinstance(chosen, str) else list(chosen) if isinstance(chosen, Sequence) else [chosen]
    names = [name.strip() if isinstance(name, str) else name for name in names]
    if names in ([""], []):
        return ""
    if names == ["easy"]:
        return "easy"
    if unknown := [name for name in names if name not in SIMPLIFICATIONS]:
        raise UsageError(f'simplifications are "easy" or some of {", ".join(SIMPLIFICATIONS)}, got {unknown!r:.120}')
    return ",".join(name for name in SIMPLIFICATIONS if name in names)
