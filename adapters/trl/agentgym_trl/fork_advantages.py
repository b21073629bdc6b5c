"""Advantage estimators for episodes with forks: values of states from continuations, and trees of episodes.

They are rows of `agentgym_trl.credit.CREDITS`; for the shapes, see `agentgym_trl.advantages`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from agentgym_trl.advantages import (
    AdvantageBatch,
    AdvantageConfig,
    episode_groups,
    left_out,
    of_turns,
    per_token,
    played_turns,
    returns_to_go,
    standardised,
    turn_rewards,
)


def vine(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """Differences of the values of states, (B, T), as far as states have a value (`batch.state_values`).

    States with a value divide an episode into segments. All turns of the segment from s to s' have the advantage
    (sum of its rewards, discounted) + gamma^n V(s') - V(s), with n turns in the segment. The value after the end of an
    episode is 0. V of the first state is the mean return of the group's other episodes, and without any, the first
    segment has the advantage 0. `config.scale` selects the divisor, the root mean square of the group's turns, of the
    batch's, or none; no mean is subtracted.
    Source: VinePPO, arXiv 2410.01679, section 4, where every state has a value.
    """
    rewards, played = turn_rewards(batch), played_turns(batch)
    values = torch.where(played, state_values(batch, rewards, config), torch.nan)
    after = segment_returns(rewards, values, config.gamma)
    begins = ~values.isnan()
    begins[:, 0] = True
    differences = (after - values).nan_to_num(nan=0.0)  # only a first state may lack a value
    first = torch.where(begins, torch.arange(values.size(1), device=values.device), 0).cummax(1).values
    advantages = torch.where(played, differences.gather(1, first), 0.0)
    return per_token(_scaled(advantages, played, batch, config), batch)


def state_values(batch: AdvantageBatch, rewards: Tensor, config: AdvantageConfig) -> Tensor:
    """(B, K) the value of the state before each turn; NaN where it is unknown."""
    if batch.state_values is None:
        values = torch.full_like(rewards, torch.nan)
    else:
        values = of_turns(batch.state_values, batch).to(rewards.dtype)
    returns, group = returns_to_go(rewards, config.gamma)[:, 0], episode_groups(batch)
    others = batch.usable.new_zeros(len(group), dtype=torch.long).index_add(0, group, batch.usable.long())[group] > 1
    values[:, 0] = torch.where(others & batch.usable, returns - left_out(returns, group, batch.usable), torch.nan)
    return values


def segment_returns(rewards: Tensor, values: Tensor, gamma: float) -> Tensor:
    """(B, K) the discounted rewards from each turn on up to the next state with a value, plus that value."""
    found, after = torch.empty_like(rewards), torch.zeros_like(rewards[:, 0])
    for turn in reversed(range(rewards.size(1))):
        found[:, turn] = rewards[:, turn] + gamma * after
        after = torch.where(values[:, turn].isnan(), found[:, turn], values[:, turn])
    return found


def tree(batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """Tree-GRPO: the mean over the episodes that share a turn of their advantages, (B, T).

    The advantage of an episode is its deviation from the mean of its tree over the standard deviation, plus the same
    with respect to its group. `config.scale` is that of `grpo`. A turn that several episodes share
    (`batch.turn_owners`) is trained on in one of them, so its advantage is the mean over all of them.
    Source: Tree-GRPO, arXiv 2509.21240, section 3.3.
    """
    returns, group = returns_to_go(turn_rewards(batch), config.gamma)[:, 0], episode_groups(batch)
    played = played_turns(batch)
    if batch.turn_owners is None:
        owners = torch.arange(len(group), device=group.device)[:, None].expand_as(played)
    else:
        owners = of_turns(batch.turn_owners, batch)
    trees = _keys(group, owners[:, 0])
    leaves = standardised(returns, trees, batch.usable, config.scale)
    leaves = leaves + standardised(returns, group, batch.usable, config.scale)
    turns = torch.arange(played.size(1), device=group.device).expand_as(played)
    shared = _keys(group[:, None].expand_as(played), owners, turns).view(-1)
    sums, counts = (
        torch.zeros(int(shared.max()) + 1, dtype=returns.dtype, device=group.device).index_add(0, shared, each)
        for each in (torch.where(played, leaves[:, None], 0.0).view(-1), played.to(returns.dtype).view(-1))
    )
    means = (sums / counts.clamp(min=1))[shared].view_as(returns[:, None].expand_as(played))
    return per_token(torch.where(played, means, 0.0), batch)


def _keys(*labels: Tensor) -> Tensor:
    """The number of each distinct combination of labels."""
    together = torch.stack([label.long() for label in labels], -1)
    flat = together.view(-1, len(labels))
    return torch.unique(flat, dim=0, return_inverse=True)[1].view(together.shape[:-1])


def _scaled(advantages: Tensor, played: Tensor, batch: AdvantageBatch, config: AdvantageConfig) -> Tensor:
    """Divide the advantages of turns (B, K) by their root mean square + 1e-4, over the group or the batch."""
    if config.scale == "none":
        return advantages
    keys = episode_groups(batch) if config.scale == "group" else torch.zeros_like(episode_groups(batch))
    totals = advantages.new_zeros(int(keys.max()) + 1, 2)
    totals.index_add_(0, keys, torch.stack([advantages.square().sum(1), played.to(advantages.dtype).sum(1)], 1))
    squares, counts = totals[keys].unbind(1)
    return advantages / ((squares / counts.clamp(min=1)).sqrt() + 1e-4)[:, None]
