"""`AgentConfig`: TRL's `GRPOConfig` with what multi-turn episodes, estimators and a critic need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trl import GRPOConfig

from agentgym_envs.errors import UsageError
from agentgym_envs.schedule import parse_schedules
from agentgym_trl.advantages import ESTIMATORS, AdvantageConfig

_LEAST: dict[str, float] = {
    "num_generations": 1,
    "max_completion_length": 1,
    "max_turn_tokens": 1,
    "eval_max_turns": 1,
    "env_concurrency": 1,
    "env_retries": 0,
    "dynamic_sampling_retries": 0,
    "critic_learning_rate": 0,
    "critic_warmup_steps": 0,
    "critic_lr_warmup_steps": 0,
}
CHOICES = {
    "loss_type": ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "importance_sampling_level": ("token", "sequence"),
    "scale_rewards": ("group", "batch", "none"),
}
"""What trl 1.16 knows for its settings that are free text."""
_OUR_CHOICES = {"discount_per": ("turn", "token"), "kl_in": ("loss", "reward")}


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class AgentConfig(GRPOConfig):  # type: ignore[misc]
    """`GRPOConfig` with what a multi-turn episode needs.

    `max_completion_length` is the token budget of a whole trajectory after its prompt, observations included.

    What is too long, by one policy: an answer that reaches `max_turn_tokens` is cut, goes to the environment as it is
    and is trained on (`mask_truncated_answers` leaves its tokens out of the loss, but not its consequences out of the
    return). An episode that runs into the token budget or the limit of turns keeps the score that it has; with a
    critic, the value of the state after the cut is added.
    """

    num_generations: int | None = _option(
        8, "How many episodes a group has: of the same task and seed. Of a team: how many streams that are trained on."
    )
    advantage_estimator: str = _option("grpo", f"How rewards become advantages: {', '.join(ESTIMATORS)}.")
    rounds: str = _option(
        "30",
        "Limit of turns: a number, or growing numbers as in 10,20,30 (ScalingInter-RL); one for each of several "
        "environments as in TextCraft=10,20,30;BabyAI=6,13,20.",
    )
    every: int | None = _option(None, "How many steps each number of --rounds lasts.")
    max_completion_length: int | None = _option(
        8192, "Token budget of a trajectory after its prompt, observations included."
    )
    max_turn_tokens: int = _option(512, "Token budget of one answer.")
    eval_max_turns: int | None = _option(None, "Limit of turns in evaluation; by default that of the step.")
    mask_truncated_answers: bool = _option(False, "Leave the tokens of answers that were cut out of the loss.")
    env_concurrency: int = _option(1024, "How many episodes run at once.")
    env_retries: int = _option(2, "How often an episode that ended in env_error is replayed.")
    dynamic_sampling_retries: int = _option(
        0, "How often groups whose scores are all equal are replaced by new tasks (DAPO's dynamic sampling)."
    )
    gamma: float = _option(1.0, "Discount, in [0, 1].")
    gae_lambda: float = _option(0.95, "Decay of GAE (ppo), in [0, 1].")
    discount_per: str = _option("turn", "Where --gamma and --gae_lambda apply: between turns, or at every token.")
    turn_level_advantage: bool = _option(
        False, "Compare every turn's return-to-go within the group, not the episode's return (grpo, rloo, baseline)."
    )
    step_advantage_weight: float = _option(
        0.0, "Weight of the advantage among turns of a group that began in the same state (GiGPO); 0 is off."
    )
    kl_in: str = _option("loss", "Where the KL term of weight --beta goes: the loss (GRPO), or the reward.")
    bootstrap_cut_episodes: bool = _option(
        True, "ppo: count what the critic expects after an episode that was cut; false: cut episodes are worth no more."
    )
    critic_model: str | None = _option(
        None, "ppo: model of the critic, of the policy's vocabulary; by default a copy of the policy's backbone."
    )
    critic_learning_rate: float = _option(1e-5, "ppo: learning rate of the critic.")
    critic_lr_warmup_steps: int = _option(0, "ppo: steps over which the critic's learning rate grows from 0.")
    critic_warmup_steps: int = _option(0, "ppo: steps at the beginning in which only the critic learns.")
    critic_clip_range: float | None = _option(
        0.2,
        "ppo: how far a value may move from its first estimate before its loss is clipped; None: as far as it goes.",
    )
    train_agents: list[str] | None = field(
        default=None,
        metadata={"help": "Of a team: the agents that are trained; by default all, which share the policy."},
    )
    partner: str | None = _option(
        None, "Of a team: a model that plays the agents that are not trained, as it is; by default the policy does."
    )
    chat_template: str | None = _option(None, "File with a Jinja chat template.")
    record_tokens: bool = _option(
        False, "Keep every token with its mask and log-probability beside the trajectories, for agentgym view."
    )
    logging_steps: float = _option(1, "Log every so many steps.")

    def __post_init__(self) -> None:
        """Check what is ours before TRL checks the rest."""
        self._check_estimator()
        if self.multi_objective_aggregation != "sum_then_normalize":
            raise UsageError("rewards are summed before advantages are made; leave --multi_objective_aggregation alone")
        parse_schedules(self.rounds, self.every)
        for name, least in _LEAST.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise UsageError(f"--{name} must be at least {least}, got {value}")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"--{name} must lie in [0, 1], got {getattr(self, name)}")
        self._init_trl()
        self._check_choices()

    @property
    def credit(self) -> AdvantageConfig:
        """How the estimator gives credit."""
        return AdvantageConfig(
            scale=self.scale_rewards,
            gamma=self.gamma,
            lam=self.gae_lambda,
            discount_per=self.discount_per,  # type: ignore[arg-type]  # checked
            turn_level=self.turn_level_advantage,
            step_weight=self.step_advantage_weight,
        )

    def _check_estimator(self) -> None:
        name = self.advantage_estimator
        if name not in ESTIMATORS:
            raise UsageError(f"there is no advantage estimator {name!r}; choose from {', '.join(ESTIMATORS)}")
        if ESTIMATORS[name].grouped:
            if self.discount_per == "token":
                raise UsageError(f"{name} knows turns only; --discount_per token is for reinforce++ and gae (ppo)")
            if self.num_generations == 1:
                raise UsageError(
                    f"{name} compares the episodes of a group, and a group of 1 has nothing to compare: "
                    "--num_generations must be at least 2"
                )
        elif self.turn_level_advantage or self.step_advantage_weight:
            raise UsageError(
                f"{name} credits every token by what follows it already; --turn_level_advantage and "
                "--step_advantage_weight are for estimators that compare within groups"
            )

    def _init_trl(self) -> None:
        """TRL asks for groups of 2 at least, as GRPO needs them: a group of 1 is hidden from its check."""
        if self.num_generations != 1:
            super().__post_init__()
            return
        self.num_generations = 2
        try:
            super().__post_init__()
        except ValueError as error:
            if "divisible by num_generations" not in str(error):
                raise
            raise UsageError(
                f"--num_generations 1 needs an even generation batch, got {self.generation_batch_size}"
            ) from None
        finally:
            self.num_generations = 1

    def _check_choices(self) -> None:
        for name, known in (CHOICES | _OUR_CHOICES).items():  # TRL finds out only after the first episodes
            if getattr(self, name) not in known:
                raise UsageError(f"there is no {name} {getattr(self, name)!r}; choose from {', '.join(known)}")
        if self.kl_in == "reward" and not self.beta:
            raise UsageError("--kl_in reward needs the weight of the KL term: --beta 0.01, say")
        if self.mask_truncated_completions:
            raise UsageError(
                "--mask_truncated_completions would leave out whole episodes, their observations with them; "
                "--mask_truncated_answers leaves out answers that were cut"
            )
