"""Values of states for `--credit vine`: the mean return of continuations sampled from them (VinePPO).

The choice of states must not depend on what follows them in the episode, or the advantages would be biased. So `--at`
works with numbers of the group's other episodes only: random turns up to the longest of them, or the states after
answers with a surprisal above a threshold that their answers set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import EpisodeSpec, Fork, TokenTrajectory
from agentgym_envs.rollout.forks import return_from
from agentgym_trl.credit_methods import ForkPoints, Vine
from agentgym_trl.distributed import gathered
from agentgym_trl.episode_player import PlaySession

Values = dict[int, float]
"""The values of the states before some turns, by the number of the turn, from 1."""


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """The turns of one episode for the choice of states; small, as processes gather them.

    `surprisals` has the mean -log p of the sampled tokens of each turn, or 0 if it is not needed.
    """

    usable: bool
    surprisals: tuple[float, ...]


@dataclass(slots=True)
class VineCounts:
    """Totals of a rollout: forked states, continuations, failed ones, states without a value, sampled tokens."""

    states: int = 0
    branches: int = 0
    failed: int = 0
    states_without_value: int = 0
    sampled_tokens: int = 0


async def estimate_values(
    session: PlaySession,
    specs: Sequence[EpisodeSpec],
    episodes: Sequence[TokenTrajectory],
    vine: Vine,
    group_size: int,
    seed: Sequence[int],
) -> tuple[list[Values], VineCounts]:
    """Sample continuations from chosen states of this process's episodes, and return the values of these states.

    A continuation that ends as `env_error` is left out of the mean. If all of a state fail, the state has no value, as
    if it had not been chosen. Every process must call it; `seed` determines the random turns.
    """
    rank = int(session.trainer.accelerator.process_index)
    facts = gathered([turn_facts(episode, vine.points) for episode in episodes])
    first = rank * len(episodes)
    chosen = [choose_turns(vine.points, facts, first + index, group_size, seed) for index in range(len(episodes))]
    states = [(index, turn) for index, turns in enumerate(chosen) for turn in turns]
    forks = [Fork.of(specs[index], episodes[index], turn) for index, turn in states]
    before = session.engine.tokens
    played = await session.play_forks([fork for fork in forks for _ in range(vine.branches)])
    counts = VineCounts(len(states), len(played), sampled_tokens=session.engine.tokens - before)
    values: list[Values] = [{} for _ in episodes]
    for number, (index, turn) in enumerate(states):
        own = [p.trajectory for p in played[number * vine.branches : (number + 1) * vine.branches]]
        returns = [return_from(trajectory, turn, vine.gamma) for trajectory in own if trajectory.usable]
        counts.failed += len(own) - len(returns)
        counts.states_without_value += not returns
        if returns:
            values[index][turn] = fmean(returns)
    return values, counts


def turn_facts(episode: TokenTrajectory, points: ForkPoints) -> TurnFacts:
    """The facts of an episode. Raises UsageError if surprisals are needed and the engine gave no log-probabilities."""
    turns = len(episode.trajectory.turns)
    if points.kind != "surprising" or not turns:
        return TurnFacts(episode.trajectory.usable, (0.0,) * turns)
    if episode.logprobs is None:
        raise UsageError(
            "--at surprising:N needs the log-probabilities of sampled tokens, which TRL's own generation lacks: use "
            "vLLM or --reuse-kv-cache true, or --at random:N"
        )
    tokens: list[list[float]] = [[] for _ in range(turns)]
    for (begin, end), number in zip(episode.turn_spans, episode.turn_numbers, strict=True):
        if number <= turns:
            tokens[number - 1] += episode.logprobs[begin:end]
    return TurnFacts(episode.trajectory.usable, tuple(-fmean(own) if own else 0.0 for own in tokens))


def choose_turns(
    points: ForkPoints, facts: Sequence[TurnFacts], index: int, group_size: int, seed: Sequence[int]
) -> list[int]:
    """The turns of episode `index` of all episodes whose states get a value from continuations, from turn 2 on.

    The first state of a group is common to its episodes, whose returns give its value.
    """
    own = facts[index]
    turns = range(2, len(own.surprisals) + 1)
    begin = index // group_size * group_size
    others = [facts[i].surprisals for i in range(begin, begin + group_size) if i != index and facts[i].usable]
    if not own.usable or not turns:
        return []
    if points.kind == "every-turn":
        return list(turns)
    if points.kind == "random":
        longest = max(map(len, others), default=0)
        drawn = np.random.default_rng([*seed, index]).permutation(np.arange(2, longest + 1))[: points.count]
        return [turn for turn in turns if turn in drawn]
    threshold = _threshold(others, points.count)
    return [turn for turn in turns if own.surprisals[turn - 2] >= threshold]


def _threshold(others: Sequence[Sequence[float]], count: int) -> float:
    """The surprisal that `count` answers per episode reach on average; only answers that another turn follows count."""
    followed = sorted((surprisal for own in others for surprisal in own[:-1]), reverse=True)
    wanted = count * len(others)
    if not others:
        return float("inf")
    return followed[wanted - 1] if wanted <= len(followed) else float("-inf")


def metrics_of(counts: VineCounts) -> dict[str, float]:
    """The totals over all processes. Every process must call it."""
    names = list(VineCounts.__dataclass_fields__)
    rows: list[Any] = gathered([tuple(getattr(counts, name) for name in names)])
    return {f"vine/{name}": float(sum(column)) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
