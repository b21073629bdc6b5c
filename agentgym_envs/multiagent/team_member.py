"""One agent of a team: its own TextCraft, with a part of the recipes and three more commands."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from agentgym_envs.core import TextEnv, Transition
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
    Craft by a recipe, your own or one that you were told{{how}}. The amounts must be those of the recipe, and you \
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
    """An amount of an item, sent from one agent to another."""

    giver: str
    receiver: str
    ref: int
    amount: int


class TeamMessage(NamedTuple):
    """A cleaned text, sent from one agent to all others."""

    sender: str
    text: str


class ActionOutcome(NamedTuple):
    """The effect of one agent's action, before those of other agents. `made` is the item that it took or crafted."""

    transition: Transition
    invalid: str | None
    made: int | None = None
    sent: Gift | TeamMessage | None = None


class TeamMember(TextCraftEnv):
    """One agent's view of the game. In a team of one, it behaves exactly like `TextCraftEnv`."""

    _save = TextEnv._save  # a copy of one member would miss the state of its team

    def __init__(
        self,
        agents: Sequence[str],
        index: int,
        *,
        worlds: Worlds,
        split: str | None,
        groups: Sequence[str] | None,
        known_recipes_only: bool,
        **options: Any,
    ) -> None:
        super().__init__(worlds=worlds, split=None, **options)
        self.agent, self.index = agents[index], index
        self.mates = tuple(agent for agent in agents if agent != self.agent)
        self.tasks = team_tasks(self.recipe_book, worlds, len(agents))
        check_groups(self.tasks, groups, len(agents))
        check_selection(self.tasks, split, groups)
        self.split, self.groups = split, None if groups is None else tuple(groups)
        if self.mates:
            how = _WORD_FOR_WORD if known_recipes_only else ""
            self.rules = _TEAM_RULES.format(agent=self.agent, mates=_listed(self.mates), how=how)
        self.holdings = Holdings((), ())
        self.crafter = self.agent
        self.known: set[int] | None = None
        """The recipes that it was shown or sent, if it may only use these; else None."""
        self._known_recipes_only = known_recipes_only and bool(self.mates)
        self._team: Sequence[TeamMember] = [self]
        self._messages: AbstractSet[tuple[int, str]] = frozenset()
        self._made: int | None = None

    @property
    def goal(self) -> int:
        """The item to craft."""
        return self._goal

    @property
    def names(self) -> ItemNames:
        """The names of items in this episode."""
        return self._names

    @property
    def shown(self) -> Sequence[int]:
        """The numbers of the recipes that the agent is shown."""
        return self._shown

    @property
    def actions(self) -> Sequence[str]:
        """The agent's texts in this episode."""
        return self._actions

    @property
    def turn(self) -> int:
        """The number of rounds played."""
        return self._turn

    @property
    def stock(self) -> dict[int, int]:
        """The agent's inventory: item -> amount."""
        return self._inventory

    def join(
        self, team: Sequence[TeamMember], holdings: Holdings, crafter: str, messages: AbstractSet[tuple[int, str]]
    ) -> str:
        """Join the episode that the first member has begun, and return the first observation.

        `messages` has all messages so far as (agent index, text); it grows during the episode.
        """
        first = team[0]
        if self is not first:
            assert first.task is not None
            self._start(first.task, first.episode_seed)
            self._names, self._goal = first._names, first._goal
        self._team, self.holdings, self.crafter, self._messages = team, holdings, crafter, messages
        self._inventory, self._shown = {}, list(holdings.recipes)
        self.known = set(holdings.recipes) if self._known_recipes_only else None
        self._observation = self._first_observation()
        return self._observation

    def act(self, action: str) -> ActionOutcome:
        """Carry out this agent's action of a round. A gift leaves its inventory now and arrives with `receive`."""
        self._take(action)
        self._made = None
        try:
            command = self._command(action)
            team_action = read(command) if self.mates else None
            if team_action is None:
                return ActionOutcome(self._act(command), None, self._made)
            return self._act_in_team(team_action)
        except InvalidAction as error:
            return ActionOutcome(Transition(str(error)), str(error))

    def receive(self, gift: Gift) -> None:
        """Add a gift to the inventory."""
        self._inventory[gift.ref] = self._inventory.get(gift.ref, 0) + gift.amount

    def recipes_in(self, text: str) -> set[int]:
        """The recipes of this agent that a text states in full."""
        lines = {number: self._names.line(number) for number in self.known or ()}
        return {number for number, line in lines.items() if re.search(rf"(?<!\w){re.escape(line)}(?!\w)", text.lower())}

    def reset_info(self) -> dict[str, Any]:
        """The info of this agent after a reset."""
        recipes = [self._names.line(number) for number in self._shown]
        takes = [self._names.name_of(ref) for ref in self.holdings.takes] if self.mates else None
        own = {"crafter": self.crafter, "card": {"recipes": recipes, "takes": takes}}
        tree = {} if self.mates else self._details()  # the recipe tree would reveal the recipes of other agents
        return self._info({**tree, **self._received(()), **own})

    def finish(
        self,
        outcome: ActionOutcome,
        sent: Sequence[Gift | TeamMessage],
        reward: float,
        winner: TeamMember | None,
        truncated: bool,
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """End a round and return the results of `TextEnv.step`.

        `sent` has all gifts and messages of the round; `winner` is the agent that reached the goal, if one did.
        """
        own = [each for each in sent if self._gets(each)]
        lines = [outcome.transition.observation, *map(self._line_of, own)]
        if winner is not None and winner is not self:
            lines.append(f"{winner.agent} crafted {self._names.name_of(self._goal)}. The goal is reached.")
        won = winner is not None
        transition = Transition(
            "\n".join(lines), reward, terminated=won, success=won, info=self._received(own), truncated=truncated
        )
        return self._finish_step(transition, outcome.invalid)

    def random_command(self, rng: random.Random) -> str:
        """A well-formed random command: TextCraft's, or give, say or pass."""
        if not self.mates or (roll := rng.random()) > 0.5:
            return super().random_command(rng)
        say = self._names.name_of
        if roll < 0.15 and self._inventory:
            ref = rng.choice(sorted(self._inventory))
            return f"give {rng.randint(1, self._inventory[ref])} {say(ref)} to {rng.choice(self.mates)}"
        if roll < 0.25 and self._shown:
            return f"say {self._names.line(rng.choice(self._shown))}"
        if roll > 0.3 and self.holdings.takes:
            return f"get {rng.randint(1, 4)} {say(rng.choice(self.holdings.takes))}"
        return "pass"

    def _gets(self, sent: Gift | TeamMessage) -> bool:
        return sent.receiver == self.agent if isinstance(sent, Gift) else sent.sender != self.agent

    def _line_of(self, sent: Gift | TeamMessage) -> str:
        """The line of an observation for a received gift or message."""
        if isinstance(sent, TeamMessage):
            return quote(sent.sender, sent.text)
        return f"{sent.giver} gives you {sent.amount} {self._names.name_of(sent.ref)}."

    def _act_in_team(self, action: Give | Say | Pass) -> ActionOutcome:
        if isinstance(action, Give):
            return self._give(action)
        if isinstance(action, Pass):
            return ActionOutcome(Transition("You pass."), None)
        answer = f"You said the first {MAX_MESSAGE_CHARS} characters of it." if action.truncated else "You said it."
        return ActionOutcome(Transition(answer), None, sent=TeamMessage(self.agent, action.text))

    def _give(self, action: Give) -> ActionOutcome:
        receiver = next((mate for mate in self.mates if _key(mate) == _key(action.receiver)), None)
        if receiver is None:
            return ActionOutcome(Transition(f"Could not find {echo(action.receiver)} to give to"), None)
        given = self._take_stock({action.item: action.amount})
        if given is None:
            return ActionOutcome(
                Transition(f"Could not find enough items to give {action.amount} {echo(action.item)}"), None
            )
        [(ref, amount)] = given.items()
        self._inventory[ref] -= amount
        if not self._inventory[ref]:
            del self._inventory[ref]
        answer = f"Gave {amount} {self._names.name_of(ref)} to {receiver}"
        return ActionOutcome(Transition(answer), None, sent=Gift(self.agent, receiver, ref, amount))

    def _get(self, action: Get) -> Transition:
        ref = self._names.find(action.item)
        if ref is None or not self.recipe_book.base[ref]:
            return super()._get(action)
        if self.mates and ref not in self.holdings.takes:
            return Transition(f"You cannot take {self._names.name_of(ref)}")
        self._made = ref
        return super()._get(action)

    def _craft(self, action: Craft) -> Transition:
        if self.known is not None and not self._may_craft(action):
            return Transition("You do not know that recipe")
        return super()._craft(action)

    def _may_craft(self, action: Craft) -> bool:
        """True if the agent knows a matching recipe, or if no recipe matches (TextCraft then replies)."""
        item, given = self._names.find(action.item), self._take_stock(action.parts)
        recipe = None if item is None or given is None else self.recipe_book.match(item, given)
        return recipe is None or any(self.recipe_book.recipes[number] == recipe for number in self.known or ())

    def _exchange(self, given: Mapping[int, int], item: int, count: int) -> None:
        super()._exchange(given, item, count)
        self._made = item

    def _state(self) -> str:
        if not self.mates:
            return super()._state()
        stock, known = ([sorted(of(member)) for member in self._team] for of in (_stock_of, _known_of))
        return f"{self.index} {stock} {sorted(self._messages)} {known}"

    def _first_observation(self) -> str:
        say = self._names.name_of
        recipes = "".join(f"\n{self._names.line(number)}" for number in self._shown) or " none"
        kinds = self._explain_kinds() if self._explains else ""
        return (
            f"You are {self.agent}. With you: {', '.join(self.mates)}.\n\n"
            f"Crafting commands that you know:{recipes}{kinds}\n\n"
            f"You can take: {', '.join(map(say, self.holdings.takes)) or 'nothing'}.\n\n"
            f"Goal: {self.crafter} must craft {say(self._goal)}."
        )

    def _received(self, arrived: Sequence[Gift | TeamMessage]) -> dict[str, Any]:
        """Received messages and gifts, as info."""
        messages = [{"from": sent.sender, "text": sent.text} for sent in arrived if isinstance(sent, TeamMessage)]
        gifts = [
            {"from": sent.giver, "item": self._names.name_of(sent.ref), "amount": sent.amount}
            for sent in arrived
            if isinstance(sent, Gift)
        ]
        return {"agent": self.agent, "messages": messages, "gifts": gifts}


def _stock_of(member: TeamMember) -> Iterable[tuple[int, int]]:
    return member.stock.items()


def _known_of(member: TeamMember) -> Iterable[int]:
    return member.known or ()


def check_agents(num_agents: object, maximum: int) -> int:
    """Check the number of agents. Raises UsageError."""
    if type(num_agents) is not int or not 1 <= num_agents <= maximum:
        raise UsageError(f"num_agents must be a whole number from 1 to {maximum}, got {num_agents!r:.80}")
    return num_agents


def _key(name: str) -> str:
    """A name without case, spaces and underscores."""
    return name.lower().replace("_", "").replace(" ", "")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
