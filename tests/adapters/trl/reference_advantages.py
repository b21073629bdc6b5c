"""Every estimator once more, slowly: loops over plain numbers, written from the papers' formulas.

Nothing here is shared with `agentgym_trl.advantages` but the settings. An answer token is a token under the mask; all
others are deleted first, so that no formula has to know of observations or padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentgym_trl.advantages import AdvantageConfig


@dataclass(frozen=True)
class Episode:
    """One episode; lists are per token after the prompt. `group` says which episodes share task and seed."""

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
"""A number, those it is compared with (itself among them) and all of the batch -> how it stands."""


def answer_tokens(episode: Episode) -> list[int]:
    return [t for t, on in enumerate(episode.mask) if on]


def turns(episode: Episode) -> list[list[int]]:
    """The places of every turn's tokens."""
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


def relative(episodes: Sequence[Episode], credit: AdvantageConfig, compare: Compare) -> Table:
    """GRPO and its kin: by episode, by turn number, or (GiGPO, arXiv 2505.10978, equations 3, 7 and 8) with states."""
    table = [[0.0] * len(episode.mask) for episode in episodes]
    for episode, row in zip(episodes, table, strict=True):
        for number, turn in enumerate(turns(episode) if episode.usable else []):
            if credit.turn_level:
                advantage = by_turn(episodes, episode, number, credit.gamma, compare)
            else:  # the return of an episode is discounted unless GiGPO does so within its step groups
                gamma = 1.0 if credit.step_weight else credit.gamma
                advantage = by_episode(episodes, episode, gamma, compare)
            if credit.step_weight:
                advantage += credit.step_weight * by_state(episodes, episode, number, credit.gamma, compare)
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
    """Group, number, state and return-to-go of every turn that counts."""
    found = []
    for episode in episodes:
        rewards = turn_rewards(episode)
        for number, turn in enumerate(turns(episode) if episode.usable else []):
            state = episode.states[turn[0]] if episode.states else 0
            found.append((episode.group, number, state, return_from(rewards, number, gamma)))
    return found


def token_returns(episodes: Sequence[Episode], credit: AdvantageConfig) -> Table:
    """REINFORCE++, arXiv 2501.03262: the sum of what is still to come, discounted."""
    table = [[0.0] * len(episode.mask) for episode in episodes]
    for episode, row in zip(episodes, table, strict=True):
        places = answer_tokens(episode)
        for i, t in enumerate(places):
            weights = [passed(episode, places[i:j], credit.gamma, credit) for j in range(i, len(places))]
            row[t] = math.fsum(w * episode.rewards[s] for w, s in zip(weights, places[i:], strict=True))
    return table


def generalised(episodes: Sequence[Episode], credit: AdvantageConfig) -> Table:
    """GAE, arXiv 1506.02438, equation 16: A_t = sum over l of (gamma lambda)^l delta_(t + l)."""
    table = [[0.0] * len(episode.mask) for episode in episodes]
    for episode, row in zip(episodes, table, strict=True):
        places = answer_tokens(episode)
        errors = temporal_differences(episode, credit)
        for i, t in enumerate(places):
            terms = []
            for j in range(i, len(places)):
                before = places[i:j]
                weight = passed(episode, before, credit.gamma, credit) * passed(episode, before, credit.lam, credit)
                terms.append(weight * errors[j])
            row[t] = math.fsum(terms)
    return table


def temporal_differences(episode: Episode, credit: AdvantageConfig) -> list[float]:
    """delta_t = r_t + gamma V_(t + 1) - V_t over answer tokens; the last is followed by the value after the cut."""
    places = answer_tokens(episode)
    values = [episode.values[t] for t in places] + [episode.next_value]
    return [
        episode.rewards[t] + passed(episode, [t], credit.gamma, credit) * values[i + 1] - values[i]
        for i, t in enumerate(places)
    ]


def passed(episode: Episode, places: Sequence[int], factor: float, credit: AdvantageConfig) -> float:
    """The factor once for every one of these tokens, or once for every turn that ends with one of them."""
    ends = {turn[-1] for turn in turns(episode)}
    return factor ** sum(1 for t in places if credit.discount_per == "token" or t in ends)


def whitened(table: Table, episodes: Sequence[Episode]) -> Table:
    """Over all answer tokens of the episodes that count."""
    learned = [[on and e.usable for on in e.mask] for e in episodes]
    numbers = [x for row, marks in zip(table, learned, strict=True) for x, on in zip(row, marks, strict=True) if on]
    if not numbers:
        return [[0.0] * len(row) for row in table]
    centre, divisor = mean(numbers), math.sqrt(deviation(numbers) ** 2 + 1e-8)
    return [
        [(x - centre) / divisor if on else 0.0 for x, on in zip(row, marks, strict=True)]
        for row, marks in zip(table, learned, strict=True)
    ]


def estimate(name: str, episodes: Sequence[Episode], credit: AdvantageConfig) -> Table:
    """The advantage of every token by the estimator `name`."""
    if name == "grpo":
        return relative(episodes, credit, standardise(credit.scale))
    if name == "rloo":
        return relative(episodes, credit, minus_mean_of_others)
    if name == "reinforce++-baseline":
        return whitened(relative(episodes, credit, minus_mean), episodes)
    if name == "reinforce++":
        return whitened(token_returns(episodes, credit), episodes)
    assert name == "ppo"
    return whitened(generalised(episodes, credit), episodes)
