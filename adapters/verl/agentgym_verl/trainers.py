"""verl's V1 trainers for episodes of several contexts, in the three modes.

verl's batch has a row for each context, and the number of rows varies from step to step. These trainers count episodes
where verl counts rows: advantages, the number of optimizer steps, the means of losses, and the logged scores. They
leave batches in which every episode has one context, and runs without our block of settings, to verl.

Importing this module registers them in place of verl's own, under the same names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import torch
import transfer_queue as tq
from torch import Tensor
from verl.trainer.distillation import is_distillation_enabled
from verl.trainer.ppo.v1 import trainer_base
from verl.trainer.ppo.v1.trainer_colocate_async import PPOTrainerColocateAsync
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.utils.losses import ppo_loss, value_loss
from verl.workers.utils.padding import response_to_nested

from agentgym_verl.episode_advantages import compute_episode_advantages, episode_rows
from agentgym_verl.episode_loss import BY_SEQUENCE, LOSS_WEIGHTS, context_weights, weighted_loss
from agentgym_verl.rollout_metrics import rollout_metrics


class EpisodeBatches(trainer_base.PPOTrainer):  # type: ignore[misc]
    """The common part of the trainers of all modes: steps over episodes."""

    actor_rollout_wg: Any
    critic_wg: Any
    _by_episode = False
    """True while a step's batch has an episode of several contexts."""

    def _setup(self) -> None:
        super()._setup()
        if "agentgym" not in self.config:
            return
        actor, critic = self.config.actor_rollout_ref.actor, self.config.critic
        if actor.loss_agg_mode == BY_SEQUENCE and not is_distillation_enabled(self.config.get("distillation")):
            loss = partial(ppo_loss, config=omega_conf_to_dataclass(actor))
            self.actor_rollout_wg.set_loss_fn(partial(weighted_loss, loss))
        if self.use_critic and critic.loss_agg_mode == BY_SEQUENCE:
            loss = partial(value_loss, config=omega_conf_to_dataclass(critic))
            self.critic_wg.set_loss_fn(partial(weighted_loss, loss))

    def _balance_batch(self, batch: Any, metrics: dict[str, Any], **options: Any) -> Any:
        """Also fill the batch with rows without trained tokens; see `_get_required_batch_multiple`."""
        self._by_episode = "agentgym" in self.config and episode_rows(batch.keys).several
        return super()._balance_batch(batch, metrics, **options)

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        """The number of rows must be a multiple of processes x micro-batch x optimizer steps, whose number is fixed."""
        if not self._by_episode:
            return int(super()._get_required_batch_multiple(dp_size))
        return dp_size * math.lcm(*self._parts())

    def _parts(self) -> Iterable[int]:
        """The numbers of equal parts that the rows of a process are divided into."""
        policy, critic = self.config.actor_rollout_ref, self.config.critic
        yield self._updates(policy.actor) * _micro_batch(policy.actor, "ppo_micro_batch_size_per_gpu")
        yield _micro_batch(policy.rollout, "log_prob_micro_batch_size_per_gpu", "log_prob_use_dynamic_bsz")
        if self.use_reference_policy:
            yield _micro_batch(policy.ref, "log_prob_micro_batch_size_per_gpu", "log_prob_use_dynamic_bsz")
        if self.use_critic:
            yield self._updates(critic) * _micro_batch(critic, "ppo_micro_batch_size_per_gpu")
            yield _micro_batch(critic, "ppo_infer_micro_batch_size_per_gpu")

    def _updates(self, trained: Any) -> int:
        """The optimizer steps of one pass over a batch, as configured in groups."""
        groups = int(self.config.data.train_batch_size) // int(self.parameter_sync_step)
        return max(groups // int(trained.ppo_mini_batch_size), 1)

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch = super()._compute_advantage(batch, metrics)
        modes = {self.config.actor_rollout_ref.actor.loss_agg_mode, self.config.critic.loss_agg_mode}
        if self._by_episode and BY_SEQUENCE in modes:
            mask = tq.kv_batch_get(batch.keys, batch.partition_id, select_fields=["response_mask"])["response_mask"]
            padded = mask.to_padded_tensor(0)
            weights = context_weights(episode_rows(batch.keys), padded)[:, None] * torch.ones(padded.shape)
            fields = tensordict_utils.get_tensordict({LOSS_WEIGHTS: response_to_nested(weights, mask)})
            batch = tq.kv_batch_put(batch.keys, batch.partition_id, fields=fields)
        return batch

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        group = self.actor_rollout_wg
        self.actor_rollout_wg = self._by_episodes(group, batch, self.config.actor_rollout_ref.actor)
        try:
            return super()._update_actor(batch, metrics)
        finally:
            self.actor_rollout_wg = group

    def _update_critic(self, batch: Any, metrics: dict[str, Any]) -> Any:
        group = self.critic_wg
        self.critic_wg = self._by_episodes(group, batch, self.config.critic)
        try:
            return super()._update_critic(batch, metrics)
        finally:
            self.critic_wg = group

    def _by_episodes(self, group: Any, batch: Any, trained: Any) -> Any:
        """A worker group whose mini-batches have an equal part of the rows, and whose losses divide by episodes."""
        if not self._by_episode:
            return group
        episodes = int(trained.ppo_mini_batch_size) * int(self.config.actor_rollout_ref.rollout.n)
        rows = len(batch.keys) // self._updates(trained)
        return _WorkersWithSizes(group, {"mini_batch_size": rows, "global_batch_size": episodes})

    def _compute_metrics(self, batch: Any, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super()._compute_metrics(batch, metrics, *args, **kwargs)
        if "agentgym" in self.config:
            metrics.update({**_episode_metrics(batch), **rollout_metrics(_facts(batch))})


class _WorkersWithSizes:
    """A worker group that replaces the sizes of the batches that it trains on."""

    def __init__(self, group: Any, sizes: Mapping[str, int]) -> None:
        self._group, self._sizes = group, dict(sizes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def update_actor(self, batch: Any) -> Any:
        batch.extra_info.update(self._sizes)
        return self._group.update_actor(batch)

    def train_mini_batch(self, batch: Any) -> Any:
        batch.extra_info.update(self._sizes)
        return self._group.train_mini_batch(batch)


def _micro_batch(config: Any, size: str, dynamic: str = "use_dynamic_bsz") -> int:
    """The rows of a micro-batch; 1 if verl fills micro-batches by tokens."""
    return 1 if config.get(dynamic) else int(config.get(size) or 1)


def _episode_metrics(batch: Any) -> dict[str, float]:
    """Numbers of episodes in place of verl's numbers of rows; none if every episode has one row."""
    keys = _real_keys(batch)
    rows = episode_rows(keys)
    if not rows.several:
        return {}
    fields = ["rm_scores", "token_level_rewards", "num_turns"]
    data = tq.kv_batch_get(keys, batch.partition_id, select_fields=fields)
    scores = _row_sums(data["rm_scores"])
    rewards = _row_sums(data["token_level_rewards"]) if "token_level_rewards" in data.keys() else scores  # noqa: SIM118
    turns = torch.tensor(list(data["num_turns"]), dtype=torch.float)[rows.first_rows]
    contexts = rows.sums(torch.ones(len(keys)))
    return {
        **_statistics("critic/score", rows.sums(scores)),
        **_statistics("critic/rewards", rows.sums(rewards)),
        **_statistics("num_turns", turns),
        **_statistics("training/num_turns", turns),
        **_statistics("training/contexts", contexts),
        "training/padding_rows": float(len(batch.keys) - len(keys)),
    }


def _facts(batch: Any) -> list[dict[str, float]]:
    """The numbers that the agent loop returned with each episode."""
    keys = _real_keys(batch)
    if not keys:
        return []
    fields = tq.kv_batch_get(keys, batch.partition_id, select_fields=["extra_fields"]).pop("extra_fields").tolist()
    return [fields[row]["reward_extra_info"] for row in episode_rows(keys).first_rows.tolist()]


def _real_keys(batch: Any) -> list[str]:
    """The keys of the rows that are no padding."""
    return [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding", False)]


def _row_sums(nested: Tensor) -> Tensor:
    return nested.to_padded_tensor(0.0).sum(1)


def _statistics(name: str, values: Tensor) -> dict[str, float]:
    return {
        f"{name}/mean": float(values.mean()),
        f"{name}/max": float(values.max()),
        f"{name}/min": float(values.min()),
    }


class SyncTrainer(EpisodeBatches, PPOTrainerSync):  # type: ignore[misc]
    """verl's mode `sync`."""


class ColocateAsyncTrainer(EpisodeBatches, PPOTrainerColocateAsync):  # type: ignore[misc]
    """verl's mode `colocate_async`."""


class SeparateAsyncTrainer(EpisodeBatches, PPOTrainerSeparateAsync):  # type: ignore[misc]
    """verl's mode `separate_async`."""


trainer_base.TRAINER_REGISTRY.update(
    sync=SyncTrainer, colocate_async=ColocateAsyncTrainer, separate_async=SeparateAsyncTrainer
)
trainer_base.compute_advantage_for_multi_trajectories = compute_episode_advantages
