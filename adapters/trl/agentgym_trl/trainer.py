"""`AgentTrainer`: TRL's `GRPOTrainer` over the episodes of environments, with a choice of advantage estimators.

It overrides a few methods of trl 1.16 (pinned; a contract test fails when they change):

- `_calculate_rewards` keeps the rewards of all processes;
- `_generate_and_score_completions` replaces TRL's advantages by the estimator's;
- `_prepare_inputs` trims padding, and brings rows with the same prompt together;
- `_compute_loss` and `training_step` train the critic and log statistics of the loss;
- `_get_per_token_logps_and_entropies` takes the contexts of episodes apart, leaves padding out, and hands the
  log-probabilities of the loss to these statistics;
- `save_model` saves a whole model where adapters are reset;
- `_get_train_sampler`, `_save_checkpoint` and `_load_optimizer_and_scheduler` make runs resumable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from trl import GRPOTrainer

from agentgym_envs.errors import UsageError
from agentgym_envs.schedule import parse_schedules
from agentgym_trl.adapter_reset import AdapterReset, save_merged
from agentgym_trl.advantages import AdvantageBatch, value_targets
from agentgym_trl.algorithms import ALGORITHMS
from agentgym_trl.asynchronous.correction import as_with_vllm
from agentgym_trl.asynchronous.options import CloseRollout, async_options
from agentgym_trl.batch import ROW_MEANS, assemble, local_rows, loss_weights, row_scale, token_kl
from agentgym_trl.config import AgentConfig, default_schedule
from agentgym_trl.context_rows import context_numbers, context_rows
from agentgym_trl.credit_methods import CREDIT_METHODS, fork_options
from agentgym_trl.critic import (
    Critic,
    CriticLearner,
    CriticOptions,
    check_vocabulary,
    explained_variance,
    load_backbone,
)
from agentgym_trl.failures import report_failures, without_trls_dump
from agentgym_trl.health import HealthWatch
from agentgym_trl.held_out import HeldOutEvaluation
from agentgym_trl.kl_clip import bounded_reference
from agentgym_trl.loss_statistics import LossStatistics, trained_mask
from agentgym_trl.models import read_template
from agentgym_trl.oracle_options import oracle_options
from agentgym_trl.padding import trim_padding
from agentgym_trl.padding_free import group_prompts
from agentgym_trl.padding_free.training import enable_for, enable_for_critic, may_exchange_rows
from agentgym_trl.resume import EpochSampler, load_state, save_state
from agentgym_trl.rollout import EnvSource, Rollout, make_rollout_func
from agentgym_trl.task_sampler import make_task_sampler

__all__ = ["AgentConfig", "AgentTrainer"]

_IMAGES = (
    "pixel_values",
    "image_grid_thw",
    "num_images",
    "pixel_attention_mask",
    "spatial_shapes",
    "num_tiles",
    "image_sizes",
    "token_type_ids",
    "mm_token_type_ids",
    "image_position_ids",
)
"""TRL's arguments of a forward pass over images."""


class AgentTrainer(GRPOTrainer):  # type: ignore[misc]
    """Trains a model on the episodes of one or several environments."""

    trains_contexts = True
    """True for a trainer that reads the contexts of an episode one by one; `Rollout` asks for it."""
    _tag_names = ["trl", "grpo", "agentgym"]  # noqa: RUF012 (TRL's name and type)

    def __init__(
        self,
        model: Any,
        env: EnvSource,
        *,
        args: AgentConfig,
        processing_class: Any,
        env_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Create a trainer.

        `env` and `env_kwargs` are those of `make_rollout_func`, the other arguments those of `GRPOTrainer`.
        `train_dataset` comes from `make_dataset` or `as_dataset`, and so does `eval_dataset`, the held-out tasks of
        `args.eval_every`. The rewards of further `reward_funcs` are added to
        the episode's score. Trajectories go to `args.output_dir/trajectories`.
        """
        self.rollout: Rollout = make_rollout_func(
            env, processing_class, env_kwargs=env_kwargs, **_rollout_options(args, env)
        )
        self.algorithm, self.credit = ALGORITHMS[args.algorithm], CREDIT_METHODS[args.credit]
        self.rollout.team.check(
            args.num_generations or 1,
            args.per_device_train_batch_size * args.steps_per_generation,
            grouped=self.algorithm.grouped,
        )
        _check_reference(model, args, peft=bool(kwargs.get("peft_config")) or hasattr(model, "peft_config"))
        backbone = self._backbone(model, args) if self.algorithm.critic else None
        if args.critic_model is not None and backbone is not None:
            check_vocabulary(backbone, len(processing_class))
        others = kwargs.pop("reward_funcs", [])
        if others and self.credit.forks:
            raise UsageError(f"--credit {args.credit} uses the scores of the environment only; pass no reward_funcs")
        functions = [self.rollout.reward, *(others if isinstance(others, list) else [others])]
        super().__init__(
            model, functions, args=args, processing_class=processing_class, rollout_func=self.rollout, **kwargs
        )
        self.rollout.sampler = make_task_sampler(args.sampler, self.train_dataset, seed=args.seed)
        self._rewards_per_function = torch.empty(0)
        self._rollout_seconds = self._train_seconds = 0.0
        self._loss_inputs: dict[str, Any] | None = None
        self._statistics = LossStatistics(
            args.importance_sampling_level, args.off_policy_mask_threshold, imitates=self.algorithm.imitates
        )
        self.learner = self._make_learner(backbone) if backbone is not None else None
        self.padding_free, self.why_padded = enable_for(self)
        enable_for_critic(self)
        self.add_callback(HealthWatch(stops=args.stop_on_collapse))
        self.add_callback(CloseRollout(self.rollout))
        if args.reset_adapter_every is not None:
            self.add_callback(AdapterReset(self))
        if args.eval_every is not None:
            if self.eval_dataset is None:
                raise UsageError("eval_every needs the held-out tasks: pass eval_dataset, made by make_dataset")
            self.add_callback(HeldOutEvaluation(self))

    def _calculate_rewards(self, inputs: list[dict[str, Any]], prompts: Any, *args: Any) -> torch.Tensor:
        """Keep the rewards (B of all processes, number of functions); NaN where a function returned None.

        Reward functions get the prompts of the played episodes, as dynamic sampling may have replaced tasks.
        """
        played = [row["prompt"] for row in inputs]
        with without_trls_dump():
            self._rewards_per_function = super()._calculate_rewards(inputs, played, *args)
        report_failures(self.rollout.last)
        return self._rewards_per_function

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Generate as TRL does, and compute the advantages with our estimator."""
        began = time.perf_counter()
        with as_with_vllm(self, self._corrects_staleness):
            output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if (contexts := context_numbers(self.rollout.last, output["completion_ids"])) is not None:
            output["contexts"] = contexts
        local = self._local(inputs)
        rows = local_rows(inputs, output, self._returns()[local], self.reward_weights[0])
        if self.args.kl_in == "reward":
            self._subtract_kl(rows, output)
        if self.learner:
            rows |= self._values(inputs, output)
        num_generations = self.num_generations if self.model.training else self.num_generations_eval
        team = self.rollout.team
        batch = assemble(rows, self.accelerator, team.group_size(num_generations), team.roles)
        self._store_advantages(output, batch, local)
        output["row_scale"] = row_scale(output, self.accelerator)
        if self.args.loss_average is not None:
            numbers = rows["turn_numbers"]
            output["loss_weights"] = loss_weights(self.args.loss_average, numbers, output, self.accelerator)
        if team.roles > 1:
            self._log_zero_variance_groups(batch.group_size)
        self._rollout_seconds += time.perf_counter() - began
        return output

    def _store_advantages(self, output: dict[str, Any], batch: AdvantageBatch, local: slice) -> None:
        """Put this process's advantages, and the critic's targets, into TRL's batch."""
        width, config = output["completion_ids"].size(1), self.args.advantage_config
        everywhere = self.credit.estimate(self.algorithm, batch, config)
        self._show_advantages(everywhere, batch)
        advantages = everywhere[local]
        output["advantages"] = advantages[:, :width] if advantages.dim() == 2 else advantages
        if self.learner and batch.values is not None:
            targets, trained_mask = value_targets(batch, config), batch.trained_mask
            self._log("critic/explained_variance", explained_variance(batch.values, targets, trained_mask))
            for name, value in (("value_targets", targets), ("old_values", batch.values), ("value_mask", trained_mask)):
                output[name] = value[local, :width]

    def _show_advantages(self, advantages: torch.Tensor, batch: AdvantageBatch) -> None:
        """Replace the advantages in TRL's table of completions (`log_completions`); per-token ones by their mean."""
        if advantages.dim() == 2:
            advantages = (advantages * batch.mask).sum(1) / batch.mask.sum(1).clamp(min=1)
        shown = self._logs["advantages"]
        for _ in range(min(len(shown), len(advantages))):
            shown.pop()
        shown.extend(advantages.tolist())

    def _log_zero_variance_groups(self, size: int) -> None:
        """Log the share of groups with equal rewards, per role; TRL counts all roles of a task as one group."""
        groups = self._returns().view(-1, size).tolist()
        valid = [[value for value in group if value == value] for group in groups]
        share = sum(len(set(group)) == 1 for group in valid) / len(groups)
        self._metrics["train" if self.model.training else "eval"]["frac_reward_zero_std"][-1] = share

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        """Prepare as TRL does, without the padding that only other micro-batches need."""
        self._buffered_inputs: Any
        before = self._buffered_inputs
        inputs = super()._prepare_inputs(generation_batch)
        if self._buffered_inputs is not before and self.padding_free is not None and may_exchange_rows(self):
            self._buffered_inputs = group_prompts(self._buffered_inputs, self.args.gradient_accumulation_steps)
            inputs = self._buffered_inputs[self._step % self.args.steps_per_generation]
        return trim_padding(inputs)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        """Accumulate the critic's gradient, which frees its activations, and then compute TRL's loss."""
        if self.learner and self.model.training:
            self.learner.learn(inputs)
        beta = 0.0 if self.args.kl_in == "reward" else self.beta
        if self.loss_type in ROW_MEANS:  # TRL divides by all rows, also those without a trained token
            inputs = {**inputs, "advantages": inputs["advantages"] * inputs["row_scale"]}
            beta = beta and beta * float(inputs["row_scale"])  # reading it waits for the device
        if "loss_weights" in inputs:  # TRL multiplies every term of a token by its mask
            inputs = {**inputs, "tool_mask": inputs["tool_mask"] * inputs["loss_weights"]}
        self._loss_inputs = inputs = dict(inputs)
        if self.algorithm.imitates:  # the clipped ratio to an older policy would stop labels whose probability rises
            inputs.pop("old_per_token_logps", None)
        try:
            with self._kl_weight(beta), as_with_vllm(self, self._corrects_staleness):
                loss: torch.Tensor = super()._compute_loss(model, inputs)
        finally:
            self._loss_inputs = None
        return loss * 0.0 if self._only_critic_learns else loss

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Compute as TRL does, context by context. Within the loss, bound the KL term and add to the step's statistics.

        `kwargs` are TRL's further arguments.
        """
        completion, scored = input_ids[:, -logits_to_keep:], attention_mask[:, -logits_to_keep:].bool()
        if self._loss_inputs is None:
            contexts = context_numbers(self.rollout.last, completion)
        else:
            contexts, scored = self._loss_inputs.get("contexts"), trained_mask(self._loss_inputs)
        if contexts is None:
            found = self._score(model, input_ids, attention_mask, scored, batch_size, **kwargs)
        else:
            rows = context_rows(attention_mask, contexts)
            inside = (rows.take(input_ids), rows.mask, rows.take_behind(scored.long()).bool())
            logprobs, entropies, rest = self._score(model, *inside, rows.batch_size(batch_size), **kwargs)
            found = rows.put(logprobs), None if entropies is None else rows.put(entropies), rest
        if self._loss_inputs is None:
            return found
        if self.model.training:
            self._statistics.add(found[0], self._loss_inputs)
        if self.args.kl_clip is not None and self.beta:  # TRL reads the reference only after this call
            reference = self._loss_inputs["ref_per_token_logps"]
            self._loss_inputs["ref_per_token_logps"] = bounded_reference(found[0], reference, self.args.kl_clip)
        return found

    def _score(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        scored: torch.Tensor,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """TRL's result, from packed rows if the model can read them, and then only for tokens in `scored` (B, T)."""
        if self.padding_free is None or any(kwargs.get(name) is not None for name in _IMAGES):
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, scored.size(1), batch_size, **kwargs
            )
        logprobs, entropies = self.padding_free.score(
            model,
            input_ids,
            attention_mask,
            scored,
            batch_size=batch_size or len(input_ids),
            autocast=self.accelerator.autocast,
        )
        return logprobs, entropies if kwargs.get("compute_entropy") else None, None

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Take TRL's step, and a step of the critic when the policy's gradients are complete; log the time.

        The logged time is that of training without the rollout.
        """
        began, self._rollout_seconds = time.perf_counter(), 0.0
        loss: torch.Tensor = super().training_step(*args, **kwargs)
        complete = self.accelerator.sync_gradients
        if self.learner and complete:
            for name, value in self.learner.step().items():
                self._log(name, value)
            if self._only_critic_learns and self.accelerator.scaler is None:  # a scaler needs gradients, even of 0
                self.model.zero_grad(set_to_none=True)  # gradients of 0 would still apply weight decay
        self._train_seconds += time.perf_counter() - began - self._rollout_seconds
        if complete:
            self._log("time/train", self._train_seconds)
            self._train_seconds = 0.0
            for name, value in self._statistics.take(self.accelerator).items():
                self._log(name, value)
        return loss

    @property
    def _corrects_staleness(self) -> bool:
        """True if older versions of the policy may have sampled tokens of the batch."""
        return self.model.training and self.rollout.max_staleness > 0

    @property
    def _only_critic_learns(self) -> bool:
        """True in the warm-up steps of the critic."""
        return self.learner is not None and self.state.global_step < self.args.critic_warmup_steps

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        """TRL's sampler, with an order that a resumed run repeats."""
        return EpochSampler.of(super()._get_train_sampler(dataset), lambda: int((self.state.epoch or 0) + 1e-6))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Write our state first: transformers writes last the file that marks a checkpoint as complete."""
        save_state(self, Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}")
        super()._save_checkpoint(model, trial)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save as transformers does; where adapters are reset, save a whole model outside of checkpoints."""
        if self.args.reset_adapter_every is None or _internal_call:
            super().save_model(output_dir, _internal_call)
        elif self.args.should_save:
            out = output_dir or self.args.output_dir
            save_merged(self.accelerator.unwrap_model(self.model), out)
            self.processing_class.save_pretrained(out)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            load_state(self, Path(checkpoint))

    def _local(self, inputs: list[dict[str, Any]]) -> slice:
        """This process's slice of gathered tensors."""
        first = self.accelerator.process_index * len(inputs)
        return slice(first, first + len(inputs))

    def _returns(self) -> torch.Tensor:
        """(B of all processes,) weighted sum of the rewards; NaN where the episode itself has no score."""
        rewards = self._rewards_per_function
        returns: torch.Tensor = (rewards * self.reward_weights.to(rewards.device)).nansum(1)
        returns[rewards[:, 0].isnan()] = torch.nan
        return returns

    def _subtract_kl(self, rows: dict[str, Any], output: dict[str, Any]) -> None:
        """Subtract the KL estimate from the reward of every token."""
        mask = rows["turn_numbers"] > 0
        kl = token_kl(self, output) * mask
        if self.args.kl_clip is not None:
            kl = kl.clamp(-self.args.kl_clip, self.args.kl_clip)
        rows["rewards"] = rows["rewards"] - self.beta * kl
        totals = self.accelerator.reduce(torch.stack([kl.sum(), mask.sum()]), reduction="sum")
        self._log("kl", float(totals[0] / totals[1].clamp(min=1)))

    def _values(self, inputs: list[dict[str, Any]], output: dict[str, Any]) -> dict[str, Any]:
        assert self.learner
        bootstrap_ids = [row["bootstrap_ids"] if self.args.bootstrap_truncated_episodes else [] for row in inputs]
        values, after = self.learner.values(output, bootstrap_ids, self.args.per_device_train_batch_size)
        return {"values": values, "next_values": after}

    @staticmethod
    def _backbone(model: Any, args: AgentConfig) -> Any:
        return load_backbone(args.critic_model, model, **(args.model_init_kwargs or {}))

    def _make_learner(self, backbone: Any) -> CriticLearner:
        options = CriticOptions(
            learning_rate=self.args.critic_learning_rate,
            lr_warmup_steps=self.args.critic_lr_warmup_steps,
            clip_range=self.args.critic_clip_range,
            max_grad_norm=self.args.max_grad_norm,
            gradient_checkpointing=self.args.gradient_checkpointing,
        )
        return CriticLearner(Critic(backbone), options, self.accelerator)

    @contextmanager
    def _kl_weight(self, weight: float) -> Iterator[None]:
        """Weigh the KL term in the loss by `weight`, which is 0 if it is in the reward."""
        self.beta: float
        beta, self.beta = self.beta, weight
        try:
            yield
        finally:
            self.beta = beta

    def _log(self, name: str, value: float) -> None:
        self._metrics["train" if self.model.training else "eval"][name].append(value)


def _check_reference(model: Any, args: AgentConfig, peft: bool) -> None:
    """Raise UsageError if TRL cannot load the reference model by the policy's name; with an adapter it loads none."""
    named = isinstance(model, str) or bool(model.config._name_or_path)
    if args.beta and not named and not peft:
        raise UsageError("--beta needs a reference model, which TRL loads by name: save the model and give its path")


def _rollout_options(args: AgentConfig, env: EnvSource) -> dict[str, Any]:
    default = default_schedule([env] if isinstance(env, str) else list(env) if isinstance(env, Mapping) else [])
    return {
        "schedule": parse_schedules(args.max_turns or default, args.every),
        "max_tokens": args.max_completion_length or 8192,
        "max_turn_tokens": args.max_turn_tokens,
        "eval_max_turns": args.eval_max_turns,
        "mask_truncated_answers": args.mask_truncated_answers,
        "chat_template": read_template(args.chat_template),
        "chat_template_kwargs": args.chat_template_kwargs,
        "env_concurrency": args.env_concurrency,
        "env_retries": args.env_retries,
        "dynamic_sampling_retries": args.dynamic_sampling_retries,
        "trajectories": Path(args.output_dir) / "trajectories",
        "record_tokens": args.record_tokens,
        "agent": args.agent_options,
        "train_agents": args.train_agents,
        "partner": args.partner,
        **fork_options(args),
        **oracle_options(args),
        **async_options(args),
    }
