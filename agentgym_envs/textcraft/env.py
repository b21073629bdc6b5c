"""`TextCraftEnv`: TextCraft as a text environment."""

from __future__ import annotations

import difflib
import random
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np

from agentgym_envs.command_tools import grammars_with
from agentgym_envs.core import Solution, TextEnv, Transition
from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.task import Task
from agentgym_envs.textcraft.names import WORLDS, ItemNames, Worlds, real_names
from agentgym_envs.textcraft.oracle import commands, make_plan
from agentgym_envs.textcraft.parsing import TOOLS, Craft, Get, echo, parse
from agentgym_envs.textcraft.recipes import load_recipe_book
from agentgym_envs.textcraft.shortest import shortest_plan
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
    """Craft a goal item from base items, by recipes that build on each other.

    ## Description
    The recipes are those of Minecraft Java Edition 1.16.5 as AgentGym's TextCraft uses them: 613 recipes, 676 items
    (132 base items, which can be taken) and 544 goals. The first observation shows every recipe under the goal and
    up to `max_distractors` recipes that use the same ingredients, shuffled. A task is `textcraft/<n>`; its group is
    `depth-1` to `depth-4`, the length of the longest chain of crafts that is needed.

    With `worlds="fictional"` the names of the items are shuffled, so that knowledge of Minecraft misleads the model.
    With `worlds="invented"` every item has a made-up name. A task id then contains the number of the world,
    `textcraft-<worlds>/<world>/<n>`: 0 to 999,999 for train, 1,000,000 to 1,999,999 for validation, 2,000,000 to
    2,999,999 for test. Every world has the same 544 goals.

    ## Action Space
    Text, in the format of the grammar. The commands:

    | command | effect |
    |---|---|
    | `get <amount> <item>` | take a base item; the amount is 1 to 9999 |
    | `craft [<amount>] <item> using <amount> <item>, ...` | use one recipe once |
    | `inventory` | list the carried items |

    The ingredients must be exactly those of a recipe. The same ingredient may be split into several parts, and members
    of a tag (a kind of item, such as planks) may be mixed. The amount after `craft` is optional and has no effect: a
    craft makes what the recipe makes, and the reply gives the amount. Names may have spaces or underscores, any case
    and the prefix `minecraft:`. They may be singular or plural if only one item matches. A final dot is ignored.

    ## Observation
    First `Crafting commands:`, one recipe per line, an empty line, and `Goal: craft <item>.` In fictional and invented
    worlds and with a table of your own, names do not show the kind (tag) of an item. There, a paragraph
    `Kinds of items:` comes before the goal, with a line `<kind>: <item>, ...` for each kind that a shown recipe uses.
    Then the replies: `Got 2 stick`, `Crafted 4 oak planks`, `Inventory: [stick] (2) [oak planks] (4)`,
    `Inventory: You are not carrying anything.`, `Could not find <item>` (it is unknown, or cannot be taken),
    `Could not find enough items to craft <item>`, `Could not find a valid recipe for <item>`. The reply to an unknown
    command is `Could not execute <action>` or `Wrong item format: <part>`, and it sets `info["invalid_action"]`. `info`
    also holds `inventory` (item -> amount). After a reset it holds `recipe_tree`: for each recipe under the goal,
    `item`, `count` and `ingredients`, a list of [name, count, is_tag].

    ## Rewards
    1 when the goal item is crafted, else 0.

    ## Termination
    The episode ends when the goal item is crafted. There is no turn limit; wrap the environment in
    `ScheduledTimeLimit`.

    ## Arguments
    - `grammar`: the format of actions; see `agentgym_envs.grammar`.
    - `split`, `groups`: the tasks that a reset without a task draws from.
    - `difficulty`: a range of turns such as (3, 8): only tasks that the oracle solves in as many are drawn.
    - `goal`: the item to craft in every episode without an explicit task; it may be in any split. In fictional and
      invented worlds, give the real name.
    - `max_distractors`: the largest number of unneeded recipes that are shown.
    - `worlds`: "real", "fictional" or "invented".
    - `recipe_table`: the path of a table of your own, in the format of `data/recipes.json`. Its tasks are named
      `textcraft-<first 8 digits of its SHA-256>/<n>`.
    - `instructions`: replaces the text meant for the system prompt; "" removes it.
    - `render_mode`: "ansi" or None.

    ## Differences from AgentGym
    The goals, the recipes and the format of the texts are AgentGym's (commit 3ef9235). Fixes:

    - Task ids depended on the order of a directory listing; here they follow the sorted file names.
    - The recipes shown depended on Python's hash seed and a global random generator; here they depend on the episode's
      seed.
    - Distractors were drawn from ten random uses of each ingredient; here they are drawn uniformly from all uses.
    - Only the beginning of a command had to match (`inventory please` was accepted); here the whole must match.
    - Another case, extra spaces, underscores, a final dot or a naive singular or plural made an item unknown; here it
      is found.
    - `get 0 diamond` put a zero into the inventory, and amounts had no bound; here amounts are 1 to 9999.
    - Split ingredients (`1 stick, 1 stick`) and mixed members of a tag were refused, although the recipe allows them.
    - Replies contained Python objects and the prefix `minecraft:`; `inventory` ended in a space.
    - An unknown command looked like a failed one; here it sets `info["invalid_action"]`.
    - The environment could be stepped after its end; here that raises `EpisodeOver`.

    Unchanged: the amount after `craft` has no effect, and both `oak log` and `oak logs` can be taken, but only the
    latter makes planks.

    Source: ADaPT (arXiv 2311.05772) and AgentGym (arXiv 2406.04151); the recipe table is derived from the package
    textcraft 0.0.3.

    ## Version History
    - v0: first version.
    """

    rules = _RULES
    tasks: CraftTasks
    grammars = grammars_with(*TOOLS)
    remote_options = TextEnv.remote_options | {"difficulty", "goal", "max_distractors", "worlds"}

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        difficulty: Sequence[int] | None = None,
        goal: str | None = None,
        max_distractors: int = 10,
        worlds: Worlds = "real",
        recipe_table: str | PathLike[str] | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Create the environment; the class documents the arguments.

        Raises UsageError for an invalid argument, and TaskTableError (a UsageError) for a malformed recipe table.
        """
        if worlds not in WORLDS:
            raise UsageError(f"worlds must be one of {', '.join(WORLDS)}, got {worlds!r}")
        if type(max_distractors) is not int or max_distractors < 0:
            raise UsageError(f"max_distractors must be a whole number of at least 0, got {max_distractors!r}")
        self.recipe_book = load_recipe_book(None if recipe_table is None else fspath(recipe_table))
        self.tasks = make_tasks(self.recipe_book, worlds)
        super().__init__(
            grammar=grammar,
            split=split,
            groups=groups,
            difficulty=difficulty,
            instructions=instructions,
            render_mode=render_mode,
        )
        self.max_distractors = max_distractors
        # The built-in names show which items are planks; other names need an explanation.
        self._explains = worlds != "real" or recipe_table is not None
        self._fixed = None if goal is None else self._find_goal(goal)
        self._names: ItemNames = real_names(self.recipe_book)
        self._goal = -1
        self._inventory: dict[int, int] = {}
        self._shown: list[int] = []

    def random_command(self, rng: random.Random) -> str:
        """Return a well-formed command that takes an ingredient of a shown recipe, or crafts by one."""
        if not self._shown:
            return "inventory"
        recipe = self.recipe_book.recipes[rng.choice(self._shown)]
        members, name_of = self.recipe_book.members, self._names.name_of
        parts = [(rng.choice(members[ref]) if ref in members else ref, amount) for ref, amount in recipe.parts]
        taken = [part for part in parts if self.recipe_book.base[part[0]]]
        if taken and rng.random() < 0.5:
            ref, amount = rng.choice(taken)
            return f"get {amount} {name_of(ref)}"
        using = ", ".join(f"{amount} {name_of(ref)}" for ref, amount in parts)
        return f"craft {recipe.makes} {name_of(recipe.item)} using {using}"

    def _choose(self, options: Mapping[str, Any], key: int) -> Task:
        task = super()._choose(options, key)
        if self._fixed is None or "task" in options:
            return task
        return self.tasks.with_goal(task, self._fixed)

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._names = names = self.tasks.names(task)
        self._goal, self._inventory = self.tasks.goal(task), {}
        self._shown = self._draw_recipes(rng)
        kinds = self._explain_kinds() if self._explains else ""
        return f"Crafting commands:\n{names.lines(self._shown)}{kinds}\n\nGoal: craft {names.name_of(self._goal)}."

    def _act(self, command: str) -> Transition:
        action = parse(command)
        if isinstance(action, Get):
            return self._get(action)
        if isinstance(action, Craft):
            return self._craft(action)
        return Transition(self._list_inventory())

    def _get(self, action: Get) -> Transition:
        ref = self._names.find(action.item)
        if ref is None or not self.recipe_book.base[ref]:
            return Transition(f"Could not find {echo(action.item)}")
        self._inventory[ref] = self._inventory.get(ref, 0) + action.amount
        return Transition(f"Got {action.amount} {self._names.name_of(ref)}")

    def _craft(self, action: Craft) -> Transition:
        given = self._take_stock(action.parts)
        if given is None:
            return Transition(f"Could not find enough items to craft {echo(action.item)}")
        item = self._names.find(action.item)
        recipe = None if item is None else self.recipe_book.match(item, given)
        if item is None or recipe is None:
            return Transition(f"Could not find a valid recipe for {echo(action.item)}")
        self._exchange(given, item, recipe.makes)
        reached = item == self._goal
        return Transition(f"Crafted {recipe.makes} {self._names.name_of(item)}", float(reached), reached)

    def _take_stock(self, parts: Mapping[str, int]) -> dict[int, int] | None:
        """Return the parts by reference, with spellings of the same item merged; None if a part is not carried."""
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
        held = " ".join(f"[{self._names.name_of(ref)}] ({amount})" for ref, amount in self._inventory.items())
        return "Inventory: " + (held or "You are not carrying anything.")

    def _state(self) -> str:
        return str(sorted(self._inventory.items()))

    def _plan(self) -> Sequence[str]:
        return commands(make_plan(self.recipe_book, self._goal, self._inventory), self._names.name_of)

    def _solution(self) -> Solution:
        plan, proven = shortest_plan(self.recipe_book, self._goal, self._inventory)
        return Solution(tuple(commands(plan, self._names.name_of)), proven)

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        info = super()._info(details)
        name_of = self._names.name_of
        info["inventory"] = {name_of(ref): amount for ref, amount in self._inventory.items()}
        return info

    def _details(self) -> Mapping[str, Any]:
        needed, _ = self.recipe_book.distinct(self._goal)
        return {"recipe_tree": self._names.describe(needed)}

    def _save(self) -> Any:
        return self._table, self._names, self._goal, dict(self._inventory), tuple(self._shown)

    def _load(self, state: Any) -> None:
        table, names, goal, inventory, shown = state
        if table != self._table:
            raise UsageError(
                f"the snapshot is of an environment with the tasks {table[0]}, this one has {self._table[0]}"
            )
        self._names, self._goal, self._inventory, self._shown = names, goal, dict(inventory), list(shown)

    @property
    def _table(self) -> tuple[str, str]:
        """The tasks and recipes of this environment."""
        return self.tasks.name, self.recipe_book.digest

    def _draw(self) -> str:
        if self.task is None:
            return "No episode has started."
        held = ", ".join(f"{amount} {self._names.name_of(ref)}" for ref, amount in self._inventory.items())
        head = f"Goal: {self.task.goal}\nInventory: {held or 'nothing'}"
        reply = f"\n> {self._actions[-1].strip()}\n{self._observation}" if self._actions else ""
        return "\n".join([head + reply, "Recipes:", *(f"  {self._names.line(number)}" for number in self._shown)])

    def _explain_kinds(self) -> str:
        """Write a paragraph on the tags among the shown ingredients, in the order of first use; "" without tags."""
        tags = self._names.tags(self._shown)
        return "\n\nKinds of items:\n" + "\n".join(map(self._names.explain, tags)) if tags else ""

    def _draw_recipes(self, rng: np.random.Generator) -> list[int]:
        """Draw the distractors, and the order of all recipes that are shown.

        Uses only `rng.random`, whose stream is the same everywhere.
        """
        needed, others = self.recipe_book.distinct(self._goal)
        count = min(self.max_distractors, len(others))
        choices = len(others) if count else 0
        numbers = rng.random(choices + len(needed) + count)
        drawn = numbers[:choices].argsort(kind="stable")[:count].tolist()
        shown = [*needed, *[others[index] for index in drawn]]
        return [shown[index] for index in numbers[choices:].argsort(kind="stable").tolist()]

    def _find_goal(self, goal: str) -> int:
        """Return the index of the goal among the recipe book's goals. Raises UnknownTask with similar names."""
        ref = real_names(self.recipe_book).find(
            " ".join(str(goal).lower().replace("_", " ").replace("minecraft:", "").split())
        )
        if ref is None or ref not in self.recipe_book.goals:
            known = [self.recipe_book.items[ref].replace("_", " ") for ref in self.recipe_book.goals]
            near = difflib.get_close_matches(str(goal).lower().replace("_", " "), known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"for example {known[0]!r} can"
            raise UnknownTask(f"{goal!r:.80} cannot be a goal, since no recipe makes it; {hint}")
        if self.groups is not None and f"depth-{self.recipe_book.depth[ref]}" not in self.groups:
            raise UsageError(
                f"goal {goal!r} is of depth-{self.recipe_book.depth[ref]}, which is not among {self.groups}"
            )
        return self.recipe_book.goals.index(ref)
