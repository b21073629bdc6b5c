"""The number of turns to the goal, by trying every command in every state of an environment."""

from collections.abc import Sequence

from agentgym_envs.core import TextEnv


def brute_force_turns(env: TextEnv, commands: Sequence[str] | None, most_turns: int) -> int | None:
    """Search breadth-first from the current state, to which the environment returns; None beyond `most_turns`.

    Without `commands`, every state offers its own as `info["available_actions"]`.
    """
    start = env.snapshot()
    layer, known = [start], set[str]()
    try:
        for turns in range(1, most_turns + 1):
            following = []
            for state in layer:
                env.restore(state)
                for command in commands or env._info({})["available_actions"]:
                    env.restore(state)
                    _, _, terminated, truncated, info = env.step(command)
                    if terminated and info["success"]:
                        return turns
                    if not terminated and not truncated and info["state_key"] not in known:
                        known.add(info["state_key"])
                        following.append(env.snapshot())
            layer = following
        return None
    finally:
        env.restore(start)
