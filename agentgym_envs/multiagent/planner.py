"""A team's plan from where it stands: who says, takes, crafts and gives what in which round.

What is to be taken and crafted is TextCraft's shortest plan for all that the team carries together. Each item is
crafted by the agent that knows how, the goal by the agent that must. First, products before ingredients, who knows the
goal's recipe tells it and who lacks something asks for it; then things are taken, crafted and handed on. So a plan is
also a demonstration: nobody acts on what it was not shown or told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from agentgym_envs.multiagent.allocation import Deal
from agentgym_envs.multiagent.messages import clean
from agentgym_envs.textcraft.names import ItemNames, real_names
from agentgym_envs.textcraft.oracle import commands, make_plan
from agentgym_envs.textcraft.parsing import Craft, parse
from agentgym_envs.textcraft.recipes import MAX_AMOUNT, RecipeBook


class Team(NamedTuple):
    """What a plan starts from: the task, what each agent carries, and what was said so far, by whom (its place)."""

    book: RecipeBook
    goal: int
    deal: Deal
    names: ItemNames
    agents: Sequence[str]
    stock: Sequence[Mapping[int, int]]
    said: AbstractSet[tuple[int, str]]

    @classmethod
    def beginning(cls, book: RecipeBook, goal: int, deal: Deal) -> Team:
        """Nothing carried, nothing said, real names."""
        agents = [f"crafter_{place}" for place in range(len(deal.hands))]
        return cls(book, goal, deal, real_names(book), agents, [{} for _ in agents], frozenset())


@dataclass(slots=True)
class _Batch:
    """All crafts of one item: `parts` are the amounts of one craft each; `after` is the round that calls for them."""

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
    """The commands of each round, one for every agent, `pass` for who has nothing to do; the last crafts the goal."""
    schedule = _Schedule(team)
    batches = _batches(team)
    schedule.talk(batches)
    for batch in reversed(batches):
        schedule.work(batch)
    return schedule.finish()


def _batches(team: Team) -> list[_Batch]:
    """The crafts of the shortest plan, products first, each with the agent that does it."""
    book, total = team.book, _Batch(0, 0, [dict(held) for held in team.stock], 0).total()
    found: dict[int, _Batch] = {}
    for line in commands(make_plan(book, team.goal, total), str):
        craft = parse(line)
        if isinstance(craft, Craft):
            item, parts = int(craft.item), {int(name): amount for name, amount in craft.parts.items()}
            if item not in found:
                recipe = book.match(item, parts)
                number = next(n for n in book.recipes_for[item] if book.recipes[n] is recipe)
                worker = team.deal.crafter if item == team.goal else team.deal.knower(number)
                found[item] = _Batch(item, worker, [], number)
            found[item].crafts.append(parts)
    return list(found.values())[::-1]


class _Schedule:
    """Actions put into rounds in an order that would do if only one agent acted a round.

    Each goes into the first round that its agent has left after its last action, after what was given to it before,
    and after the words that call for it. Whoever carries more than in that order can still do all that it does.
    """

    def __init__(self, team: Team) -> None:
        self.team = team
        self.stock = [dict(held) for held in team.stock]
        self.rounds: list[dict[int, str]] = []
        self.busy = [0] * len(team.agents)
        self.supplied = [0] * len(team.agents)

    def talk(self, batches: Sequence[_Batch]) -> None:
        """Tell the goal's recipe and ask for what is lacking; sets each batch's `after` and `asked`."""
        team = self.team
        for batch in batches:
            callers = [other for other in batches if batch.item in other.total()]
            calls = [c.asked.get(batch.item, c.after) if c.worker != batch.worker else c.after for c in callers]
            batch.after = max(calls, default=0)
            knower = team.deal.knower(batch.recipe)
            if knower != batch.worker:
                batch.after = self._say(knower, team.names.line(batch.recipe), batch.after)
            lacks = self._lacks(batch, batches)
            if lacks:
                wanted = ", ".join(f"{amount} {team.names.name_of(ref)}" for ref, amount in lacks.items())
                batch.asked = dict.fromkeys(lacks, self._say(batch.worker, f"I need {wanted}.", batch.after))

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
        return [{name: done.get(place, "pass") for place, name in enumerate(self.team.agents)} for done in self.rounds]

    def _lacks(self, batch: _Batch, batches: Sequence[_Batch]) -> dict[int, int]:
        """What the batch's worker can neither take nor craft and does not carry."""
        worker = batch.worker
        own = {other.item for other in batches if other.worker == worker}
        return {
            ref: amount
            for ref, amount in batch.total().items()
            if self.stock[worker].get(ref, 0) < amount
            and ref not in own
            and ref not in self.team.deal.hands[worker].takes
        }

    def _gather(self, batch: _Batch, ref: int, amount: int) -> None:
        """Bring the amount to the batch's worker: what it has, what others have, and what can be taken."""
        worker, after = batch.worker, batch.asked.get(ref, batch.after)
        short = amount - self.stock[worker].get(ref, 0)
        for place in range(len(self.stock)):
            if short > 0 and place != worker:
                share = min(short, self.stock[place].get(ref, 0))
                self._give(place, worker, ref, share, after)
                short -= share
        if short > 0:
            taker = self.team.deal.taker(ref)
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

    def _say(self, place: int, text: str, after: int) -> int:
        """The round in which it is said; 0 if it was said before."""
        text, _ = clean(text)
        return 0 if (place, text) in self.team.said else self._act(place, f"say {text}", after)

    def _act(self, place: int, command: str, after: int) -> int:
        number = 1 + max(self.busy[place], self.supplied[place], after)
        self.rounds += [{} for _ in range(number - len(self.rounds))]
        self.rounds[number - 1][place] = command
        self.busy[place] = number
        return number

    def _put(self, place: int, ref: int, amount: int) -> None:
        self.stock[place][ref] = self.stock[place].get(ref, 0) + amount


def _portions(total: int) -> Iterator[int]:
    while total > 0:
        yield min(total, MAX_AMOUNT)
        total -= MAX_AMOUNT
