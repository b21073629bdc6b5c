"""`AgentConfig`: TRL's `GRPOConfig` with options for multi-turn episodes, estimators and a critic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers.utils import is_torch_bf16_gpu_available
from trl import GRPOConfig

from agentgym_envs.errors import UsageError
from agentgym_envs.registration import DEFAULT_MAX_TURNS, default_max_turns
from agentgym_envs.rollout import AGENTS, Agent, make_agent
from agentgym_envs.schedule import parse_schedules
from agentgym_trl.advantages import AdvantageConfig
from agentgym_trl.algorithms import online_algorithms
from agentgym_trl.asynchronous.options import check_async, set_async_defaults
from agentgym_trl.credit_methods import CREDIT_METHODS, check_credit
from agentgym_trl.oracle_options import PROCESS_REWARDS, check_oracle
from agentgym_trl.samplers import parse_sampler, sampler_forms

_MINIMUM: dict[str, float] = {
    "num_generations": 1,
    "max_completion_length": 1,
    "max_turn_tokens": 1,
    "eval_every": 1,
    "eval_tasks": 1,
    "eval_max_turns": 1,
    "reset_adapter_every": 1,
    "env_concurrency": 1,
    "env_retries": 0,
    "dynamic_sampling_retries": 0,
    "max_staleness": 0,
    "async_oversample": 0,
    "critic_learning_rate": 0,
    "critic_warmup_steps": 0,
    "critic_lr_warmup_steps": 0,
    "branches": 1,
}
CHOICES = {
    "loss_type": ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "importance_sampling_level": ("token", "sequence"),
    "scale_rewards": ("group", "batch", "none"),
    "vllm_importance_sampling_mode": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
}
"""The values that trl 1.16 accepts for its settings of type str."""
AVERAGES = ("token", "turn", "episode")
"""The values of `--loss-average`."""
CISPO_MAX_WEIGHT = 5.0
"""The largest importance weight of `--loss_type cispo`. Source: ScaleRL, arXiv 2510.13786 (CISPO: arXiv 2506.13585)."""
_OUR_CHOICES = {"discount_per": ("turn", "token"), "kl_in": ("loss", "reward")}


def flag(name: str) -> str:
    """The spelling of a field on the command line: underscores in TRL's own fields, hyphens in ours."""
    return f"--{name}" if name in GRPOConfig.__dataclass_fields__ else "--" + name.replace("_", "-")


def default_schedule(env_ids: Sequence[str]) -> str:
    """The value of `max_turns` with the default turn limit of each environment."""
    limits = {env_id: default_max_turns(env_id) for env_id in env_ids} or {"": DEFAULT_MAX_TURNS}
    if len(set(limits.values())) == 1:
        return str(next(iter(limits.values())))
    return ";".join(f"{env_id}={limit}" for env_id, limit in limits.items())


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class AgentConfig(GRPOConfig):  # type: ignore[misc]
    """`GRPOConfig` with options for multi-turn episodes, estimators and a critic.

    `max_completion_length` is the token budget of a whole trajectory after its prompt, observations included.

    An answer that reaches `max_turn_tokens` is truncated. It goes to the environment as it is, and is trained on;
    `mask_truncated_answers` leaves its tokens out of the loss. An episode that reaches the token budget or the turn
    limit is truncated and keeps its score. With a critic, the value of its last state is added, unless
    `bootstrap_truncated_episodes` is off.
    """

    num_generations: int | None = _option(
        8, "Episodes per group (same task and seed). With teams: trained trajectories per group, one per agent."
    )
    algorithm: str = _option("grpo", f"The algorithm: {', '.join(online_algorithms())}.")
    max_turns: str | None = _option(
        None,
        "Max turns of an episode, by default those of the environment: a number, or a turn-limit curriculum as in "
        "10,20,30 (ScalingInter-RL); with several environments, one for each as in TextCraft=10,20,30;BabyAI=6,13,20.",
    )
    every: int | None = _option(None, "Training steps that each number of --max-turns lasts.")
    max_completion_length: int | None = _option(
        8192, "Token budget of a trajectory after its prompt, observations included."
    )
    max_turn_tokens: int = _option(512, "Token budget of one answer.")
    eval_every: int | None = _option(
        None, "Training steps between two evaluations on held-out tasks; none by default. Also before the first step."
    )
    eval_tasks: int = _option(100, "Held-out tasks of --eval-every, each played once with the sampling of training.")
    eval_split: str = _option("validation", "Split of the held-out tasks.")
    eval_max_turns: int | None = _option(None, "Max turns in evaluation; by default that of the training step.")
    keep_best: bool = _option(False, "Keep the model with the highest held-out success in OUT/best.")
    stop_on_collapse: bool = _option(
        False,
        "Stop when the mean score of ten steps, or the interval of held-out success, falls below half of its best.",
    )
    loss_average: str | None = _option(
        None,
        "Unit of the loss's mean, for --loss_type dapo and cispo: token (the default), turn or episode, whatever its "
        "number of tokens and contexts.",
    )
    mask_truncated_answers: bool = _option(False, "Leave the tokens of truncated answers out of the loss.")
    reuse_kv_cache: bool = _option(
        True, "Without vLLM, keep the keys and values of an episode between its turns, and read only what is new."
    )
    padding_free: bool = _option(
        True,
        "Compute the loss on rows laid end to end, without padding, and read the prompt of a group once. Models that "
        "cannot are trained on padded rows.",
    )
    env_concurrency: int = _option(1024, "Episodes that run at the same time.")
    env_retries: int = _option(2, "Retries of an episode that ended in env_error.")
    dynamic_sampling_retries: int = _option(
        0, "Times that groups whose scores are all equal are replaced by new tasks (DAPO's dynamic sampling)."
    )
    sampler: str = _option(
        "uniform",
        f"How the tasks of a rollout are chosen: {sampler_forms()}. All but uniform follow the tasks' success rates.",
    )
    gamma: float = _option(1.0, "Discount, in [0, 1].")
    gae_lambda: float = _option(0.95, "Decay of GAE (ppo), in [0, 1].")
    discount_per: str = _option("turn", "Where --gamma and --gae-lambda apply: between turns, or at every token.")
    turn_level_advantage: bool = _option(
        False,
        "Compare the return-to-go of each turn within the group, not the episode's return (grouped algorithms).",
    )
    step_advantage_weight: float = _option(
        0.0, "Weight of the advantage among turns of a group that began in the same state (GiGPO); 0 is off."
    )
    credit: str = _option(
        "episode",
        "How an episode's return becomes the advantages of its turns: "
        + "; ".join(f"{name}, {method.summary}" for name, method in CREDIT_METHODS.items())
        + ".",
    )
    branches: int | None = _option(None, "--credit vine: continuations per forked state (default 4).")
    at: str | None = _option(
        None,
        "--credit vine: the states to fork: before every turn (every-turn, the default), before about N random turns "
        "(random:N), or after about N answers with the highest mean surprisal, -log p (surprising:N).",
    )
    tree: str | None = _option(
        None,
        "Play the episodes of a group as trees with common beginnings: WxD for W branches at each of D levels "
        "(Tree-GRPO).",
    )
    kl_in: str = _option("loss", "Where the KL term of weight --beta is added: to the loss (GRPO), or to the reward.")
    kl_clip: float | None = _option(
        None,
        "Largest KL term of a token, in nats; by default there is no bound, and single tokens may outweigh all others.",
    )
    reset_adapter_every: int | None = _option(
        None,
        "LoRA: steps after which the adapter is merged into the model and starts again, and the reference with it. The "
        "run then saves a whole model.",
    )
    bootstrap_truncated_episodes: bool = _option(
        True, "ppo: add the critic's value of the last state to a truncated episode; false: treat it as ended."
    )
    epsilon_high: float | None = _option(
        None,
        "Upper clip range of the importance ratio, by default --epsilon; with --loss_type cispo, the largest weight "
        "(default 5).",
    )
    vllm_importance_sampling_mode: str = _option(
        "token_truncate",
        "How weights correct for the difference between vLLM and the trained model: token_truncate, token_mask, "
        "sequence_truncate or sequence_mask. TRL's default, sequence_mask, discards most of a long episode.",
    )
    vllm_importance_sampling_clip_max: float | None = _option(
        2.0, "Largest weight of --vllm_importance_sampling_mode; larger ones are truncated or masked."
    )
    critic_model: str | None = _option(
        None, "ppo: model of the critic, with the policy's vocabulary; by default a copy of the policy's backbone."
    )
    critic_learning_rate: float = _option(1e-5, "ppo: learning rate of the critic.")
    critic_lr_warmup_steps: int = _option(0, "ppo: steps over which the critic's learning rate rises from 0.")
    critic_warmup_steps: int = _option(0, "ppo: first steps of training, in which only the critic learns.")
    critic_clip_range: float | None = _option(
        0.2,
        "ppo: clip range of a value around its estimate at the rollout, in the critic's loss; None: no clipping.",
    )
    process_reward: str | None = _option(
        None,
        "Rewards of turns from the oracle, which sum to 0 in an episode: "
        + "; ".join(f"{name}, for {text}" for name, text in PROCESS_REWARDS.items())
        + ".",
    )
    process_reward_weight: float = _option(1.0, "Weight of --process-reward: its sum up to the goal.")
    oracle_seconds: float | None = _option(
        None,
        "distill, --process-reward: seconds of a rollout that the oracle may take; states after them have no label.",
    )
    agent: str | None = _option(
        None,
        f"How the model reasons: {', '.join(AGENTS)}; by default it answers with an action, in the environment's form.",
    )
    context: str = _option(
        "full", "What an --agent sees: the whole episode (full), last:K turns, or summarise:K, a summary and K turns."
    )
    attempts: int = _option(3, "--agent reflect: largest number of attempts at a task.")
    train_agents: list[str] | None = field(
        default=None,
        metadata={"help": "With teams: the agents to train; by default all of them, with one shared policy."},
    )
    partner: str | None = _option(
        None, "With teams: a frozen model that plays the untrained agents; by default the policy plays them."
    )
    asynchronous: bool = _option(
        False,
        "Let episodes continue while the trainer learns: with a vLLM server, or in a process with a copy of the model.",
    )
    max_staleness: int | None = _option(
        None,
        "--async: largest number of versions, one per rollout, between the policy that sampled a token and the one "
        "that is trained on it (default 1); 0: the batches of synchronous training.",
    )
    async_oversample: int | None = _option(
        None,
        "--async: further groups in flight (default 0). The slowest groups are then played again if they miss "
        "--max-staleness; without, a batch waits for them.",
    )
    chat_template: str | None = _option(None, "File with a Jinja chat template.")
    keep_thoughts: bool = _option(
        False,
        "Replace a template that drops the thoughts of earlier answers by TRL's template for training, so that an "
        "episode has one context; by default a context begins wherever the template rewrites the conversation.",
    )
    record_tokens: bool = _option(
        False, "Record every token with its mask and log-probability next to the trajectories, for agentgym view."
    )
    bf16: bool | None = _option(None, "Train in bfloat16; by default where the machine supports it.")
    logging_steps: float = _option(1, "Steps between two lines of the log.")

    def __post_init__(self) -> None:
        """Check our own fields before TRL checks the rest."""
        self._check_algorithm()
        if self.multi_objective_aggregation != "sum_then_normalize":
            raise UsageError(
                "rewards are summed before advantages are computed; leave out --multi_objective_aggregation"
            )
        if self.max_turns is not None:
            parse_schedules(self.max_turns, self.every)
        parse_sampler(self.sampler)
        _ = self.agent_options
        for name, minimum in _MINIMUM.items():
            if (value := getattr(self, name)) is not None and value < minimum:
                raise UsageError(f"{flag(name)} must be at least {minimum}, got {value}")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{flag(name)} must lie in [0, 1], got {getattr(self, name)}")
        if self.bf16 is None and (self.use_cpu or not is_torch_bf16_gpu_available()):
            self.bf16 = False  # else TRL turns it on, and transformers refuses it on this machine
        if self.loss_type == "cispo" and self.epsilon_high is None:
            self.epsilon_high = CISPO_MAX_WEIGHT  # else TRL takes --epsilon, 0.2: every weight would be clamped to 0.2
        self._init_trl()
        self._check_choices()
        check_async(self)
        check_oracle(self)
        check_credit(self)
        set_async_defaults(self)

    @property
    def advantage_config(self) -> AdvantageConfig:
        """The options of the advantage estimator."""
        return AdvantageConfig(
            scale=self.scale_rewards,
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            discount_per=self.discount_per,  # type: ignore[arg-type]  # checked
            turn_level=self.turn_level_advantage,
            step_weight=self.step_advantage_weight,
        )

    @property
    def agent_options(self) -> Agent | None:
        """The agent that plays the episodes; None if the model answers without one. Raises UsageError."""
        if self.agent is not None:
            return make_agent(self.agent, self.context, self.attempts)
        if self.context != "full":
            raise UsageError(f"--context {self.context} needs an agent, for example --agent act")
        return None

    def _check_algorithm(self) -> None:
        name, known = self.algorithm, online_algorithms()
        if name not in known:
            raise UsageError(f"there is no online algorithm {name!r}; choose from {', '.join(known)}")
        if known[name].grouped:
            if self.discount_per == "token":
                raise UsageError(f"{name} discounts per turn only; --discount-per token is for reinforce++ and ppo")
            if self.num_generations == 1:
                raise UsageError(
                    f"{name} compares the episodes of a group, and a group of 1 has none to compare: "
                    "--num_generations must be at least 2"
                )
        elif self.turn_level_advantage or self.step_advantage_weight:
            raise UsageError(
                f"{name} uses the return from each token on; --turn-level-advantage and --step-advantage-weight are "
                "for algorithms that compare within groups"
            )

    def _check_average(self) -> None:
        if self.loss_average is None:
            return
        if self.loss_average not in AVERAGES:
            raise UsageError(f"there is no loss_average {self.loss_average!r}; choose from {', '.join(AVERAGES)}")
        if self.loss_type not in ("dapo", "cispo") or self.importance_sampling_level != "token":
            raise UsageError(
                "--loss-average weighs the tokens of --loss_type dapo or cispo with --importance_sampling_level token; "
                f"got {self.loss_type} and {self.importance_sampling_level}"
            )

    def _init_trl(self) -> None:
        """Run TRL's checks with a group of 2 if it is 1: TRL requires 2, which only grouped algorithms need."""
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
        for name, known in (CHOICES | _OUR_CHOICES).items():  # TRL would raise only after the first episodes
            if getattr(self, name) not in known:
                raise UsageError(f"there is no {name} {getattr(self, name)!r}; choose from {', '.join(known)}")
        if self.kl_clip is not None and not self.kl_clip > 0:
            raise UsageError(f"--kl-clip must be above 0, got {self.kl_clip}")
        if self.kl_clip is not None and not self.beta:
            raise UsageError("--kl-clip bounds the KL term, which has no weight; set for example --beta 0.01")
        self._check_average()
        if self.keep_best and self.eval_every is None:
            raise UsageError("--keep-best needs evaluations on held-out tasks, for example --eval-every 50")
        if self.kl_in == "reward" and not self.beta:
            raise UsageError("--kl-in reward needs the weight of the KL term, for example --beta 0.01")
        if self.mask_truncated_completions:
            raise UsageError(
                "--mask_truncated_completions would leave whole episodes out of the loss; use "
                "--mask-truncated-answers, which leaves out truncated answers only"
            )
