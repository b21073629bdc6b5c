"""`BabyAIEnv`: BabyAI as a text environment."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from agentgym_envs.babyai.commands import TOOLS, Verb, parse
from agentgym_envs.babyai.drawing import draw_svg, draw_text
from agentgym_envs.babyai.infeasibility import why_unsolvable
from agentgym_envs.babyai.levels import blank_level, choose_levels
from agentgym_envs.babyai.oracle import solve
from agentgym_envs.babyai.shortest import SearchCache, shortest_plan
from agentgym_envs.babyai.tasks import BabyTasks
from agentgym_envs.babyai.text_view import ACTIONS, NUMBERINGS, Actions, Numbering, ObjectNames, TextView
from agentgym_envs.babyai.world import GridAction, GridWorld, make_world
from agentgym_envs.command_tools import grammars_with
from agentgym_envs.core import Solution, TextEnv, Transition
from agentgym_envs.errors import InvalidAction, NoOracle, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.task import Task

_WORLD = """\
You are in a grid world of rooms, with doors, keys, balls and boxes in six colours. You are told a goal, and at each \
turn what you see, how far away it is, and which actions are possible. You see a part of the room ahead of you, and \
nothing behind walls and closed doors: turn and move to see more. "0 steps in front of you" is beside you.

To go to an object is to stand right before it and face it. To put an object next to another one is to drop it into \
one of the four cells beside that one, not diagonally. "In front of you", "behind you", "on your left" and "on your \
right" in a goal mean that side of the room as you see it at the start. Where a goal has an order, keep to it.
A locked door opens with the key of its colour. You can carry one object at a time. A box that is opened is gone; what \
was in it, for example a key, lies in its place. To open a wrong door or take a wrong object may fail the goal."""
_WALK = """\
Your actions are:
turn left
turn right
move forward
    Into a free cell or an open door."""
_HANDLE = """\
drop
    Put down what you carry, into the free cell in front of you.
toggle
    Open or close the door in front of you, or open the box there."""
_MACROS = f"""\
{_WALK}
go to <object> <number>
    Walk up to an object and face it, for example: go to red ball 1
pickup <object> <number>
    Walk up to an object and take it.
{_HANDLE}
go through <door> <number>
    Walk into the doorway of an open door, for example: go through blue open door 1
toggle and go through <door> <number>
    Walk up to a closed door, open it and walk into the doorway. For a locked door you must carry its key.
check available actions

An action takes as many steps as it turns, moves and does. The steps are limited, and fewer are better."""
_PRIMITIVES = f"""\
{_WALK}
pickup
    Take the object in front of you.
{_HANDLE}
done
    Do nothing.

Each action takes a step, also where it does nothing. The steps are limited, and fewer are better."""
_NUMBERS = {
    "nearest": "Objects are numbered anew at each turn, the nearest first: name them as you were told at this turn.",
    "stable": "An object keeps its number for the whole episode.",
}
_RULES = {"macro": f"{_WORLD}\n\n{_MACROS}", "primitive": f"{_WORLD}\n\n{_PRIMITIVES}"}
_UNKNOWN = "The action is not recognized. Please check valid actions."
_NO_SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'
_SUCCESS = "The task is completed."
_FAILURE = "The task has failed."
_LIMIT = "The limit of {} steps is reached."
_CHANGES_THINGS = frozenset({GridAction.PICKUP, GridAction.DROP, GridAction.TOGGLE})


class BabyAIEnv(TextEnv):
    """Reach a goal in a grid world of rooms, doors and objects; the goal and the world are described in text.

    ## Description
    Worlds, missions and success checks are those of minigrid's 96 BabyAI levels. A task is `babyai/<level>/<seed>`, for
    example `babyai/GoToRedBall/17`. Its group is one of GoTo, Open, PickUp, PutNext, Unlock, Sequence, Synth and Boss
    (`agentgym_envs.babyai.levels.GROUPS` lists the levels of each). Seeds from 20,000 on are for train, 10,000 to
    19,999 for validation and 0 to 9,999 for test. The agent sees 7 by 7 cells, ahead of it and to both sides, but
    nothing behind walls and closed doors. AgentGym's `data_idx` is the task
    `agentgym_envs.babyai.levels.agentgym_task(data_idx)`; these tasks are all in test.

    Tasks with an impossible mission are never drawn; see `env.tasks.get(id).data["solvable"]`.

    ## Action Space
    Text, in the format of the grammar. The commands:

    | command | effect |
    |---|---|
    | `turn left`, `turn right`, `move forward` | one step |
    | `go to <object> <number>` | turn and walk until the agent faces it |
    | `pickup <object> <number>`, `pickup` | go to it and take it; without a name, take the object in front |
    | `drop` | put the carried object into the free cell in front |
    | `toggle` | open or close the door in front (a locked one with its key), or open the box there |
    | `go through <object> <number>` | walk into the doorway of an open door |
    | `toggle and go through <object> <number>` | go to a closed door (a locked one with its key), open it, enter it |
    | `check available actions` | list the actions that are possible now |

    `pick up` means `pickup`. Case, spaces, quotes, an article and a final dot are ignored. All but the type of an
    object may be left out if only one object matches. `check available actions` is free; any other action costs the
    number of steps that it takes. Paths lead through cells in sight only, so they are never blocked, but every action
    stops at the end of the episode. An impossible action gets an explanation, costs nothing and changes nothing. An
    unknown command also sets `info["invalid_action"]`.

    With `actions="primitive"` there are only BabyAI's seven actions: `turn left`, `turn right`, `move forward`,
    `pickup`, `drop`, `toggle` and `done`. Each costs a step, even if it does nothing.

    ## Observation
    First `Your goal: <mission>`. Then, and after every action: the objects in sight, nearest first, each with its
    number and relative position; the distance of a wall or box ahead; the carried object; and a line with the possible
    actions. `info` also holds `available_actions`, `steps` (taken so far) and `max_steps`.

    ## Rewards
    1 - 0.9 * steps / max_steps when the mission is fulfilled, else 0. `info["success"]` is then true.

    ## Termination
    The episode ends when the mission is fulfilled or has failed (in levels with `Debug` in their name, a wrong door or
    object is a failure). After `max_steps` steps it is truncated, with the stop reason `turn_limit`. There is no turn
    limit; wrap the environment in `ScheduledTimeLimit`.

    ## Arguments
    - `grammar`: the format of actions; see `agentgym_envs.grammar`.
    - `split`, `groups`: the tasks that a reset without a task draws from.
    - `difficulty`: a range of turns such as (3, 8): only tasks that the oracle solves in as many are drawn.
    - `levels`: the levels that it draws from: "all", "agentgym" (the forty that AgentGym uses), a level, or several (a
      list, or names separated by commas).
    - `actions`: "macro" (the table above) or "primitive".
    - `numbering`: with "nearest", objects of the same name are numbered again at every turn, from the nearest on. With
      "stable", an object keeps its number, and objects of the same colour and type are numbered as they are first seen.
    - `instructions`: replaces the text meant for the system prompt; "" removes it.
    - `render_mode`: "ansi" (a text map), "svg" (an SVG document), "rgb_array" (minigrid's image, of shape (height,
      width, 3) and type uint8) or None.

    ## Differences from AgentGym
    The levels, the sentences and the macro actions are AgentGym's (commit 3ef9235). Fixes:

    - The words "then" and "after you" of a mission were replaced by "and", which lost the order; here it is kept.
    - A success with a reward of 0.5 or less did not end the episode, and the score grew with each further turn; here a
      success ends it.
    - `max_steps` was ignored, and a success after it had a negative reward; here the episode is truncated.
    - A macro action continued after the end of the episode; here it stops.
    - Paths could lead through closed doors and through cells out of sight, and then failed midway.
    - `move forward` was offered before a ball, a key or a closed door, and `drop` onto a door; neither does anything.
    - `pickup` and `go to` numbered reachable objects only, so their numbers differed from those of the description.
    - `pick up` was unknown, although the prompt teaches it; here both spellings work.
    - `toggle` was for closed doors only. Here it also opens boxes (otherwise KeyInBox is unsolvable) and closes doors
      (otherwise a mission to open a door is unsolvable if the door is open).
    - In levels with `Carrying` in their name, the carried object was also on the floor in the first observation.
    - With nothing but walls in sight, the sentence about objects was incomplete; here it is complete.
    - An invalid action counted the last reward again; here it changes nothing.
    - An impossible action on an object in sight (to carry a second object, to pick up a door) was "not recognized";
      here the reply explains it.
    - `go to` was offered for an object that the agent already faces, although it does nothing.
    - After the last turn, the list of available actions is left out.
    - There is no `go to goal`, since no BabyAI level has such a cell.

    Unchanged: a path through a door ends in the doorway; `1 steps`; the two spaces after an object.

    Source: BabyAI (arXiv 1810.08272), minigrid 3.2, AgentGym (arXiv 2406.04151).

    ## Version History
    - v0: first version.
    """

    metadata = TextEnv.metadata | {"render_modes": ["ansi", "rgb_array", "svg"]}
    tasks: BabyTasks
    grammars = grammars_with(*TOOLS["macro"])
    remote_options = TextEnv.remote_options | {"difficulty", "levels", "actions", "numbering"}

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        difficulty: Sequence[int] | None = None,
        levels: str | Sequence[str] = "all",
        actions: Actions = "macro",
        numbering: Numbering = "nearest",
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Create the environment; the class documents the arguments.

        Raises UsageError for an invalid argument, and MissingExtra if minigrid is not installed.
        """
        if actions not in ACTIONS:
            raise UsageError(f"actions must be one of {', '.join(ACTIONS)}, got {actions!r:.80}")
        if numbering not in NUMBERINGS:
            raise UsageError(f"numbering must be one of {', '.join(NUMBERINGS)}, got {numbering!r:.80}")
        self.grammars = grammars_with(*TOOLS[actions])
        self.tasks = BabyTasks(choose_levels(levels))
        blank_level(self.tasks.levels[0])  # raises early if minigrid is missing
        super().__init__(
            grammar=grammar,
            split=split,
            groups=groups,
            difficulty=difficulty,
            instructions=instructions,
            render_mode=render_mode,
        )
        self.rules = f"{_RULES[actions]} {_NUMBERS[numbering]}"
        self.actions, self.numbering = actions, numbering
        self._world: GridWorld | None = None
        self._names = ObjectNames(numbering)
        self._text_view: TextView | None = None
        self._things = ""
        self._solved_world = ("", 0)
        self._cache = SearchCache()

    @classmethod
    def grammars_for(cls, options: Mapping[str, Any]) -> Mapping[str, Callable[[], ActionGrammar]]:
        """The grammars of an environment with these arguments."""
        return grammars_with(*TOOLS[options.get("actions", "macro")])

    @property
    def world(self) -> GridWorld:
        """The world of the episode. Raises UsageError before the first reset."""
        if self._world is None:
            raise UsageError("there is no world before the first reset")
        return self._world

    @property
    def text_view(self) -> TextView:
        """The text view of the current state. Raises UsageError before the first reset."""
        if self._text_view is None:
            raise UsageError("there is no text view before the first reset")
        return self._text_view

    def random_command(self, rng: random.Random) -> str:
        """Return one of the actions that are possible now, except `check available actions`."""
        if self._text_view is None:
            return Verb.CHECK.value
        return rng.choice([action for action in self._text_view.available if action != Verb.CHECK])

    def render(self) -> Any:
        """Draw the whole world: text ("ansi"), SVG ("svg"), or an array (height, width, 3) of uint8 ("rgb_array").

        Returns an empty image before the first reset, and None without a render mode.
        """
        if self.render_mode == "rgb_array":
            return np.zeros((1, 1, 3), np.uint8) if self._world is None else self._world.image()
        if self.render_mode == "svg":
            return _NO_SVG if self._world is None else draw_svg(self._world, self.text_view)
        return super().render()

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._world = make_world(task.data["level"], task.data["seed"])
        self._names = ObjectNames(self.numbering)
        self._observe(_CHANGES_THINGS)
        return f"Your goal: {task.goal}\n{self._describe()}"

    def _act(self, command: str) -> Transition:
        parsed = parse(command)
        if parsed == (Verb.CHECK, "") and self.actions == "macro":
            return self._answer("You can take the following actions: " + ", ".join(self.text_view.available))
        plan = None if parsed is None else self.text_view.plan(parsed)
        if plan is None:
            raise InvalidAction(f"{_UNKNOWN if command.strip() else 'No change in state.'}\n{self.text_view.offer()}")
        return self._answer(plan) if isinstance(plan, str) else self._carry_out(plan)

    def _answer(self, text: str) -> Transition:
        return Transition(f"{text}\n{self.text_view.offer()}")

    def _carry_out(self, plan: Sequence[GridAction]) -> Transition:
        """Take the actions one by one, until the episode ends."""
        outcome = self.world.run(plan)
        self._observe(_CHANGES_THINGS.intersection(plan))
        if not (outcome.terminated or outcome.truncated):
            return Transition(self._describe())
        success = outcome.terminated and outcome.reward > 0
        ending = _SUCCESS if success else _FAILURE if outcome.terminated else _LIMIT.format(self.world.max_steps)
        return Transition(
            f"{self.text_view.describe()}\n {ending}",
            outcome.reward if success else 0.0,
            outcome.terminated,
            success,
            truncated=outcome.truncated,
        )

    def _observe(self, changed: Set[GridAction]) -> None:
        """Update the text view; `changed` holds the actions since the last update that may have changed a thing."""
        self._text_view = TextView(self.world, self._names, self.actions)
        if changed:
            self._things = self.world.describe_things()

    def _describe(self) -> str:
        return f"{self.text_view.describe()}\n{self.text_view.offer()}"

    def _state(self) -> str:
        world = self.world
        return f"{world.position} {world.direction} {self._things} {world.progress()}"

    def _plan(self) -> Sequence[str]:
        return solve(self.world, self._names, self.actions)

    def _solution(self) -> Solution:
        """The solution of the state. Those of the last states of this world are kept, as agents often return."""
        world = self.world
        if (world.levelname, world.seed) != self._solved_world or self._cache.full:
            self._solved_world, self._cache = (world.levelname, world.seed), SearchCache()
        solutions = self._cache.solutions
        # Whether a dead end is proven also depends on whether the agent has moved.
        key = self._state(), tuple(self._names.known.items()), world.steps == 0
        if key not in solutions:
            solutions[key] = self._solve()
        return solutions[key]

    def _solve(self) -> Solution:
        try:
            commands, proven = shortest_plan(self.world, self._names, self.actions, cache=self._cache)
        except NoOracle:
            return Solution(None, bool(why_unsolvable(self.world)))
        return Solution(tuple(commands), proven)

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        info = super()._info(details)
        info["available_actions"] = [] if self._stop else list(self.text_view.available)
        info["steps"], info["max_steps"] = self.world.steps, self.world.max_steps
        return info

    def _save(self) -> Any:
        return self._options, self.world.copy(), self._names.copy()

    def _load(self, state: Any) -> None:
        options, world, names = state
        if options != self._options:
            raise UsageError(f"the snapshot is of an environment with {options}, this one has {self._options}")
        self._world, self._names = world.copy(), names.copy()
        self._observe(_CHANGES_THINGS)

    @property
    def _options(self) -> dict[str, str]:
        """Options that affect how actions are parsed and things are named."""
        return {"actions": self.actions, "numbering": self.numbering}

    def _draw(self) -> str:
        return "No episode has started." if self._world is None else draw_text(self.world, self.text_view)
