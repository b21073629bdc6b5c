"""The oracle in the real environment: from the start, in mid-episode, and with other environments."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from agentgym_envs.errors import NoOracle
from agentgym_envs.sciworld import oracle, simulation
from agentgym_envs.sciworld.env import SciWorldEnv
from agentgym_envs.sciworld.plan_check import PlanningTask
from agentgym_envs.sciworld.rooms import ROOMS, room_in, route, tour, walk_commands
from agentgym_envs.sciworld.tasks import choose_kinds
from tests.plugins.rotation import part

pytestmark = pytest.mark.slow  # a plan takes from half a second to many
THING, TWO, PAINT = "find-non-living-thing/280", "lifespan-longest-lived-then-shortest-lived/28", "paint/27"
SHORT = (THING, TWO, "lifespan-longest-lived/93", PAINT)
CHEAP = (
    *("boil/15", "melt/13", "freeze/2", "change-the-state-of-matter-of/4", "use-thermometer/425"),
    *("measure-melting-point-known-substance/102", "measure-melting-point-unknown-substance/29", "power-component/4"),
    *("power-component-renewable-vs-nonrenewable-energy/15", "test-conductivity/678", "find-animal/124"),
    *("test-conductivity-of-unknown-substances/161", "find-living-thing/163", "find-plant/162", "chemistry-mix/16"),
    *("chemistry-mix-paint-tertiary-color/0", "lifespan-shortest-lived/76", "identify-life-stages-1/4", *SHORT),
    *("identify-life-stages-2/5", "grow-plant/27", "grow-fruit/114", "inclined-plane-determine-angle/85"),
    *("inclined-plane-friction-named-surfaces/54", "inclined-plane-friction-unnamed-surfaces/30"),
    *("mendelian-genetics-known-plant/94", "mendelian-genetics-unknown-plant/180"),
)
ALWAYS = {THING, "chemistry-mix/16", "find-plant/162"}
"""Every run solves these tasks of `CHEAP`; the others alternate between runs."""
MENDED = {
    "freeze/11": "pour metal pot into sink",  # or the chocolate burns
    "grow-fruit/87": "focus on lemon on lemon tree in the reproducing stage",  # again, when there is one
    "measure-melting-point-unknown-substance/60": "focus on purple box",  # the expert says yellow
}


def make(**options: Any) -> SciWorldEnv:
    """An environment in a shared JVM, with enough time for the expert on a busy computer."""
    return SciWorldEnv(**{"split": None, "jvms": 1, "call_seconds": 600.0, **options})


@pytest.fixture(scope="module")
def env() -> Iterator[SciWorldEnv]:
    with closing(make()) as made:
        yield made


def forget() -> None:
    """Clear the caches, as in a new process."""
    oracle._paths.clear()
    oracle._solutions.clear()


def full_id(short: str) -> str:
    return "sciworld/" + short.replace("paint/", "chemistry-mix-paint-secondary-color/")


def begin(env: SciWorldEnv, task: str, *commands: str) -> dict[str, Any]:
    _, info = env.reset(seed=0, options={"task": full_id(task)})
    for command in commands:
        *_, terminated, truncated, info = env.step(command)
        assert not terminated and not truncated, command
    return info


def solve_in(env: SciWorldEnv) -> list[str]:
    """Play the oracle's plan: its last command must complete the task, and no other may end the episode."""
    plan = list(env.oracle())
    for number, command in enumerate(plan, 1):
        _, _, terminated, truncated, info = env.step(command)
        assert (terminated, truncated) == (number == len(plan), False), command
    assert info["success"] and info["score"] == pytest.approx(1.0), env.task
    return plan


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("task", [THING, PAINT])
def test_a_plan_solves_its_task_and_is_repeatable(env: SciWorldEnv, task: str) -> None:
    begin(env, task)
    plan = solve_in(env)
    begin(env, task)
    assert list(env.oracle()) == plan


# In the middle of an episode


def test_commands_without_effect_do_not_change_the_plan(env: SciWorldEnv) -> None:
    begin(env, PAINT)
    plan = list(env.oracle())
    begin(env, PAINT, "task", *plan[:2], "fly to the moon", "inventory", "look around", plan[2], "help")
    left = list(env.oracle())
    assert left == plan[3:]
    assert solve_in(env) == left


def test_following_the_plan_needs_no_new_planning(env: SciWorldEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(env, THING)
    plan = list(env.oracle())
    begin(env, THING, plan[0].upper() + ".", *plan[1:3])
    monkeypatch.setattr(oracle, "_checker", None)
    assert list(env.oracle()) == plan[3:]


def test_a_plan_exists_after_a_detour(env: SciWorldEnv) -> None:
    begin(env, TWO)
    plan = list(env.oracle())
    assert plan[-1].startswith("focus on") and plan[-2].startswith("focus on")
    begin(env, TWO, *plan[:-1], *walk_commands(["kitchen", "hallway", "workshop"]))
    assert solve_in(env) == [*walk_commands(["hallway", "kitchen", "outside"]), plan[-1]]


def test_the_oracle_works_when_first_called_in_mid_episode(env: SciWorldEnv) -> None:
    begin(env, TWO)
    plan = list(env.oracle())
    forget()
    begin(env, TWO, *plan[:-1], *walk_commands(["kitchen"]))
    assert solve_in(env)[-1] == plan[-1]


def test_a_plan_closes_or_answers_an_open_menu(env: SciWorldEnv) -> None:
    begin(env, THING)
    plan = list(env.oracle())
    begin(env, THING, plan[0])  # in the kitchen, which has three doors
    assert env.step("go to door")[0].startswith("Ambiguous request")
    env.step("task")  # does not close it
    assert solve_in(env) == ["look around", *plan[1:]]


def test_a_plan_respects_the_limit_of_moves(env: SciWorldEnv) -> None:
    begin(env, THING)
    needed = [0, *(env.step(command)[-1]["moves"] for command in env.oracle())]
    with closing(make(max_moves=needed[-2])) as just_enough:
        begin(just_enough, THING)
        solve_in(just_enough)
    with closing(make(max_moves=needed[-2] - 1)) as too_few:
        begin(too_few, THING)
        with pytest.raises(NoOracle, match=rf"find-non-living-thing 280 from here within {needed[-2] - 1} moves"):
            too_few.oracle()


def test_a_lost_task_has_no_plan(env: SciWorldEnv) -> None:
    begin(env, PAINT, "pour red paint into glass cup", "pour yellow paint into glass cup", "mix glass cup")
    with pytest.raises(NoOracle, match="found no commands that solve chemistry-mix-paint-secondary-color 27 from here"):
        env.oracle()
    assert env.step("look in glass cup")[0].endswith("orange paint")


# Beside others


def test_planning_does_not_change_running_worlds(env: SciWorldEnv) -> None:
    begin(env, PAINT)
    commands = [*list(env.oracle())[:4], "look around", "wait", "inventory", "look around"]
    forget()

    def transcript(other: SciWorldEnv | None) -> list[Any]:
        observation, info = env.reset(seed=0, options={"task": full_id(PAINT)})
        recorded: list[Any] = [(observation, info)]
        for number, command in enumerate(commands):
            if other is not None and number % 4 == 1:
                list(env.oracle()), list(other.oracle())
            recorded.append(env.step(command))
        return recorded

    alone = transcript(None)
    with closing(make(simplifications="easy")) as other:
        begin(other, THING)
        assert transcript(other) == alone
        assert other.world.jvm is env.world.jvm
        assert not env.world._interface.goldPathGenerationEnabled()
        solve_in(other)


def test_the_number_of_cached_paths_is_bounded(env: SciWorldEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "KEPT", 1)
    for number in range(2):
        begin(env, f"find-non-living-thing/{number}")
        list(env.oracle())
    assert [problem.variation for problem in oracle._paths] == [1]


@pytest.mark.rotating
def test_resets_take_as_long_after_an_oracle_as_before(env: SciWorldEnv) -> None:
    def resets() -> float:
        times = []
        for _ in range(7):
            begun = time.perf_counter()
            begin(env, "boil/15")
            times.append(time.perf_counter() - begun)
        return min(times)  # which a busy computer changes least

    resets()
    before = resets()
    begun = time.perf_counter()
    list(env.oracle())
    search = time.perf_counter() - begun
    assert resets() < before + search / 4


@pytest.mark.rotating
def test_two_threads_can_plan_in_two_jvms_at_once() -> None:
    forget()
    tasks = ["lifespan-shortest-lived/0", "find-non-living-thing/1"]
    plans: list[list[list[str]]] = [[], []]
    envs = [make(heap_mb=300 + index) for index in range(2)]  # different options, so different JVMs

    def work(index: int) -> None:
        for task in tasks:
            begin(envs[index], task)
            plans[index].append(solve_in(envs[index]))

    threads = [threading.Thread(target=work, args=[index]) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(plans[0]) == 2 and plans[0] == plans[1]
    assert envs[0].world.jvm is not envs[1].world.jvm
    for env in envs:
        env.close()


@pytest.mark.rotating
def test_an_endless_expert_is_stopped_without_affecting_other_environments(
    env: SciWorldEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(make()) as other:
        begin(other, PAINT)
        begin(env, "mendelian-genetics-unknown-plant/181")
        assert env.world.jvm is other.world.jvm
        monkeypatch.setattr(simulation, "EXPERT_COMMANDS", 3)
        with pytest.raises(NoOracle, match="mendelian-genetics-unknown-plant 181"):
            env.oracle()
        monkeypatch.undo()
        assert env.step("look around")[-1]["stop_reason"] is None
        solve_in(other)


def test_the_experts_budget_is_a_number_of_commands(env: SciWorldEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(env, THING)
    list(env.oracle())
    checker, problem = oracle._checkers[env.world.jvm], PlanningTask("find-non-living-thing", 280, "")
    path = checker.gold_path(problem, ())
    for budget, expected in ((len(path), path), (len(path) - 1, []), (0, [])):
        monkeypatch.setattr(simulation, "EXPERT_COMMANDS", budget)
        assert checker.gold_path(problem, ()) == expected


@pytest.mark.rotating
def test_a_jvm_that_ends_during_planning_raises_no_oracle() -> None:
    with closing(make(heap_mb=310)) as env:
        begin(env, "find-non-living-thing/7")
        dead = env.world.jvm
        os.kill(dead.pid, signal.SIGKILL)
        with pytest.raises(NoOracle, match="the simulator failed during planning"):
            env.oracle()
        assert env.step("look around")[-1]["stop_reason"] == "env_error"
        begin(env, "find-non-living-thing/7")
        solve_in(env)
        assert dead not in oracle._checkers and env.world.jvm in oracle._checkers


# All of them


def test_the_oracle_tests_cover_all_thirty_tasks() -> None:
    assert {full_id(task).split("/")[1] for task in CHEAP} == set(choose_kinds("all")) and set(CHEAP) >= ALWAYS


@pytest.mark.parametrize(
    "task", [task if task in ALWAYS else pytest.param(task, marks=pytest.mark.rotating) for task in CHEAP]
)
def test_a_variation_of_a_task_is_solved(env: SciWorldEnv, task: str) -> None:
    begin(env, task)
    solve_in(env)


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("task", MENDED)
def test_mistakes_of_the_expert_are_repaired(env: SciWorldEnv, task: str) -> None:
    begin(env, task)
    assert MENDED[task] in solve_in(env)


def test_simplified_worlds_are_solved() -> None:
    with closing(make(simplifications="easy")) as easy:
        more = (*SHORT[1:], "grow-plant/27", "power-component/4", "melt/13", "use-thermometer/425")
        for task in (THING, *part(more, "easy worlds")):
            begin(easy, task)
            solve_in(easy)


@pytest.mark.rotating
def test_after_random_play_most_tasks_are_solved_and_the_others_raise(env: SciWorldEnv) -> None:
    solved = asked = 0
    for seed, task in enumerate((PAINT, THING, TWO, "chemistry-mix/3", "find-plant/7")):
        rng = random.Random(seed)
        begin(env, task)
        for command in list(env.oracle())[: rng.randrange(6)]:
            env.step(command)
        for _ in range(15):
            command = env.random_command(rng)
            if env._stop is None and not command.startswith("focus"):
                env.step(command)
        if env._stop is None:
            asked += 1
            try:
                solve_in(env)
                solved += 1
            except NoOracle as reason:
                assert "from here" in str(reason)
    assert solved >= 0.6 * asked > 2, (solved, asked)


# Rooms


def test_a_tour_visits_every_room(env: SciWorldEnv) -> None:
    observation, _ = env.reset(seed=0, options={"task": full_id(THING)})
    start = next(room for line in observation.split("\n") if (room := room_in(line)))
    assert set(tour(start)) | {start} == set(ROOMS)
    for room in tour(start):
        for command in walk_commands([room]):
            observation = env.step(command)[0]
        assert room_in(observation) == room_in(env.step("look around")[0]) == room


@pytest.mark.parametrize("start", ROOMS)
def test_routes_are_short(start: str) -> None:
    assert route(start, start) == []
    assert len(tour(start)) <= 17
    assert route("bathroom", "foundry") == ["kitchen", "outside", "foundry"]


def test_calling_the_oracle_at_every_step_solves_the_task(env: SciWorldEnv) -> None:
    """From each state, the expert would start again by opening a door that is already open."""
    env.reset(seed=0, options={"task": "sciworld/find-non-living-thing/0"})
    info = env.step("open door to kitchen")[4]
    for _ in range(30):
        if info["stop_reason"]:
            break
        info = env.step(next(env.oracle()))[4]
    assert info["success"]
