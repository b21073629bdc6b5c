"""Episodes for the tests of the panels, with facts about the environment in each state."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_envs.viewer.panels import panels_of
from agentgym_envs.wrappers import make_trajectory

Look = Callable[[Any], Any]
LOOK = (
    "This room is called the kitchen. In it, you see: \n\tthe agent\n\ta substance called air\n\ta lighter\n"
    "\ta sink, which is turned off. In the sink is: nothing.\nYou also see:\n"
    "\tA door to the bathroom (that is closed)\n\tA door to the hallway (that is open)"
)


def play(
    id: str, look: Look, *, task: str | None = None, seed: int = 0, turns: int = 40, wild: float = 0.0, **kwargs: Any
) -> tuple[Trajectory, list[Any]]:
    """Play the oracle with a share `wild` of random actions. Returns the episode and the results of `look` by state."""
    env = text_env(gym.make(id, **kwargs))
    observation, info = env.reset(seed=seed, options={"task": task} if task else None)
    rng, seen, played = random.Random(seed), [look(env)], list[Turn]()
    while info["stop_reason"] is None and len(played) < turns:
        command = env.random_command(rng) if rng.random() < wild else next(env.oracle())
        action = env.grammar.format(command)
        before, (observation, reward, _, _, info) = observation, env.step(action)
        played.append(Turn(before, action, reward, info))
        seen.append(look(env))
    trajectory = make_trajectory(env, tuple(played), observation, info)
    env.close()
    return Trajectory.from_json(trajectory.to_json()), seen


def nothing(env: TextEnv) -> None:
    """A `look` for tests that need no facts about the environment."""


def states_of(trajectory: Trajectory, kind: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The states of the panel and their shared part, as the page gets them. The panel must have no note."""
    panel = json.loads(json.dumps(panels_of(trajectory)))
    assert (panel["kind"], panel["note"]) == (kind, None)
    assert len(panel["states"]) == len(trajectory.turns) + 1
    return panel["states"], panel["states"][0]["shared"]


def episode(
    env_id: str, observations: list[str], actions: list[str], infos: list[Any] | None = None, **fields: Any
) -> Trajectory:
    """A record of the given observations and actions."""
    infos = infos or [{} for _ in actions]
    turns = tuple(Turn(observations[n], action, 0.0, infos[n]) for n, action in enumerate(actions))
    known = {"score": 0.0, "success": False, "stop_reason": "turn_limit", "instructions": "", "seed": 0, **fields}
    return Trajectory(
        env_id, Task("t/1", "train", "g", "a goal"), turns=turns, final_observation=observations[-1], **known
    )


def web_page(tree: str, *, url: str = "http://shop.test/", tabs: str = "Tab 0 (current): Shop", note: str = "") -> str:
    """An observation of a page, as the browser environments format it."""
    lines = ["OBSERVATION:", tabs, "", tree, f"URL: {url}", "OBJECTIVE: buy", "PREVIOUS ACTION: None"]
    return "\n".join([*lines, *([f"NOTE: {note}"] if note else [])])
