"""Options of the online algorithms that ask the oracle: what to imitate, and rewards of turns.

This module imports neither torch nor TRL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from agentgym_envs.errors import UsageError
from agentgym_trl.algorithms import ALGORITHMS

ProcessRewardKind = Literal["oracle-agreement", "regret"]
PROCESS_REWARDS: dict[ProcessRewardKind, str] = {
    "oracle-agreement": "turns with the oracle's command",
    "regret": "turns closer to the goal",
}
"""The values of `--process-reward`, and what they pay for."""


@dataclass(frozen=True, slots=True)
class ProcessReward:
    """The process reward of turns: its kind, its weight (the sum of a perfect episode), and the discount per turn."""

    kind: ProcessRewardKind
    weight: float = 1.0
    gamma: float = 1.0


@dataclass(frozen=True, slots=True)
class OracleOptions:
    """Labels of the oracle for the states that the policy visits in training.

    seconds: those that the oracle may take in a rollout; None for no limit.
    imitate: train on the labels, not on the policy's answers.
    process_reward: the process reward of turns, if they have one.
    """

    seconds: float | None = None
    imitate: bool = False
    process_reward: ProcessReward | None = None


def oracle_options(args: Any) -> dict[str, Any]:
    """The arguments of `make_rollout_func` for an `AgentConfig`."""
    reward = None
    if args.process_reward is not None:
        reward = ProcessReward(cast(ProcessRewardKind, args.process_reward), args.process_reward_weight, args.gamma)
    if reward is None and not _imitates(args):
        return {}
    return {"oracle": OracleOptions(args.oracle_seconds, _imitates(args), reward)}


def check_oracle(args: Any) -> None:
    """Raise UsageError if the settings of an `AgentConfig` exclude each other."""
    if args.oracle_seconds is not None and not args.oracle_seconds > 0:
        raise UsageError(f"--oracle-seconds must be above 0, got {args.oracle_seconds}; leave it out for no limit")
    if args.process_reward is not None:
        _check_process_reward(args)
    elif args.oracle_seconds is not None and not _imitates(args):
        raise UsageError("--oracle-seconds is for distill and --process-reward, which ask the oracle; leave it out")
    if not _imitates(args):
        return
    others = {
        "--async": args.asynchronous,
        "--agent": args.agent is not None,
        "--mask-truncated-answers": args.mask_truncated_answers,
        "--kl-in reward": args.kl_in == "reward",
    }
    if used := [option for option, value in others.items() if value]:
        raise UsageError(f"{args.algorithm} trains on the oracle's answers; leave out {', '.join(used)}")
    args.vllm_importance_sampling_correction = False  # the sampler did not sample the oracle's answers


def _check_process_reward(args: Any) -> None:
    if args.process_reward not in PROCESS_REWARDS:
        raise UsageError(
            f"there is no process reward {args.process_reward!r}; choose from {', '.join(PROCESS_REWARDS)}"
        )
    if not args.process_reward_weight > 0:
        raise UsageError(f"--process-reward-weight must be above 0, got {args.process_reward_weight}")
    algorithm = ALGORITHMS[args.algorithm]
    if algorithm.imitates or args.credit != "episode":
        raise UsageError("--process-reward is for algorithms that learn from rewards, without --credit and --tree")
    if algorithm.grouped and not args.turn_level_advantage:
        raise UsageError(
            f"the process rewards of an episode sum to 0, so {args.algorithm} does not see them; add "
            "--turn-level-advantage true, or choose reinforce++ or ppo"
        )
    if algorithm.critic and args.bootstrap_truncated_episodes:
        raise UsageError(
            f"--process-reward treats a truncated episode as ended; with {args.algorithm} also give "
            "--bootstrap-truncated-episodes false"
        )
    others = {
        "--async": args.asynchronous,
        "--agent": args.agent is not None,
        "--discount-per token": args.discount_per == "token",
    }
    if used := [option for option, value in others.items() if value]:
        raise UsageError(f"--process-reward cannot be combined with {', '.join(used)}; leave one of them out")


def _imitates(args: Any) -> bool:
    return ALGORITHMS[args.algorithm].imitates
