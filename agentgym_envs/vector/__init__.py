"""Many environments at once: Gymnasium's vector API with `send` and `recv`, and the runners of rollouts."""

from agentgym_envs.vector.make import make_vec
from agentgym_envs.vector.pool import MakeEnvs, RunnerPool
from agentgym_envs.vector.runner import EnvRunner, MakeEnv
from agentgym_envs.vector.vector_env import TextVectorEnv

__all__ = ["EnvRunner", "MakeEnv", "MakeEnvs", "RunnerPool", "TextVectorEnv", "make_vec"]
