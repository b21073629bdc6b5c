"""States of a search: they agree with minigrid's steps in a world of their own."""

import random

import pytest

from agentgym_envs.babyai.commands import parse
from agentgym_envs.babyai.pathfinding import pose_of
from agentgym_envs.babyai.states import Reached, States
from agentgym_envs.babyai.text_view import ObjectNames, TextView
from agentgym_envs.babyai.world import GridAction, GridWorld, make_world


def plans(world: GridWorld) -> list[list[GridAction]]:
    """The actions of all offered commands that take steps."""
    view = TextView(world, ObjectNames("nearest"), "macro")
    parsed = [command for command in map(parse, view.available) if command is not None]
    return [plan for plan in map(view.plan, parsed) if isinstance(plan, list)]


def endless(level: str, seed: int) -> GridWorld:
    world = make_world(level, seed)
    world.level.max_steps = 1 << 30
    return world


@pytest.mark.parametrize(
    "level", ["GoToLocal", "OpenDoorDebug", "KeyInBox", "PickupDistDebug", "PutNextS5N2Carrying", "UnlockLocal"]
)
def test_a_reached_state_equals_the_world_after_the_same_steps(level: str) -> None:
    rng = random.Random(level)
    for seed in range(6):
        world, states = endless(level, seed), States()
        at = Reached(states.arrange(world.copy()), pose_of(world))
        while not at.ended and world.steps < 60:
            plan = rng.choice(plans(world))
            at, outcome = states.run(at.arrangement, at.pose, plan), world.run(plan)
            assert (at.pose, at.arrangement.things) == (pose_of(world), world.describe_things())
            assert (at.ended, at.success) == (outcome.terminated, outcome.reward > 0)
            assert at.ended or at.arrangement.world.progress() == world.progress()


def test_states_that_differ_in_the_pose_share_an_arrangement() -> None:
    world, states = endless("GoToLocal", 0), States()
    start = states.arrange(world.copy())
    assert states.run(start, pose_of(world), [GridAction.LEFT]).arrangement is start
    assert states.arrange(world.copy()) is start and len(states) == 1


def test_only_views_that_depend_on_nothing_else_are_kept() -> None:
    world = endless("GoToLocal", 0)
    start, pose = States().arrange(world.copy()), pose_of(world)
    stable = ObjectNames("stable")
    assert start.view(pose, stable) is not start.view(pose, stable)
    assert start.view(pose, ObjectNames("nearest")) is start.view(pose, ObjectNames("nearest"))
