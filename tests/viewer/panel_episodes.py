"""Episodes for the tests of the panels, with facts about the environment in each state."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.search.page_text import make_page_text, render_results
from agentgym_envs.search.retrieval.base import Hit, Page, Passage
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


def pages_episode(title: str = "Amazon") -> Trajectory:
    """An episode of Search with pages, whose observations the environment's own functions have made."""
    passages = [
        Passage("p1", f'"{title}"\n{"It flows on. " * 30} Its mouth is near Belém, say {title}.'),
        Passage("p2", '"B"\nb'),
    ]
    page = make_page_text(Page(title, tuple(passages[:1]), True), 200)
    hits = [Hit(passage, 1.0) for passage in passages]
    nothing = "You have not opened a page with that id."
    seen = [
        "Question: who?",
        render_results(hits, "Amazon mouth", 80),
        page.render(1),
        page.render_places("belem"),
        nothing,
    ]
    seen += [page.render(len(page.begins)), "That answer is right."]
    actions = ["search>who", "open>p1", "find>belem", "open>p7", "scroll>9", "answer>Belém"]
    where = {"title": title, "parts": len(page.begins)}
    infos = [
        {"query": "who", "hits": ["p1", "p2"], "page": None},
        {"hits": page.ids_in(1), "page": {**where, "part": 1}},
        {"hits": [], "page": None},
        {"invalid_action": nothing},
        {"hits": page.ids_in(len(page.begins)), "page": {**where, "part": len(page.begins)}},
        {"answer": "Belém", "success": True},
    ]
    tags = ["<{0}>{1}</{0}>".format(*action.split(">")) for action in actions]
    return episode("AgentGym/SearchPages-v0", seen, tags, infos)
