"""Many environments at once: Gymnasium's vector API, EnvPool's send and recv, and the lanes that rollouts run on."""

from agentgym_envs.vector.lanes import Lane, LanePool, MakeEnv, MakeEnvs
from agentgym_envs.vector.make import make_vec
from agentgym_envs.vector.vector_env import TextVectorEnv

__all__ = ["Lane", "LanePool", "MakeEnv", "MakeEnvs", "TextVectorEnv", "make_vec"]
