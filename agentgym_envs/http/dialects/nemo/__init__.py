"""NeMo-Gym's Gymnasium protocol, for its `gymnasium_agent` (nemo-gym 0.7).

Source: NeMo-Gym (NVIDIA-NeMo/Gym), its resources server `gymnasium` and its agent `gymnasium_agent`.
"""

from agentgym_envs.http.dialects.nemo.routes import nemo_routes

__all__ = ["nemo_routes"]
