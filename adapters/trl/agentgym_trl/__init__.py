"""Train LLM agents on the suite's environments with TRL.

The only package that imports TRL. `AgentTrainer` is a `GRPOTrainer` for multi-turn episodes, with `AgentConfig` for its
options; `make_rollout_func` also works with an unmodified `trl.GRPOTrainer`, and so does `make_tool_environment`, for
vision models.

    trainer = AgentTrainer(
        "Qwen/Qwen2.5-3B-Instruct",
        "AgentGym/TextCraft-v0",
        args=AgentConfig(output_dir="runs/mine", algorithm="grpo", max_turns="10,20,30", every=100),
        processing_class=tokenizer,
        train_dataset=make_dataset(gym.make("AgentGym/TextCraft-v0").unwrapped),
    )
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agentgym_envs.errors import missing_extra

if TYPE_CHECKING:
    from agentgym_trl.config import AgentConfig
    from agentgym_trl.dataset import make_dataset
    from agentgym_trl.rollout import make_rollout_func
    from agentgym_trl.tool_environment import make_tool_environment
    from agentgym_trl.trainer import AgentTrainer

__all__ = ["AgentConfig", "AgentTrainer", "make_dataset", "make_rollout_func", "make_tool_environment"]

_MODULES = {
    "AgentConfig": "agentgym_trl.config",
    "AgentTrainer": "agentgym_trl.trainer",
    "make_dataset": "agentgym_trl.dataset",
    "make_rollout_func": "agentgym_trl.rollout",
    "make_tool_environment": "agentgym_trl.tool_environment",
}


def check_packages() -> None:
    """Raise MissingExtra if TRL is not installed."""
    if find_spec("trl") is None:
        raise missing_extra("agentgym_trl (training with TRL)", "trl", "trl")


def __getattr__(name: str) -> Any:
    """Import a public name on first use: TRL and torch take seconds to import. Raises MissingExtra without TRL."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_packages()
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
