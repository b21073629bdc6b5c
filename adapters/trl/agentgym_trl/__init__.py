"""Train LLM agents on the suite's environments with TRL.

The only package that imports TRL. `AgentTrainer` is a `GRPOTrainer` for multi-turn episodes; `make_rollout_func` also
works with an unmodified `trl.GRPOTrainer`.
"""

from importlib.util import find_spec

from agentgym_envs.errors import missing_extra

if find_spec("trl") is None:
    raise missing_extra("agentgym_trl (training with TRL)", "trl", "trl")
