"""Pictures of episodes: screenshots in the panel of web pages, in exports, and in animations."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agentgym_envs.hosting.images import to_png
from agentgym_envs.image_files import to_data_url
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, with_image_names
from agentgym_envs.viewer import animation
from agentgym_envs.viewer.animation import animate
from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.export import export_html
from agentgym_envs.viewer.frames import HEIGHT, WIDTH
from agentgym_envs.viewer.panels import panels_of
from tests.viewer.panel_episodes import episode, nothing, play, web_page
from tests.viewer.test_api import asker
from tests.viewer.test_export import Page

SIZE = (90, 160, 3)
COLORS = [(200, 30, 30), (30, 160, 30), (30, 30, 200)]
IMAGES = [to_png(np.full(SIZE, color, np.uint8)) for color in COLORS]
BOX = [40, 20, 30, 10]


def shopping() -> Trajectory:
    """A web episode with a screenshot of one color per state."""
    pages = [web_page(f"[1] RootWebArea 'Page {number}'\n\t[3] link 'Next'") for number in range(3)]
    infos = [{"screenshot": image, "boxes": {"3": BOX}} for image in IMAGES]
    return episode("AgentGym/WebArena-v0", pages, ["click [3]", "click_xy [5] [60]"], infos[1:], meta=infos[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    with TrajectoryWriter(found / "t.jsonl") as writer:
        writer.write(shopping())
    return found


def test_panel_has_each_image_and_the_box_of_the_target() -> None:
    states = panels_of(with_image_names(shopping()))["states"]
    assert len({state["image"] for state in states}) == 3
    assert [state["box"] for state in states] == [BOX, [0, 51, 18, 18], None]
    assert panels_of(shopping())["kind"] == "webarena"  # in memory, its images are bytes and have no address


@pytest.mark.parametrize("box", [[1, 2, 3], [1, 2, "x", 4], [-1, 2, 3, 4], [float("nan")] * 4, "1234", None])
def test_malformed_boxes_are_not_drawn(box: Any) -> None:
    meta = {"boxes": {"3": box}}
    panel = panels_of(episode("AgentGym/WebArena-v0", [web_page("[3] link 'a'")] * 2, ["click [3]"], [{}], meta=meta))
    assert panel["states"][0]["box"] is None


def test_images_are_served_by_name(folder: Path) -> None:
    get = asker(Viewer([folder]))
    states = get("/api/episodes/0/panels").json()["states"]
    for state, image in zip(states, IMAGES, strict=True):
        reply = get(f"/api/episodes/0/{state['image']}")
        assert (reply.content, reply.headers["content-type"]) == (image, "image/png")
    name = states[0]["image"].removeprefix("images/")
    for path in (
        "0/images/x.png",
        "0/images/..%2ft.jsonl",
        "0/images/%2e%2e%2ft.jsonl",
        f"7/images/{name}",
        "x/images/a",
    ):
        assert get(f"/api/episodes/{path}").status_code == 404
    turn = get("/api/episodes/0").json()["turns"][0]
    assert "boxes" not in turn["info"] and "screenshot" not in turn["info"]


@pytest.mark.slow
def test_episode_is_saved_from_the_page(folder: Path) -> None:
    get = asker(Viewer([folder]))
    page, animation = get("/api/episodes/0/episode.html"), get("/api/episodes/0/episode.gif")
    assert list(Page(page.text).data["episodes"]) == ["0"] and len(Page(page.text).data["images"]) == 3
    assert page.headers["content-disposition"] == 'attachment; filename="episode-0.html"'
    assert animation.headers["content-type"] == "image/gif"
    assert getattr(Image.open(io.BytesIO(animation.content)), "n_frames", 1) == 3
    assert [get(f"/api/episodes/{n}/episode.gif").status_code for n in ("7", "x")] == [404, 404]


def test_saving_without_pillow_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    reply = asker(Viewer([folder]))("/api/episodes/0/episode.gif")
    assert reply.status_code == 501 and "images" in reply.json()["error"]


def test_export_contains_the_images(folder: Path) -> None:
    viewer = Viewer([folder])
    entries = viewer.index.refresh().entries
    data = Page(export_html(viewer, entries)).data
    assert sorted(data["images"].values()) == sorted(map(to_data_url, IMAGES))
    assert {state["image"] for state in data["panels"]["0"]["states"]} == set(data["images"])


@pytest.mark.slow
def test_page_shows_the_page_before_and_after(browser: Any, address: str) -> None:
    tab = browser.new_page(viewport={"width": 1300, "height": 900})
    tab.goto(f"{address}#/episode/0?turn=1")
    tab.wait_for_selector(".wa-box rect")
    shown = "[...document.querySelectorAll('.wa-figure')].map(f => [f.innerText, f.querySelector('img').naturalWidth])"
    assert tab.evaluate(shown) == [["Before the action", 160], ["After the action", 160]]
    edges = tab.evaluate(
        """() => {
          const at = e => { const { left, top, width } = e.getBoundingClientRect(); return [left, top, width]; };
          const [image, rect] = ['.wa-image', '.wa-box .line'].map(name => at(document.querySelector(name)));
          const scale = image[2] / 160;
          return [(rect[0] - image[0]) / scale, (rect[1] - image[1]) / scale, rect[2] / scale].map(Math.round);
        }"""
    )
    assert edges == pytest.approx([33, 13, 44], abs=2)  # seven pixels around the element
    tab.click(".wa-open")
    assert tab.evaluate("document.querySelector('dialog.wa-large').open")
    tab.keyboard.press("Escape")
    tab.wait_for_selector("dialog.wa-large", state="detached")
    tab.close()


def frames(data: bytes) -> list[np.ndarray[Any, Any]]:
    """The frames of an animation, as arrays."""
    with Image.open(io.BytesIO(data)) as opened:
        assert opened.size == (WIDTH, HEIGHT)
        found = []
        for number in range(getattr(opened, "n_frames", 1)):
            opened.seek(number)
            found.append(np.asarray(opened.convert("RGB")).astype(int))
        return found


def test_animation_shows_screenshots_and_boxes(folder: Path) -> None:
    found = frames(animate(with_image_names(shopping()), folder))
    assert len(found) == 3
    for frame, color in zip(found, COLORS, strict=True):
        assert abs(frame[HEIGHT // 2, WIDTH // 2] - color).max() < 12  # colors are reduced
    pink = [((abs(frame - (229, 0, 109)).max(axis=2) < 30).sum() > 200) for frame in found]
    assert pink == [True, True, False]


def test_animation_of_text_shows_earlier_turns() -> None:
    texts = ["Goal: craft stick.", "Got 2 planks.", "Crafted stick."]
    one = episode("AgentGym/TextCraft-v0", texts, ["get 2 planks", "craft stick"])
    found = frames(animate(one, Path()))
    assert len(found) == 3
    ink = [int((frame[80:600] < 140).all(axis=2).sum()) for frame in found]
    assert 0 < ink[0] < ink[1] < ink[2]


@pytest.mark.slow
def test_animation_of_babyai_shows_the_grid() -> None:
    one, _ = play("AgentGym/BabyAI-v0", nothing, levels="GoToObj", seed=1)
    grid = frames(animate(one, Path()))
    assert len(grid) == len(one.turns) + 1
    middle = grid[0][HEIGHT // 2 - 60 : HEIGHT // 2, WIDTH // 2 - 60 : WIDTH // 2]
    assert (middle.max(axis=2) < 90).any()  # the floor is dark; a panel of text is light
    changed = Trajectory.from_json(json.dumps({**json.loads(one.to_json()), "seed": one.seed + 1}))
    assert len(frames(animate(changed, Path()))) == len(grid)  # it cannot be replayed: its text is shown


def test_animation_of_a_long_episode_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(animation, "MAX_FRAMES", 4)
    one = episode("AgentGym/TextCraft-v0", [f"{n} \x00\u202e" * 3000 for n in range(8)], ["\n".join("ab" * 400)] * 7)
    assert len(frames(animate(one, Path()))) == 4
