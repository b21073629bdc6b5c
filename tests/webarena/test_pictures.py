"""Screenshots, the boxes of elements in them, and environments whose observations have a picture."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agentgym_envs import RecordTrajectory, read_trajectories
from agentgym_envs.core import text_env
from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.hosting import json_forms
from agentgym_envs.http.run import background_server
from agentgym_envs.image_files import media_type, read_image
from agentgym_envs.image_observations import decode
from agentgym_envs.registration import register
from agentgym_envs.task import Task, TaskTable
from agentgym_envs.vector.make import make_vec
from agentgym_envs.webarena.base_env import WebEnv
from agentgym_envs.webarena.browser.backends import BACKENDS
from agentgym_envs.webarena.browser.execute import goto
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession
from agentgym_envs.webarena.browser.sites import local_sites
from agentgym_envs.webarena.browser.view import ElementBox, ViewOptions, elements
from agentgym_envs.webarena.evaluators.base import Verdict
from agentgym_envs.webarena.pixels import PixelEnv
from tests.contract import plain
from tests.webarena.conftest import MakeAgent, Site, html

pytestmark = pytest.mark.slow
PAGE = html(
    """<style>
    body { margin: 0 } button, input { position: absolute; width: 100px; height: 40px; box-sizing: border-box }
    </style>
    <button style="left: 20px; top: 30px" onclick="document.body.style.background = '#0a0'">Green</button>
    <button style="left: 20px; top: 2000px">Below</button>
    <input aria-label=Field style="left: 300px; top: 30px">
    <canvas width=200 height=100 style="position: absolute; left: 500px; top: 200px"></canvas>
    <script>
    document.querySelector('canvas').onclick = e => { document.title = `${e.offsetX},${e.offsetY}`; };
    </script>""",
    title="Canvas",
)


class CanvasEnv(WebEnv):
    """A page with a button, a field and a canvas. The answer is its title."""

    tasks = TaskTable("canvas", 1, [Task("canvas/1", "train", "canvas", "Click the canvas", {})])

    @classmethod
    def needs_worker(cls, options: Mapping[str, Any]) -> bool:
        """Not on a server of the tests: only this process serves the page."""
        return False

    def _browser_options(self) -> BrowserOptions:
        return BrowserOptions(hosts=HostRules.of(mapped={"canvas.test": local_sites().address}))

    async def _open(self, session: BrowserSession, task: Task, rng: np.random.Generator) -> str:
        await goto(session, "http://canvas.test/")
        return task.goal

    async def _judge(self, session: BrowserSession, task: Task, answer: str) -> Verdict:
        return Verdict(float(answer == session.view.title), "")


@pytest.fixture(autouse=True, scope="module")
def canvas_site() -> Iterator[None]:
    site = Site()
    local_sites().mount("canvas.test", site)
    site.put("/", PAGE)
    yield


def named(env: WebEnv, name: str) -> int:
    found = next(one.id for one in elements(env.session.view.tree) if one.name == name)
    assert found is not None
    return found


@pytest.mark.parametrize("backend", ["js", "cdp"])
def test_boxes_are_those_of_the_window(make_agent: MakeAgent, backend: str) -> None:
    agent = make_agent(view=ViewOptions(viewport=False, boxes=True))
    agent.session.backend = BACKENDS[backend]()
    place = "position: absolute; width: 60px; height: 20px"
    frame = f"<style>body {{ margin: 0 }}</style><button style='{place}; left: 5px; top: 7px'>in</button>"
    agent.show(
        f"""<button style="{place}; left: 30px; top: 40px">seen</button>
        <button style="{place}; left: 1250px; top: 100px">cut</button>
        <button style="{place}; left: 0; top: 3000px">below</button>
        <iframe style="border: 3px solid; padding: 2px; position: absolute; left: 100px; top: 200px" srcdoc="{frame}">
        </iframe>"""
    )
    boxes = agent.session.view.boxes
    assert boxes[agent.find("button", "seen")] == ElementBox(30, 40, 60, 20)
    assert boxes[agent.find("button", "cut")] == ElementBox(1250, 100, 30, 20)
    assert boxes[agent.find("button", "in")] == ElementBox(110, 212, 60, 20)
    assert agent.find("button", "below") not in boxes
    agent.js("scrollTo(0, 2900)")
    agent.see()
    assert agent.session.view.boxes[agent.find("button", "below")].y == 3000 - agent.js("scrollY")


def test_covered_elements_have_no_box(make_agent: MakeAgent) -> None:
    agent = make_agent(view=ViewOptions(viewport=False, boxes=True))
    agent.show("<button>a</button><div style='position: fixed; inset: 0; background: red'><button>b</button></div>")
    assert agent.find("button", "a") not in agent.session.view.boxes
    assert agent.find("button", "b") in agent.session.view.boxes
    agent = make_agent(view=ViewOptions(viewport=False))
    agent.show("<button>a</button>")
    assert agent.session.view.boxes == {}


def test_screenshots_are_recorded_as_files(tmp_path: Path) -> None:
    """The first one is in the record's `meta`. A refused action shows the last one again."""
    base = CanvasEnv(record_screenshots=True)
    env = RecordTrajectory(base, tmp_path / "run.jsonl")
    _, first = env.reset(seed=0)
    assert decode(first["screenshot"]).shape == (720, 1280, 3)
    green = named(base, "Green")
    assert first["boxes"][str(green)] == [20, 30, 100, 40]
    *_, info = env.step("click [999]")
    assert info["invalid_action"] and info["screenshot"] == first["screenshot"]
    *_, second = env.step(f"click [{green}]")
    assert second["screenshot"] != first["screenshot"]
    *_, last = env.step("stop [Canvas]")
    assert last["screenshot"] == second["screenshot"]
    env.close()
    (record,) = read_trajectories(tmp_path / "run.jsonl")
    names = [record.meta["screenshot"], *(turn.info["screenshot"] for turn in record.turns)]
    images = [read_image(tmp_path, name) for name in names]
    assert images == [first["screenshot"]] * 2 + [second["screenshot"]] * 2
    assert (tmp_path / "run.jsonl").stat().st_size < 20_000


def test_screenshots_are_taken_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    env = CanvasEnv()
    monkeypatch.setattr(BrowserSession, "screenshot", None)
    _, info = env.reset(seed=0)
    assert not {"screenshot", "boxes"} & set(info)
    env.close()
    for options in ({"record_screenshots": 1}, {"screenshot_format": "gif"}):
        with pytest.raises(UsageError, match=next(iter(options))):
            CanvasEnv(**options)


def test_jpeg_is_smaller_if_asked_for() -> None:
    env = CanvasEnv(record_screenshots=True, screenshot_format="jpeg")
    _, info = env.reset(seed=0)
    assert media_type(info["screenshot"]) == "image/jpeg"
    env.close()


def test_remote_environments_give_equal_screenshots() -> None:
    register("Test/Canvas-v0", f"{__name__}:CanvasEnv")
    with background_server(["Test/Canvas-v0"]) as url:
        local = gym.make("Test/Canvas-v0", record_screenshots=True)
        remote = gym.make("Test/Canvas-v0", record_screenshots=True, base_url=url)
        assert local.reset(seed=0) == remote.reset(seed=0)
        seen = local.step("click [2]")
        assert seen == remote.step("click [2]")
        assert media_type(seen[4]["screenshot"]) == "image/png"
        assert json.loads(json.dumps(seen[4]["boxes"])) == seen[4]["boxes"]
        local.close()
        remote.close()


class CanvasPixelsEnv(PixelEnv, CanvasEnv):
    """The same page, with screenshots as observations."""


def test_set_of_marks_numbers_the_elements_that_take_actions() -> None:
    plain, env = CanvasEnv(record_screenshots=True), CanvasPixelsEnv()
    _, before = plain.reset(seed=0)
    observation, info = env.reset(seed=0)
    green, field = named(env, "Green"), named(env, "Field")
    tree = observation["text"].partition("\n\n")[2].partition("\nURL: ")[0]
    assert [one.id for one in elements(tree)] == [green, field] and "\t" not in tree
    assert observation in env.observation_space
    assert (observation["image"] == decode(info["screenshot"])).all()
    unmarked, marked = decode(before["screenshot"]), observation["image"]
    changed = np.argwhere((unmarked != marked).any(axis=2))
    assert (changed[:, 0].max(), changed[:, 1].max()) == (69, 399)  # the lower right corner of the field
    assert info["boxes"] == before["boxes"]
    assert env.session.view.tree == plain.session.view.tree  # the marks are not in the page
    plain.close()
    env.close()


def test_observations_show_tree_or_image_as_asked() -> None:
    env = CanvasPixelsEnv(observation="both")
    observation, _ = env.reset(seed=0)
    assert env.session.view.tree in observation["text"] and "click_xy" not in env.instructions
    assert env.step("click_xy [3] [4]")[0]["text"].startswith("click_xy cannot be done here.")
    env.close()
    env = CanvasPixelsEnv(observation="screenshot")
    observation, _ = env.reset(seed=0)
    assert "button" not in observation["text"] and "click [id]" not in env.instructions
    assert env.step("click [2]")[4]["invalid_action"].startswith("click cannot be done here.")
    with pytest.raises(NoOracle, match="som"):
        env.oracle()
    env.close()


@pytest.mark.parametrize(
    ("grammar", "click", "type"),
    [
        ("bare", "click_xy [510] [220]", "keyboard_type [ab]"),
        ("browsergym", "mouse_click(510, 220)", "keyboard_type('ab')"),
        ("tool_call", '{"name": "click_xy", "arguments": {"x": 510, "y": 220}}', None),
    ],
)
def test_actions_by_coordinates(grammar: str, click: str, type: str | None) -> None:
    env = CanvasPixelsEnv(grammar=grammar, coordinates=True)
    env.reset(seed=0)
    *_, info = env.step(f"<tool_call>{click}</tool_call>" if grammar == "tool_call" else click)
    assert info["invalid_action"] is None
    assert env.session.view.title == "10,20"
    if type:
        env.step(click.replace("510", "350").replace("220", "50"))
        env.step(type)
        assert "value: 'ab'" in env.session.view.tree
    assert env.grammar.parse(env.grammar.format("click_xy [1] [2]")).command == "click_xy [1] [2]"
    env.close()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("click_xy [1280] [5]", "outside of the window"),
        ("click_xy [5]", "two whole numbers"),
        ("click_xy [-1] [5]", "two whole numbers"),
        ("hover_xy [1.5] [5]", "two whole numbers"),
        ("click_xy [123456] [5]", "two whole numbers"),
    ],
)
def test_impossible_points_are_refused(pixels: CanvasPixelsEnv, command: str, why: str) -> None:
    assert why in pixels.step(command)[4]["invalid_action"]


@pytest.fixture(scope="module")
def pixels() -> Iterator[CanvasPixelsEnv]:
    env = CanvasPixelsEnv(coordinates=True)
    env.reset(seed=0)
    yield env
    env.close()


@pytest.mark.parametrize(
    "options", [{"observation": "text"}, {"coordinates": "yes"}, {"observation": "screenshot", "coordinates": False}]
)
def test_invalid_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(reversed(options))):
        CanvasPixelsEnv(**options)


def test_images_are_equal_behind_a_server_and_in_a_vector() -> None:
    register("Test/CanvasPixels-v0", f"{__name__}:CanvasPixelsEnv")
    with background_server(["Test/CanvasPixels-v0"]) as url:
        local, remote = gym.make("Test/CanvasPixels-v0"), gym.make("Test/CanvasPixels-v0", base_url=url)
        assert local.observation_space == remote.observation_space
        assert plain(local.reset(seed=0)) == plain(remote.reset(seed=0))
        assert plain(local.step("click [2]")) == plain(remote.step("click [2]"))
        envs = make_vec("Test/CanvasPixels-v0", 2, base_url=url)
        observations, _ = envs.reset(seed=0)
        assert observations in envs.observation_space
        assert plain(observations[0]) == plain(local.reset(seed=0)[0])
        snapshot = text_env(local).snapshot()
        assert text_env(remote).restore(snapshot) == text_env(local).restore(snapshot)
        for env in (local, remote, envs):
            env.close()


def test_a_screenshot_that_is_no_image_ends_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may send anything."""
    register("Test/CanvasPixels-v0", f"{__name__}:CanvasPixelsEnv")
    with background_server(["Test/CanvasPixels-v0"]) as url:
        env = gym.make("Test/CanvasPixels-v0", base_url=url)
        env.reset(seed=0)
        monkeypatch.setattr(json_forms, "to_data_url", lambda image: "data:text/html,hello")
        observation, _, _, truncated, info = env.step("wait")
        assert (truncated, info["stop_reason"]) == (True, "env_error") and "screenshot" in info["error"]
        assert observation in env.observation_space and not observation["image"].any()
        assert env.reset(seed=0)[1]["stop_reason"] == "env_error"
        env.close()


def test_a_screenshot_that_is_no_image_ends_awaited_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    register("Test/CanvasPixels-v0", f"{__name__}:CanvasPixelsEnv")
    with background_server(["Test/CanvasPixels-v0"]) as url:
        env = text_env(gym.make("Test/CanvasPixels-v0", base_url=url))
        env.reset(seed=0)
        monkeypatch.setattr(json_forms, "to_data_url", lambda image: "data:text/html,hello")
        observation, *_, info = asyncio.run(asyncio.wait_for(env.astep("wait"), 60))
        assert info["stop_reason"] == "env_error" and observation in env.observation_space
        _, info = asyncio.run(asyncio.wait_for(env.areset(seed=0), 60))
        assert info["stop_reason"] == "env_error"
        env.close()
