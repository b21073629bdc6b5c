"""The oracle: commands that solve an episode from its current state.

It plans with full knowledge of the world, and executes each plan on a copy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

from agentgym_envs.babyai.commands import ParsedCommand, Verb, parse_known
from agentgym_envs.babyai.infeasibility import why_unsolvable
from agentgym_envs.babyai.pathfinding import GridPath, pose_of, strides
from agentgym_envs.babyai.planner import Clause, ClausePlanner, MoveCosts, PlanningFailed
from agentgym_envs.babyai.text_view import PRIMITIVES, Actions, ObjectNames, TextView
from agentgym_envs.babyai.world import INSTRUCTION_PARTS, GridAction, GridWorld, StepOutcome, Thing
from agentgym_envs.errors import NoOracle

_VERB_OF = {action: verb for verb, action in PRIMITIVES.items()}
_DEFAULT_COSTS = MoveCosts()
_OTHER_COSTS = (MoveCosts(12, 16, 80), MoveCosts(2, 2, 8), MoveCosts(40, 80, 40), MoveCosts(1, 30, 200))
"""Costs to plan with if the default costs give no plan, or one with detours."""


PlanState = tuple[int, str, int]
"""The pose of the agent, the objects as text, and the number of the clause to fulfil next."""


class CommandPlan(NamedTuple):
    """Commands that succeed, the number of primitive actions they take, and how they were found.

    `choices` is as in `_pending`. `detour` is true if an object was cleared out of the way.
    """

    commands: list[str]
    steps: int
    choices: int
    detour: bool


class PlanSuffix(NamedTuple):
    """The commands that a player plays from a state to the end of the mission.

    `ends` holds the primitive actions from the state to the end of each command. `states` are those in which the player
    makes a plan, this one included.
    """

    commands: tuple[str, ...]
    ends: tuple[int, ...]
    detour: bool
    states: frozenset[PlanState]


PlanSuffixes = dict[Hashable, PlanSuffix]
"""Suffixes of plans from the states of a single world. The plan after a turn often joins the plan before it."""


def solve(world: GridWorld, names: ObjectNames, actions: Actions, suffixes: PlanSuffixes | None = None) -> list[str]:
    """Return commands that solve the episode from the current state. Changes neither the world nor the names.

    `suffixes` saves time if it is kept for the states of one world, and never changes the result.

    Raises NoOracle if no plan is found within the steps left.
    """
    if why := why_unsolvable(world):
        raise NoOracle(f"no commands solve {world.levelname} with seed {world.seed} from here: {why}")
    search = _Attempts(world, names, actions, {} if suffixes is None else suffixes)
    choices = _all_choices(world.level.instrs)
    search.run(product([_DEFAULT_COSTS], choices))
    if search.best is None:
        search.run(product(_OTHER_COSTS, choices))
    elif search.best.detour:
        search.run(product(_OTHER_COSTS[:2], [search.best.choices]))
    if search.best is None:
        raise NoOracle(f"found no commands that solve {world.levelname} with seed {world.seed} from here: {search.why}")
    return search.best.commands


class _Attempts:
    """The shortest plan so far, and the reason why the first attempt failed, if it did."""

    def __init__(self, world: GridWorld, names: ObjectNames, actions: Actions, suffixes: PlanSuffixes) -> None:
        self.world, self.names, self.actions, self.suffixes = world, names, actions, suffixes
        self.best: CommandPlan | None = None
        self.why = ""

    def run(self, settings: Iterable[tuple[MoveCosts, int]]) -> None:
        """Plan with several costs and choices."""
        for costs, choices in settings:
            player = _Player(self.world.copy(), self.names.copy(), self.actions, costs, choices, self.suffixes)
            try:
                plan = player.play(self.limit)
            except PlanningFailed as error:
                self.why = self.why or str(error)
            else:
                self.best = min(self.best or plan, plan, key=lambda plan: (plan.steps, len(plan.commands)))

    @property
    def limit(self) -> int:
        """The step count that a useful plan must not exceed."""
        return self.world.max_steps if self.best is None else self.world.steps + self.best.steps


class _PlanPoint(NamedTuple):
    """A state in which a player makes a plan: its key in `PlanSuffixes`, and the commands and steps before it.

    `detour` is that of the path that it plans there.
    """

    state: PlanState
    key: Hashable
    commands: int
    steps: int
    detour: bool


class _Player:
    """Plays an episode to its end, records the commands, and keeps the suffixes of its plan."""

    def __init__(
        self,
        world: GridWorld,
        names: ObjectNames,
        actions: Actions,
        costs: MoveCosts,
        choices: int,
        suffixes: PlanSuffixes,
    ) -> None:
        self.world, self.names, self.actions = world, names, actions
        self.costs, self.choices, self.suffixes = costs, choices, suffixes
        self.text_view = TextView(world, names, actions)
        self.clauses = list(_clauses(world.level.instrs))
        self.commands: list[str] = []
        self.ends: list[int] = []
        self.points: list[_PlanPoint] = []

    def play(self, limit: int) -> CommandPlan:
        """Play until the mission is fulfilled. Raises PlanningFailed, also if the world has taken `limit` steps."""
        first_step, known = self.world.steps, set[PlanState]()
        while True:
            clause = _pending(self.world.level.instrs, self.choices)
            state = self._state(clause)
            if state in known:
                raise PlanningFailed("the plan goes in circles")
            suffix = self.suffixes.get(key := self._key(state))
            if suffix is not None and suffix.states.isdisjoint(known):
                return self._follow(suffix, first_step, limit)
            known.add(state)
            planner = ClausePlanner(self.world, clause, self.costs, last=_is_last(self.world.level.instrs))
            path = planner.plan()
            self.points.append(_PlanPoint(state, key, len(self.commands), self.world.steps, planner.detour))
            for command in self._commands(path, planner.last):
                outcome = self._run(command)
                if outcome.terminated and outcome.reward > 0:
                    return self._arrive(first_step, detour=False, states=frozenset())
                if outcome.terminated or outcome.truncated or self.world.steps >= limit:
                    raise PlanningFailed("the mission fails" if outcome.terminated else "too few steps are left")
                if _pending(self.world.level.instrs, self.choices) is not clause:
                    break

    def _state(self, clause: Clause) -> PlanState:
        number = next(number for number, other in enumerate(self.clauses) if other is clause)
        return pose_of(self.world), self.world.describe_things(), number

    def _key(self, state: PlanState) -> Hashable:
        """Return everything that the commands from here depend on."""
        return state, self.world.progress(), tuple(self.names.known.items()), self.costs, self.choices

    def _follow(self, suffix: PlanSuffix, first_step: int, limit: int) -> CommandPlan:
        """End the play with a known suffix. Raises PlanningFailed like `play`."""
        ends = [self.world.steps + end for end in suffix.ends]
        if any(end >= limit for end in ends[:-1]) or ends[-1] > self.world.max_steps:
            raise PlanningFailed("too few steps are left")
        self.commands += suffix.commands
        self.ends += ends
        return self._arrive(first_step, detour=suffix.detour, states=suffix.states)

    def _arrive(self, first_step: int, *, detour: bool, states: frozenset[PlanState]) -> CommandPlan:
        """Return the plan, and keep its suffixes. `detour` and `states` are those of its end that was known."""
        for point in reversed(self.points):
            detour, states = detour or point.detour, states | {point.state}
            ends = tuple(end - point.steps for end in self.ends[point.commands :])
            self.suffixes[point.key] = PlanSuffix(tuple(self.commands[point.commands :]), ends, detour, states)
        return CommandPlan(self.commands, self.ends[-1] - first_step, self.choices, detour)

    def _run(self, command: str) -> StepOutcome:
        parsed = parse_known(command)
        plan = None if parsed is None else self.text_view.plan(parsed)
        if plan is None or isinstance(plan, str):
            raise PlanningFailed(f"{command!r} is refused")
        outcome = self.world.run(plan)
        self.commands.append(command)
        self.ends.append(self.world.steps)
        self.text_view = TextView(self.world, self.names, self.actions)
        return outcome

    def _commands(self, path: GridPath, last: bool) -> Iterator[str]:
        """Yield a path as commands. Stops early if a command leads elsewhere; then a new plan is needed."""
        steps, done = path.steps, 0
        if not steps:
            yield self._stay()
        while done < len(steps):
            found = self._shortcut(path, done, last) if self.actions == "macro" else None
            command, done = found or (self._single_command(steps[done].action), done + 1)
            yield command
            if pose_of(self.world) != steps[done - 1].pose:
                return

    def _single_command(self, action: GridAction) -> str:
        """Return the command for an action; an object is picked up by name, as the observation offers it."""
        if action is GridAction.PICKUP and self.actions == "macro":
            return f"{Verb.PICKUP.value} {self._name(self.world.in_front())}"
        return _VERB_OF[action].value

    def _shortcut(self, path: GridPath, done: int, last: bool) -> tuple[str, int] | None:
        """Return the macro that covers most of the path without extra steps, and the steps done after it."""
        ends = range(done, len(path.steps))
        longest = next((end for end in ends if path.steps[end].action is GridAction.DROP), len(path.steps))
        for end in range(longest, done + 1, -1):
            goal = self._goal(path, end, last)
            if goal is None:
                continue
            verb, cell = goal
            name = self._name(self.world.cells[cell])
            plan = name and self.text_view.plan(ParsedCommand(verb, name))
            spare = verb is Verb.TOGGLE_THROUGH and path.steps[end - 1].action is GridAction.TOGGLE
            if isinstance(plan, list) and len(plan) - spare <= end - done:
                return f"{verb.value} {name}", end
        return None

    def _goal(self, path: GridPath, end: int, last: bool) -> tuple[Verb, int] | None:
        """Return the macro that could replace the steps up to `end`, and the cell of the object that it names."""
        steps = path.steps
        step, final = steps[end - 1], end == len(steps)
        cell = step.pose >> 2
        ahead = cell + strides(self.world)[step.pose & 3]
        match step.action:
            case GridAction.FORWARD if (thing := self.world.cells[cell]) is not None and thing.type == "door":
                return (Verb.GO_THROUGH if thing.is_open else Verb.TOGGLE_THROUGH), cell
            case GridAction.PICKUP:
                return Verb.PICKUP, ahead
            case GridAction.TOGGLE if final and last:
                return Verb.TOGGLE_THROUGH, ahead
        if ahead == path.faced and (final or steps[end].action is GridAction.TOGGLE):
            return Verb.GO_TO, ahead
        return None

    def _name(self, thing: Thing | None) -> str | None:
        return next((name for name, seen in self.text_view.named.items() if seen.thing is thing), None)

    def _stay(self) -> str:
        """Return a command that takes a step and, if possible, does not move the object that the agent faces."""
        front = self.world.in_front()
        if self.actions == "primitive":
            return (Verb.TOGGLE if front is None or front.can_overlap() else Verb.FORWARD).value
        if front is not None and front.can_pickup() and self.world.carrying is None:
            return f"{Verb.PICKUP.value} {self._name(front)}"
        if (
            front is not None
            and front.type == "door"
            and isinstance(self.text_view.plan(ParsedCommand(Verb.TOGGLE, "")), list)
        ):
            return Verb.TOGGLE.value
        return Verb.LEFT.value


def _pending(instruction: Any, choices: int) -> Clause:
    """Return the clause to fulfil next. Each bit of `choices` decides which clause of a conjunction comes first."""
    if not hasattr(instruction, "instr_a"):
        return instruction
    first, second = instruction.instr_a, instruction.instr_b
    first_done, second_done = instruction.a_done == "success", instruction.b_done == "success"
    match type(instruction).__name__:
        case "BeforeInstr":
            return _pending(second, choices >> 1) if first_done else _pending(first, choices)
        case "AfterInstr":
            return _pending(first, choices >> 1) if second_done else _pending(second, choices)
    return second if first_done or (choices & 1 and not second_done) else first


def _clauses(instruction: Any) -> Iterator[Clause]:
    """Yield the clauses of a mission."""
    for part in INSTRUCTION_PARTS:
        if hasattr(instruction, part):
            yield from _clauses(getattr(instruction, part))
    if not hasattr(instruction, "instr_a"):
        yield instruction


def _all_choices(instruction: Any) -> list[int]:
    """All distinct `choices` for `_pending`: two for each conjunction with no fulfilled clause."""
    if not hasattr(instruction, "instr_a"):
        return [0]
    first_done, second_done = instruction.a_done == "success", instruction.b_done == "success"
    if type(instruction).__name__ == "AndInstr":
        return [0] if first_done or second_done else [0, 1]
    first, second = _all_choices(instruction.instr_a), _all_choices(instruction.instr_b)
    if type(instruction).__name__ == "AfterInstr":
        first, second = second, first
    return [one + 2 * other for one in first for other in second]


def _is_last(instruction: Any) -> bool:
    """Return true if a single clause is left."""
    if not hasattr(instruction, "instr_a"):
        return True
    done = instruction.a_done == "success", instruction.b_done == "success"
    if not any(done):
        return False
    return type(instruction).__name__ == "AndInstr" or _is_last(instruction.instr_b if done[0] else instruction.instr_a)
