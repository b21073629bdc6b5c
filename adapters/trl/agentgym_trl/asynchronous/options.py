"""The options of asynchronous training, and the end of a run."""

from __future__ import annotations

from functools import partial
from typing import Any

from transformers import TrainerCallback

from agentgym_envs.errors import UsageError
from agentgym_trl.asynchronous.settings import AsyncSettings

MAX_STALE_KL = 0.05
"""Default of --off_policy_mask_threshold with --async, in nats per token; chosen on pilot seeds of the quick start."""


def async_options(args: Any) -> dict[str, Any]:
    """The arguments of `make_rollout_func` for an `AgentConfig`."""
    if not args.asynchronous:
        return {}
    from agentgym_trl.asynchronous.rollout import AsyncRollout

    settings = AsyncSettings(args.max_staleness, args.async_oversample or 0)
    return {"make": partial(AsyncRollout, settings=settings)}


def check_async(args: Any) -> None:
    """Raise UsageError if the settings of an `AgentConfig` exclude each other."""
    if not args.asynchronous:
        for name, option in (("max_staleness", "--max-staleness"), ("async_oversample", "--async-oversample")):
            if getattr(args, name) is not None:
                raise UsageError(f"{option} is for asynchronous training; add --async, or leave it out")
        return
    if args.use_vllm and args.vllm_mode != "server":
        raise UsageError(
            "--async samples while the model is trained, and vLLM in the training processes (--vllm_mode colocate) "
            "cannot get new weights meanwhile; use --vllm_mode server, or no vLLM: a second process then samples"
        )
    if args.world_size > 1:
        raise UsageError(
            f"--async trains in one process, and there are {args.world_size}; start one, or leave out --async"
        )
    if args.dynamic_sampling_retries:
        raise UsageError("--dynamic-sampling-retries waits for whole batches; leave it out, or leave out --async")


def set_async_defaults(args: Any) -> None:
    """Fill in the options of an `AgentConfig` that have another default in asynchronous training.

    Without a limit on how far they are from the policy, failed episodes of older versions make runs collapse.
    """
    if not args.asynchronous:
        return
    if args.max_staleness is None:
        args.max_staleness = 1
    if args.max_staleness and args.off_policy_mask_threshold is None:
        args.off_policy_mask_threshold = MAX_STALE_KL


class CloseRollout(TrainerCallback):  # type: ignore[misc]
    """Ends the episodes that are still running at the end of training."""

    def __init__(self, rollout: Any) -> None:
        self._rollout = rollout

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the rollout."""
        self._rollout.close()
