"""The panels that replay the episode: BabyAI's grid and SciWorld's house."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentgym_envs.sciworld.rooms import ROOMS
from agentgym_envs.viewer.panels import babyai, panels_of, sciworld
from tests.viewer.panel_episodes import LOOK, episode, play, states_of

LEVELS = [
    "KeyInBox",
    *(
        pytest.param(level, marks=pytest.mark.slow)
        for level in ("GoToRedBallGrey", "PutNextLocal", "OpenTwoDoors", "GoToImpUnlock", "SynthLoc")
    ),
]


def drawn(env: Any) -> dict[str, Any]:
    """The state according to minigrid itself."""
    level = env.world.level
    held = level.carrying
    cells = [(x, y, level.grid.get(x, y)) for y in range(level.height) for x in range(level.width)]
    return {
        "agent": [*map(int, level.agent_pos), int(level.agent_dir)],
        "carrying": None if held is None else (held.color, held.type),
        "things": sorted((x, y, cell.color, cell.type) for x, y, cell in cells if cell and cell.type != "wall"),
        "walls": {(x, y) for x, y, cell in cells if cell and cell.type == "wall"},
        "named": sorted(env.text_view.named),
        "steps": level.step_count,
        "visible": [[sees(level, x, y) for x in range(level.width)] for y in range(level.height)],
    }


def sees(level: Any, x: int, y: int) -> str:
    """Visibility of a cell for minigrid's agent: "1" or "0"."""
    cell = level.relative_coords(x, y)
    return "1" if cell is not None and level.gen_obs_grid()[1][cell] else "0"


@pytest.mark.parametrize("actions", ["macro", "primitive"])
@pytest.mark.parametrize("level", LEVELS)
def test_grid_equals_minigrids(level: str, actions: str) -> None:
    trajectory, seen = play(
        "AgentGym/BabyAI-v0", drawn, levels=level, seed=3, wild=0.2, turns=25, actions=actions, grammar="tag"
    )
    states, shared = states_of(trajectory, "babyai")
    walls = {(x, y) for y, row in enumerate(shared["walls"]) for x, sign in enumerate(row) if sign == "#"}
    assert (walls, shared["egocentric"], shared["mission"]) == (seen[0]["walls"], False, trajectory.task.goal)
    for number, (state, real) in enumerate(zip(states, seen, strict=True)):
        held, things = state["carrying"], state["things"]
        assert (state["agent"], state["steps"]) == (real["agent"], real["steps"])
        assert (held and (held["color"], held["type"])) == real["carrying"]
        assert sorted((t["x"], t["y"], t["color"], t["type"]) for t in things) == real["things"]
        assert sorted(t["name"] for t in things if t["seen"]) == real["named"]
        assert [list(row) for row in state["visible"]] == real["visible"]
        if state["trail"]:  # a path of single steps from the previous state to this one
            assert state["trail"][0] == states[number - 1]["agent"][:2]
            assert state["trail"][-1] == state["agent"][:2]
            steps = zip(state["trail"], state["trail"][1:], strict=False)
            assert {abs(a - c) + abs(b - d) for (a, b), (c, d) in steps} == {1}
        elif number:
            assert state["agent"][:2] == states[number - 1]["agent"][:2]


@pytest.mark.parametrize("level", LEVELS)
def test_egocentric_view_equals_minigrids(level: str) -> None:
    """The view parsed from the text equals minigrid's, rotated so that the agent faces up."""
    trajectory, _ = play("AgentGym/BabyAI-v0", drawn, levels=level, seed=4, wild=0.3, turns=25, actions="primitive")
    world = babyai.from_world(trajectory)
    states, remark = babyai.from_record(trajectory)
    assert remark is None
    assert states[0]["shared"]["mission"] == world[0]["shared"]["mission"]
    for real, read in zip(world, states, strict=True):
        assert {(t["name"], *place_ahead(t, real["agent"])) for t in real["things"] if t["seen"]} == {
            (t["name"], t["x"], t["y"]) for t in read["things"] if t["type"] != "wall"
        }
        assert (real["carrying"] or {}).get("color") == (read["carrying"] or {}).get("color")


def place_ahead(thing: dict[str, Any], agent: list[int]) -> tuple[int, int]:
    """The cell in a view of seven by seven cells, with the agent in the middle of the lower edge."""
    dx, dy = thing["x"] - agent[0], thing["y"] - agent[1]
    ahead, right = [(dx, dy), (dy, -dx), (-dx, -dy), (-dy, dx)][agent[2]]
    return 3 + right, 6 - ahead


def test_room_is_kept_if_the_reply_names_none() -> None:
    trajectory, _ = play("AgentGym/BabyAI-v0", drawn, levels="GoToRedBallGrey", turns=1, wild=1.0)
    lost = replace(trajectory, final_observation="The action is not recognized.", env_id="AgentGym-RL/BabyAI")
    first, second = panels_of(lost)["states"]
    assert second["things"] == first["things"]
    assert second["trail"] == []


@pytest.mark.slow
def test_long_episode_in_a_large_world_has_a_panel() -> None:
    trajectory, _ = play(
        "AgentGym/BabyAI-v0", drawn, levels="BossLevel", seed=5, wild=1.0, turns=100, actions="primitive"
    )
    states, _ = states_of(trajectory, "babyai")
    assert len(states) == 101
    assert len(str(states)) < 2_000_000


def test_house_is_read_from_the_observations() -> None:
    observations = [
        f"Your task is to boil water.\n{LOOK}",
        "You move the lighter to the inventory.",
        "You move to the hallway.",
    ]
    observations += [
        "In your inventory, you see:\n\ta lighter\n\tan orange\n",
        "You move the orange to the sink.",
        "The door is now open.",
    ]
    actions = ["pick up lighter", "go to hallway", "inventory", "move orange to sink", "open door"]
    infos = [{"moves": n, "score": 0.1 * n} for n in range(1, 6)]
    panel = panels_of(episode("AgentGym-RL/SciWorld", observations, actions, infos))
    states = panel["states"]
    assert [state["room"] for state in states] == ["kitchen", "kitchen", *["hallway"] * 4]
    assert [len(state["things"]) for state in states] == [2, 2, 0, 0, 0, 0]
    carried = [
        [],
        ["lighter"],
        ["lighter"],
        ["a lighter", "an orange"],
        ["a lighter", "an orange"],
        ["a lighter", "an orange"],
    ]
    assert [state["inventory"] for state in states][:4] == carried[:4]
    assert states[0]["doors"] == [["hallway", "kitchen"]]
    assert [state["moves"] for state in states] == [None, 1, 2, 3, 4, 5]
    assert all(state["goals"] == [] for state in states)
    ways = states[0]["shared"]["ways"]
    assert ["hallway", "kitchen"] in ways
    assert len(ways) == 10
    assert {room for pair in ways for room in pair} == set(ROOMS)


def test_very_long_episode_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sciworld, "MAX_TURNS", 1)
    panel = panels_of(episode("AgentGym/SciWorld-v0", [LOOK, "x", "y"], ["look", "wait"]))
    assert "too long (2 turns)" in panel["note"]
    assert panel["states"][0]["room"] == "kitchen"


def test_record_is_shown_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentgym_envs.errors import EnvError
    from agentgym_envs.sciworld import env as module

    def no_java(*_: Any) -> Any:
        raise EnvError("there is no Java here")

    monkeypatch.setattr(module, "lease", no_java)
    trajectory = episode("AgentGym/SciWorld-v0", [LOOK, "x"], ["look"])
    known = replace(trajectory, task=replace(trajectory.task, id="sciworld/boil/3"))
    panel = panels_of(known)
    assert panel["kind"] == "sciworld"
    assert panel["note"].endswith("The panel shows the information in the record instead.")
    assert panel["states"][1]["room"] == "kitchen"


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "options"), [("sciworld/find-plant/0", {"simplifications": "easy"}), ("sciworld/boil/3", {})]
)
def test_house_equals_the_simulators(task: str, options: dict[str, Any]) -> None:
    def look(env: Any) -> dict[str, Any]:
        world = env.world
        return {"look": world.look(), "inventory": world.inventory(), "goals": world.goal_progress(), **env.status()}

    trajectory, seen = play("AgentGym/SciWorld-v0", look, task=task, turns=12, split=None, jvms=1, **options)
    states, _ = states_of(trajectory, "sciworld")
    for state, real in zip(states, seen, strict=True):
        assert f"is called the {state['room']}." in real["look"]
        assert all(f"\t{thing}" in real["look"] for thing in state["things"])
        assert all(f"\t{thing}" in real["inventory"] for thing in state["inventory"])
        assert len(state["inventory"]) == real["inventory"].count("\n\t")
        assert len(state["goals"]) == real["goals"].count("\ttrue\t") + real["goals"].count("\tfalse\t")
        assert sum(goal["done"] for goal in state["goals"]) == real["goals"].count("\ttrue\t")
        assert state["score"] == pytest.approx(real["score"])
    parsed, _ = sciworld.from_record(trajectory)
    assert [state["room"] for state in parsed] == [state["room"] for state in states]
