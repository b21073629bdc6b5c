import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.babyai.levels import LEVELS
from agentgym_envs.babyai.view import HOME, SIZE, FieldOfView, VisibleObject, beside, look, next_cell
from agentgym_envs.babyai.world import AHEAD, GridAction, GridWorld, make_world
from tests.babyai.tools import stroll
from tests.plugins.rotation import part
from tests.trying import examples

CELLS = range(SIZE * SIZE)
Pose = tuple[int, int, int]
"""Row ahead, column and facing (0 ahead, 1 right, 2 back, 3 left); the tested code uses another notation."""
START: Pose = (0, 3, 0)
FORWARD = ((1, 0), (0, 1), (-1, 0), (0, -1))
FREE = st.lists(st.sampled_from(CELLS), min_size=15, max_size=60).map(lambda cells: bits({*cells, HOME}))


def bits(cells: set[int]) -> int:
    return sum(1 << cell for cell in cells)


def is_in(cell: int, cells: int) -> bool:
    return bool(cells >> cell & 1)


def compare(world: GridWorld) -> FieldOfView:
    """Compare our field of view with minigrid's, for every cell but the agent's own."""
    view = look(world)
    grid, mask = world.level.gen_obs_grid()
    shown = {seen.cell: seen.thing for seen in view.seen}
    blocked = []
    for cell in CELLS:
        ahead, column = divmod(cell, SIZE)
        thing = grid.get(column, SIZE - 1 - ahead)
        visible = bool(mask[column, SIZE - 1 - ahead])
        assert is_in(cell, view.lit) == visible
        if cell == HOME:
            continue
        is_thing = thing is not None and thing.type != "wall"
        assert shown.get(cell) is (thing if is_thing and visible else None)
        assert is_in(cell, view.free) == (visible and (thing is None or thing.can_overlap()))
        if visible and column == 3 and thing is not None and thing.type in ("wall", "box"):
            blocked.append((thing.type, ahead))
    assert HOME not in shown and is_in(HOME, view.free)
    assert view.barrier == (blocked[0] if blocked else None)
    return view


def count_cells(world: GridWorld, views: int, number: int) -> int:
    return sum(len(compare(after).seen) for after in stroll(world, random.Random(number), views))


@pytest.mark.slow
def test_the_field_of_view_equals_minigrids() -> None:
    things = sum(count_cells(make_world(level, 5), 16, number) for number, level in enumerate(LEVELS))
    assert things > 1_500, "the comparison hardly compared anything"


@pytest.mark.slow
def test_the_field_of_view_equals_minigrids_in_long_play() -> None:
    for number, level in part(enumerate(LEVELS), "babyai view"):
        for seed in range(2):
            count_cells(make_world(level, seed), 210, 2 * number + seed)


def spot(seen: VisibleObject) -> tuple[int, int]:
    """Steps ahead and to the right."""
    return seen.cell // SIZE, seen.cell % SIZE - SIZE // 2


def test_objects_are_described_from_the_nearest_on() -> None:
    for level in LEVELS[::10]:
        for world in stroll(make_world(level, 6), random.Random(6), 20):
            seen = look(world).seen
            order = [(ahead + abs(right), -ahead, right) for ahead, right in map(spot, seen)]
            assert order == sorted(order) and len({s.cell for s in seen}) == len(seen)
            assert [s.rank for s in seen] == sorted(s.rank for s in seen)


def absolute(world: GridWorld, ahead: int, right: int) -> tuple[int, int]:
    (x, y), (fx, fy), (rx, ry) = world.position, AHEAD[world.direction], AHEAD[(world.direction + 1) % 4]
    return x + fx * ahead + rx * right, y + fy * ahead + ry * right


def test_described_positions_are_correct() -> None:
    for level in LEVELS[::5]:
        for world in stroll(make_world(level, 8), random.Random(8), 20):
            assert all(world.at(*absolute(world, *spot(s))) is s.thing for s in look(world).seen)


def test_next_cell_moves_one_step_within_the_view() -> None:
    for cell in CELLS:
        ahead, column = divmod(cell, SIZE)
        for facing, (up, across) in enumerate(FORWARD):
            inside = 0 <= ahead + up < SIZE and 0 <= column + across < SIZE
            assert next_cell(cell, facing) == ((ahead + up) * SIZE + column + across if inside else None)


@examples(50)
@given(st.sets(st.sampled_from(CELLS)))
def test_beside_returns_all_neighbours(cells: set[int]) -> None:
    neighbours = {next_cell(cell, facing) for cell in cells for facing in range(4)} - {None}
    assert beside(bits(cells)) == bits({cell for cell in neighbours if cell is not None})


def neighbours_of(pose: Pose, free: int) -> list[tuple[GridAction, Pose]]:
    row, column, facing = pose
    up, across = FORWARD[facing]
    turns = [(GridAction.LEFT, (row, column, (facing + 3) % 4)), (GridAction.RIGHT, (row, column, (facing + 1) % 4))]
    row, column = row + up, column + across
    open_ahead = 0 <= row < SIZE and 0 <= column < SIZE and is_in(row * SIZE + column, free)
    return [(GridAction.FORWARD, (row, column, facing)), *turns] if open_ahead else turns


def arrives(pose: Pose, target: int, onto: bool) -> bool:
    row, column, facing = pose
    up, across = (0, 0) if onto else FORWARD[facing]
    return divmod(target, SIZE) == (row + up, column + across)


def distances(free: int) -> dict[Pose, int]:
    """Return the distance of each pose from the start, in actions."""
    found, queue = {START: 0}, deque([START])
    while queue:
        pose = queue.popleft()
        for _, after in neighbours_of(pose, free):
            if after not in found:
                found[after] = found[pose] + 1
                queue.append(after)
    return found


def first_of_shortest(free: int, target: int, onto: bool) -> list[GridAction] | None:
    """Return the first shortest path in the order forward, left, right, by exhaustive search to the known depth."""
    ends = [steps for pose, steps in distances(free).items() if arrives(pose, target, onto)]
    if not ends:
        return None
    dead = set[tuple[Pose, int]]()

    def extend(pose: Pose, left: int) -> list[GridAction] | None:
        if left == 0:
            return [] if arrives(pose, target, onto) else None
        if (pose, left) in dead:
            return None
        for action, after in neighbours_of(pose, free):
            if (rest := extend(after, left - 1)) is not None:
                return [action, *rest]
        dead.add((pose, left))
        return None

    return extend(START, min(ends))


def view_of(free: int) -> FieldOfView:
    return FieldOfView([], free, None, free)


@pytest.mark.slow
@examples(40)
@given(FREE)
def test_reach_holds_the_cells_that_can_be_walked_to(free: int) -> None:
    walked = {row * SIZE + column for row, column, _ in distances(free)}
    assert view_of(free).reach() == bits(walked)


@examples(60)
@given(FREE, st.sampled_from(CELLS), st.booleans())
def test_paths_are_the_preferred_shortest_ones(free: int, target: int, onto: bool) -> None:
    assert view_of(free).path(target, onto=onto) == first_of_shortest(free, target, onto)


@examples(60)
@given(FREE, st.sampled_from(CELLS))
def test_every_reachable_cell_has_a_path(free: int, target: int) -> None:
    view = view_of(free)
    assert (view.path(target, onto=True) is not None) == is_in(target, view.reach())
    assert (view.path(target, onto=False) is not None) == is_in(target, beside(view.reach()))


@examples(50)
@given(st.sampled_from(LEVELS), st.integers(0, 100), st.integers(0, 2**32), st.booleans())
def test_a_path_leads_to_its_target_in_the_world(level: str, seed: int, number: int, onto: bool) -> None:
    rng = random.Random(number)
    *_, world = stroll(make_world(level, seed), rng, rng.randint(1, 30))
    view = look(world)
    reachable = [cell for cell in CELLS if is_in(cell, view.reach() if onto else beside(view.reach()))]
    reachable = [cell for cell in reachable if is_in(cell, view.lit)]
    if not reachable:
        return
    target = rng.choice(reachable)
    target_cell = absolute(world, target // SIZE, target % SIZE - HOME)
    path = view.path(target, onto=onto)
    assert path is not None
    walker = world.copy()
    for action in path:
        before = walker.position
        walker.step(action)
        assert (walker.position != before) == (action == GridAction.FORWARD)
    assert (walker.position if onto else absolute(walker, 1, 0)) == target_cell
