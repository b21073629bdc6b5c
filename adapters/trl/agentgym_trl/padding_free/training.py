"""Decide for a trainer whether its loss leaves padding out."""

from __future__ import annotations

import logging
from typing import Any

from agentgym_trl.distributed import has_sharded_weights
from agentgym_trl.padding_free.forward import PaddingFree
from agentgym_trl.padding_free.support import enable

_log = logging.getLogger(__name__)
_logged: set[str] = set()


def enable_for(trainer: Any) -> tuple[PaddingFree | None, str]:
    """Prepare the models of a trainer for packed rows.

    Returns None and the reason if they are trained on padded rows; an unexpected reason is logged once.
    """
    if not trainer.args.padding_free:
        return None, "padding_free is off"
    reason = _by_settings(trainer)
    found: PaddingFree | None = None
    models = [model for model in (trainer.model, trainer.ref_model) if model is not None]
    for model in models if not reason else []:
        found, reason = enable(trainer.accelerator.unwrap_model(model))
        if reason:
            break
    if reason and reason not in _logged:
        _log.warning("the loss reads padded rows: %s", reason)
        _logged.add(reason)
    return (None if reason else found), reason


def enable_for_critic(trainer: Any) -> None:
    """Prepare the critic, if the trainer has one and uses packed rows for its policy."""
    if trainer.learner is not None and trainer.padding_free is not None:
        critic = trainer.learner.critic
        critic.padding_free, _ = enable(critic.backbone)


def may_exchange_rows(trainer: Any) -> bool:
    """True if the loss of a row does not depend on the other rows of its micro-batch, except by a constant factor."""
    together = trainer.loss_type == "bnpo" or trainer._entropy_bonus_enabled or trainer.top_entropy_quantile < 1.0
    return not together


def _by_settings(trainer: Any) -> str:
    if has_sharded_weights(trainer):
        return "the weights are sharded (FSDP, ZeRO-3)"
    if trainer.args.torch_compile:
        return "the model is compiled, and every packed row has another length"
    if trainer.aux_loss_enabled:
        return "the balance of the experts is computed over padded rows"
    return ""
