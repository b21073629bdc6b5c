"""Commands that solve an episode from where it stands, planned with the whole world known and tried on a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

from agentgym_envs.babyai.commands import Order, Verb, parse
from agentgym_envs.babyai.infeasibility import hopeless
from agentgym_envs.babyai.pathfinding import Route, pose_of, strides
from agentgym_envs.babyai.planner import Clause, Decision, Prices, Stuck
from agentgym_envs.babyai.text_view import PRIMITIVES, Actions, Names, Scene
from agentgym_envs.babyai.world import Action, Outcome, Thing, World
from agentgym_envs.errors import NoOracle

_SAY = {action: verb for verb, action in PRIMITIVES.items()}
_USUAL = Prices()
_OTHERS = (Prices(12, 16, 80), Prices(2, 2, 8), Prices(40, 80, 40), Prices(1, 30, 200))
"""What to plan with where the usual prices lead nowhere or into detours."""


class Plan(NamedTuple):
    """Commands that succeed, how many primitive actions they take, and how they were found.

    `choices` is as in `_pending`; `detour` says whether anything was cleared out of the way.
    """

    commands: list[str]
    steps: int
    choices: int
    detour: bool


def solve(world: World, names: Names, actions: Actions) -> list[str]:
    """Commands that succeed from the state of a world on; neither the world nor the names change.

    Raises NoOracle if none are found within the steps that are left.
    """
    if why := hopeless(world):
        raise NoOracle(f"no commands solve {world.levelname} with seed {world.seed} from here: {why}")
    search = _Attempts(world, names, actions)
    orders = _orders(world.level.instrs)
    search.run(product([_USUAL], orders))
    if search.best is None:
        search.run(product(_OTHERS, orders))
    elif search.best.detour:
        search.run(product(_OTHERS[:2], [search.best.choices]))
    if search.best is None:
        raise NoOracle(f"found no commands that solve {world.levelname} with seed {world.seed} from here: {search.why}")
    return search.best.commands


class _Attempts:
    """The plan with the fewest steps so far, and why the first attempt failed, if it did."""

    def __init__(self, world: World, names: Names, actions: Actions) -> None:
        self.world, self.names, self.actions = world, names, actions
        self.best: Plan | None = None
        self.why = ""

    def run(self, settings: Iterable[tuple[Prices, int]]) -> None:
        """Plan with various prices and choices."""
        for prices, choices in settings:
            player = _Player(self.world.copy(), self.names.copy(), self.actions, prices, choices)
            try:
                plan = player.play(self.limit)
            except Stuck as stuck:
                self.why = self.why or str(stuck)
            else:
                self.best = min(self.best or plan, plan, key=lambda plan: (plan.steps, len(plan.commands)))

    @property
    def limit(self) -> int:
        """How many steps the world may have taken at the end of a plan that is worth anything."""
        return self.world.max_steps if self.best is None else self.world.steps + self.best.steps


class _Player:
    """Plays an episode to its end and notes the commands."""

    def __init__(self, world: World, names: Names, actions: Actions, prices: Prices, choices: int) -> None:
        self.world, self.names, self.actions = world, names, actions
        self.prices, self.choices = prices, choices
        self.scene = Scene(world, names, actions)
        self.commands: list[str] = []
        self.detour = False

    def play(self, limit: int) -> Plan:
        """Play until the mission is fulfilled. Raises Stuck, also when the world has taken `limit` steps."""
        begun, known = self.world.steps, set[tuple[int, str, int]]()
        while True:
            clause = _pending(self.world.level.instrs, self.choices)
            state = pose_of(self.world), self.world.describe_things(), id(clause)
            if state in known:
                raise Stuck("the plan goes round in circles")
            known.add(state)
            decision = Decision(self.world, clause, self.prices, last=_is_last(self.world.level.instrs))
            route = decision.route()
            self.detour |= decision.detour
            for command in self._words(route, decision.last):
                outcome = self._do(command)
                if outcome.terminated and outcome.reward > 0:
                    return Plan(self.commands, self.world.steps - begun, self.choices, self.detour)
                if outcome.terminated or outcome.truncated or self.world.steps >= limit:
                    raise Stuck("the mission fails" if outcome.terminated else "too few steps are left")
                if _pending(self.world.level.instrs, self.choices) is not clause:
                    break

    def _do(self, command: str) -> Outcome:
        order = parse(command)
        plan = None if order is None else self.scene.plan(order)
        if plan is None or isinstance(plan, str):
            raise Stuck(f"{command!r} is refused")
        self.commands.append(command)
        outcome = self.world.take(plan)
        self.scene = Scene(self.world, self.names, self.actions)
        return outcome

    def _words(self, route: Route, last: bool) -> Iterator[str]:
        """The way as commands; ends early where one of them led elsewhere, so that it has to be planned anew."""
        steps, done = route.steps, 0
        if not steps:
            yield self._stay()
        while done < len(steps):
            found = self._shortcut(route, done, last) if self.actions == "macro" else None
            command, done = found or (self._say(steps[done].action), done + 1)
            yield command
            if pose_of(self.world) != steps[done - 1].pose:
                return

    def _say(self, action: Action) -> str:
        """A single action; what is picked up by name, as it is offered."""
        if action is Action.PICKUP and self.actions == "macro":
            return f"{Verb.PICKUP.value} {self._name(self.world.in_front())}"
        return _SAY[action].value

    def _shortcut(self, route: Route, done: int, last: bool) -> tuple[str, int] | None:
        """The macro that leads farthest along the way without a step more, and how many of its steps are done then."""
        ends = range(done, len(route.steps))
        most = next((end for end in ends if route.steps[end].action is Action.DROP), len(route.steps))
        for end in range(most, done + 1, -1):
            goal = self._goal(route, end, last)
            if goal is None:
                continue
            verb, cell = goal
            name = self._name(self.world.cells[cell])
            plan = name and self.scene.plan(Order(verb, name))
            spare = verb is Verb.TOGGLE_THROUGH and route.steps[end - 1].action is Action.TOGGLE
            if isinstance(plan, list) and len(plan) - spare <= end - done:
                return f"{verb.value} {name}", end
        return None

    def _goal(self, route: Route, end: int, last: bool) -> tuple[Verb, int] | None:
        """The macro that the steps up to `end` could be the end of, and the cell of the thing that it names."""
        steps = route.steps
        step, final = steps[end - 1], end == len(steps)
        cell = step.pose >> 2
        ahead = cell + strides(self.world)[step.pose & 3]
        match step.action:
            case Action.FORWARD if (thing := self.world.cells[cell]) is not None and thing.type == "door":
                return (Verb.GO_THROUGH if thing.is_open else Verb.TOGGLE_THROUGH), cell
            case Action.PICKUP:
                return Verb.PICKUP, ahead
            case Action.TOGGLE if final and last:
                return Verb.TOGGLE_THROUGH, ahead
        if ahead == route.faced and (final or steps[end].action is Action.TOGGLE):
            return Verb.GO_TO, ahead
        return None

    def _name(self, thing: Thing | None) -> str | None:
        return next((name for name, seen in self.scene.named.items() if seen.thing is thing), None)

    def _stay(self) -> str:
        """A command that takes a step but keeps what the agent faces in its place, if there is one."""
        front = self.world.in_front()
        if self.actions == "primitive":
            return (Verb.TOGGLE if front is None or front.can_overlap() else Verb.FORWARD).value
        if front is not None and front.can_pickup() and self.world.carrying is None:
            return f"{Verb.PICKUP.value} {self._name(front)}"
        if front is not None and front.type == "door" and isinstance(self.scene.plan(Order(Verb.TOGGLE, "")), list):
            return Verb.TOGGLE.value
        return Verb.LEFT.value


def _pending(instruction: Any, choices: int) -> Clause:
    """The clause to fulfil next. Each bit of `choices` decides on one conjunction, which of its clauses comes first."""
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


def _orders(instruction: Any) -> list[int]:
    """The `choices` for `_pending` that differ: both, for each conjunction of which nothing is fulfilled yet."""
    if not hasattr(instruction, "instr_a"):
        return [0]
    first_done, second_done = instruction.a_done == "success", instruction.b_done == "success"
    if type(instruction).__name__ == "AndInstr":
        return [0] if first_done or second_done else [0, 1]
    first, second = _orders(instruction.instr_a), _orders(instruction.instr_b)
    if type(instruction).__name__ == "AfterInstr":
        first, second = second, first
    return [one + 2 * other for one in first for other in second]


def _is_last(instruction: Any) -> bool:
    """Whether a single clause is left."""
    if not hasattr(instruction, "instr_a"):
        return True
    done = instruction.a_done == "success", instruction.b_done == "success"
    if not any(done):
        return False
    return type(instruction).__name__ == "AndInstr" or _is_last(instruction.instr_b if done[0] else instruction.instr_a)
