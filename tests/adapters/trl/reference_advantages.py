"""A second, slow implementation of every estimator: loops over numbers, written from the papers' formulas.

It shares only the settings with `agentgym_trl.advantages`. Answer tokens are the tokens under the mask; all others are
deleted first, so the formulas need no observations or padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentgym_trl.advantages import AdvantageConfig


@dataclass(frozen=True)
class Episode:
    """One episode; lists are per token after the prompt. Episodes with equal `group` share task and seed."""

    group: int
    rewards: list[float]
    mask: list[bool]
    usable: bool = True
    values: list[float] = field(default_factory=list)
    next_value: float = 0.0
    states: list[int] = field(default_factory=list)


Table = list[list[float]]
"""An advantage for every token of every episode; 0 outside of answers."""
Compare = Callable[[float, Sequence[float], Sequence[float]], float]
"""(number, the numbers of its group with itself, all numbers of the batch) -> the number relative to its group."""


def answer_tokens(episode: Episode) -> list[int]:
    return [t for t, on in enumerate(episode.mask) if on]


def turns(episode: Episode) -> list[list[int]]:
    """The indices of the tokens of every turn."""
    found: list[list[int]] = []
    for t in answer_tokens(episode):
        if found and found[-1][-1] == t - 1:
            found[-1].append(t)
        else:
            found.append([t])
    return found


def turn_rewards(episode: Episode) -> list[float]:
    return [math.fsum(episode.rewards[t] for t in turn) for turn in turns(episode)]


def return_from(rewards: Sequence[float], first: int, gamma: float) -> float:
    """G_k = sum over j >= k of gamma^(j - k) r_j."""
    return math.fsum(gamma ** (j - first) * rewards[j] for j in range(first, len(rewards)))


def mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def deviation(numbers: Sequence[float]) -> float:
    """Unbiased; 0 for a single number."""
    centre = mean(numbers)
    return math.sqrt(math.fsum((n - centre) ** 2 for n in numbers) / max(len(numbers) - 1, 1))


def minus_mean(number: float, peers: Sequence[float], everyone: Sequence[float]) -> float:
    return number - mean(peers)


def minus_mean_of_others(number: float, peers: Sequence[float], everyone: Sequence[float]) -> float:
    """RLOO, arXiv 2402.14740, equation 9."""
    return number - (math.fsum(peers) - number) / (len(peers) - 1) if len(peers) > 1 else 0.0


def standardise(scale: str) -> Compare:
    """GRPO, arXiv 2402.03300, section 4.1.2, with TRL's 1e-4."""

    def compare(number: float, peers: Sequence[float], everyone: Sequence[float]) -> float:
        divisor = {"group": deviation(peers) + 1e-4, "batch": deviation(everyone) + 1e-4, "none": 1.0}[scale]
        return (number - mean(peers)) / divisor

    return compare


def relative(episodes: Sequence[Episode], options: AdvantageConfig, compare: Compare) -> Table:
    """GRPO and similar: per episode, per turn index, or (GiGPO, arXiv 2505.10978, equations 3, 7 and 8) per state."""
    table = [[0.0] * len(episode.mask) for episode in episodes]
    for episode, row in zip(episodes, table, strict=True):
        for number, turn in enumerate(turns(episode) if episode.usable else []):
            if options.turn_level:
                advantage = by_turn(episodes, episode, number, options.gamma, compare)
            else:  # the return of an episode is discounted, except with GiGPO, which discounts the returns of turns
                gamma = 1.0 if options.step_weight else options.gamma
                advantage = by_episode(episodes, episode, gamma, compare)
            if options.step_weight:
                advantage += options.step_weight * by_state(episodes, episode, number, options.gamma, compare)
            for t in turn:
                row[t] = advantage
    return table


def by_episode(episodes: Sequence[Episode], own: Episode, gamma: float, compare: Compare) -> float:
    returns = [(e.group, return_from(turn_rewards(e), 0, gamma)) for e in episodes if e.usable]
    peers = [total for group, total in returns if group == own.group]
    return compare(return_from(turn_rewards(own), 0, gamma), peers, [total for _, total in returns])


def by_turn(episodes: Sequence[Episode], own: Episode, number: int, gamma: float, compare: Compare) -> float:
    everything = all_turns(episodes, gamma)
    peers = [total for group, other, _, total in everything if (group, other) == (own.group, number)]
    return compare(return_from(turn_rewards(own), number, gamma), peers, [total for *_, total in everything])


def by_state(episodes: Sequence[Episode], own: Episode, number: int, gamma: float, compare: Compare) -> float:
    everything = all_turns(episodes, gamma)
    anchor = (own.group, own.states[turns(own)[number][0]])
    peers = [total for group, _, state, total in everything if (group, state) == anchor]
    return compare(return_from(turn_rewards(own), number, gamma), peers, [total for *_, total in everything])


def all_turns(episodes: Sequence[Episode], gamma: float) -> list[tuple[int, int, int, float]]:
    """Group, index, state and return-to-go of every turn of usable episodes."""
    found = []
    for episode in episodes:
        rewards = turn_rewards(episode)
        for number, turn in enumerate(turns(episode) if episode.usable else []):
            state = episode.states[turn[0]] if episode.states else 0
            found.append((episode.group, number, state, return_from(rewards, number, gamma)))
    return found


def token_returns(episodes: Sequence[Episode], options: AdvantageConfig) -> Table:
    """REINFORCE++, arXiv 2501.03262: the discounted sum of the rewards from each token on."""
    table = [[0.0] * len(episode.mask) for episode in episodes]
    for episode, row in zip(episodes, table, strict=True):
        indices = answer_tokens(episode)
        for i, t in enumerate(indices):
            weights = [passed(episode, indices[i:j], options.gamma, options) for j in range(i, len(indices))]
            row[t] = math.fsum(w * episode.rewards[s] for w, s in zip(weights, indices[i:], strict=True))
    return table


def generalised(episodes: Sequence[Episode], options: AdvantageConfig) -> Table:
    """GAE, arXiv 1506.02438, equation 16: A_t = sum over l of (gamma lambda)^l delta_(t + l)."""
    table = [[0.0] * len(episode.mask) for episode in episodes]
    for episode, row in zip(episodes, table, strict=True):
        indices = answer_tokens(episode)
        errors = temporal_differences(episode, options)
        for i, t in enumerate(indices):
            terms = []
            for j in range(i, len(indices)):
                before = indices[i:j]
                weight = passed(episode, before, options.gamma, options) * passed(
                    episode, before, options.gae_lambda, options
                )
                terms.append(weight * errors[j])
            row[t] = math.fsum(terms)
    return table


def temporal_differences(episode: Episode, options: AdvantageConfig) -> list[float]:
    """delta_t = r_t + gamma V_(t + 1) - V_t over answer tokens; the last is followed by the value of the last state."""
    indices = answer_tokens(episode)
    values = [episode.values[t] for t in indices] + [episode.next_value]
    return [
        episode.rewards[t] + passed(episode, [t], options.gamma, options) * values[i + 1] - values[i]
        for i, t in enumerate(indices)
    ]


def passed(episode: Episode, indices: Sequence[int], factor: float, options: AdvantageConfig) -> float:
    """The factor once per token of these, or once per turn that ends with one of them."""
    ends = {turn[-1] for turn in turns(episode)}
    return factor ** sum(1 for t in indices if options.discount_per == "token" or t in ends)


def whitened(table: Table, episodes: Sequence[Episode]) -> Table:
    """Whiten over all answer tokens of usable episodes."""
    learned = [[on and e.usable for on in e.mask] for e in episodes]
    numbers = [x for row, marks in zip(table, learned, strict=True) for x, on in zip(row, marks, strict=True) if on]
    if not numbers:
        return [[0.0] * len(row) for row in table]
    centre, divisor = mean(numbers), math.sqrt(deviation(numbers) ** 2 + 1e-8)
    return [
        [(x - centre) / divisor if on else 0.0 for x, on in zip(row, marks, strict=True)]
        for row, marks in zip(table, learned, strict=True)
    ]


def estimate(name: str, episodes: Sequence[Episode], options: AdvantageConfig) -> Table:
    """The advantage of every token by the algorithm `name`."""
    if name == "grpo":
        return relative(episodes, options, standardise(options.scale))
    if name == "rloo":
        return relative(episodes, options, minus_mean_of_others)
    if name == "reinforce++-baseline":
        return whitened(relative(episodes, options, minus_mean), episodes)
    if name == "reinforce++":
        return whitened(token_returns(episodes, options), episodes)
    assert name == "ppo"
    return whitened(generalised(episodes, options), episodes)
