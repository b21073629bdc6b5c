"""Options of the online algorithms that ask the oracle: what to imitate, and rewards of turns.

This module imports neither torch nor TRL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_trl.algorithms import ALGORITHMS


@dataclass(frozen=True, slots=True)
class OracleOptions:
    """Labels of the oracle for the states that the policy visits in training.

    seconds: those that the oracle may take in a rollout; None for no limit.
    imitate: train on the labels, not on the policy's answers.
    """

    seconds: float | None = None
    imitate: bool = False


def oracle_options(args: Any) -> dict[str, Any]:
    """The arguments of `make_rollout_func` for an `AgentConfig`."""
    return {"oracle": OracleOptions(args.oracle_seconds, _imitates(args))} if _imitates(args) else {}


def check_oracle(args: Any) -> None:
    """Raise UsageError if the settings of an `AgentConfig` exclude each other."""
    if args.oracle_seconds is not None and not args.oracle_seconds > 0:
        raise UsageError(f"--oracle-seconds must be above 0, got {args.oracle_seconds}; leave it out for no limit")
    if not _imitates(args):
        if args.oracle_seconds is not None:
            raise UsageError("--oracle-seconds is for algorithms that ask the oracle, such as distill; leave it out")
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


def _imitates(args: Any) -> bool:
    return ALGORITHMS[args.algorithm].imitates
