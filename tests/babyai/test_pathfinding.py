"""Searching paths and places for objects in small grids."""

from types import SimpleNamespace
from typing import Any

from agentgym_envs.babyai.pathfinding import PathSearch, TerrainCosts, drop_costs

ROOMS = """\
#######
#..#..#
#..D..#
#..#.b#
#######"""
THINGS = {"#": "wall", "D": "door", "b": "ball"}


def grid() -> Any:
    rows = ROOMS.splitlines()
    cells = [None if mark == "." else thing(THINGS[mark]) for row in rows for mark in row]
    return SimpleNamespace(cells=cells, size=(len(rows[0]), len(rows)))


def thing(kind: str) -> Any:
    return SimpleNamespace(type=kind, can_pickup=lambda: kind == "ball")


def test_objects_are_put_where_they_block_nothing() -> None:
    costs = drop_costs(grid(), keep=[8])
    assert 17 not in costs and 26 not in costs  # the door and the ball
    assert costs[1 * 7 + 1] == 20 and costs[2 * 7 + 1] == 0
    assert costs[2 * 7 + 2] == costs[2 * 7 + 4] == 8  # by the door, and between its cell and the rest of the room
    assert costs[3 * 7 + 4] == 0 and costs[2 * 7 + 5] == 0  # the ball can be reached from the other side


def test_an_object_is_put_down_on_the_way_in_one_step() -> None:
    ground = TerrainCosts([-1 if cell is not None else 0 for cell in grid().cells], frozenset(), frozenset())
    found = PathSearch((1, 7, -1, -7), [ground, ground], {9: 0, 15: 0}).find(4 * 8, {14: 0})
    assert found is not None and found.cost == 4
    assert [step.action.name for step in found.steps] == ["DROP", "RIGHT", "FORWARD", "RIGHT"]


def test_an_object_that_is_nowhere_has_no_path() -> None:
    enter = [-1 if cell is not None else 0 for cell in grid().cells]
    ground = TerrainCosts(enter, frozenset(), frozenset())
    search = PathSearch((1, 7, -1, -7), [ground])
    assert search.find(4 * 8, {-1: 0}) is None
    found = search.find(4 * 8, {7 * 2: 0})  # the wall to the left, a row below
    assert found is not None and (found.cost, found.end, found.faced) == (3, 4 * 15 + 2, 14)
