"""Episodes that begin with recorded turns: a slip, or the first turns of the oracle (the backward curriculum)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from agentgym_envs.core import TextEnv
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Fork, Limits, OraclePolicy, TokenTrajectory, play_many_text
from agentgym_envs.rollout.tokens import encode_trajectory
from agentgym_envs.trajectory import Message, Trajectory
from agentgym_envs.vector import MakeEnv
from agentgym_trl.episode_player import EpisodePlayer, OnDone, PlaySession, PlayStats


class SlipPolicy:
    """Plays a random command in the first turn, and follows the oracle then."""

    def __init__(self, seed: int) -> None:
        self._slip, self._rest = OraclePolicy(slip=1.0, seed=seed), OraclePolicy()
        self._turns = 0

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """The next action."""
        self._turns += 1
        return await (self._slip if self._turns == 1 else self._rest).act(env, messages)


async def slips(specs: Sequence[EpisodeSpec], make: MakeEnv, codec: ChatCodec, limits: Limits) -> list[Fork]:
    """For each task an episode that continues after a slip in the first turn; equal for all policies.

    A slip that ends the episode, such as an answer to the question, is drawn again.
    """
    numbers, found = count(), dict[int, Trajectory]()
    while pending := [index for index in range(len(specs)) if index not in found]:
        played = await play_many_text(
            [specs[index] for index in pending],
            make,
            lambda: SlipPolicy(next(numbers)),
            limits=limits,
            concurrency=1,  # one at a time, so that each episode has its own seed
        )
        found |= {index: one for index, one in zip(pending, played, strict=True) if len(one.turns) > 1}
    return [Fork.of(spec, recorded(found[index], codec), 2) for index, spec in enumerate(specs)]


def recorded(trajectory: Trajectory, codec: ChatCodec) -> TokenTrajectory:
    """The tokens of an episode that no engine sampled, as the beginning of a fork."""
    tokens = encode_trajectory(trajectory, codec)
    return replace(tokens, logprobs=[0.0] * len(tokens.ids))


def without_prefix(episode: TokenTrajectory, turn: int) -> TokenTrajectory:
    """The episode with the turns before `turn` (from 1) in its prompt, so that they are not trained on."""
    spans, begin = episode.turn_spans[turn - 1 :], episode.turn_spans[turn - 1][0]
    return TokenTrajectory(
        episode.trajectory,
        episode.prompt_ids + episode.ids[:begin],
        episode.ids[begin:],
        episode.assistant_mask[begin:],
        episode.rewards[begin:],
        tuple((first - begin, end - begin) for first, end in spans),
        None if episode.logprobs is None else episode.logprobs[begin:],
        episode.bootstrap_ids,
        answer_turns=tuple(range(turn, turn + len(spans))),
    )


@dataclass(frozen=True, slots=True)
class BackwardPlayer:
    """Plays training episodes from states on the oracle's way, so that at most `turns_left()` turns lead to the goal.

    Source: backward curricula as in Salimans and Chen, arXiv 1812.03381, and Florensa et al., arXiv 1707.05300.
    """

    player: EpisodePlayer
    turns_left: Callable[[], float]
    """The largest distance to the goal, as a share of the oracle's turns, in (0, 1]."""
    seed: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.player, name)

    @asynccontextmanager
    async def session(self, trainer: Any, stats: PlayStats, on_done: OnDone) -> AsyncIterator[Any]:
        """A session of the player, whose episodes begin later."""
        async with self.player.session(trainer, stats, on_done) as session:
            yield BackwardSession(session, self.turns_left(), (self.seed, int(trainer.state.global_step)))


@dataclass(frozen=True, slots=True)
class BackwardSession:
    """Plays the episodes of a step."""

    session: PlaySession
    share: float
    seed: tuple[int, ...]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    async def play(self, specs: Sequence[EpisodeSpec]) -> list[TokenTrajectory]:
        """Play all episodes, each group from one state; recorded turns are part of the prompt."""
        player = self.session.player
        starts = list(dict.fromkeys((spec.task, spec.seed) for spec in specs))
        plans = await play_many_text(
            [EpisodeSpec(task, seed) for task, seed in starts], player.runners, OraclePolicy, limits=player.limits
        )
        rng = np.random.default_rng(self.seed)
        encoded = {start: recorded(plan, player.codec) for start, plan in zip(starts, plans, strict=True)}
        turns = {start: self._first_turn(len(plan.turns), rng) for start, plan in zip(starts, plans, strict=True)}
        keys = [(spec.task, spec.seed) for spec in specs]
        forks = [Fork.of(spec, encoded[key], turns[key]) for spec, key in zip(specs, keys, strict=True)]
        played = await self.session.play_tree(forks)
        return [without_prefix(episode, turns[key]) for episode, key in zip(played, keys, strict=True)]

    def _first_turn(self, length: int, rng: np.random.Generator) -> int:
        """Uniform over the turns from which at most the share of the plan is left; at least one turn is."""
        most = max(1, round(self.share * length))
        return length + 1 - int(rng.integers(1, most + 1)) if self.share < 1 else 1
