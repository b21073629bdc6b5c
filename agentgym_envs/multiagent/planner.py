"""A team's plan from its present state: the commands of every agent in every round.

The items to take and craft are those of TextCraft's shortest plan for the team's common inventory. Each item is crafted
by an agent that knows a recipe for it, and the goal by the crafter. First the agents talk, products before ingredients:
the holder of the goal's recipe states it, and agents ask for what they lack. Then items are taken, crafted and given.
So a plan is also a demonstration: each agent only uses what it was shown or read in a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from agentgym_envs.multiagent.allocation import Allocation
from agentgym_envs.multiagent.messages import clean
from agentgym_envs.textcraft.names import ItemNames, real_names
from agentgym_envs.textcraft.oracle import commands, make_plan
from agentgym_envs.textcraft.parsing import Craft, parse
from agentgym_envs.textcraft.recipes import MAX_AMOUNT, RecipeBook


class Team(NamedTuple):
    """The start of a plan: the task, the inventory of each agent, and the messages so far as (agent index, text)."""

    book: RecipeBook
    goal: int
    allocation: Allocation
    names: ItemNames
    agents: Sequence[str]
    stock: Sequence[Mapping[int, int]]
    messages: AbstractSet[tuple[int, str]]

    @classmethod
    def beginning(cls, book: RecipeBook, goal: int, allocation: Allocation) -> Team:
        """A team with real names, without items and messages."""
        agents = [f"crafter_{index}" for index in range(len(allocation.holdings))]
        return cls(book, goal, allocation, real_names(book), agents, [{} for _ in agents], frozenset())


@dataclass(slots=True)
class _Batch:
    """All crafts of one item. `crafts` has the ingredients of each craft; `after` is the round of the request."""

    item: int
    worker: int
    crafts: list[dict[int, int]]
    recipe: int
    after: int = 0
    asked: dict[int, int] = field(default_factory=dict)

    def total(self) -> dict[int, int]:
        total: dict[int, int] = {}
        for parts in self.crafts:
            for ref, amount in parts.items():
                total[ref] = total.get(ref, 0) + amount
        return total


def plan_rounds(team: Team) -> list[dict[str, str]]:
    """The commands of each round, one per agent; idle agents `pass`. The last round crafts the goal."""
    schedule = _Schedule(team)
    batches = _batches(team)
    schedule.talk(batches)
    for batch in reversed(batches):
        schedule.work(batch)
    return schedule.finish()


def _batches(team: Team) -> list[_Batch]:
    """The crafts of the shortest plan, products first, each with its agent."""
    book, total = team.book, _Batch(0, 0, [dict(held) for held in team.stock], 0).total()
    found: dict[int, _Batch] = {}
    for line in commands(make_plan(book, team.goal, total), str):
        craft = parse(line)
        if isinstance(craft, Craft):
            item, parts = int(craft.item), {int(name): amount for name, amount in craft.parts.items()}
            if item not in found:
                recipe = book.match(item, parts)
                number = next(n for n in book.recipes_for[item] if book.recipes[n] is recipe)
                worker = team.allocation.crafter if item == team.goal else team.allocation.recipe_holder(number)
                found[item] = _Batch(item, worker, [], number)
            found[item].crafts.append(parts)
    return list(found.values())[::-1]


class _Schedule:
    """Places actions into rounds, in an order that is valid with one action per round.

    Each action goes into the first free round of its agent that is after the agent's last action, the last gift to it,
    and the message that asks for the action. Earlier gifts only add to an inventory, so every action remains valid.
    """

    def __init__(self, team: Team) -> None:
        self.team = team
        self.stock = [dict(held) for held in team.stock]
        self.rounds: list[dict[int, str]] = []
        self.busy = [0] * len(team.agents)
        self.supplied = [0] * len(team.agents)

    def talk(self, batches: Sequence[_Batch]) -> None:
        """State the goal's recipe and ask for missing items; sets `after` and `asked` of each batch."""
        team = self.team
        for batch in batches:
            callers = [other for other in batches if batch.item in other.total()]
            calls = [c.asked.get(batch.item, c.after) if c.worker != batch.worker else c.after for c in callers]
            batch.after = max(calls, default=0)
            holder = team.allocation.recipe_holder(batch.recipe)
            if holder != batch.worker:
                batch.after = self._say(holder, team.names.line(batch.recipe), batch.after)
            missing = self._missing(batch, batches)
            if missing:
                wanted = ", ".join(f"{amount} {team.names.name_of(ref)}" for ref, amount in missing.items())
                batch.asked = dict.fromkeys(missing, self._say(batch.worker, f"I need {wanted}.", batch.after))

    def work(self, batch: _Batch) -> None:
        """Gather a batch's ingredients and craft it."""
        team, worker, say = self.team, batch.worker, self.team.names.name_of
        for ref, amount in batch.total().items():
            self._gather(batch, ref, amount)
        for parts in batch.crafts:
            using = ", ".join(f"{amount} {say(ref)}" for ref, amount in parts.items())
            made = team.book.recipes[batch.recipe].makes
            self._act(worker, f"craft {made} {say(batch.item)} using {using}", batch.after)
            for ref, amount in parts.items():
                self._put(worker, ref, -amount)
            self._put(worker, batch.item, made)

    def finish(self) -> list[dict[str, str]]:
        """Every round with a command for each agent."""
        return [{name: done.get(index, "pass") for index, name in enumerate(self.team.agents)} for done in self.rounds]

    def _missing(self, batch: _Batch, batches: Sequence[_Batch]) -> dict[int, int]:
        """The ingredients that the batch's worker cannot take or craft, and does not carry."""
        worker = batch.worker
        own = {other.item for other in batches if other.worker == worker}
        return {
            ref: amount
            for ref, amount in batch.total().items()
            if self.stock[worker].get(ref, 0) < amount
            and ref not in own
            and ref not in self.team.allocation.holdings[worker].takes
        }

    def _gather(self, batch: _Batch, ref: int, amount: int) -> None:
        """Bring the amount to the batch's worker: from its inventory, from other agents, and by taking items."""
        worker, after = batch.worker, batch.asked.get(ref, batch.after)
        short = amount - self.stock[worker].get(ref, 0)
        for giver in range(len(self.stock)):
            if short > 0 and giver != worker:
                share = min(short, self.stock[giver].get(ref, 0))
                self._give(giver, worker, ref, share, after)
                short -= share
        if short > 0:
            taker = self.team.allocation.item_holder(ref)
            for portion in _portions(short):
                self._act(taker, f"get {portion} {self.team.names.name_of(ref)}", after)
            self._put(taker, ref, short)
            if taker != worker:
                self._give(taker, worker, ref, short, after)

    def _give(self, giver: int, receiver: int, ref: int, amount: int, after: int) -> None:
        for portion in _portions(amount):
            command = f"give {portion} {self.team.names.name_of(ref)} to {self.team.agents[receiver]}"
            self.supplied[receiver] = max(self.supplied[receiver], self._act(giver, command, after))
        self._put(giver, ref, -amount)
        self._put(receiver, ref, amount)

    def _say(self, agent: int, text: str, after: int) -> int:
        """Schedule a message and return its round; 0 if it was sent before."""
        text, _ = clean(text)
        return 0 if (agent, text) in self.team.messages else self._act(agent, f"say {text}", after)

    def _act(self, agent: int, command: str, after: int) -> int:
        number = 1 + max(self.busy[agent], self.supplied[agent], after)
        self.rounds += [{} for _ in range(number - len(self.rounds))]
        self.rounds[number - 1][agent] = command
        self.busy[agent] = number
        return number

    def _put(self, agent: int, ref: int, amount: int) -> None:
        self.stock[agent][ref] = self.stock[agent].get(ref, 0) + amount


def _portions(total: int) -> Iterator[int]:
    while total > 0:
        yield min(total, MAX_AMOUNT)
        total -= MAX_AMOUNT
