"""The options of asynchronous training, and the end of a run."""

from __future__ import annotations

from functools import partial
from typing import Any

from transformers import TrainerCallback

from agentgym_trl.asynchronous.settings import AsyncSettings


def async_options(args: Any) -> dict[str, Any]:
    """The arguments of `make_rollout_func` for an `AgentConfig`."""
    if not args.asynchronous:
        return {}
    from agentgym_trl.asynchronous.rollout import AsyncRollout

    staleness = 1 if args.max_staleness is None else args.max_staleness
    return {"make": partial(AsyncRollout, settings=AsyncSettings(staleness, args.async_oversample or 0))}


class CloseRollout(TrainerCallback):  # type: ignore[misc]
    """Ends the episodes that are still running at the end of training."""

    def __init__(self, rollout: Any) -> None:
        self._rollout = rollout

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the rollout."""
        self._rollout.close()
