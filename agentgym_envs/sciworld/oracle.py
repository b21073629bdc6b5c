"""The commands that solve a task from where an episode stands: the simulator's gold paths, mended and tried out."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TypeVar

from agentgym_envs.errors import EnvError, NoOracle
from agentgym_envs.sciworld.jvm import Jvm
from agentgym_envs.sciworld.plan_check import Problem, Scratch, Step
from agentgym_envs.sciworld.rooms import walk, way
from agentgym_envs.sciworld.simulation import UNKNOWN
from agentgym_envs.sciworld.tasks import table

KEPT = 512
"""How many paths from the beginning are kept in this process; the oldest go first."""
_TRIALS = 6
"""How often a path is mended and tried out again."""
_TAIL = 25
_REPEATS = 5
_CANCEL = "look around"
"""It closes a menu, costs nothing, and is a command in every grammar."""

# Their calls are atomic, so that they need no lock.
_paths: OrderedDict[Problem, tuple[Step, ...]] = OrderedDict()
_told: OrderedDict[tuple[Problem, int | None], tuple[str, ...]] = OrderedDict()
"""The last way told of a problem, from the beginning on: who follows it and asks again is told the rest."""
_scratches: dict[Jvm, Scratch] = {}
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_BOX = re.compile(r"\b[a-z]+ box\b")


def solve(jvm: Jvm, problem: Problem, done: Sequence[str], most_moves: int | None = None) -> Sequence[str]:
    """What is left to do after the commands `done`, up to the one that completes the task.

    `most_moves` is the limit for the whole episode. Takes from nothing (on the path that was told before) to the time
    of a few replays and of the simulator's expert, which holds the machine for seconds.

    Raises NoOracle if nothing that is tried solves the task.
    """
    kept = _paths.get(problem, ())
    path = tuple(step.command for step in kept) if _solves(kept, most_moves) else ()
    for way_known in (path, _told.get((problem, most_moves), ())):
        if len(done) < len(way_known) and _same(done, way_known[: len(done)]):
            return way_known[len(done) :]
    try:
        scratch = _scratch(jvm)
        with scratch.lock:
            for plan in _plans(scratch, problem, done):
                if found := _tried(scratch, problem, done, plan, most_moves):
                    _remember(_told, (problem, most_moves), (*done, *found))
                    return found
    except EnvError as error:
        raise NoOracle(f"the machine failed while a plan was made: {error}") from error
    limit = "" if most_moves is None else f" within {most_moves} moves"
    raise NoOracle(f"found no commands that solve {problem.task} {problem.variation} from here{limit}")


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return [command.lower() for command in one] == [command.lower() for command in other]


def _remember(known: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > KEPT:
        known.popitem(last=False)


def _scratch(jvm: Jvm) -> Scratch:
    """The scratch world of a machine."""
    with jvm.turn(_scratches):  # so that two threads do not make two
        if jvm not in _scratches:
            for dead in [other for other in list(_scratches) if not other.alive]:
                _scratches.pop(dead, None)
            _scratches[jvm] = Scratch(jvm)
        return _scratches[jvm]


def _plans(scratch: Scratch, problem: Problem, done: Sequence[str]) -> Iterator[Sequence[str]]:
    """What may solve the task after `done`: the rest of the path from the beginning, and the expert's own from here.

    The former comes last if it must be found first.
    """
    so_far = scratch.play(problem, done)
    cancel, room, kept = [_CANCEL] if so_far and so_far[-1].menu else [], scratch.room, _paths.get(problem)
    if kept and (rest := _rest(kept, so_far, room)):
        yield [*cancel, *rest]
    yield [*cancel, *scratch.gold_path(problem, [*done, *cancel])]
    if not kept and any(step.deed for step in so_far):
        _tried(scratch, problem, (), scratch.gold_path(problem, ()), None)
        if rest := _rest(_paths.get(problem, ()), so_far, room):
            yield [*cancel, *rest]


def _rest(path: Sequence[Step], so_far: Sequence[Step], room: str) -> list[str]:
    """What of a path is left after the deeds of an episode, whatever else was done between them."""
    place = 0
    for step in so_far:
        later = (number for number in range(place, len(path)) if path[number].deed)
        following = next(later, None) if step.deed else None
        if following is not None and path[following].deed == step.deed:
            place = following + 1
    if place == len(path):
        return []
    return [*walk(way(room, path[place].room)), *(step.command for step in path[place:])]


def _tried(
    scratch: Scratch, problem: Problem, done: Sequence[str], plan: Sequence[str], most_moves: int | None
) -> list[str]:
    """A plan that does solve the task, this or what becomes of it when it is mended; [] if none does.

    What the expert says and the simulator does not understand is left out, once the rest is seen to do without it.
    """
    found = list[str]()
    for _ in range(_TRIALS):
        steps = scratch.play(problem, [*done, *plan])
        said = steps[len(done) :]
        if not _solves(steps, most_moves):
            plan = [] if found else _mended(problem, said, plan)
        else:
            found = [step.command for step in said]
            if not done:
                _keep(problem, steps)
            plan = [step.command for step in said if step.outcome.observation != UNKNOWN]
        if not plan or plan == found:
            break
    return found


def _solves(steps: Sequence[Step], most_moves: int | None) -> bool:
    if not steps or not steps[-1].outcome.completed:
        return False
    return most_moves is None or all(step.outcome.moves <= most_moves for step in steps[:-1])


def _keep(problem: Problem, steps: Sequence[Step]) -> None:
    short = (step._replace(outcome=step.outcome._replace(observation="")) for step in steps)
    _remember(_paths, problem, tuple(short))


def _mended(problem: Problem, steps: Sequence[Step], plan: Sequence[str]) -> list[str]:
    """Another plan than one that did not solve the task, by how it went; [] if nothing comes to mind."""
    if not steps or steps[-1].outcome.completed:
        return []
    if steps[-1].outcome.score < 0:
        *before, wrong = (step.command for step in steps)
        return [*before, *_instead(wrong, problem), *plan[len(steps) :]]
    return _poured_out(steps) or _repeated(plan)


def _instead(wrong: str, problem: Problem) -> list[str]:
    """For the command that failed the task: that with the other answer box or, if it names none, nothing."""
    boxes = list(dict.fromkeys(_BOX.findall(table().kinds[problem.task].goals[problem.variation].lower())))
    named = _BOX.search(wrong)
    if named is None or named[0] not in boxes:
        return []
    return [wrong.replace(named[0], boxes[(boxes.index(named[0]) + 1) % len(boxes)])]


def _poured_out(steps: Sequence[Step]) -> list[str]:
    """What was heated too much burns for ever: pour it into a sink as soon as it is liquid, and let it cool there."""
    burning = next((place for place, step in enumerate(steps) if "(on fire)" in step.outcome.observation), 0)
    heated = max((place for place in range(burning) if steps[place].command.startswith("activate ")), default=burning)
    for place in range(heated + 1, burning):
        if steps[place].outcome.score > steps[place - 1].outcome.score:
            commands = [step.command for step in steps[: burning + 1]]
            pot = next((command[8:] for command in commands[place:] if command.startswith("pick up ")), "")
            pour = f"pour {pot} into sink"
            return [*commands[: place + 1], pour, *["wait"] * 5] if pot and pour not in commands else []
    return []


def _repeated(plan: Sequence[str]) -> list[str]:
    """Some experts stop too early, for example before the fruit is ripe. Their last commands do more if repeated."""
    tail = list(plan[-_TAIL:])
    if len(plan) < _TAIL or tail == list(plan[-2 * _TAIL : -_TAIL]):
        return []
    return [*plan, *(tail * _REPEATS)]
