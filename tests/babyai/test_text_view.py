from typing import Any

import pytest
from minigrid.core.world_object import Ball, Box, Door, Key, Wall

from agentgym_envs.babyai.commands import Verb, parse
from agentgym_envs.babyai.text_view import Actions, Numbering, ObjectNames, TextView
from agentgym_envs.babyai.world import GridAction, GridWorld, make_world

SEE = "In front of you in this room, you can see several objects: "
ROOM = "The room has walls around you. "
EMPTY_HANDS = "You are not carrying anything."
Placed = tuple[Any, int, int]
"""An object, and its distance ahead and to the right of the agent, in steps."""


def numbered(thing: Any, serial: int) -> Any:
    thing.serial = serial
    return thing


class Play:
    """A large empty room with the agent in its middle and the given objects."""

    def __init__(
        self, *placed: Placed, carrying: Any = None, numbering: Numbering = "nearest", actions: Actions = "macro"
    ) -> None:
        self.world = empty_room()
        for serial, (thing, ahead, right) in enumerate(placed):
            self.world.level.grid.set(10 + right, 10 - ahead, numbered(thing, serial))
        if carrying is not None:
            self.world.level.carrying = numbered(carrying, len(placed))
        self.names, self.actions = ObjectNames(numbering), actions
        self.look()

    def look(self) -> TextView:
        self.text_view = TextView(self.world, self.names, self.actions)
        return self.text_view

    def plan(self, command: str) -> list[GridAction] | str | None:
        parsed = parse(command)
        assert parsed is not None
        return self.text_view.plan(parsed)

    def do(self, command: str) -> TextView:
        plan = self.plan(command)
        assert isinstance(plan, list), plan
        for action in plan:
            self.world.step(action)
        return self.look()

    @property
    def sight(self) -> str:
        """The sentences about objects in sight."""
        text = self.text_view.describe()
        assert text.startswith(SEE) and text.endswith(f"{ROOM}{EMPTY_HANDS}")
        return text.removeprefix(SEE).removesuffix(f"{ROOM}{EMPTY_HANDS}")

    @property
    def offered(self) -> list[str]:
        """The available actions with objects."""
        own = {"turn left", "turn right", "move forward", "check available actions"}
        return [action for action in self.text_view.available if action not in own]


def empty_room() -> GridWorld:
    """The room of OneRoomS20 with the agent in its middle, facing up; no wall is in sight."""
    world = make_world("OneRoomS20", 0)
    for x in range(1, 19):
        for y in range(1, 19):
            world.level.grid.set(x, y, None)
    world.level.agent_pos, world.level.agent_dir = (10, 10), 3
    return world


def test_an_empty_view_is_described() -> None:
    play = Play()
    assert play.text_view.describe() == f"You cannot see any objects within sight. {ROOM}{EMPTY_HANDS}"
    assert play.text_view.available == ["turn left", "turn right", "move forward", "check available actions"]
    offer = 'Available actions: ["turn left", "turn right", "move forward", "check available actions"]'
    assert play.text_view.offer() == offer


@pytest.mark.parametrize(
    ("ahead", "right", "position"),
    [
        (1, 0, "right in front of you 1 steps away.  "),
        (6, 0, "right in front of you 6 steps away.  "),
        (2, 3, "2 steps in front of you and 3 steps to your right.  "),
        (5, -1, "5 steps in front of you and 1 steps to your left.  "),
        (0, -3, "0 steps in front of you and 3 steps to your left.  "),
    ],
)
def test_the_position_of_an_object_is_described(ahead: int, right: int, position: str) -> None:
    assert Play((Ball("red"), ahead, right)).sight == f"There is a red ball 1 {position}"


@pytest.mark.parametrize(("ahead", "right"), [(7, 0), (1, 4), (1, -4), (-1, 0), (-1, 2)])
def test_objects_outside_the_view_are_not_described(ahead: int, right: int) -> None:
    assert (
        Play((Ball("red"), ahead, right)).text_view.describe().startswith("You cannot see any objects within sight. ")
    )


def test_objects_with_the_same_name_are_numbered_from_the_nearest_on() -> None:
    play = Play(
        (Key("grey"), 5, 0), (Key("grey"), 1, 2), (Ball("grey"), 2, 0), (Key("grey"), 2, -3), (Key("red"), 3, 3)
    )
    assert play.sight.split("  ")[:-1] == [
        "There is a grey ball 1 right in front of you 2 steps away.",
        "There is a grey key 1 1 steps in front of you and 2 steps to your right.",
        "There is a grey key 2 right in front of you 5 steps away.",
        "There is a grey key 3 2 steps in front of you and 3 steps to your left.",
        "There is a red key 1 3 steps in front of you and 3 steps to your right.",
    ]
    things = ["grey ball 1", "grey key 1", "grey key 2", "grey key 3", "red key 1"]
    assert play.offered == [*(f"pickup {name}" for name in things), *(f"go to {name}" for name in things)]


def test_doors_are_described_by_state() -> None:
    doors = (Door("red"), 1, -1), (Door("red", is_locked=True), 2, -2), (Door("red"), 2, 3), (Door("blue", True), 3, 0)
    play = Play(*doors)
    assert play.sight == (
        "There is a red closed door 1 1 steps in front of you and 1 steps to your left.  "
        "There is a blue open door 1 right in front of you 3 steps away.  "
        "There is a red locked door 1 2 steps in front of you and 2 steps to your left.  "
        "There is a red closed door 2 2 steps in front of you and 3 steps to your right.  "
    )
    assert play.offered == [
        "toggle and go through red closed door 1",
        "go through blue open door 1",
        "toggle and go through red closed door 2",
        *("go to red closed door 1", "go to blue open door 1", "go to red locked door 1", "go to red closed door 2"),
    ]


@pytest.mark.parametrize("key", [None, Key("blue"), Ball("red")])
def test_a_locked_door_needs_its_key(key: Any) -> None:
    without = Play((Door("red", is_locked=True), 1, 0), carrying=key)
    assert without.offered == []
    why = "the color of the key you are carrying does not match the color of door"
    why = why if key is not None and key.type == "key" else "you are not carrying a key"
    assert without.plan("toggle") == f"You cannot toggle the red locked door, as {why}."
    for command in ("toggle red locked door 1", "toggle and go through red locked door 1"):
        assert without.plan(command) == f"You cannot {command}, as {why}."
    within = Play((Door("red", is_locked=True), 1, 0), carrying=Key("red"))
    assert within.offered == ["toggle and go through red locked door 1", "toggle"]
    assert within.plan("toggle") == [GridAction.TOGGLE]
    assert within.do("toggle and go through the red locked door").front is None
    assert within.world.position == (10, 9)


@pytest.mark.parametrize(("thing", "word"), [(Wall(), "wall"), (Box("red"), "box")])
def test_the_barrier_ahead_is_described(thing: Any, word: str) -> None:
    text_view = Play((thing, 3, 0), (Wall(), 5, 0), (Wall(), 1, 1)).text_view
    assert f"{ROOM}You are facing a {word} 3 steps away. {EMPTY_HANDS}" in text_view.describe()
    assert "move forward" in text_view.available
    assert "move forward" not in Play((thing, 1, 0)).text_view.available


def test_a_ball_is_not_a_barrier_and_a_closed_door_hides_the_wall() -> None:
    assert f"{ROOM}{EMPTY_HANDS}" in Play((Ball("red"), 1, 0)).text_view.describe()
    row: list[Placed] = [(Wall(), 2, right) for right in (-3, -2, -1, 1, 2, 3)]
    closed = Play((Door("red"), 2, 0), (Wall(), 4, 0), (Ball("red"), 3, 0), *row)
    assert closed.sight == "There is a red closed door 1 right in front of you 2 steps away.  "
    opened = Play((Door("red", True), 2, 0), (Wall(), 4, 0), (Ball("red"), 3, 0), *row)
    assert "red ball 1" in opened.text_view.named
    assert f"{ROOM}You are facing a wall 4 steps away. {EMPTY_HANDS}" in opened.text_view.describe()


def test_the_carried_object_is_described() -> None:
    play = Play((Ball("red"), 2, 0), carrying=Key("grey"))
    assert play.text_view.describe().endswith(f"{ROOM}You are carrying a grey key.")
    assert play.offered == ["drop", "go to red ball 1"]
    play.do("drop")
    assert play.sight.startswith("There is a grey key 1 right in front of you 1 steps away.  ")
    assert play.text_view.describe().endswith(EMPTY_HANDS)


def test_numbers_also_count_unreachable_objects() -> None:
    behind_boxes = [(Box("blue"), ahead, right) for ahead, right in ((0, -2), (1, -1), (2, -2), (1, -3))]
    ball = Ball("red")
    play = Play((Ball("red"), 1, -2), (ball, 4, 2), *behind_boxes)
    assert "There is a red ball 1 1 steps in front of you and 2 steps to your left.  " in play.sight
    assert "There is a red ball 2 4 steps in front of you and 2 steps to your right.  " in play.sight
    assert [action for action in play.offered if "ball" in action] == ["pickup red ball 2", "go to red ball 2"]
    for command in ("go to red ball 1", "pickup red ball 1"):
        assert play.plan(command) == f"You cannot {command}, as there is no path leading to it."
    assert play.do("pickup red ball 2").carrying is ball


def test_a_box_right_ahead_can_be_opened() -> None:
    play = Play((Box("blue", numbered(Key("red"), 7)), 1, 0), (Box("blue"), 3, 3))
    pickups = ["pickup blue box 1", "pickup blue box 2"]
    assert play.offered == [*pickups, "toggle", "go to blue box 2"]
    assert play.plan("toggle blue box 1") == [GridAction.TOGGLE] == play.plan("toggle")
    refused = "You cannot toggle blue box 2, as it is not right in front of you. Go to it first."
    assert play.plan("toggle blue box 2") == refused
    play.do("toggle")
    assert play.sight.startswith("There is a red key 1 right in front of you 1 steps away.  ")


def test_the_number_may_be_left_out_if_unambiguous() -> None:
    play = Play((Ball("red"), 3, 0), (Key("red"), 2, 1), (Key("red"), 4, 1), (Door("grey"), 3, -3))
    assert play.plan("go to red ball") == play.plan("go to red ball 1") == [GridAction.FORWARD] * 2
    assert play.plan("go to the grey closed door") == play.plan("go to grey closed door 1")
    assert play.plan("go to red key") == "Several things fit red key: red key 1, red key 2. Say which."
    assert play.plan("go to red ball 2") == "There is no red ball 2 in sight."
    assert play.plan("pickup ball") == play.plan("pickup red ball 1")
    assert play.plan("go to key") == "Several things fit key: red key 1, red key 2. Say which."
    for name in ("red", "1", "ball red", "red red ball", "balls"):
        assert play.plan(f"go to {name}") == f"There is no {name} in sight."
    assert play.plan(f"go to {'x' * 500}") == f"There is no {'x' * 80} in sight."


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("move forward", "There is a barrier in front of you, you can't move forward."),
        ("pickup", "There is nothing in front of you that you could pickup."),
        ("drop", "You cannot drop the object, as you are not carrying anything."),
        ("toggle blue open door 1", "You cannot toggle blue open door 1, as it is not right in front of you. "),
        ("pickup red closed door 1", "You cannot pickup red closed door 1, as a door cannot be carried."),
        ("toggle green ball 1", "You cannot toggle green ball 1, as it is neither a door nor a box."),
        ("go through green ball 1", "You cannot go through green ball 1, as it is not a door."),
        ("go through red closed door 1", "as it is closed. You should toggle it first."),
        ("toggle and go through green ball 1", "as it is not a door."),
        ("toggle and go through blue open door 1", "as it is open already. You can go through it."),
        ("go to red closed door 1", "No change in state."),
    ],
)
def test_impossible_commands_are_refused_with_a_reason(command: str, reply: str) -> None:
    answer = Play((Door("red"), 1, 0), (Door("blue", True), 3, 3), (Ball("green"), 2, -2)).plan(command)
    assert isinstance(answer, str) and reply in answer


def test_commands_are_refused_while_carrying_or_without_an_object() -> None:
    play = Play((Ball("green"), 1, 0), (Ball("green"), 3, 0), carrying=Key("red"))
    full = "as you are carrying a red key. Drop it first."
    assert play.plan("pickup green ball 2") == f"You cannot pickup green ball 2, {full}"
    assert play.plan("pickup") == f"You cannot pickup anything, {full}"
    assert play.plan("drop") == "You cannot drop the object, as there is already an object in front of you."
    for command in ("toggle", "move forward"):
        assert isinstance(play.plan(command), str)
    assert Play().plan("toggle") == "There is no door or box in front of you to toggle."


@pytest.mark.parametrize("command", ["done", "go to", "go through", "toggle and go through", "turn left now"])
def test_unknown_commands_have_no_plan(command: str) -> None:
    assert Play((Ball("red"), 1, 0)).plan(command) is None


def test_stable_numbers_stay_with_their_objects() -> None:
    play = Play((Ball("red"), 2, 0), (Ball("red"), 3, 0), (Door("grey"), 4, 2), numbering="stable")
    assert list(play.text_view.named) == ["red ball 1", "red ball 2", "grey closed door 1"]
    play.world.level.agent_pos, play.world.level.agent_dir = (10, 5), 1
    assert list(play.look().named) == ["red ball 2", "red ball 1", "grey closed door 1"]
    play.do("pickup red ball 1")
    assert getattr(play.text_view.carrying, "serial", None) == 0
    for command in ("turn right", "turn right", "drop", "turn left"):
        play.do(command)
    play.world.level.agent_pos, play.world.level.agent_dir = (10, 10), 3
    assert next(iter(play.look().named)) == "red ball 2"
    play.do("toggle and go through grey closed door 1")
    play.world.level.agent_pos, play.world.level.agent_dir = (10, 10), 3
    assert "grey open door 1" in play.look().named


def test_stable_numbers_of_doors_do_not_depend_on_their_state() -> None:
    play = Play((Door("red"), 1, 0), (Door("red", True), 2, 2), numbering="stable")
    assert list(play.text_view.named) == ["red closed door 1", "red open door 2"]
    assert list(play.do("toggle").named) == ["red open door 1", "red open door 2"]


def test_a_copy_of_stable_names_is_independent() -> None:
    play = Play((Ball("red"), 2, 0), numbering="stable")
    names = play.names.copy()
    play.world.level.grid.set(10, 9, numbered(Ball("red"), 9))
    assert list(play.look().named) == ["red ball 2", "red ball 1"]
    assert names.known == {0: 1}
    assert list(TextView(play.world, names, "macro").named) == ["red ball 2", "red ball 1"]
    assert list(TextView(play.world, ObjectNames("nearest"), "macro").named) == ["red ball 1", "red ball 2"]


def test_an_object_from_a_box_gets_the_next_stable_number() -> None:
    play = Play((Box("red", numbered(Key("red"), 5)), 1, 0), (Key("red"), 5, 1), numbering="stable")
    assert list(play.text_view.named) == ["red box 1", "red key 1"]
    assert list(play.do("toggle").named) == ["red key 2", "red key 1"]


def test_primitive_actions_are_always_the_same_seven() -> None:
    seven = ["turn left", "turn right", "move forward", "pickup", "drop", "toggle", "done"]
    play = Play((Wall(), 1, 0), actions="primitive")
    assert play.text_view.available == seven
    assert [play.plan(command) for command in seven] == [[action] for action in GridAction]
    assert play.plan("pick up") == [GridAction.PICKUP]
    for command in ("go to red ball 1", "pickup red ball 1", Verb.CHECK, "toggle and go through red open door 1"):
        assert play.plan(command) is None


@pytest.mark.parametrize("command", ["drop it", "drop red ball", "drop the red ball 1", "Drop"])
def test_drop_may_name_the_carried_object(command: str) -> None:
    play = Play((Ball("red"), 1, 0))
    play.do("pickup red ball 1")
    assert play.plan("drop blue ball 1") == "You cannot drop blue ball 1, as you are carrying a red ball."
    assert play.plan(command) == [GridAction.DROP]


@pytest.mark.parametrize("name", ["red door 1", "red door", "red closed door", "red closed door 1"])
def test_the_state_of_a_door_may_be_left_out_if_unambiguous(name: str) -> None:
    play = Play((Door("red"), 3, 0), (Door("blue"), 3, 2))
    assert play.plan(f"go to {name}") == [GridAction.FORWARD, GridAction.FORWARD]
    both = Play((Door("red"), 3, 0), (Door("red", True), 3, 2))
    which = "Several things fit red door 1: red closed door 1, red open door 1. Say which."
    assert both.plan("go to red door 1") == which
