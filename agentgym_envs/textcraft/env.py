"""`TextCraftEnv`: the game."""

from __future__ import annotations

import difflib
import random
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np

from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.task import Task
from agentgym_envs.textcraft.names import WORLDS, Names, Worlds, real_names
from agentgym_envs.textcraft.oracle import commands, make_plan
from agentgym_envs.textcraft.parsing import Craft, Get, echo, parse
from agentgym_envs.textcraft.recipes import load_book
from agentgym_envs.textcraft.tasks import CraftTasks, make_tasks

_RULES = """\
You craft items. First you are shown crafting commands, which are recipes, and a goal: the item to craft. Some of the \
recipes are not needed.

You know three actions:
get <amount> <item>
    Take items that no recipe makes, for example: get 3 <item>
craft <amount> <item> using <amount> <ingredient>, <amount> <ingredient>
    Craft by a recipe. The amounts must be those of the recipe, and you must carry the ingredients. \
To craft more, craft again.
inventory
    See what you carry.

An ingredient that can be neither taken nor crafted is a kind of item: name an item of that kind instead."""


class TextCraftEnv(TextEnv):
    """Craft a goal item out of items that can be had for the asking, by recipes that build on each other.

    ## Description
    The recipes are those of Minecraft Java Edition 1.16.5 as AgentGym's TextCraft uses them: 613 recipes, 676 items,
    132 of which can be taken, and 544 goals. The first observation shows every recipe under the goal and up to
    `max_distractors` recipes that use the same ingredients, shuffled. A task is `textcraft/<n>`; its group is
    `depth-1` to `depth-4`, the number of crafts that must follow on each other.

    With `worlds="fictional"` every item goes by the name of another (so that what a model knows about Minecraft
    misleads it) and with `worlds="invented"` by a made-up word. Each world is named by a number in the task's id,
    `textcraft-fictional/<world>/<n>`: 0 to 999,999 for train, 1,000,000 to 1,999,999 for validation, 2,000,000 to
    2,999,999 for test. The goals are the same 544, and all of them are in every world.

    ## Action Space
    Text, in the form that the grammar asks for. The commands:

    | command | effect |
    |---|---|
    | `get <amount> <item>` | take a base item; the amount is 1 to 9999 |
    | `craft [<amount>] <item> using <amount> <item>, ...` | use one recipe once |
    | `inventory` | list what is carried |

    The ingredients must be exactly those of a recipe. The same ingredient may be named in several parts, and the
    members of a tag may be mixed. The amount after `craft` may be left out; whatever it says, one craft makes what the
    recipe makes, and the reply says how many. Names may be written with spaces or underscores, in any case, with
    `minecraft:` in front, in the singular or plural where only one item fits; a final dot is ignored.

    ## Observation
    First `Crafting commands:`, a recipe a line, an empty line, and `Goal: craft <item>.` Where names do not tell which
    items are of a kind (in fictional and invented worlds and with a table of your own), a paragraph `Kinds of items:`
    stands before the goal, with a line `<kind>: <item>, ...` for each kind that a recipe asks for. Then the replies:
    `Got 2 stick`, `Crafted 4 oak planks`, `Inventory: [stick] (2) [oak planks] (4)`,
    `Inventory: You are not carrying anything.`, `Could not find <item>` (it is unknown, or cannot be taken),
    `Could not find enough items to craft <item>`, `Could not find a valid recipe for <item>`. What is no command is
    answered by `Could not execute <action>` or `Wrong item format: <part>`, and `info["invalid_action"]` is set.
    `info` also holds `inventory` (item -> amount) and, on a reset, `recipe_tree`: for each recipe under the goal
    `item`, `count` and `ingredients`, a list of [name, count, is_tag].

    ## Rewards
    1 when the goal item is crafted, else 0.

    ## Termination
    The episode ends when the goal item is crafted. There is no limit of turns; wrap it in `ScheduledTimeLimit`.

    ## Arguments
    - `grammar`: how an action is written; see `agentgym_envs.grammar`.
    - `split`, `groups`: what a reset without a task draws from.
    - `goal`: the item to craft in every episode that does not ask for a task; it may lie in any split. In other
      worlds it means the item of that real name, whatever it is called there.
    - `max_distractors`: how many recipes that are not needed are shown at most.
    - `worlds`: "real", "fictional" or "invented".
    - `recipe_table`: the path of a table of your own, in the form of `data/recipes.json`. Its tasks are named
      `textcraft-<first 8 digits of its SHA-256>/<n>`.
    - `instructions`: replaces the text meant for the system prompt; "" is none at all.
    - `render_mode`: "ansi" or None.

    ## Differences from AgentGym
    The goals, recipes and the form of the texts are AgentGym's (commit 3ef9235). What was mended:

    - Task ids followed the order of a directory listing; here the order is frozen: file names sorted.
    - Recipes shown followed Python's hash seed and a global random generator; here they follow the episode's seed.
    - Distractors were drawn from ten random uses of each ingredient; here from all uses, each as likely.
    - Commands were matched at their beginning only (`inventory please` passed); here the whole must match.
    - Case, spaces, underscores, a final dot and the naive singular or plural made an item unknown.
    - `get 0 diamond` put a zero into the inventory, and amounts had no bound; here amounts are 1 to 9999.
    - Split ingredients (`1 stick, 1 stick`) and mixed members of a tag were refused, though the recipe allows them.
    - Replies showed Python objects and the prefix `minecraft:`; `inventory` ended in a space.
    - An action that was none of the three looked like one that failed; here `info["invalid_action"]` tells.
    - The environment could be stepped after its end; that raises `EpisodeOver`.

    Kept: the amount after `craft` has no effect, and both `oak log` and `oak logs` can be taken, but only the latter
    makes planks.

    Source: ADaPT (arXiv 2311.05772) and AgentGym (arXiv 2406.04151); the recipe table is derived from the package
    textcraft 0.0.3.

    ## Version History
    - v0: first version.
    """

    rules = _RULES
    tasks: CraftTasks
    remote_options = TextEnv.remote_options | {"goal", "max_distractors", "worlds"}

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        goal: str | None = None,
        max_distractors: int = 10,
        worlds: Worlds = "real",
        recipe_table: str | PathLike[str] | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """See the class for the arguments. Raises UsageError for one that cannot be, among them TaskTableError."""
        if worlds not in WORLDS:
            raise UsageError(f"worlds must be one of {', '.join(WORLDS)}, got {worlds!r}")
        if type(max_distractors) is not int or max_distractors < 0:
            raise UsageError(f"max_distractors must be a whole number of at least 0, got {max_distractors!r}")
        self.book = load_book(None if recipe_table is None else fspath(recipe_table))
        self.tasks = make_tasks(self.book, worlds)
        super().__init__(
            grammar=grammar, split=split, groups=groups, instructions=instructions, render_mode=render_mode
        )
        self.max_distractors = max_distractors
        # Only the built-in names tell which items are planks; other names need a word on it.
        self._explains = worlds != "real" or recipe_table is not None
        self._fixed = None if goal is None else self._find_goal(goal)
        self._names: Names = real_names(self.book)
        self._goal = -1
        self._inventory: dict[int, int] = {}
        self._shown: list[int] = []

    def random_command(self, rng: random.Random) -> str:
        """Take an ingredient of a recipe that is shown, or craft by one; never wrong in form."""
        if not self._shown:
            return "inventory"
        recipe = self.book.recipes[rng.choice(self._shown)]
        members, say = self.book.members, self._names.say
        parts = [(rng.choice(members[ref]) if ref in members else ref, amount) for ref, amount in recipe.parts]
        taken = [part for part in parts if self.book.base[part[0]]]
        if taken and rng.random() < 0.5:
            ref, amount = rng.choice(taken)
            return f"get {amount} {say(ref)}"
        using = ", ".join(f"{amount} {say(ref)}" for ref, amount in parts)
        return f"craft {recipe.makes} {say(recipe.item)} using {using}"

    def _choose(self, options: Mapping[str, Any], key: int) -> Task:
        task = super()._choose(options, key)
        if self._fixed is None or "task" in options:
            return task
        return self.tasks.with_goal(task, self._fixed)

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._names = names = self.tasks.names(task)
        goal = names.find(task.data["item"].replace("_", " "))
        assert goal is not None
        self._goal, self._inventory = goal, {}
        shown = [*self.book.needed(goal), *self._sample(self.book.distractors(goal), rng)]
        self._shown = [shown[place] for place in rng.random(len(shown)).argsort(kind="stable").tolist()]
        lines = "\n".join([names.line(number) for number in self._shown])
        kinds = self._explain_kinds() if self._explains else ""
        return f"Crafting commands:\n{lines}{kinds}\n\nGoal: craft {names.say(goal)}."

    def _act(self, command: str) -> Transition:
        action = parse(command)
        if isinstance(action, Get):
            return self._get(action)
        if isinstance(action, Craft):
            return self._craft(action)
        return Transition(self._list_inventory())

    def _get(self, action: Get) -> Transition:
        ref = self._names.find(action.item)
        if ref is None or not self.book.base[ref]:
            return Transition(f"Could not find {echo(action.item)}")
        self._inventory[ref] = self._inventory.get(ref, 0) + action.amount
        return Transition(f"Got {action.amount} {self._names.say(ref)}")

    def _craft(self, action: Craft) -> Transition:
        given = self._take_stock(action.parts)
        if given is None:
            return Transition(f"Could not find enough items to craft {echo(action.item)}")
        item = self._names.find(action.item)
        recipe = None if item is None else self.book.match(item, given)
        if item is None or recipe is None:
            return Transition(f"Could not find a valid recipe for {echo(action.item)}")
        self._exchange(given, item, recipe.makes)
        reached = item == self._goal
        return Transition(f"Crafted {recipe.makes} {self._names.say(item)}", float(reached), reached)

    def _take_stock(self, parts: Mapping[str, int]) -> dict[int, int] | None:
        """The parts by reference, two spellings of an item merged; None if they are not all carried."""
        given: dict[int, int] = {}
        for name, amount in parts.items():
            ref = self._names.find(name)
            if ref is None:
                return None
            given[ref] = given.get(ref, 0) + amount
        if any(self._inventory.get(ref, 0) < amount for ref, amount in given.items()):
            return None
        return given

    def _exchange(self, given: Mapping[int, int], item: int, count: int) -> None:
        inventory = self._inventory
        for ref, amount in given.items():
            inventory[ref] -= amount
            if not inventory[ref]:
                del inventory[ref]
        inventory[item] = inventory.get(item, 0) + count

    def _list_inventory(self) -> str:
        held = " ".join(f"[{self._names.say(ref)}] ({amount})" for ref, amount in self._inventory.items())
        return "Inventory: " + (held or "You are not carrying anything.")

    def _state(self) -> str:
        return str(sorted(self._inventory.items()))

    def _plan(self) -> Sequence[str]:
        return commands(make_plan(self.book, self._goal, self._inventory), self._names.say)

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        info = super()._info(details)
        say = self._names.say
        info["inventory"] = {say(ref): amount for ref, amount in self._inventory.items()}
        return info

    def _details(self) -> Mapping[str, Any]:
        say, size, tree = self._names.say, self.book.size, []
        for number in self.book.needed(self._goal):
            item, count, parts = self.book.recipes[number]
            ingredients = [[say(ref), amount, ref >= size] for ref, amount in parts]
            tree.append({"item": say(item), "count": count, "ingredients": ingredients})
        return {"recipe_tree": tree}

    def _draw(self) -> str:
        if self.task is None:
            return "No episode has started."
        held = ", ".join(f"{amount} {self._names.say(ref)}" for ref, amount in self._inventory.items())
        head = f"Goal: {self.task.goal}\nInventory: {held or 'nothing'}"
        reply = f"\n> {self._actions[-1].strip()}\n{self._observation}" if self._actions else ""
        return "\n".join([head + reply, "Recipes:", *(f"  {self._names.line(number)}" for number in self._shown)])

    def _explain_kinds(self) -> str:
        """The tags among the ingredients that are shown, in the order of their first use, as a paragraph or nothing."""
        recipes, size = self.book.recipes, self.book.size
        tags = dict.fromkeys(ref for number in self._shown for ref, _ in recipes[number].parts if ref >= size)
        return "\n\nKinds of items:\n" + "\n".join(map(self._names.explain, tags)) if tags else ""

    def _sample(self, pool: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Up to `max_distractors` of the pool. Only `rng.random` is drawn from: its stream is the same everywhere."""
        if not self.max_distractors or not pool:
            return []
        places = rng.random(len(pool)).argsort(kind="stable")[: self.max_distractors]
        return [pool[place] for place in places.tolist()]

    def _find_goal(self, goal: str) -> int:
        """The place of the goal among the book's goals. Raises UnknownTask with similar names."""
        ref = real_names(self.book).find(
            " ".join(str(goal).lower().replace("_", " ").replace("minecraft:", "").split())
        )
        if ref is None or ref not in self.book.goals:
            known = [self.book.items[ref].replace("_", " ") for ref in self.book.goals]
            near = difflib.get_close_matches(str(goal).lower().replace("_", " "), known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"for example {known[0]!r} can"
            raise UnknownTask(f"{goal!r:.80} cannot be a goal, since no recipe makes it; {hint}")
        if self.groups is not None and f"depth-{self.book.depth[ref]}" not in self.groups:
            raise UsageError(f"goal {goal!r} is of depth-{self.book.depth[ref]}, which is not among {self.groups}")
        return self.book.goals.index(ref)
