"""OpenEnv's protocol for the clients of `openenv` 0.10 and `openenv-core` 0.3.

Source: OpenEnv (huggingface/OpenEnv, formerly meta-pytorch/OpenEnv), its client and its wire types.
"""

from agentgym_envs.http.dialects.openenv.routes import openenv_routes

__all__ = ["openenv_routes"]
