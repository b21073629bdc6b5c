"""`CoopTextCraftEnv`: TextCraft for a team."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from agentgym_envs.core import MAX_OBSERVATION_CHARS
from agentgym_envs.errors import EpisodeOver, NoOracle, UsageError, missing_extra
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.multiagent.allocation import add_distractors
from agentgym_envs.multiagent.individual_reward import IndividualReward
from agentgym_envs.multiagent.joint_format import write_texts
from agentgym_envs.multiagent.options import known_options
from agentgym_envs.multiagent.planner import Team, plan_rounds
from agentgym_envs.multiagent.tasks import MAX_AGENTS, allocation_of
from agentgym_envs.multiagent.team_member import ActionOutcome, Gift, TeamMember, TeamMessage, check_agents
from agentgym_envs.spaces import Utf8Text
from agentgym_envs.task import Task, TaskSet
from agentgym_envs.textcraft.names import Worlds

try:
    from pettingzoo import ParallelEnv
except ImportError:
    raise missing_extra("The multi-agent part", "pettingzoo", "multiagent") from None

Infos = dict[str, dict[str, Any]]
Round = tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], Infos]


@dataclass(frozen=True, slots=True)
class TeamSnapshot:
    """The beginning of an episode: `actions` has the agents' actions of each round, in agent order."""

    task_id: str
    seed: int
    actions: tuple[tuple[str, ...], ...] = ()


class CoopTextCraftEnv(ParallelEnv[str, str, str]):  # type: ignore[misc]  # PettingZoo is not typed
    """Craft a goal item as a team whose members know different recipes and can take different items.

    ## Description
    Goals, splits and rules of crafting are those of `AgentGym/TextCraft-v0`. The agents are `crafter_0` to `crafter_3`,
    each with its own inventory. Each recipe under the goal is known to one agent, and each base item under it can be
    taken by one agent. Recipes that are not needed, and the base items that only they use, are allocated as well. One
    agent, the crafter, must craft the goal; the crafter varies between tasks. In every task

    - the items that the crafter can take do not suffice for the goal by any recipes: it must be given something;
    - the crafter is shown no recipe for the goal: it must get the recipe in a message, or guess;
    - the recipes and items of all agents but one never suffice: every agent is needed if all use only recipes that they
      were shown or sent.

    An agent may craft by any recipe, also by a guessed one, or one known from Minecraft, the source of the recipes.
    With `known_recipes_only` it can use only two kinds: a recipe on its card, and a recipe that an agent who knows it
    has sent word for word as on the card. Then messages and all agents are always needed.

    A task is `textcraft-coop/<agents>/<n>`, where `<n>` is the goal's number in TextCraft; its group is
    `agents-<agents>/depth-<d>`. All 544 goals can be allocated to two or three agents, 440 to four. Other worlds
    (`textcraft-coop-invented/<agents>/<world>/<n>`) have other cards.

    With one agent, it is `AgentGym/TextCraft-v0`: the same tasks, texts, rewards and infos.

    ## Action Space
    Text, in the format of the grammar. All agents act at once in every round. The commands are TextCraft's `get`,
    `craft` and `inventory`, and for more than one agent:

    | command | effect |
    |---|---|
    | `give <amount> <item> to <agent>` | give items from the inventory |
    | `say <text>` | send a message to all other agents |
    | `pass` | nothing |

    A gift leaves the inventory at once. Gifts and messages arrive at the end of the round, in agent order. So the
    effect of an action never depends on the other actions of the round, and a gift can be used from the next round on.
    A message is one line of at most 300 characters; a longer one is truncated. White space and invisible characters
    become single spaces, and quotation marks become apostrophes, so that a message cannot end its own quotation.

    ## Observation
    At first the agent's name, `Crafting commands that you know:`, in other worlds `Kinds of items:` as in TextCraft,
    `You can take: <item>, ...`, and `Goal: <agent> must craft <item>.` Then a line with the reply to the agent's own
    action (TextCraft's replies, `You cannot take <item>`, `Gave 2 stick to crafter_1`, `You said it.`, `You pass.`)
    and a line for each gift or message: `crafter_1 gives you 2 stick.`, `crafter_1 says: "..."`. With
    `known_recipes_only`, the reply to an unknown recipe is `You do not know that recipe`. When the goal is crafted, the
    others see `<agent> crafted <item>. The goal is reached.`

    The `info` of each agent has the suite's usual keys (`turn` counts rounds, `score` is the agent's, `success` the
    team's), `agent`, its own `inventory`, and the `messages` (`from`, `text`) and `gifts` (`from`, `item`, `amount`)
    that have arrived. After a reset it also has `crafter` and `card` (`recipes`, and `takes` or None for all).
    TextCraft's `recipe_tree` is left out for teams, since it would reveal other agents' recipes. `state_key` identifies
    the inventories and messages of the whole team from that agent's perspective.

    `state()` is a JSON object from the agents to their observations.

    ## Rewards
    1 for every agent when the goal is crafted, else 0. With `individual=w` it is 1 - w, and w is the weight of an
    agent's own part: each item that TextCraft's shortest plan takes or crafts, the goal included, pays the same share
    once, to the agent that is first to take or craft it (or another item of its kind). Several agents in the same round
    share it equally. The rewards of an agent sum to a value in [0, 1]. With `individual=1`, success itself pays
    nothing.

    ## Termination
    The episode ends for all agents when the crafter has crafted the goal, and is truncated (`turn_limit`) after
    `max_rounds` rounds.

    ## Arguments
    - `num_agents`: 1 to 4.
    - `grammar`, `split`, `groups`, `max_distractors`, `worlds`, `recipe_table`, `render_mode`: as in TextCraft.
    - `individual`: the individual part of the reward, 0 to 1.
    - `known_recipes_only`: allow only recipes that the agent was shown or sent; no effect on a team of one.
    - `max_rounds`: None for no limit; an attribute that is read at each reset.
    - `instructions`: replaces the system prompt of every agent; "" for an empty one.

    ## Version History
    - v0: first version.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's name and type)
        "name": "textcraft_coop_v0",
        "render_modes": ["ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        *,
        num_agents: int = 2,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        max_distractors: int = 10,
        worlds: Worlds = "real",
        recipe_table: str | PathLike[str] | None = None,
        individual: float = 0.0,
        known_recipes_only: bool = False,
        max_rounds: int | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """The class documents the arguments. Raises UsageError for an invalid one."""
        count = check_agents(num_agents, MAX_AGENTS)
        if isinstance(individual, bool) or not isinstance(individual, int | float) or not 0 <= individual <= 1:
            raise UsageError(f"individual is a share from 0 to 1, got {individual!r:.80}")
        if not isinstance(known_recipes_only, bool):
            raise UsageError(f"known_recipes_only is True or False, got {known_recipes_only!r:.80}")
        self.possible_agents = [f"crafter_{index}" for index in range(count)]
        self._members = [
            TeamMember(
                self.possible_agents,
                index,
                grammar=grammar,
                split=split,
                groups=groups,
                max_distractors=max_distractors,
                worlds=worlds,
                recipe_table=recipe_table,
                known_recipes_only=known_recipes_only,
                instructions=instructions,
                render_mode=render_mode,
            )
            for index in range(count)
        ]
        self._by_agent = dict(zip(self.possible_agents, self._members, strict=True))
        self.agents: list[str] = []
        self.individual, self.max_rounds, self.render_mode = float(individual), max_rounds, render_mode
        self._limit = _checked_limit(max_rounds)
        self._messages: set[tuple[int, str]] = set()
        self._observations: dict[str, str] = {}
        self._individual: IndividualReward | None = None

    @property
    def tasks(self) -> TaskSet:
        """The tasks that a reset draws from."""
        return self._members[0].tasks

    @property
    def task(self) -> Task | None:
        """The task of this episode, or of the last one."""
        return self._members[0].task

    @property
    def episode_seed(self) -> int:
        """The seed of this episode."""
        return self._members[0].episode_seed

    @property
    def grammar(self) -> ActionGrammar:
        """The grammar of every agent's actions."""
        return self._members[0].grammar

    @property
    def split(self) -> str | None:
        """The split that a reset without a task draws from."""
        return self._members[0].split

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The groups that a reset without a task draws from; None for all."""
        return self._members[0].groups

    def observation_space(self, agent: str) -> Utf8Text:
        """Text."""
        return self._member(agent).observation_space  # type: ignore[return-value]

    def action_space(self, agent: str) -> Utf8Text:
        """Text."""
        return self._member(agent).action_space  # type: ignore[return-value]

    def instructions_for(self, agent: str) -> str:
        """An agent's system prompt: its name, the rules and the format of an answer."""
        return self._member(agent).instructions

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, str], Infos]:
        """Begin an episode, with the arguments of `TextEnv.reset`. Unknown options are ignored with a warning.

        Raises:
            UsageError, UnknownTask: invalid values of options.
            EpisodeOver: the environment is closed.
        """
        limit = _checked_limit(self.max_rounds)
        first, *others = self._members
        observation, _ = first.reset(seed=seed, options=known_options(options))
        self._messages, self._limit = set(), limit
        self._observations = self._hand_out_cards() if others else {first.agent: observation}
        self.agents = list(self.possible_agents)
        self._individual = IndividualReward(first.recipe_book, first.goal) if self.individual else None
        limits = {} if limit is None else {"max_turns": limit}
        return dict(self._observations), {member.agent: {**member.reset_info(), **limits} for member in self._members}

    def step(self, actions: Mapping[str, str]) -> Round:
        """Play one round with an action of every agent, in the environment's grammar.

        Raises:
            EpisodeOver: no episode runs.
            UsageError: `actions` does not have exactly one string for each agent.
        """
        self._check(actions)
        outcomes = [member.act(actions[member.agent]) for member in self._members]
        sent = [outcome.sent for outcome in outcomes if outcome.sent is not None]
        self._deliver(sent)
        pairs = zip(self._members, outcomes, strict=True)
        winner = next((member for member, outcome in pairs if self._reached(member, outcome)), None)
        truncated = self._members[0].turn == self._limit
        rewards = self._rewards(outcomes, winner)
        steps = {
            member.agent: member.finish(outcome, sent, reward, winner, truncated)
            for member, outcome, reward in zip(self._members, outcomes, rewards, strict=True)
        }
        if winner is not None or truncated:
            self.agents = []
        self._observations = {agent: step[0] for agent, step in steps.items()}
        return (
            dict(self._observations),
            {agent: step[1] for agent, step in steps.items()},
            {agent: step[2] for agent, step in steps.items()},
            {agent: step[3] for agent, step in steps.items()},
            {agent: step[4] for agent, step in steps.items()},
        )

    def oracle(self) -> Iterator[dict[str, str]]:
        """Yield the rounds that solve the current state, with a bare command for each agent. Raises NoOracle."""
        first = self._members[0]
        if len(self._members) == 1:
            return ({first.agent: command} for command in first.oracle())
        if not self.agents:
            raise NoOracle("no episode runs, so there is nothing to solve; call reset() first")
        stock = [member.stock for member in self._members]
        allocation = allocation_of(first.recipe_book, first.task) if first.task else None
        assert allocation is not None
        team = Team(first.recipe_book, first.goal, allocation, first.names, self.possible_agents, stock, self._messages)
        return iter(plan_rounds(team))

    def random_command(self, agent: str, rng: random.Random) -> str:
        """A well-formed random command (bare) for an agent."""
        return self._member(agent).random_command(rng)

    @property
    def state_space(self) -> Utf8Text:
        """Text."""
        return Utf8Text(2 * MAX_OBSERVATION_CHARS * len(self._members))

    def state(self) -> str:
        """The observations of all agents as a JSON object. Raises EpisodeOver if no episode was begun."""
        if not self._observations:
            raise EpisodeOver("no episode was begun, so there is no state; call reset() first")
        return write_texts(self._observations)

    def snapshot(self) -> TeamSnapshot:
        """The episode as task, seed and actions. Raises EpisodeOver if none was begun."""
        if self.task is None:
            raise EpisodeOver("no episode was begun, so there is nothing to save; call reset() first")
        rounds = zip(*(member.actions for member in self._members), strict=True)
        return TeamSnapshot(self.task.id, self.episode_seed, tuple(rounds))

    def restore(self, snapshot: TeamSnapshot) -> dict[str, str]:
        """Replay an episode up to a snapshot's state, and return the last observations.

        Raises UsageError if it is not a snapshot, or one of another team size.
        """
        if not isinstance(snapshot, TeamSnapshot):
            raise UsageError(f"restore takes a result of snapshot(), got {snapshot!r:.80}")
        if any(len(actions) != len(self._members) for actions in snapshot.actions):
            raise UsageError(f"the snapshot is not of {len(self._members)} agents")
        observations, _ = self.reset(seed=snapshot.seed, options={"task": snapshot.task_id})
        for actions in snapshot.actions:
            observations, *_ = self.step(dict(zip(self.possible_agents, actions, strict=True)))
        return observations

    def status(self) -> dict[str, Any]:
        """The status of the episode as in `TextEnv`, with the agents' `scores`; `score` is their mean."""
        each = {member.agent: member.status() for member in self._members}
        scores = {agent: status["score"] for agent, status in each.items()}
        return {**each[self.possible_agents[0]], "score": sum(scores.values()) / len(scores), "scores": scores}

    def render(self) -> str | None:
        """Each agent's inventory, last action and observation as text, if the render mode is "ansi"."""
        if self.render_mode is None:
            return None
        return "\n\n".join(f"{member.agent}\n{member.render()}" for member in self._members)

    def close(self) -> None:
        """End the episode. Closing twice is allowed."""
        self.agents = []
        for member in self._members:
            member.close()

    def _member(self, agent: str) -> TeamMember:
        if agent not in self._by_agent:
            raise UsageError(f"there is no agent {agent!r:.80}; the agents are {', '.join(self.possible_agents)}")
        return self._by_agent[agent]

    def _hand_out_cards(self) -> dict[str, str]:
        """Give each agent its cards for the episode that the first member has begun, and return the observations."""
        first = self._members[0]
        assert first.task is not None
        allocation = add_distractors(first.recipe_book, allocation_of(first.recipe_book, first.task), first.shown)
        crafter = self.possible_agents[allocation.crafter]
        return {
            member.agent: member.join(self._members, holdings, crafter, self._messages)
            for member, holdings in zip(self._members, allocation.holdings, strict=True)
        }

    def _check(self, actions: Mapping[str, str]) -> None:
        if not self.agents:
            raise EpisodeOver(
                f"no episode runs (the last one, if any, ended: {self.status()['stop_reason']}); call reset() first"
            )
        if not isinstance(actions, Mapping) or set(actions) != set(self.agents):
            named = sorted(map(str, actions)) if isinstance(actions, Mapping) else f"{actions!r:.80}"
            raise UsageError(f"a round is a dict with an action for each of {self.agents}, got {named}")
        if wrong := {agent: action for agent, action in actions.items() if not isinstance(action, str)}:
            raise UsageError(f"an action is a string, got {wrong!r:.120}")

    def _deliver(self, sent: Sequence[Gift | TeamMessage]) -> None:
        messages = [each for each in sent if isinstance(each, TeamMessage)]
        # Messages are simultaneous: a recipe only counts if its sender knew it before this round.
        stated = [self._by_agent[each.sender].recipes_in(each.text) for each in messages]
        for each in sent:
            if isinstance(each, Gift):
                self._by_agent[each.receiver].receive(each)
        self._messages |= {(self._by_agent[each.sender].index, each.text) for each in messages}
        for member in self._members:
            if member.known is not None:
                member.known.update(*stated)

    def _reached(self, member: TeamMember, outcome: ActionOutcome) -> bool:
        """True if that agent is the crafter and crafted the goal. Another agent may craft the item as well."""
        return outcome.transition.terminated and member.agent == member.crafter

    def _rewards(self, outcomes: Sequence[ActionOutcome], winner: TeamMember | None) -> list[float]:
        team = float(winner is not None)
        if self._individual is None:
            return [team] * len(outcomes)
        made = [
            None if outcome.transition.terminated and not self._reached(member, outcome) else outcome.made
            for member, outcome in zip(self._members, outcomes, strict=True)
        ]
        return [(1 - self.individual) * team + self.individual * share for share in self._individual.pay(made)]


def _checked_limit(max_rounds: object) -> int | None:
    if max_rounds is None:
        return None
    if type(max_rounds) is not int or max_rounds < 1:
        raise UsageError(f"max_rounds must be a whole number of at least 1, or None, got {max_rounds!r:.80}")
    return max_rounds
