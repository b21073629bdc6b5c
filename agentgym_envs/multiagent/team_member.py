"""One agent's place in a team: a TextCraft of its own, with a part of the recipes and three more commands."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from agentgym_envs.core import Transition
from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.multiagent.allocation import Holdings
from agentgym_envs.multiagent.messages import MAX_MESSAGE_CHARS, Give, Pass, Say, quote, read
from agentgym_envs.multiagent.tasks import check_groups, team_tasks
from agentgym_envs.task import check_selection
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.names import ItemNames, Worlds
from agentgym_envs.textcraft.parsing import Craft, Get, echo

_TEAM_RULES = f"""\
You are {{agent}}, and you craft items in a team with {{mates}}. First you are shown crafting commands, which are \
recipes, the items that you can take, and the goal: an item, and the one of you that must craft it. Each of you is \
shown other recipes and can take other items, and nobody sees what another is shown. Tell each other what you know and \
what you need. Some of the recipes are not needed.

In each round every one of you takes one action, all at the same time:
get <amount> <item>
    Take items that you can take, for example: get 3 <item>
craft <amount> <item> using <amount> <ingredient>, <amount> <ingredient>
    Craft by a recipe, your own or one that you were told{{told}}. The amounts must be those of the recipe, and you \
must carry the ingredients. To craft more, craft again.
give <amount> <item> to <name>
    Hand items that you carry to another.
say <text>
    Tell all the others something, in at most {MAX_MESSAGE_CHARS} characters.
inventory
    See what you carry.
pass
    Do nothing.

What is given or said arrives at the end of the round. \
An ingredient that can be neither taken nor crafted is a kind of item: name an item of that kind instead."""

_WORD_FOR_WORD = ", word for word, by one that knows it"


class Gift(NamedTuple):
    """So many of an item, on the way from one agent to another."""

    giver: str
    receiver: str
    ref: int
    amount: int


class Message(NamedTuple):
    """A text, clean, on the way from one agent to all the others."""

    sender: str
    text: str


class Reply(NamedTuple):
    """What one agent's action did to it alone: `made` is the item that it brought into being."""

    transition: Transition
    invalid: str | None
    made: int | None = None
    sent: Gift | Message | None = None


class TeamMember(TextCraftEnv):
    """What one agent sees, carries and does. With nobody beside it, it is `TextCraftEnv` and nothing else."""

    def __init__(
        self,
        agents: Sequence[str],
        place: int,
        *,
        worlds: Worlds,
        split: str | None,
        groups: Sequence[str] | None,
        told_only: bool,
        **options: Any,
    ) -> None:
        super().__init__(worlds=worlds, split=None, **options)
        self.agent, self.place = agents[place], place
        self.mates = tuple(agent for agent in agents if agent != self.agent)
        self.tasks = team_tasks(self.recipe_book, worlds, len(agents))
        check_groups(self.tasks, groups, len(agents))
        check_selection(self.tasks, split, groups)
        self.split, self.groups = split, None if groups is None else tuple(groups)
        if self.mates:
            told = _WORD_FOR_WORD if told_only else ""
            self.rules = _TEAM_RULES.format(agent=self.agent, mates=_listed(self.mates), told=told)
        self.hand = Holdings((), ())
        self.crafter = self.agent
        self.known: set[int] | None = None
        """The recipes that it was shown or told, if it may craft by no others."""
        self._told_only = told_only and bool(self.mates)
        self._team: Sequence[TeamMember] = [self]
        self._said: AbstractSet[tuple[int, str]] = frozenset()
        self._made: int | None = None

    @property
    def goal(self) -> int:
        """The item to craft."""
        return self._goal

    @property
    def names(self) -> ItemNames:
        """What items are called in this episode."""
        return self._names

    @property
    def shown(self) -> Sequence[int]:
        """The recipes that the agent sees, by number."""
        return self._shown

    @property
    def actions(self) -> Sequence[str]:
        """What the agent wrote in this episode."""
        return self._actions

    @property
    def turn(self) -> int:
        """The rounds played."""
        return self._turn

    @property
    def stock(self) -> dict[int, int]:
        """What the agent carries: item -> amount."""
        return self._inventory

    def join(self, team: Sequence[TeamMember], hand: Holdings, crafter: str, said: AbstractSet[tuple[int, str]]) -> str:
        """Take part in the episode that the first seat has begun; returns the first observation.

        `said` is all that anybody has said, and by whom (its place); it grows during the episode.
        """
        first = team[0]
        if self is not first:
            assert first.task is not None
            self._start(first.task, first.episode_seed)
            self._names, self._goal = first._names, first._goal
        self._team, self.hand, self.crafter, self._said = team, hand, crafter, said
        self._inventory, self._shown = {}, list(hand.recipes)
        self.known = set(hand.recipes) if self._told_only else None
        self._observation = self._first_sight()
        return self._observation

    def take_part(self, action: str) -> Reply:
        """Carry out this agent's action of a round. What it sends is gone from here and has not arrived yet."""
        self._take(action)
        self._made = None
        try:
            command = self._command(action)
            said = read(command) if self.mates else None
            if said is None:
                return Reply(self._act(command), None, self._made)
            return self._tell(said)
        except InvalidAction as error:
            return Reply(Transition(str(error)), str(error))

    def receive(self, gift: Gift) -> None:
        """A gift has arrived."""
        self._inventory[gift.ref] = self._inventory.get(gift.ref, 0) + gift.amount

    def told_in(self, text: str) -> set[int]:
        """The recipes that this agent knows and writes out in a text."""
        lines = {number: self._names.line(number) for number in self.known or ()}
        return {number for number, line in lines.items() if re.search(rf"(?<!\w){re.escape(line)}(?!\w)", text.lower())}

    def begun(self) -> dict[str, Any]:
        """The info of this agent's reset."""
        recipes = [self._names.line(number) for number in self._shown]
        takes = [self._names.name_of(ref) for ref in self.hand.takes] if self.mates else None
        own = {"crafter": self.crafter, "card": {"recipes": recipes, "takes": takes}}
        tree = {} if self.mates else self._details()  # it holds what the others know
        return self._info({**tree, **self._mail(()), **own})

    def finish(
        self, reply: Reply, sent: Sequence[Gift | Message], reward: float, ender: TeamMember | None, cut: bool
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The end of a round in which all that was `sent` arrived; `ender` is who has reached the goal, if anybody.

        Returns what `TextEnv.step` does.
        """
        own = [each for each in sent if self._gets(each)]
        lines = [reply.transition.observation, *map(self._line_of, own)]
        if ender is not None and ender is not self:
            lines.append(f"{ender.agent} crafted {self._names.name_of(self._goal)}. The goal is reached.")
        won = ender is not None
        transition = Transition(
            "\n".join(lines), reward, terminated=won, success=won, info=self._mail(own), truncated=cut
        )
        return self._finish_step(transition, reply.invalid)

    def random_command(self, rng: random.Random) -> str:
        """As in TextCraft, and now and then give, say or pass; never wrong in form."""
        if not self.mates or (roll := rng.random()) > 0.5:
            return super().random_command(rng)
        say = self._names.name_of
        if roll < 0.15 and self._inventory:
            ref = rng.choice(sorted(self._inventory))
            return f"give {rng.randint(1, self._inventory[ref])} {say(ref)} to {rng.choice(self.mates)}"
        if roll < 0.25 and self._shown:
            return f"say {self._names.line(rng.choice(self._shown))}"
        if roll > 0.3 and self.hand.takes:
            return f"get {rng.randint(1, 4)} {say(rng.choice(self.hand.takes))}"
        return "pass"

    def _gets(self, sent: Gift | Message) -> bool:
        return sent.receiver == self.agent if isinstance(sent, Gift) else sent.sender != self.agent

    def _line_of(self, sent: Gift | Message) -> str:
        """How what another sent is told to this agent."""
        if isinstance(sent, Message):
            return quote(sent.sender, sent.text)
        return f"{sent.giver} gives you {sent.amount} {self._names.name_of(sent.ref)}."

    def _tell(self, said: Give | Say | Pass) -> Reply:
        if isinstance(said, Give):
            return self._give(said)
        if isinstance(said, Pass):
            return Reply(Transition("You pass."), None)
        answer = f"You said the first {MAX_MESSAGE_CHARS} characters of it." if said.cut else "You said it."
        return Reply(Transition(answer), None, sent=Message(self.agent, said.text))

    def _give(self, said: Give) -> Reply:
        receiver = next((mate for mate in self.mates if _key(mate) == _key(said.receiver)), None)
        if receiver is None:
            return Reply(Transition(f"Could not find {echo(said.receiver)} to give to"), None)
        given = self._take_stock({said.item: said.amount})
        if given is None:
            return Reply(Transition(f"Could not find enough items to give {said.amount} {echo(said.item)}"), None)
        [(ref, amount)] = given.items()
        self._inventory[ref] -= amount
        if not self._inventory[ref]:
            del self._inventory[ref]
        answer = f"Gave {amount} {self._names.name_of(ref)} to {receiver}"
        return Reply(Transition(answer), None, sent=Gift(self.agent, receiver, ref, amount))

    def _get(self, action: Get) -> Transition:
        ref = self._names.find(action.item)
        if ref is None or not self.recipe_book.base[ref]:
            return super()._get(action)
        if self.mates and ref not in self.hand.takes:
            return Transition(f"You cannot take {self._names.name_of(ref)}")
        self._made = ref
        return super()._get(action)

    def _craft(self, action: Craft) -> Transition:
        if self.known is not None and not self._may_craft(action):
            return Transition("You do not know that recipe")
        return super()._craft(action)

    def _may_craft(self, action: Craft) -> bool:
        """Whether it knows a recipe for that, or there is none, which the game will say."""
        item, given = self._names.find(action.item), self._take_stock(action.parts)
        recipe = None if item is None or given is None else self.recipe_book.match(item, given)
        return recipe is None or any(self.recipe_book.recipes[number] == recipe for number in self.known or ())

    def _exchange(self, given: Mapping[int, int], item: int, count: int) -> None:
        super()._exchange(given, item, count)
        self._made = item

    def _state(self) -> str:
        if not self.mates:
            return super()._state()
        stock, known = ([sorted(of(seat)) for seat in self._team] for of in (_stock_of, _known_of))
        return f"{self.place} {stock} {sorted(self._said)} {known}"

    def _first_sight(self) -> str:
        say = self._names.name_of
        recipes = "".join(f"\n{self._names.line(number)}" for number in self._shown) or " none"
        kinds = self._explain_kinds() if self._explains else ""
        return (
            f"You are {self.agent}. With you: {', '.join(self.mates)}.\n\n"
            f"Crafting commands that you know:{recipes}{kinds}\n\n"
            f"You can take: {', '.join(map(say, self.hand.takes)) or 'nothing'}.\n\n"
            f"Goal: {self.crafter} must craft {say(self._goal)}."
        )

    def _mail(self, arrived: Sequence[Gift | Message]) -> dict[str, Any]:
        """What arrived, as info."""
        messages = [{"from": sent.sender, "text": sent.text} for sent in arrived if isinstance(sent, Message)]
        gifts = [
            {"from": sent.giver, "item": self._names.name_of(sent.ref), "amount": sent.amount}
            for sent in arrived
            if isinstance(sent, Gift)
        ]
        return {"agent": self.agent, "messages": messages, "gifts": gifts}


def _stock_of(seat: TeamMember) -> Iterable[tuple[int, int]]:
    return seat.stock.items()


def _known_of(seat: TeamMember) -> Iterable[int]:
    return seat.known or ()


def check_agents(num_agents: object, most: int) -> int:
    """The number of agents. Raises UsageError for one that cannot be."""
    if type(num_agents) is not int or not 1 <= num_agents <= most:
        raise UsageError(f"num_agents must be a whole number from 1 to {most}, got {num_agents!r:.80}")
    return num_agents


def _key(name: str) -> str:
    """A name without what is easily written another way."""
    return name.lower().replace("_", "").replace(" ", "")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
