"""`BabyAIEnv`: the world in words."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from agentgym_envs.babyai.commands import Verb, parse
from agentgym_envs.babyai.drawing import draw_svg, draw_text
from agentgym_envs.babyai.levels import blank_level, choose_levels
from agentgym_envs.babyai.oracle import solve
from agentgym_envs.babyai.tasks import BabyTasks
from agentgym_envs.babyai.text_view import ACTIONS, NUMBERINGS, Actions, Names, Numbering, Scene
from agentgym_envs.babyai.world import Action, World, make_world
from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.errors import InvalidAction, UsageError
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
_CHANGES_THINGS = frozenset({Action.PICKUP, Action.DROP, Action.TOGGLE})


class BabyAIEnv(TextEnv):
    """Reach a goal that is told in words, in a grid world of rooms, doors and objects that is told in words too.

    ## Description
    Worlds, missions and the check of success are minigrid's BabyAI levels, all 96 of them. A task is
    `babyai/<level>/<seed>`, for example `babyai/GoToRedBall/17`; its group is one of GoTo, Open, PickUp, PutNext,
    Unlock, Sequence, Synth and Boss (`agentgym_envs.babyai.levels.GROUPS` lists the levels of each). Seeds from 20,000
    on are for train, 10,000 to 19,999 for validation and 0 to 9,999 for test. The agent sees 7 by 7 cells: those ahead
    of it and to both sides, but nothing behind walls and closed doors. AgentGym's `data_idx` is the task
    `agentgym_envs.babyai.levels.agentgym_task(data_idx)`; all of these lie in test.

    A task whose mission cannot be fulfilled is never drawn; `env.tasks.get(id).data["solvable"]` tells.

    ## Action Space
    Text, in the form that the grammar asks for. The commands:

    | command | effect |
    |---|---|
    | `turn left`, `turn right`, `move forward` | one step |
    | `go to <object> <number>` | turn and walk until the agent faces it |
    | `pickup <object> <number>`, `pickup` | go to it and take it; without an object, take what is in front |
    | `drop` | put what is carried into the free cell in front |
    | `toggle` | open or close the door in front (a locked one with its key), or open the box there |
    | `go through <object> <number>` | walk into the doorway of an open door |
    | `toggle and go through <object> <number>` | go to a closed door (a locked one with its key), open it, enter it |
    | `check available actions` | list what is possible now |

    `pick up` is `pickup`; case, spaces, quotes, an article and a final dot do not matter; all but the type of an
    object may be left out where only one fits. Every action but the last row costs as many steps as it
    takes. A way leads over cells in sight only, so nothing can block it but the end of the episode, at which every
    action stops. What cannot be done is refused in words, costs nothing and changes nothing; what is no command also
    sets `info["invalid_action"]`.

    With `actions="primitive"` there are BabyAI's seven actions alone: `turn left`, `turn right`, `move forward`,
    `pickup`, `drop`, `toggle` and `done`. Each costs a step, also where it does nothing.

    ## Observation
    First `Your goal: <mission>`. Then, and after every action: the objects in sight, nearest first, each with its
    number and how far ahead and to which side it lies; how far ahead a wall or box is; what is carried; and a line with
    the actions that are possible. `info` also holds `available_actions`, `steps` (taken so far) and `max_steps`.

    ## Rewards
    1 - 0.9 * steps / max_steps when the mission is fulfilled, else 0. `info["success"]` says that it was.

    ## Termination
    The episode ends when the mission is fulfilled, or has failed (in levels with `Debug` in their name a wrong door or
    object ends it). After `max_steps` steps it is truncated, with the stop reason `turn_limit`. There is no limit of
    turns; wrap it in `ScheduledTimeLimit`.

    ## Arguments
    - `grammar`: how an action is written; see `agentgym_envs.grammar`.
    - `split`, `groups`: what a reset without a task draws from.
    - `levels`: which levels it draws from: "all", "agentgym" (the forty that AgentGym uses), a level, or several (a
      list, or names with commas between).
    - `actions`: "macro" (the table above) or "primitive".
    - `numbering`: "nearest" counts objects of the same name from the nearest on, anew at every turn; with "stable" an
      object keeps its number, in the order in which objects of its colour and type were first seen.
    - `instructions`: replaces the text meant for the system prompt; "" is none at all.
    - `render_mode`: "ansi" (a map in text), "svg" (a picture as an SVG document), "rgb_array" (minigrid's picture, of
      shape (height, width, 3) and type uint8) or None.

    ## Differences from AgentGym
    The levels, the sentences and the macro actions are AgentGym's (commit 3ef9235). What was mended:

    - The words "then" and "after you" of a mission became "and", so that the order was lost; it is kept.
    - A success with a reward of 0.5 or less did not end the episode, and the score grew with each further turn; here a
      success ends it.
    - `max_steps` was ignored, and a success after it had a negative reward; here the episode is truncated.
    - An action went on with its steps after the end of the episode; here it stops.
    - Ways could lead through closed doors and through cells out of sight or out of the view, and then broke off.
    - `move forward` was possible before a ball, a key or a closed door, and `drop` onto a door; neither does anything.
    - `pickup` and `go to` counted reachable objects only, so that their numbers were not those of the description.
    - `pick up` was unknown, though the prompt teaches it; both spellings are known.
    - `toggle` was for closed doors only; it also opens boxes (without which KeyInBox cannot be solved) and closes doors
      (without which one that must be opened, but is open, cannot).
    - In levels with `Carrying` in their name, what is carried also lay in the first observation.
    - With nothing but walls in sight, the sentence on objects had no end; here it says that there are none.
    - An invalid action counted the last reward again; here it changes nothing.
    - What is impossible though the object is in sight (a second object to carry, a door to pick up) was "not
      recognized"; here the reply says why.
    - `go to` what the agent faces already was offered, though it does nothing.
    - After the last turn the list of available actions is left out.
    - `go to goal` is not there, since no BabyAI level has such a cell.

    Kept: a way ends in the doorway, not behind it; `1 steps`; the two spaces after an object.

    Source: BabyAI (arXiv 1810.08272), minigrid 3.2, AgentGym (arXiv 2406.04151).

    ## Version History
    - v0: first version.
    """

    metadata = TextEnv.metadata | {"render_modes": ["ansi", "rgb_array", "svg"]}
    tasks: BabyTasks
    remote_options = TextEnv.remote_options | {"levels", "actions", "numbering"}

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        levels: str | Sequence[str] = "all",
        actions: Actions = "macro",
        numbering: Numbering = "nearest",
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """See the class for the arguments. Raises UsageError for one that cannot be, MissingExtra without minigrid."""
        if actions not in ACTIONS:
            raise UsageError(f"actions must be one of {', '.join(ACTIONS)}, got {actions!r:.80}")
        if numbering not in NUMBERINGS:
            raise UsageError(f"numbering must be one of {', '.join(NUMBERINGS)}, got {numbering!r:.80}")
        self.tasks = BabyTasks(choose_levels(levels))
        blank_level(self.tasks.levels[0])  # says at once whether minigrid is there
        super().__init__(
            grammar=grammar, split=split, groups=groups, instructions=instructions, render_mode=render_mode
        )
        self.rules = f"{_RULES[actions]} {_NUMBERS[numbering]}"
        self.actions, self.numbering = actions, numbering
        self._world: World | None = None
        self._names = Names(numbering)
        self._scene: Scene | None = None
        self._things = ""

    @property
    def world(self) -> World:
        """The world of the episode. Raises UsageError before the first reset."""
        if self._world is None:
            raise UsageError("there is no world before the first reset")
        return self._world

    @property
    def scene(self) -> Scene:
        """What is told of the world as it is now. Raises UsageError before the first reset."""
        if self._scene is None:
            raise UsageError("there is nothing to tell of before the first reset")
        return self._scene

    def random_command(self, rng: random.Random) -> str:
        """One of the actions that are possible now, other than looking them up."""
        if self._scene is None:
            return Verb.CHECK.value
        return rng.choice([action for action in self._scene.available if action != Verb.CHECK])

    def render(self) -> Any:
        """A picture of the whole world, or an empty one before the first reset; None without a render mode.

        It is text ("ansi"), an SVG document ("svg"), or an array (height, width, 3) of uint8 ("rgb_array").
        """
        if self.render_mode == "rgb_array":
            return np.zeros((1, 1, 3), np.uint8) if self._world is None else self._world.picture()
        if self.render_mode == "svg":
            return _NO_SVG if self._world is None else draw_svg(self._world, self.scene)
        return super().render()

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._world = make_world(task.data["level"], task.data["seed"])
        self._names = Names(self.numbering)
        self._observe(_CHANGES_THINGS)
        return f"Your goal: {task.goal}\n{self._tell()}"

    def _act(self, command: str) -> Transition:
        order = parse(command)
        if order == (Verb.CHECK, "") and self.actions == "macro":
            return self._answer("You can take the following actions: " + ", ".join(self.scene.available))
        plan = None if order is None else self.scene.plan(order)
        if plan is None:
            raise InvalidAction(f"{_UNKNOWN if command.strip() else 'No change in state.'}\n{self.scene.offer()}")
        return self._answer(plan) if isinstance(plan, str) else self._carry_out(plan)

    def _answer(self, text: str) -> Transition:
        return Transition(f"{text}\n{self.scene.offer()}")

    def _carry_out(self, plan: Sequence[Action]) -> Transition:
        """Take the actions one by one, until the episode ends."""
        outcome = self.world.take(plan)
        self._observe(_CHANGES_THINGS.intersection(plan))
        if not (outcome.terminated or outcome.truncated):
            return Transition(self._tell())
        success = outcome.terminated and outcome.reward > 0
        ending = _SUCCESS if success else _FAILURE if outcome.terminated else _LIMIT.format(self.world.max_steps)
        return Transition(
            f"{self.scene.describe()}\n {ending}",
            outcome.reward if success else 0.0,
            outcome.terminated,
            success,
            truncated=outcome.truncated,
        )

    def _observe(self, changed: Set[Action]) -> None:
        """Look at the world; `changed` are the actions since the last time that may have moved or changed a thing."""
        self._scene = Scene(self.world, self._names, self.actions)
        if changed:
            self._things = self.world.describe_things()

    def _tell(self) -> str:
        return f"{self.scene.describe()}\n{self.scene.offer()}"

    def _state(self) -> str:
        world = self.world
        return f"{world.position} {world.direction} {self._things} {world.progress()}"

    def _plan(self) -> Sequence[str]:
        return solve(self.world, self._names, self.actions)

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        info = super()._info(details)
        info["available_actions"] = [] if self._stop else list(self.scene.available)
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
        """What decides how actions are read and things are named."""
        return {"actions": self.actions, "numbering": self.numbering}

    def _draw(self) -> str:
        return "No episode was begun." if self._world is None else draw_text(self.world, self.scene)
