"""Helpers for the tests of BabyAI: original minigrid environments, state keys, and plans found by search."""

from __future__ import annotations

import contextlib
import io
import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym

from agentgym_envs.babyai.levels import LEVELS, blank_level
from agentgym_envs.babyai.world import GridAction, GridWorld, make_world

ACTIONS = tuple(GridAction)


def minigrid_id(level: str) -> str:
    return f"BabyAI-{level}-{'v1' if level == 'GoToObjS6' else 'v0'}"


def reference(level: str, seed: int) -> Any:
    """Return minigrid's own environment after a reset, which prints."""
    blank_level(level)
    env: Any = gym.make(minigrid_id(level)).unwrapped
    with contextlib.redirect_stdout(io.StringIO()):
        env.reset(seed=seed)
    return env


def code(thing: Any) -> tuple[int, ...]:
    """Return the type, colour and state of a cell, and of the content of a box."""
    if thing is None:
        return ()
    return (*(int(part) for part in thing.encode()), *code(thing.contains))


def layout(env: Any) -> tuple[Any, ...]:
    """Return all observable state of a minigrid environment."""
    position = tuple(int(part) for part in env.agent_pos)
    cells = tuple(code(cell) for cell in env.grid.grid)
    return env.mission, env.max_steps, env.step_count, position, int(env.agent_dir), code(env.carrying), cells


def behaviour(world: GridWorld) -> tuple[Any, ...]:
    """Return all state that affects the future, with objects by identity rather than by appearance."""
    cells = tuple(None if cell is None else (id_of(cell), code(cell)) for cell in world.cells)
    return world.position, world.direction, id_of(world.carrying), cells, memory(world.level.instrs)


def id_of(thing: Any) -> int | None:
    return None if thing is None else getattr(thing, "serial", -1)


def memory(instruction: Any) -> tuple[Any, ...]:
    """Return the state of a verifier: fulfilled clauses, the carried object, and the assumed positions."""
    if hasattr(instruction, "instr_a"):
        parts = instruction.instr_a, instruction.instr_b
        done = instruction.a_done == "success", instruction.b_done == "success"
        return (*done, *(memory(part) for part in parts))
    described = [getattr(instruction, name, None) for name in ("desc", "desc_move", "desc_fixed")]
    places = [None if one is None else tuple(map(tuple, one.obj_poss)) for one in described]
    return id_of(getattr(instruction, "preCarrying", None)), *places


def key(world: GridWorld) -> tuple[Any, ...]:
    """Return the state as `state_key` distinguishes it."""
    return world.position, world.direction, world.describe_things(), world.progress()


def random_actions(rng: random.Random, count: int) -> list[GridAction]:
    """Draw one of the seven actions, mostly forward, so that the agent moves around."""
    return rng.choices(ACTIONS, weights=(2, 2, 5, 2, 2, 2, 1), k=count)


def stroll(world: GridWorld, rng: random.Random, count: int) -> Iterator[GridWorld]:
    """Yield a world in random play; sometimes the agent is moved elsewhere, to cover more of it."""
    free = [position for position, cell in enumerate(world.cells) if cell is None]
    for number, action in enumerate(random_actions(rng, count)):
        if number % 8 == 7 and (places := [position for position in free if world.cells[position] is None]):
            y, x = divmod(rng.choice(places), world.size[0])
            world.level.agent_pos = x, y
        world.step(action)
        yield world


def search(world: GridWorld, most: int) -> list[GridAction] | None:
    """Return the shortest plan, found by copying the world; None if a search of `most` states finds no plan."""
    queue = deque([(world, list[GridAction]())])
    known = {key(world)}
    while queue and len(known) < most:
        state, plan = queue.popleft()
        for action in ACTIONS[:-1]:
            after = state.copy()
            outcome = after.step(action)
            if outcome.terminated and outcome.reward > 0:
                return [*plan, action]
            if not outcome.terminated and key(after) not in known:
                known.add(key(after))
                queue.append((after, [*plan, action]))
    return None


def bot_plan(level: str, seed: int) -> list[GridAction]:
    """Return the actions of minigrid's own bot in minigrid's own environment, if it succeeds."""
    from minigrid.utils.baby_ai_bot import BabyAIBot

    env = reference(level, seed)
    bot, plan, terminated = BabyAIBot(env), list[GridAction](), False
    while not terminated:
        plan.append(GridAction(int(bot.replan(plan[-1] if plan else None))))
        _, reward, terminated, truncated, _ = env.step(plan[-1])
        assert not truncated
    assert reward > 0
    return plan


def worlds_of_every_level(seeds: Sequence[int] = (0,)) -> Iterator[GridWorld]:
    return (make_world(level, seed) for level in LEVELS for seed in seeds)
