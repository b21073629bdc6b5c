"""`RolloutOptions`: how a rollout plays and records its episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentgym_envs.rollout import Agent
from agentgym_trl.credit_methods import TreeShape, Vine
from agentgym_trl.oracle_options import OracleOptions


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """Options of a rollout.

    eval_max_turns: the max turns in evaluation; by default that of the training step.
    env_concurrency: number of episodes that run at the same time.
    env_retries: number of retries of an episode that ended in `env_error`.
    dynamic_sampling_retries: number of times that zero-variance groups are replaced by other tasks (DAPO's dynamic
        sampling).
    mask_truncated_answers: leave truncated answers out of the loss.
    trajectories: a directory for `step-N.jsonl` files.
    record_tokens: also write `step-N.tokens.jsonl` files, with every token, its mask (1 for a sampled token, also where
        `mask_truncated_answers` leaves it out of the loss), and the log-probability from the engine.
    agent: how the model reasons in an episode, and the context that it sees; by default it answers the whole
        conversation.
    train_agents: the members of a team that are trained; all by default.
    partner: a frozen model (a directory, or a name on the hub) that plays the other members; by default the policy
        plays them.
    vine: values of states from continuations, in training.
    oracle: labels of the oracle, in training; by default there are none.
    tree: the shape of the trees in which episodes share their beginnings, in training; by default they share none.
    """

    eval_max_turns: int | None = None
    env_concurrency: int = 1024
    env_retries: int = 2
    dynamic_sampling_retries: int = 0
    mask_truncated_answers: bool = False
    trajectories: Path | None = None
    record_tokens: bool = False
    agent: Agent | None = None
    train_agents: Sequence[str] | None = None
    partner: str | None = None
    vine: Vine | None = None
    tree: TreeShape | None = None
    oracle: OracleOptions | None = None
