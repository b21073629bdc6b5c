"""`AgentTrainer`: TRL's `GRPOTrainer` over the episodes of an environment, with a choice of advantage estimators.

Three methods of trl 1.16 are overridden (pinned; a contract test fails when they move): `_calculate_rewards`, to keep
the rewards of all processes; `_generate_and_score_completions`, to put the estimator's advantages in place; and
`_prepare_inputs`, to trim padding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from trl import GRPOConfig, GRPOTrainer

from agentgym_envs.errors import UsageError
from agentgym_envs.schedule import parse_schedule
from agentgym_trl.advantages import ESTIMATORS, Batch
from agentgym_trl.models import read_template
from agentgym_trl.padding import trim_padding
from agentgym_trl.rollout import Rollout, make_rollout_func

_LEAST = {
    "max_completion_length": 1,
    "max_turn_tokens": 1,
    "eval_max_turns": 1,
    "env_concurrency": 1,
    "env_retries": 0,
}
CHOICES = {
    "loss_type": ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "importance_sampling_level": ("token", "sequence"),
    "scale_rewards": ("group", "batch", "none"),
}
"""What trl 1.16 knows for its settings that are free text."""


@dataclass
class AgentConfig(GRPOConfig):  # type: ignore[misc]
    """`GRPOConfig` with what a multi-turn episode needs.

    `max_completion_length` is the token budget of a whole trajectory after its prompt, observations included.
    """

    advantage_estimator: str = field(
        default="grpo", metadata={"help": f"How rewards become advantages: {', '.join(ESTIMATORS)}."}
    )
    rounds: str = field(
        default="30",
        metadata={"help": "Limit of turns: a number, or growing numbers as in 10,20,30 (ScalingInter-RL)."},
    )
    every: int | None = field(default=None, metadata={"help": "How many steps each number of --rounds lasts."})
    max_completion_length: int | None = field(
        default=8192, metadata={"help": "Token budget of a trajectory after its prompt, observations included."}
    )
    max_turn_tokens: int = field(default=512, metadata={"help": "Token budget of one answer."})
    eval_max_turns: int | None = field(
        default=None, metadata={"help": "Limit of turns in evaluation; by default that of the step."}
    )
    env_concurrency: int = field(default=1024, metadata={"help": "How many episodes run at once."})
    env_retries: int = field(default=2, metadata={"help": "How often an episode that ended in env_error is replayed."})
    chat_template: str | None = field(default=None, metadata={"help": "File with a Jinja chat template."})
    logging_steps: float = field(default=1, metadata={"help": "Log every so many steps."})

    def __post_init__(self) -> None:
        """Check what is ours before TRL checks the rest."""
        if self.advantage_estimator not in ESTIMATORS:
            raise UsageError(
                f"there is no advantage estimator {self.advantage_estimator!r}; choose from {', '.join(ESTIMATORS)}"
            )
        if self.multi_objective_aggregation != "sum_then_normalize":
            raise UsageError("rewards are summed before advantages are made; leave --multi_objective_aggregation alone")
        parse_schedule(self.rounds, self.every)
        for name, least in _LEAST.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise UsageError(f"--{name} must be at least {least}, got {value}")
        super().__post_init__()
        for name, known in CHOICES.items():  # TRL finds out only when the first episodes were played
            if getattr(self, name) not in known:
                raise UsageError(f"there is no {name} {getattr(self, name)!r}; choose from {', '.join(known)}")


class AgentTrainer(GRPOTrainer):  # type: ignore[misc]
    """Trains a model on the episodes of an environment."""

    _tag_names = ["trl", "grpo", "agentgym"]  # noqa: RUF012 (TRL's name and type)

    def __init__(
        self,
        model: Any,
        env: str | Callable[[], gym.Env[str, str]],
        *,
        args: AgentConfig,
        processing_class: Any,
        env_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """`env` and `env_kwargs` as for `make_rollout_func`; everything else as for `GRPOTrainer`.

        `train_dataset` comes from `make_dataset`. Further `reward_funcs` are added to the episode's score.
        Trajectories go to `args.output_dir/trajectories`.
        """
        self.rollout: Rollout = make_rollout_func(
            env,
            processing_class,
            env_kwargs=env_kwargs,
            schedule=parse_schedule(args.rounds, args.every),
            max_tokens=args.max_completion_length or 8192,
            max_turn_tokens=args.max_turn_tokens,
            eval_max_turns=args.eval_max_turns,
            chat_template=read_template(args.chat_template),
            chat_template_kwargs=args.chat_template_kwargs,
            concurrency=args.env_concurrency,
            retries=args.env_retries,
            trajectories=Path(args.output_dir) / "trajectories",
        )
        more = kwargs.pop("reward_funcs", [])
        functions = [self.rollout.reward, *(more if isinstance(more, list) else [more])]
        super().__init__(
            model, functions, args=args, processing_class=processing_class, rollout_func=self.rollout, **kwargs
        )
        self._rewards_per_function = torch.empty(0)

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Keep the rewards (B of all processes, number of functions); NaN where a function gave none."""
        self._rewards_per_function = super()._calculate_rewards(*args, **kwargs)
        return self._rewards_per_function

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """As TRL's, with the advantages of the chosen estimator."""
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        training = self.model.training
        batch = Batch(
            returns=self._returns(),
            group_size=self.num_generations if training else self.num_generations_eval,
            scale=self.scale_rewards,
        )
        advantages = ESTIMATORS[self.args.advantage_estimator](batch)
        first = self.accelerator.process_index * len(inputs)
        output["advantages"] = advantages[first : first + len(inputs)]
        return output

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        """As TRL's, without columns that only other micro-batches need."""
        return trim_padding(super()._prepare_inputs(generation_batch))

    def _returns(self) -> torch.Tensor:
        """(B of all processes,) weighted sum of the rewards; NaN where the episode itself has no score."""
        rewards = self._rewards_per_function
        returns: torch.Tensor = (rewards * self.reward_weights.to(rewards.device)).nansum(1)
        returns[rewards[:, 0].isnan()] = torch.nan
        return returns
