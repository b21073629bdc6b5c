"""The oracle: commands that solve a task from the current state, based on the simulator's gold paths.

Each plan is played in a separate world, and repaired if it does not solve the task.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TypeVar

from agentgym_envs.errors import EnvError, NoOracle
from agentgym_envs.sciworld.jvm import Jvm
from agentgym_envs.sciworld.plan_check import PlanChecker, PlanningTask, PlayedCommand
from agentgym_envs.sciworld.rooms import route, walk_commands
from agentgym_envs.sciworld.simulation import UNKNOWN
from agentgym_envs.sciworld.tasks import table

KEPT = 512
"""The number of cached paths from the initial state; the oldest are dropped first."""
_TRIALS = 6
"""The number of attempts to repair a plan."""
_TAIL = 25
_REPEATS = 5
_CANCEL = "look around"
"""This closes a menu, costs nothing, and is a command in every grammar."""

# Operations on these are atomic, so they need no lock.
_paths: OrderedDict[PlanningTask, tuple[PlayedCommand, ...]] = OrderedDict()
_solutions: OrderedDict[tuple[PlanningTask, int | None], tuple[str, ...]] = OrderedDict()
"""The last solution returned for a task, from the initial state. A caller that follows it gets the rest of it."""
_checkers: dict[Jvm, PlanChecker] = {}
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_BOX = re.compile(r"\b[a-z]+ box\b")


def solve(jvm: Jvm, problem: PlanningTask, done: Sequence[str], most_moves: int | None = None) -> Sequence[str]:
    """Return the commands that complete the task after the commands `done`.

    This is immediate if the episode follows an earlier solution. Otherwise it takes a few replays and a run of the
    simulator's expert, which occupies the JVM for seconds.

    Args:
        jvm: the JVM of the environment.
        problem: the task.
        done: the commands of the episode so far.
        most_moves: the limit for the whole episode.

    Raises:
        NoOracle: no plan solves the task.
    """
    kept = _paths.get(problem, ())
    path = tuple(step.command for step in kept) if _solves(kept, most_moves) else ()
    for solution in (path, _solutions.get((problem, most_moves), ())):
        if len(done) < len(solution) and _same(done, solution[: len(done)]):
            return solution[len(done) :]
    try:
        checker = _checker(jvm)
        with checker.lock:
            for plan in _plans(checker, problem, done):
                if found := _try(checker, problem, done, plan, most_moves):
                    _remember(_solutions, (problem, most_moves), (*done, *found))
                    return found
    except EnvError as error:
        raise NoOracle(f"the simulator failed during planning: {error}") from error
    limit = "" if most_moves is None else f" within {most_moves} moves"
    raise NoOracle(f"found no commands that solve {problem.task} {problem.variation} from here{limit}")


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return [command.lower() for command in one] == [command.lower() for command in other]


def _remember(cache: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > KEPT:
        cache.popitem(last=False)


def _checker(jvm: Jvm) -> PlanChecker:
    """Return the plan checker of a JVM."""
    with jvm.exclusive(_checkers):  # so that two threads do not create two
        if jvm not in _checkers:
            for dead in [other for other in list(_checkers) if not other.alive]:
                _checkers.pop(dead, None)
            _checkers[jvm] = PlanChecker(jvm)
        return _checkers[jvm]


def _plans(checker: PlanChecker, problem: PlanningTask, done: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield plans that may solve the task after `done`.

    These are the rest of the path from the initial state, and the expert's path from the current state. If the former
    is not cached, it comes last.
    """
    so_far = checker.play(problem, done)
    cancel, room, kept = [_CANCEL] if so_far and so_far[-1].menu else [], checker.room, _paths.get(problem)
    if kept and (rest := _rest(kept, so_far, room)):
        yield [*cancel, *rest]
    yield [*cancel, *checker.gold_path(problem, [*done, *cancel])]
    if not kept and any(step.effect for step in so_far):
        _try(checker, problem, (), checker.gold_path(problem, ()), None)
        if rest := _rest(_paths.get(problem, ()), so_far, room):
            yield [*cancel, *rest]


def _rest(path: Sequence[PlayedCommand], so_far: Sequence[PlayedCommand], room: str) -> list[str]:
    """The remaining steps of a path after the commands of an episode; commands without effect are ignored."""
    position = 0
    for step in so_far:
        later = (number for number in range(position, len(path)) if path[number].effect)
        following = next(later, None) if step.effect else None
        if following is not None and path[following].effect == step.effect:
            position = following + 1
    if position == len(path):
        return []
    return [*walk_commands(route(room, path[position].room)), *(step.command for step in path[position:])]


def _try(
    checker: PlanChecker, problem: PlanningTask, done: Sequence[str], plan: Sequence[str], most_moves: int | None
) -> list[str]:
    """Return a plan that solves the task: the given one or a repaired version of it; [] if there is no such plan.

    Commands of the expert that the simulator does not understand are left out if the plan also works without them.
    """
    found = list[str]()
    for _ in range(_TRIALS):
        steps = checker.play(problem, [*done, *plan])
        played = steps[len(done) :]
        if not _solves(steps, most_moves):
            plan = [] if found else _repaired(problem, played, plan)
        else:
            found = [step.command for step in played]
            if not done:
                _keep(problem, steps)
            plan = [step.command for step in played if step.outcome.observation != UNKNOWN]
        if not plan or plan == found:
            break
    return found


def _solves(steps: Sequence[PlayedCommand], most_moves: int | None) -> bool:
    if not steps or not steps[-1].outcome.completed:
        return False
    return most_moves is None or all(step.outcome.moves <= most_moves for step in steps[:-1])


def _keep(problem: PlanningTask, steps: Sequence[PlayedCommand]) -> None:
    short = (step._replace(outcome=step.outcome._replace(observation="")) for step in steps)
    _remember(_paths, problem, tuple(short))


def _repaired(problem: PlanningTask, steps: Sequence[PlayedCommand], plan: Sequence[str]) -> list[str]:
    """Return a repaired version of a plan that failed, based on how it went; [] if no repair applies."""
    if not steps or steps[-1].outcome.completed:
        return []
    if steps[-1].outcome.score < 0:
        *before, wrong = (step.command for step in steps)
        return [*before, *_replacement(wrong, problem), *plan[len(steps) :]]
    return _poured_out(steps) or _repeated(plan)


def _replacement(wrong: str, problem: PlanningTask) -> list[str]:
    """Replace the command that failed the task: use another answer box, or drop it if it names no box."""
    boxes = list(dict.fromkeys(_BOX.findall(table().kinds[problem.task].goals[problem.variation].lower())))
    named = _BOX.search(wrong)
    if named is None or named[0] not in boxes:
        return []
    return [wrong.replace(named[0], boxes[(boxes.index(named[0]) + 1) % len(boxes)])]


def _poured_out(steps: Sequence[PlayedCommand]) -> list[str]:
    """Overheated substances burn for ever: pour it into a sink as soon as it is liquid, and let it cool there."""
    burning = next((index for index, step in enumerate(steps) if "(on fire)" in step.outcome.observation), 0)
    heated = max((index for index in range(burning) if steps[index].command.startswith("activate ")), default=burning)
    for index in range(heated + 1, burning):
        if steps[index].outcome.score > steps[index - 1].outcome.score:
            commands = [step.command for step in steps[: burning + 1]]
            pot = next((command[8:] for command in commands[index:] if command.startswith("pick up ")), "")
            pour = f"pour {pot} into sink"
            return [*commands[: index + 1], pour, *["wait"] * 5] if pot and pour not in commands else []
    return []


def _repeated(plan: Sequence[str]) -> list[str]:
    """Repeat the last commands: some experts stop too early, for example before the fruit is ripe."""
    tail = list(plan[-_TAIL:])
    if len(plan) < _TAIL or tail == list(plan[-2 * _TAIL : -_TAIL]):
        return []
    return [*plan, *(tail * _REPEATS)]
