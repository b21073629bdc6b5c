"""Rewards of turns from the oracle's labels, as differences of a potential, so that the best policy stays the best.

With the potential Phi(t) before turn t, turn t is paid F(t) = gamma Phi(t + 1) - Phi(t). Phi is 0 before the first turn
and after the last one, so the discounted sum of F is 0 in every episode, and every return from turn t on falls by
Phi(t), whatever the policy does from there on.

Source: Ng, Harada and Russell (1999), "Policy invariance under reward transformations". Its potential may depend on the
history, which is the state of a policy that reads the whole episode.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from agentgym_envs.rollout import OracleLabel, TokenTrajectory
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.oracle_options import ProcessReward


def token_process_rewards(episode: TokenTrajectory, reward: ProcessReward) -> list[float]:
    """(T,) the process reward of each turn, on the last token of its answer; 0 elsewhere."""
    row = [0.0] * len(episode.ids)
    paid = process_rewards(episode.trajectory, reward)
    for (_, end), number in zip(episode.turn_spans, episode.turn_numbers, strict=True):
        row[end - 1] = paid[number - 1]
    return row or [0.0]


def process_rewards(trajectory: Trajectory, reward: ProcessReward) -> list[float]:
    """F of each turn: gamma times the potential after it, less that before it."""
    values = [*potentials(trajectory, reward), 0.0]
    return [reward.gamma * after - before for before, after in pairwise(values)]


def potentials(trajectory: Trajectory, reward: ProcessReward) -> list[float]:
    """Phi before each turn; all 0 if d_1, the oracle's turns to go from the first state, is not known.

    - `regret`: 1 - d / d_1, at least -1, where d are the turns to go. It is -1 where the goal is proven to be out of
      reach, and that of the state before where d is not known.
    - `oracle-agreement`: the number of turns so far with the oracle's command, over d_1.
    """
    labels = [OracleLabel.of(turn) for turn in trajectory.turns]
    first = labels[0].turns_to_go if labels and labels[0] is not None else None
    if not first:
        return [0.0] * len(labels)
    if reward.kind == "oracle-agreement":
        agreed = (label is not None and label.agrees for label in labels[:-1])
        return [reward.weight * count / first for count in accumulate(agreed, initial=0)]
    found = list[float]()
    for label in labels:
        if label is not None and label.turns_to_go is not None:
            found.append(reward.weight * max(-1.0, 1 - label.turns_to_go / first))
        else:
            found.append(-reward.weight if label is not None and label.out_of_reach else found[-1])
    return found
