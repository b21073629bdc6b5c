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
from agentgym_envs.multiagent.credit import Credit
from agentgym_envs.multiagent.joint_format import write_texts
from agentgym_envs.multiagent.options import known_options
from agentgym_envs.multiagent.planner import Team, plan_rounds
from agentgym_envs.multiagent.tasks import MAX_AGENTS, deal_of
from agentgym_envs.multiagent.team_member import Gift, Message, Reply, TeamMember, check_agents
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
    """An episode up to now: a round is the agents' actions in the order of `possible_agents`."""

    task_id: str
    seed: int
    actions: tuple[tuple[str, ...], ...] = ()


class CoopTextCraftEnv(ParallelEnv[str, str, str]):  # type: ignore[misc]  # PettingZoo is not typed
    """Craft a goal item as a team whose members know different recipes and can take different items.

    ## Description
    The world is that of `AgentGym/TextCraft-v0`, and so are the goals and their splits. The agents are `crafter_0` to
    `crafter_3`, each with an inventory of its own. Of the recipes under the goal each is known to one agent, of the
    base items under it each can be taken by one agent, and the recipes that are not needed, with the base items that
    only those use, are dealt out as well. One of the agents, another one in each task, must craft the goal. Every
    task is dealt so that

    - what this agent can take does not suffice for the goal by any recipes: it must be given something;
    - it is shown no recipe for the goal: it must be told, or guess;
    - what all but one are shown and can take does not suffice: nobody can be left out, as long as all craft only by
      what they were shown or told.

    An agent may craft by any recipe, also one that it guessed, or knows from Minecraft, whose recipes these are. With
    `told_only` it may not, and nobody can guess: it crafts by a recipe on its card, or one that a mate which knows it
    has written out in a message, word for word as on the card. Then telling is needed as well, and everybody.

    A task is `textcraft-coop/<agents>/<n>`, where `<n>` is the goal's number in TextCraft; its group is
    `agents-<agents>/depth-<d>`. All 544 goals can be dealt to two or three agents, 440 to four. In other worlds
    (`textcraft-coop-invented/<agents>/<world>/<n>`) the cards are dealt anew in each.

    With one agent it is `AgentGym/TextCraft-v0`: the same tasks, texts, rewards and infos.

    ## Action Space
    Text, in the form that the grammar asks for. Every agent acts in every round, all at once. TextCraft's `get`,
    `craft` and `inventory`, and for more than one agent:

    | command | effect |
    |---|---|
    | `give <amount> <item> to <agent>` | hand over what is carried |
    | `say <text>` | tell all the others |
    | `pass` | nothing |

    What is given leaves the giver at once; gifts and messages arrive at the end of the round, in the order of the
    agents. So what an action does never depends on the actions of others in the same round, and a gift can be used
    from the next round on. A message is one line of at most 300 characters: white space and what cannot be seen become
    single spaces and quotation marks apostrophes, so that it ends where it seems to end; a longer one is cut.

    ## Observation
    First who one is, `Crafting commands that you know:`, in other worlds `Kinds of items:` as in TextCraft,
    `You can take: <item>, ...`, and `Goal: <agent> must craft <item>.` Then a line with the answer to one's own
    action (TextCraft's replies, `You cannot take <item>`, `Gave 2 stick to crafter_1`, `You said it.`, `You pass.`)
    and a line for each thing that arrived: `crafter_1 gives you 2 stick.`, `crafter_1 says: "..."`. With `told_only`,
    a recipe that one does not know is answered by `You do not know that recipe`. When the goal is
    crafted, the others see `<agent> crafted <item>. The goal is reached.`

    `info` of each agent holds what it does in the rest of the suite (`turn` counts rounds, `score` is the agent's,
    `success` the team's), `agent`, `inventory` (its own), `messages` (`from`, `text`) and `gifts` (`from`, `item`,
    `amount`) that have arrived; on a reset also `crafter` and `card` (`recipes`, and `takes` or None for all), and
    TextCraft's `recipe_tree` for a team of one only, since it holds what the others know. `state_key` stands for all
    that the team carries and has said, seen from that agent.

    `state()` is a JSON object from the agents to what each sees now.

    ## Rewards
    1 for every agent when the goal is crafted, else 0. With `individual=w` it is 1 - w, and w is paid for an agent's
    part in it: the things that TextCraft's shortest plan takes and crafts, the goal included, are worth the same, and
    each is paid once, to the agent that is first to take or craft it (or another item of its kind); to several in the
    same round in equal parts. The rewards of an agent lie in [0, 1] in sum. With `individual=1` success itself pays
    nothing.

    ## Termination
    The episode ends for all when the agent that must craft the goal has crafted it, and is cut (`turn_limit`) after
    `max_rounds` rounds.

    ## Arguments
    - `num_agents`: 1 to 4.
    - `grammar`, `split`, `groups`, `max_distractors`, `worlds`, `recipe_table`, `render_mode`: as in TextCraft.
    - `individual`: the part of the reward that is an agent's own, 0 to 1.
    - `told_only`: whether an agent crafts only by recipes that it was shown or told; without effect on a team of one.
    - `max_rounds`: None for no limit; an attribute, which a reset reads.
    - `instructions`: replaces the text meant for every agent's system prompt; "" is none at all.

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
        told_only: bool = False,
        max_rounds: int | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """See the class for the arguments. Raises UsageError for one that cannot be."""
        count = check_agents(num_agents, MAX_AGENTS)
        if isinstance(individual, bool) or not isinstance(individual, int | float) or not 0 <= individual <= 1:
            raise UsageError(f"individual is a share from 0 to 1, got {individual!r:.80}")
        if not isinstance(told_only, bool):
            raise UsageError(f"told_only is True or False, got {told_only!r:.80}")
        self.possible_agents = [f"crafter_{place}" for place in range(count)]
        self._seats = [
            TeamMember(
                self.possible_agents,
                place,
                grammar=grammar,
                split=split,
                groups=groups,
                max_distractors=max_distractors,
                worlds=worlds,
                recipe_table=recipe_table,
                told_only=told_only,
                instructions=instructions,
                render_mode=render_mode,
            )
            for place in range(count)
        ]
        self._by_agent = dict(zip(self.possible_agents, self._seats, strict=True))
        self.agents: list[str] = []
        self.individual, self.max_rounds, self.render_mode = float(individual), max_rounds, render_mode
        self._limit = _checked_limit(max_rounds)
        self._said: set[tuple[int, str]] = set()
        self._observations: dict[str, str] = {}
        self._credit: Credit | None = None

    @property
    def tasks(self) -> TaskSet:
        """What a reset draws from."""
        return self._seats[0].tasks

    @property
    def task(self) -> Task | None:
        """The task of this episode, or of the last one."""
        return self._seats[0].task

    @property
    def episode_seed(self) -> int:
        """The seed of this episode."""
        return self._seats[0].episode_seed

    @property
    def grammar(self) -> ActionGrammar:
        """How every agent's actions are written."""
        return self._seats[0].grammar

    @property
    def split(self) -> str | None:
        """The split that a reset without a task draws from."""
        return self._seats[0].split

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The groups that a reset without a task draws from; None is all."""
        return self._seats[0].groups

    def observation_space(self, agent: str) -> Utf8Text:
        """Text."""
        return self._seat(agent).observation_space  # type: ignore[return-value]

    def action_space(self, agent: str) -> Utf8Text:
        """Text."""
        return self._seat(agent).action_space  # type: ignore[return-value]

    def instructions_for(self, agent: str) -> str:
        """What an agent's system prompt must tell the model: who it is, the rules and the form of an answer."""
        return self._seat(agent).instructions

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, str], Infos]:
        """Begin an episode; seed and options are those of `TextEnv.reset`. Unknown options are ignored with a warning.

        Raises:
            UsageError, UnknownTask: values of options that cannot be.
            EpisodeOver: the environment is closed.
        """
        limit = _checked_limit(self.max_rounds)
        first, *others = self._seats
        observation, _ = first.reset(seed=seed, options=known_options(options))
        self._said, self._limit = set(), limit
        self._observations = self._deal_out() if others else {first.agent: observation}
        self.agents = list(self.possible_agents)
        self._credit = Credit(first.recipe_book, first.goal) if self.individual else None
        limits = {} if limit is None else {"max_turns": limit}
        return dict(self._observations), {seat.agent: {**seat.begun(), **limits} for seat in self._seats}

    def step(self, actions: Mapping[str, str]) -> Round:
        """One round: an action of every agent, written in the environment's grammar.

        Raises:
            EpisodeOver: no episode runs.
            UsageError: not exactly one string for each agent.
        """
        self._check(actions)
        replies = [seat.take_part(actions[seat.agent]) for seat in self._seats]
        sent = [reply.sent for reply in replies if reply.sent is not None]
        self._deliver(sent)
        ender = next((s for s, r in zip(self._seats, replies, strict=True) if self._reached(s, r)), None)
        cut = self._seats[0].turn == self._limit
        rewards = self._rewards(replies, ender)
        outcomes = {
            seat.agent: seat.finish(reply, sent, reward, ender, cut)
            for seat, reply, reward in zip(self._seats, replies, rewards, strict=True)
        }
        if ender is not None or cut:
            self.agents = []
        self._observations = {agent: outcome[0] for agent, outcome in outcomes.items()}
        return (
            dict(self._observations),
            {agent: outcome[1] for agent, outcome in outcomes.items()},
            {agent: outcome[2] for agent, outcome in outcomes.items()},
            {agent: outcome[3] for agent, outcome in outcomes.items()},
            {agent: outcome[4] for agent, outcome in outcomes.items()},
        )

    def oracle(self) -> Iterator[dict[str, str]]:
        """The rounds that solve the current state, each a bare command for every agent. Raises NoOracle."""
        first = self._seats[0]
        if len(self._seats) == 1:
            return ({first.agent: command} for command in first.oracle())
        if not self.agents:
            raise NoOracle("no episode runs, so there is nothing to solve; call reset() first")
        stock = [seat.stock for seat in self._seats]
        deal = deal_of(first.recipe_book, first.task) if first.task else None
        assert deal is not None
        team = Team(first.recipe_book, first.goal, deal, first.names, self.possible_agents, stock, self._said)
        return iter(plan_rounds(team))

    def random_command(self, agent: str, rng: random.Random) -> str:
        """A random command (bare) for an agent, never wrong in form."""
        return self._seat(agent).random_command(rng)

    @property
    def state_space(self) -> Utf8Text:
        """Text."""
        return Utf8Text(2 * MAX_OBSERVATION_CHARS * len(self._seats))

    def state(self) -> str:
        """What all agents see now, as the joint text: a JSON object. Raises EpisodeOver if no episode was begun."""
        if not self._observations:
            raise EpisodeOver("no episode was begun, so there is no state; call reset() first")
        return write_texts(self._observations)

    def snapshot(self) -> TeamSnapshot:
        """The episode as task, seed and actions. Raises EpisodeOver if none was begun."""
        if self.task is None:
            raise EpisodeOver("no episode was begun, so there is nothing to save; call reset() first")
        rounds = zip(*(seat.actions for seat in self._seats), strict=True)
        return TeamSnapshot(self.task.id, self.episode_seed, tuple(rounds))

    def restore(self, snapshot: TeamSnapshot) -> dict[str, str]:
        """Play an episode again up to a snapshot's state; returns the last observations.

        Raises UsageError for what is none, or is one of another number of agents.
        """
        if not isinstance(snapshot, TeamSnapshot):
            raise UsageError(f"restore takes what snapshot() gave, got {snapshot!r:.80}")
        if any(len(actions) != len(self._seats) for actions in snapshot.actions):
            raise UsageError(f"the snapshot is of another number of agents than {len(self._seats)}")
        observations, _ = self.reset(seed=snapshot.seed, options={"task": snapshot.task_id})
        for actions in snapshot.actions:
            observations, *_ = self.step(dict(zip(self.possible_agents, actions, strict=True)))
        return observations

    def status(self) -> dict[str, Any]:
        """How the episode stands, as of `TextEnv`; `scores` are the agents', and `score` is their mean."""
        each = {seat.agent: seat.status() for seat in self._seats}
        scores = {agent: status["score"] for agent, status in each.items()}
        return {**each[self.possible_agents[0]], "score": sum(scores.values()) / len(scores), "scores": scores}

    def render(self) -> str | None:
        """What every agent carries, did and sees, as text, if the render mode is "ansi"."""
        if self.render_mode is None:
            return None
        return "\n\n".join(f"{seat.agent}\n{seat.render()}" for seat in self._seats)

    def close(self) -> None:
        """End the episode; closing twice is fine."""
        self.agents = []
        for seat in self._seats:
            seat.close()

    def _seat(self, agent: str) -> TeamMember:
        if agent not in self._by_agent:
            raise UsageError(f"there is no agent {agent!r:.80}; the agents are {', '.join(self.possible_agents)}")
        return self._by_agent[agent]

    def _deal_out(self) -> dict[str, str]:
        """Give every agent its cards for the episode that the first seat has begun; returns what each sees."""
        first = self._seats[0]
        assert first.task is not None
        deal = add_distractors(first.recipe_book, deal_of(first.recipe_book, first.task), first.shown)
        crafter = self.possible_agents[deal.crafter]
        return {
            seat.agent: seat.join(self._seats, hand, crafter, self._said)
            for seat, hand in zip(self._seats, deal.hands, strict=True)
        }

    def _check(self, actions: Mapping[str, str]) -> None:
        if not self.agents:
            raise EpisodeOver(
                f"no episode runs (the last one ended: {self.status()['stop_reason']}); call reset() first"
            )
        if not isinstance(actions, Mapping) or set(actions) != set(self.agents):
            named = sorted(map(str, actions)) if isinstance(actions, Mapping) else f"{actions!r:.80}"
            raise UsageError(f"a round is a dict with an action for each of {self.agents}, got {named}")
        if wrong := {agent: action for agent, action in actions.items() if not isinstance(action, str)}:
            raise UsageError(f"an action is a string, got {wrong!r:.120}")

    def _deliver(self, sent: Sequence[Gift | Message]) -> None:
        messages = [each for each in sent if isinstance(each, Message)]
        # All is said at the same time, so nobody passes on what it is only being told.
        told = [self._by_agent[each.sender].told_in(each.text) for each in messages]
        for each in sent:
            if isinstance(each, Gift):
                self._by_agent[each.receiver].receive(each)
        self._said |= {(self._by_agent[each.sender].place, each.text) for each in messages}
        for seat in self._seats:
            if seat.known is not None:
                seat.known.update(*told)

    def _reached(self, seat: TeamMember, reply: Reply) -> bool:
        """Whether that agent has reached the goal, which another may craft without doing so."""
        return reply.transition.terminated and seat.agent == seat.crafter

    def _rewards(self, replies: Sequence[Reply], ender: TeamMember | None) -> list[float]:
        team = float(ender is not None)
        if self._credit is None:
            return [team] * len(replies)
        made = [
            None if reply.transition.terminated and not self._reached(seat, reply) else reply.made
            for seat, reply in zip(self._seats, replies, strict=True)
        ]
        return [(1 - self.individual) * team + self.individual * share for share in self._credit.pay(made)]


def _checked_limit(max_rounds: object) -> int | None:
    if max_rounds is None:
        return None
    if type(max_rounds) is not int or max_rounds < 1:
        raise UsageError(f"max_rounds must be a whole number of at least 1, or None, got {max_rounds!r:.80}")
    return max_rounds
