"""Pictures: text, SVG and minigrid's own."""

from __future__ import annotations

import itertools
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agentgym_envs.babyai import drawing
from agentgym_envs.babyai.drawing import draw_svg, draw_text
from agentgym_envs.babyai.text_view import ObjectNames, TextView, kind
from agentgym_envs.babyai.world import GridAction, GridWorld, make_world
from agentgym_envs.core import text_env
from tests.babyai.tools import key, layout, reference, stroll, worlds_of_every_level

SVG = "{http://www.w3.org/2000/svg}"
COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
KINDS = ("ball", "box", "key", "open door", "closed door", "locked door")
HEAD = 2
"""The number of lines above the map."""


def view_of(world: GridWorld) -> TextView:
    return TextView(world, ObjectNames("nearest"), "macro")


def text_of(world: GridWorld) -> str:
    return draw_text(world, view_of(world))


def document(world: GridWorld) -> str:
    return draw_svg(world, view_of(world))


def svg_of(world: GridWorld) -> ET.Element:
    return ET.fromstring(document(world))


def sign(world: GridWorld, x: int, y: int) -> str:
    """Return the two columns of a cell."""
    return text_of(world).split("\n")[HEAD + y][2 * x : 2 * x + 2]


def groups(svg: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    """Yield the groups drawn over floor and walls, with their titles."""
    for group in svg.iterfind(f"{SVG}g/{SVG}g"):
        title = group.find(f"{SVG}title")
        assert title is not None and title.text
        yield title.text, group


def look_of(group: ET.Element) -> str:
    """Return the drawing of an object, without its position."""
    shapes = [ET.tostring(part, encoding="unicode") for part in group if part.tag != f"{SVG}title"]
    return f"{group.get('fill')} {shapes}"


def thing_of(color: str, what: str) -> Any:
    from minigrid.core import world_object

    if not what.endswith("door"):
        return {"ball": world_object.Ball, "box": world_object.Box, "key": world_object.Key}[what](color)
    return world_object.Door(color, is_open=what == "open door", is_locked=what == "locked door")


@pytest.fixture
def hall() -> GridWorld:
    """A large room with every type of object in every colour: types in rows, colours in columns."""
    world = make_world("OneRoomS20", 0).copy()
    for x, y in itertools.product(range(1, 19), repeat=2):
        world.level.grid.set(x, y, None)
    for number, (what, color) in enumerate(itertools.product(KINDS, COLORS)):
        thing = thing_of(color, what)
        thing.serial = number
        world.level.grid.set(2 + number % 6, 2 + number // 6, thing)
    world.level.agent_pos, world.level.agent_dir = (17, 17), 0
    return world


def test_every_type_and_colour_is_drawn_differently(hall: GridWorld) -> None:
    signs = {sign(hall, x, y) for x in range(2, 8) for y in range(2, 8)}
    assert len(signs) == 36
    drawn = {title: look_of(group) for title, group in groups(svg_of(hall))}
    assert set(drawn) == {f"{color} {what}" for color in COLORS for what in KINDS} | {"the agent"}
    assert len(set(drawn.values())) == 37


def test_the_legend_names_every_sign_on_the_map(hall: GridWorld) -> None:
    legend = text_of(hall).split("\n")[-1]
    assert legend == (
        "► you, ● ball, ■ box, K key, / open door, + closed door, # locked door, r red, g green, b blue, p purple, "
        "y yellow, e grey; in sight: capitals, dots, solid walls"
    )
    for x, y, thing in hall.things():
        letter, shape = list(sign(hall, x, y))
        assert f"{letter.lower()} {thing.color}" in legend
        assert f"{shape} {kind(thing).removeprefix(f'{thing.color} ')}" in legend


def test_a_small_world_is_drawn_as_text() -> None:
    world = make_world("GoToObjS4", 0).copy()
    assert text_of(world) == "\n".join(
        [
            "go to the blue key",
            "Step 0 of 16, carrying nothing",
            "░░░░░░░░",
            "██ · ▼██",
            "██BK ·██",
            "████████",
            "▼ you, K key, b blue; in sight: capitals, dots, solid walls",
        ]
    )
    world.step(GridAction.RIGHT)
    assert text_of(world).split("\n")[1:5] == ["Step 1 of 16, carrying nothing", "██████░░", "██ · ◄░░", "██BK ·░░"]


@pytest.mark.parametrize(("direction", "arrow"), enumerate("►▼◄▲"))
def test_the_arrow_shows_the_direction_of_the_agent(hall: GridWorld, direction: int, arrow: str) -> None:
    hall.level.agent_dir = direction
    assert sign(hall, 17, 17) == f" {arrow}"
    assert text_of(hall).split("\n")[-1].startswith(f"{arrow} you")
    agent = dict(groups(svg_of(hall)))["the agent"]
    assert agent.get("transform") == f"translate(17 17) rotate({90 * direction} .5 .5)"


def test_the_agent_is_drawn_on_an_open_door(hall: GridWorld) -> None:
    hall.level.agent_pos = (3, 5)
    assert sign(hall, 3, 5) == "/►"
    assert {"green open door", "the agent"} <= dict(groups(svg_of(hall))).keys()


def test_the_carried_object_is_shown() -> None:
    world = make_world("GoToObjS4", 0).copy()
    for action in (GridAction.FORWARD, GridAction.RIGHT, GridAction.PICKUP):
        world.step(action)
    assert kind(world.carrying) == "blue key"
    assert "Step 3 of 16, carrying a blue key" in text_of(world).split("\n")
    drawn = dict(groups(svg_of(world)))
    assert set(drawn) == {"the agent", "blue key, carried"}
    assert svg_of(world).get("aria-label") == "go to the blue key. Step 3 of 16, carrying a blue key"


def test_a_box_shows_its_content() -> None:
    titles = [title for title, _ in groups(svg_of(make_world("KeyInBox", 0)))]
    assert [title for title in titles if re.search(r"box( 1)? with a \w+ key in it$", title)]


def test_an_open_door_is_rotated_along_its_passage(hall: GridWorld) -> None:
    across = dict(groups(svg_of(hall)))["red open door"].get("transform")
    for x, y in ((1, 5), (3, 5)):
        hall.level.grid.set(x, y, None)
    for x, y in ((2, 4), (2, 6)):
        hall.level.grid.set(x, y, hall.at(0, 0))
    along = dict(groups(svg_of(hall)))["red open door"].get("transform")
    assert (across, along) == ("translate(2 5) rotate(-90 .5 .5)", "translate(2 5)")


def test_objects_in_sight_have_the_names_of_the_observation() -> None:
    for world in itertools.islice(stroll(make_world("BossLevel", 3).copy(), random.Random(0), 60), 0, None, 10):
        text_view = view_of(world)
        titles = [title for title, _ in groups(ET.fromstring(draw_svg(world, text_view)))]
        numbered = sorted(title.partition(" with ")[0] for title in titles if re.search(r"\d", title))
        assert numbered == sorted(text_view.named)


@pytest.mark.parametrize("level", ["BossLevel", "GoToLocalS8N7", "UnlockToUnlock", "KeyCorridorS6R3"])
def test_the_field_of_view_equals_minigrids(level: str) -> None:
    world = make_world(level, 1).copy()
    for state in itertools.islice(stroll(world, random.Random(1), 80), 0, None, 4):
        (width, height), rows = state.size, text_of(state).split("\n")[HEAD:]
        shown = {
            (x, y)
            for x, y in itertools.product(range(width), range(height))
            if re.match(r"██|[A-Z ][^ ]", rows[y][2 * x : 2 * x + 2])
        }
        _, visible = state.level.gen_obs_grid()
        inside = {cell: state.level.relative_coords(*cell) for cell in itertools.product(range(width), range(height))}
        expected = {cell for cell, there in inside.items() if there is not None and visible[there]}
        assert shown - {state.position} == expected - {state.position}
        area = svg_of(state).findall(f"{SVG}path")[-1].get("d") or ""
        runs = [tuple(map(int, run)) for run in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", area)]
        assert {(x + step, y) for x, y, length in runs for step in range(length)} == expected


def test_all_levels_can_be_drawn_and_drawing_changes_nothing() -> None:
    for world in worlds_of_every_level():
        before = layout(world.level), key(world)
        text, svg = text_of(world), document(world)
        lines, (width, height) = text.split("\n"), world.size
        assert lines[0] == world.mission and len(lines) == HEAD + height + 1
        assert {len(line) for line in lines[HEAD:-1]} == {2 * width}
        root = ET.fromstring(svg)
        assert root.tag == f"{SVG}svg" and root.get("viewBox") == f"0 0 {width} {height}"
        held = world.carrying is not None
        assert len(list(groups(root))) == len(list(world.things())) + 1 + held
        assert len(svg.encode()) <= 15_000
        assert (layout(world.level), key(world)) == before
        again = make_world(world.levelname, 0)
        assert (text_of(again), document(again)) == (text, svg)


def test_a_picture_does_not_change_the_world() -> None:
    world = make_world("GoToLocal", 0)
    before = layout(world.level), key(world), text_of(world)
    world.image(8)
    assert (layout(world.level), key(world), text_of(world)) == before


def test_a_page_can_hold_several_documents() -> None:
    assert not re.search(r"\sid=|url\(|href|<style|<script|class=", document(make_world("BossLevel", 0)))


def test_missions_are_escaped() -> None:
    world = make_world("GoToObjS4", 0).copy()
    world.level.mission = "\"><script>alert(1)</script>&amp; 'x'"
    assert (svg_of(world).get("aria-label") or "").startswith(world.mission + ". ")
    assert "<script" not in document(world)


def test_colors_have_enough_contrast_to_the_lit_floor() -> None:
    floor = [round(0.8 * dark + 0.2 * light) for dark, light in zip(_rgb(drawing._DARK), _rgb("#b4ccff"), strict=True)]
    for color in drawing._COLORS.values():
        assert (_luminance(_rgb(color)) + 0.05) / (_luminance(floor) + 0.05) >= 3.0


def _rgb(color: str) -> list[int]:
    return [int(color[start : start + 2], 16) for start in (1, 3, 5)]


def _luminance(color: list[int]) -> float:
    """Source: WCAG 2.2, relative luminance."""
    shares = [part / 255 for part in color]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("level", ["GoToObjS4", "MiniBossLevel"])
def test_the_array_equals_the_picture_of_minigrid(level: str) -> None:
    env = gym.make("AgentGym/BabyAI-v0", render_mode="rgb_array")
    env.reset(seed=0, options={"task": f"babyai/{level}/5"})
    original = reference(level, 5)
    for action in ("turn left", "turn right", "turn right"):
        env.step(action)
        original.step({"turn left": 0, "turn right": 1}[action])
        picture: Any = env.render()
        assert picture.dtype == np.uint8 and picture.shape[2] == 3
        assert np.array_equal(picture, original.get_frame(highlight=True, tile_size=32))


def test_render_returns_an_empty_picture_before_the_first_reset() -> None:
    made = {mode: text_env(gym.make("AgentGym/BabyAI-v0", render_mode=mode)) for mode in ("ansi", "svg", "rgb_array")}
    assert made["ansi"].render() == "No episode has started."
    assert ET.fromstring(made["svg"].render()).tag == f"{SVG}svg"
    assert made["rgb_array"].render().shape == (1, 1, 3)


def test_render_draws_the_running_episode() -> None:
    for mode, draw in (("ansi", draw_text), ("svg", draw_svg)):
        env = text_env(gym.make("AgentGym/BabyAI-v0", render_mode=mode))
        env.reset(seed=0, options={"task": "babyai/PutNextLocal/7"})
        first = env.render()
        env.step("turn left")
        world, text_view = env.world, env.text_view  # type: ignore[attr-defined]
        assert env.render() == draw(world, text_view) != first


def test_the_largest_worlds_are_small_documents() -> None:
    assert max(len(document(make_world("BossLevel", seed)).encode()) for seed in range(20)) <= 15_000
