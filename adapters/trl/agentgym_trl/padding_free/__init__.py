"""Forward passes over rows that lie end to end, without padding, and with the common prompt of a group read once."""

from agentgym_trl.padding_free.forward import PaddingFree, model_inputs
from agentgym_trl.padding_free.neighbours import group_prompts
from agentgym_trl.padding_free.rows import PackedRows, pack

__all__ = ["PackedRows", "PaddingFree", "group_prompts", "model_inputs", "pack"]
