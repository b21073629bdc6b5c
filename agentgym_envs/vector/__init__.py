"""Many environments at once: Gymnasium's vector API, EnvPool's send and recv, and the runners that rollouts run on."""

from agentgym_envs.vector.make import make_vec
from agentgym_envs.vector.runner import EnvPool, EnvRunner, MakeEnv, MakeEnvs
from agentgym_envs.vector.vector_env import TextVectorEnv

__all__ = ["EnvPool", "EnvRunner", "MakeEnv", "MakeEnvs", "TextVectorEnv", "make_vec"]
