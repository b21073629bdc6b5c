"""Plays an episode of each scenario and draws it for the first page of the documentation.

    python scripts/make_gallery.py [NAME ...]      # all, or those that are named

The episodes are those of the oracle, on fixed tasks and seeds; `tests/docs/test_gallery.py` plays them again and
compares the pictures. WebArena needs a Chromium, SciWorld a Java.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import text_env

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/gallery"
sys.path.insert(0, str(ROOT / "scripts/site"))

from gallery import HEIGHT, WIDTH, Picture, animation, placed, transcript  # noqa: E402

_IMAGE_TOP, _PIXELS = 58, 880
"""The upper edge of a screenshot, and its width in pixels, which sharp screens show."""


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode of the gallery.

    Attributes:
        env: the id of the environment.
        task: the id of the task.
        kwargs: arguments of the environment.
        image: returns the image of a state as SVG, from the environment and the info.
        readable: shortens an observation for the picture.
        wide: the image takes the width of the picture.
    """

    env: str
    task: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    image: Callable[[gym.Env[str, str], Mapping[str, Any]], str] = lambda env, info: ""
    readable: Callable[[str], str] = str
    wide: bool = False


def grid(env: gym.Env[str, str], info: Mapping[str, Any]) -> str:
    """The grid of BabyAI."""
    return placed(str(env.render()), 14, 66, 222)


def screenshot(env: gym.Env[str, str], info: Mapping[str, Any]) -> str:
    """The browser's window, as a small image."""
    from PIL import Image

    picture = Image.open(io.BytesIO(info["screenshot"])).convert("RGB")
    written = io.BytesIO()
    picture.resize((_PIXELS, _PIXELS * picture.height // picture.width)).save(written, "WEBP", quality=45, method=6)
    data = base64.b64encode(written.getvalue()).decode()
    place = f'y="{_IMAGE_TOP}" width="{WIDTH}" height="{HEIGHT - _IMAGE_TOP - 24}" preserveAspectRatio="xMidYMin slice"'
    return f'<image {place} href="data:image/webp;base64,{data}"/>'


def without_actions(observation: str) -> str:
    """The observation of BabyAI without the list of actions, which leaves no room for the turns before."""
    return observation.partition("\nAvailable actions:")[0]


def team_text(observation: str) -> str:
    """The observations of a team, each below the name of its agent."""
    from agentgym_envs.multiagent.joint_format import read_texts

    seen = read_texts(observation)
    return observation if seen is None else "\n".join(f"[{agent}] {text}" for agent, text in seen.items())


def no_text(observation: str) -> str:
    """No observation, next to a picture of the page."""
    return ""


EPISODES = {
    "textcraft": Episode("AgentGym/TextCraft-v0", "textcraft/300"),
    "babyai": Episode("AgentGym/BabyAI-v0", "babyai/GoToSeqS5R2/20018", {"render_mode": "svg"}, grid, without_actions),
    "sciworld": Episode("AgentGym/SciWorld-v0", "sciworld/chemistry-mix-paint-secondary-color/27"),
    "search": Episode("AgentGym/Search-v0", "search/3hop-city/100"),
    "webarena": Episode(
        "AgentGym/WebArena-v0",
        "webarena/shopping-offer-price/21/2",
        {"record_screenshots": True},
        screenshot,
        no_text,
        wide=True,
    ),
    "team": Episode("AgentGym/TextCraftCoop-v0", "textcraft-coop/2/22", readable=team_text),
}


def picture_of(episode: Episode) -> str:
    """Play the episode and draw it."""
    with closing(gym.make(episode.env, **episode.kwargs)) as env:
        pictures = list(_pictures(env, episode))
        goal = text_env(env).task.goal
    return animation(episode.env, " ".join(goal.split()), pictures, wide=episode.wide)


def _pictures(env: gym.Env[str, str], episode: Episode) -> Iterator[Picture]:
    observation, info = env.reset(seed=0, options={"task": episode.task})
    texts, actions = [episode.readable(observation)], list[str]()
    yield Picture(transcript(texts, actions), info["score"], episode.image(env, info))
    for command in text_env(env).oracle():
        observation, _, _, _, info = env.step(command)
        actions.append(command)
        texts.append(episode.readable(observation))
        yield Picture(transcript(texts, actions), info["score"], episode.image(env, info), info["success"])


def main() -> None:
    """Run the script."""
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or EPISODES:
        (FOLDER / f"{name}.svg").write_text(picture_of(EPISODES[name]), encoding="utf-8")


if __name__ == "__main__":
    main()
