"""Advantage estimators: pure functions from what a batch of episodes earned to advantages.

Shapes: B episodes in groups of `group_size` consecutive ones (same task and seed), T tokens after the prompt, K turns.
An estimator returns (B,) for one advantage an episode, or (B, T) for one a token; 0 for an episode that must not be
learned from (`env_error`), which enters no mean either.

A turn is a run of tokens that the policy sampled; its reward lies on its last token, so that no estimator can lose it.
Observation tokens are skipped: they are no steps of the policy, and nothing is discounted across them.

Adding an algorithm is adding a function here and a row to `ESTIMATORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """What an estimator may look at. Everything is gathered over all processes.

    rewards: (B, T) the reward of a turn on the last token of its answer, further terms (a KL penalty) on any answer
        token. A reward on any other token is not seen.
    mask: (B, T) True on the tokens of answers.
    usable: (B,) False for an episode that must not be learned from.
    group_size: how many consecutive episodes share task and seed; of a team's streams, also the role.
    roles: how many groups follow each other with the same task and seed, one for each member of a team that is trained.
    values: (B, T) what the critic expected before each token; only where there is a critic.
    next_values: (B,) what it expects after an episode that was cut; 0 for one that ended.
    states: (B, T) a key of the environment's state in which the token's answer was given; equal keys, equal states.
    """

    rewards: Tensor
    mask: Tensor
    usable: Tensor
    group_size: int
    values: Tensor | None = None
    next_values: Tensor | None = None
    states: Tensor | None = None
    roles: int = 1

    @property
    def learned(self) -> Tensor:
        """(B, T) True on the answers of usable episodes, those that were cut among them."""
        return self.mask & self.usable[:, None]


@dataclass(frozen=True, slots=True)
class AdvantageConfig:
    """How credit is given.

    scale: what the deviations of grpo are divided by: the standard deviation of the group, of the batch, or nothing.
    gamma, lam: discount and GAE's decay, in [0, 1], for every turn, or for every token, by `discount_per`.
    turn_level: compare every turn's return-to-go, not the episode's return (estimators that compare within groups).
    step_weight: weight of the advantage among turns that began in the same state (GiGPO).
    """

    scale: Literal["group", "batch", "none"] = "group"
    gamma: float = 1.0
    lam: float = 0.95
    discount_per: Literal["turn", "token"] = "turn"
    turn_level: bool = False
    step_weight: float = 0.0


Compare = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(N,) numbers, (N,) group keys and (N,) which count -> (N,) how each stands within its group, 0 where none counts."""


def grpo(batch: Batch, credit: AdvantageConfig) -> Tensor:
    """Group-relative: A_i = (R_i - mean of its group) / (standard deviation + 1e-4), shape (B,).

    R_i is the sum of an episode's rewards, discounted by `credit.gamma` at every turn, here and below. The deviation
    is that of the group (GRPO), of the batch, or left out (Dr. GRPO), by `credit.scale`.
    Source: DeepSeekMath, arXiv 2402.03300, section 4.1.2; Dr. GRPO, arXiv 2503.20783; the unbiased deviation and the
    1e-4 as in TRL.
    """
    return _relative(batch, credit, partial(_standardised, scale=credit.scale))


def rloo(batch: Batch, credit: AdvantageConfig) -> Tensor:
    """Leave one out: A_i = R_i - mean of the others of its group, shape (B,); 0 where there is no other.

    Source: Back to Basics, arXiv 2402.14740, section 3.2.
    """
    return _relative(batch, credit, _left_out)


def reinforce_plus_plus_baseline(batch: Batch, credit: AdvantageConfig) -> Tensor:
    """A_i = R_i - mean of its group, then whitened over all answer tokens of the batch, shape (B, T).

    Source: REINFORCE++, arXiv 2501.03262, the variant with a group baseline.
    """
    centred = _relative(batch, credit, _centred)
    if centred.dim() == 1:
        centred = centred[:, None].expand_as(batch.rewards)
    return whiten_roles(centred, batch)


def reinforce_plus_plus(batch: Batch, credit: AdvantageConfig) -> Tensor:
    """The return from each token on, whitened over all answer tokens of the batch, shape (B, T).

    A_t = sum over t' >= t of r_t' (discounted), minus the mean and divided by the standard deviation of all of them.
    The mean counts tokens, so long episodes weigh more. With the KL penalty in the reward this is the paper's return.
    Source: REINFORCE++, arXiv 2501.03262, section 3.
    """
    return whiten_roles(token_returns(batch, credit), batch)


def gae(batch: Batch, credit: AdvantageConfig) -> Tensor:
    """Generalised advantage estimation over answer tokens, whitened over the batch, shape (B, T); needs a critic.

    Source: GAE, arXiv 1506.02438, equation 16; PPO, arXiv 1707.06347.
    """
    return whiten_roles(critic_advantages(batch, credit), batch)


def critic_advantages(batch: Batch, credit: AdvantageConfig) -> Tensor:
    """GAE before whitening, (B, T)."""
    assert batch.values is not None and batch.next_values is not None, "gae needs the values of a critic"
    steps = discounts(batch, credit.gamma, credit.discount_per)
    decays = discounts(batch, credit.lam, credit.discount_per)
    return generalized_advantages(batch.rewards, batch.values, batch.mask, batch.next_values, steps, decays)


def value_targets(batch: Batch, credit: AdvantageConfig) -> Tensor:
    """What the critic should have expected before each token, (B, T): its value and the advantage."""
    assert batch.values is not None
    return batch.values + critic_advantages(batch, credit)


def token_returns(batch: Batch, credit: AdvantageConfig) -> Tensor:
    """The discounted sum of rewards from each answer token on, (B, T)."""
    steps = discounts(batch, credit.gamma, credit.discount_per)
    nothing = torch.zeros_like(batch.rewards)
    return generalized_advantages(batch.rewards, nothing, batch.mask, nothing[:, 0], steps, torch.ones_like(nothing))


def generalized_advantages(
    rewards: Tensor, values: Tensor, mask: Tensor, next_values: Tensor, discount: Tensor, decay: Tensor
) -> Tensor:
    """GAE that walks over answer tokens only, (B, T); 0 elsewhere.

    With n the next answer token after t (V_n = `next_values`, A_n = 0 after the last):
    delta_t = r_t + discount_t V_n - V_t and A_t = delta_t + discount_t decay_t A_n.
    """
    advantages = torch.zeros_like(rewards)
    following, value = torch.zeros_like(next_values), next_values
    for t in reversed(range(rewards.size(1))):
        here = rewards[:, t] + discount[:, t] * value - values[:, t] + discount[:, t] * decay[:, t] * following
        on = mask[:, t]
        following, value = torch.where(on, here, following), torch.where(on, values[:, t], value)
        advantages[:, t] = torch.where(on, here, 0.0)
    return advantages


def discounts(batch: Batch, factor: float, per: Literal["turn", "token"]) -> Tensor:
    """The factor (B, T) between a token and the next answer token: `factor` at every token, or where a turn ends."""
    at = batch.mask if per == "token" else turn_ends(batch.mask)
    return torch.where(at, batch.rewards.new_tensor(factor), 1.0)  # a plain number would become single precision


def turn_ends(mask: Tensor) -> Tensor:
    """(B, T) True on the last token of every turn."""
    return mask & ~torch.nn.functional.pad(mask[:, 1:], (0, 1))


def turn_numbers(mask: Tensor) -> Tensor:
    """(B, T) which turn a token belongs to, counted from 0; -1 outside of answers."""
    begins = mask & ~torch.nn.functional.pad(mask[:, :-1], (1, 0))
    return torch.where(mask, begins.cumsum(1) - 1, -1)


def turn_rewards(batch: Batch) -> Tensor:
    """(B, K) what every turn earned; 0 for turns that an episode did not have. K is at least 1."""
    number = turn_numbers(batch.mask)
    sums = batch.rewards.new_zeros(len(number), max(int(number.max()) + 1, 1) if number.numel() else 1)
    return sums.scatter_add(1, number.clamp(min=0), torch.where(batch.mask, batch.rewards, 0.0))


def returns_to_go(rewards: Tensor, gamma: float) -> Tensor:
    """(B, K) rewards of turns to (B, K) discounted sums from each turn on."""
    sums = rewards.clone()
    for turn in reversed(range(rewards.size(1) - 1)):
        sums[:, turn] += gamma * sums[:, turn + 1]
    return sums


def whiten(numbers: Tensor, mask: Tensor) -> Tensor:
    """(B, T) minus the mean and over the standard deviation of what `mask` marks (unbiased, 1e-8); 0 elsewhere."""
    count = mask.sum().clamp(min=1)
    mean = torch.where(mask, numbers, 0.0).sum() / count
    centred = torch.where(mask, numbers - mean, 0.0)
    variance = centred.square().sum() / (count - 1).clamp(min=1)
    return centred * torch.rsqrt(variance + 1e-8)


def whiten_roles(numbers: Tensor, batch: Batch) -> Tensor:
    """(B, T) `whiten` over what is learned from, each role by itself: one may earn less than another at its best."""
    role = torch.arange(len(numbers), device=numbers.device) // batch.group_size % batch.roles
    of_each = [whiten(numbers, batch.learned & (role == number)[:, None]) for number in range(batch.roles)]
    return torch.stack(of_each).sum(0)


def _relative(batch: Batch, credit: AdvantageConfig, compare: Compare) -> Tensor:
    """Compare within groups: (B,) by episode, or (B, T) where turns differ.

    A turn is compared with the turns of the same number in the group's other episodes; for GiGPO (arXiv 2505.10978,
    section 3.3), with all turns of the group that began in the same state. There only those are discounted, not the
    return of the episode, as in the paper.
    """
    group = torch.arange(len(batch.rewards), device=batch.rewards.device) // batch.group_size
    rewards = turn_rewards(batch)
    to_go = returns_to_go(rewards, credit.gamma)
    if not credit.turn_level and not credit.step_weight:
        return compare(to_go[:, 0], group, batch.usable)
    number = turn_numbers(batch.mask)
    turns = torch.arange(to_go.size(1), device=group.device).expand_as(to_go)
    played = (turns <= number.max(1, keepdim=True).values) & batch.usable[:, None]
    whole = compare(rewards.sum(1), group, batch.usable)[:, None].expand_as(to_go)
    advantages = _among(to_go, group, turns, played, compare) if credit.turn_level else whole
    if credit.step_weight:
        advantages = advantages + credit.step_weight * _among(
            to_go, group, _turn_states(batch, number), played, compare
        )
    return torch.where(batch.learned, advantages.gather(1, number.clamp(min=0)), 0.0)


def _among(to_go: Tensor, group: Tensor, kind: Tensor, played: Tensor, compare: Compare) -> Tensor:
    """(B, K) how each turn stands among those of the same group and kind."""
    pairs = torch.stack([group[:, None].expand_as(kind), kind], -1).view(-1, 2)
    keys = torch.unique(pairs, dim=0, return_inverse=True)[1]
    return compare(to_go.reshape(-1), keys, played.reshape(-1)).view_as(to_go)


def _turn_states(batch: Batch, number: Tensor) -> Tensor:
    """(B, K) the key of the state in which each turn began."""
    assert batch.states is not None, "step groups need the keys of states"
    states = batch.states.new_zeros(len(number), max(int(number.max()) + 1, 1))
    keys = torch.where(turn_ends(batch.mask), batch.states, 0)  # one token a turn, so that the sum is its key
    return states.scatter_add(1, number.clamp(min=0), keys)


def _sums(numbers: Tensor, keys: Tensor) -> Tensor:
    """(N,) the sum over each one's group."""
    return numbers.new_zeros(int(keys.max()) + 1).index_add(0, keys, numbers)[keys]


def _centred(numbers: Tensor, keys: Tensor, valid: Tensor) -> Tensor:
    count = _sums(valid.to(numbers.dtype), keys).clamp(min=1)
    mean = _sums(torch.where(valid, numbers, 0.0), keys) / count
    return torch.where(valid, numbers - mean, 0.0)


def _left_out(numbers: Tensor, keys: Tensor, valid: Tensor) -> Tensor:
    """The deviation from the mean of the others: n / (n - 1) times that from the mean of all."""
    count = _sums(valid.to(numbers.dtype), keys)
    return _centred(numbers, keys, valid) * count / (count - 1).clamp(min=1)


def _standardised(numbers: Tensor, keys: Tensor, valid: Tensor, scale: str) -> Tensor:
    centred = _centred(numbers, keys, valid)
    if scale == "none":
        return centred
    if scale == "batch":
        keys = torch.zeros_like(keys)
    squares = _sums(_centred(numbers, keys, valid).square(), keys)
    count = _sums(valid.to(numbers.dtype), keys)
    return centred / ((squares / (count - 1).clamp(min=1)).sqrt() + 1e-4)


@dataclass(frozen=True, slots=True)
class Estimator:
    """An estimator, and what it needs: `grouped` to compare episodes of the same task, `critic` to have values."""

    estimate: Callable[[Batch, AdvantageConfig], Tensor]
    grouped: bool = False
    critic: bool = False


ESTIMATORS: dict[str, Estimator] = {
    "grpo": Estimator(grpo, grouped=True),
    "rloo": Estimator(rloo, grouped=True),
    "reinforce++": Estimator(reinforce_plus_plus),
    "reinforce++-baseline": Estimator(reinforce_plus_plus_baseline, grouped=True),
    "gae": Estimator(gae, critic=True),
}
