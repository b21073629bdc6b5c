import json
import pickle
import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import EpisodeOver, UnknownTask, UsageError
from agentgym_envs.sciworld.env import EXTRAS, SciWorldEnv
from agentgym_envs.sciworld.simulation import UNKNOWN
from tests.rollout.forking import CODEC, TextEngine, fork_every_turn
from tests.trying import examples

pytestmark = pytest.mark.slow  # a JVM takes a while to start

THING, GOLD = "sciworld/find-non-living-thing/0", ("open door to kitchen", "go to kitchen", "focus on cupboard")
LAST = "move cupboard to red box"
TWO = "sciworld/lifespan-longest-lived-then-shortest-lived/5"
CANCELLED = (
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. "
)
"""The simulator's reply to an action without a result."""
DOORS = (
    "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n"
    "0:\tgo door between kitchen and hallway\n1:\tgo door between bathroom and kitchen\n"
    "2:\tgo door between kitchen and outside\n"
)


@pytest.fixture(scope="module")
def env() -> Iterator[SciWorldEnv]:
    with closing(SciWorldEnv(split=None)) as made:
        yield made


@pytest.fixture(scope="module")
def easy() -> Iterator[SciWorldEnv]:
    with closing(SciWorldEnv(split=None, simplifications="easy")) as made:
        yield made


def begin(env: SciWorldEnv, task: str, *commands: str) -> dict[str, Any]:
    """Play commands from the start of an episode, check that all are valid, and return the last info."""
    _, info = env.reset(seed=0, options={"task": task})
    for command in commands:
        *_, terminated, truncated, info = env.step(command)
        assert (info["invalid_action"], terminated, truncated) == (None, False, False), command
    return info


def to_menu(env: SciWorldEnv) -> dict[str, Any]:
    """Go to the kitchen and open a menu of its doors."""
    env.step("teleport to kitchen")
    observation, _, _, _, info = env.step("go to door")
    assert observation == DOORS and info["invalid_action"] is None
    return info


# Observations, scores, ends


def test_the_observation_shows_the_task_then_the_room(env: SciWorldEnv) -> None:
    observation, info = env.reset(seed=0, options={"task": THING})
    goal, _, seen = observation.partition("\n")
    assert goal == env.tasks.get(THING).goal and seen.startswith("This room is called the ")
    assert env.step("look around")[0] == seen
    assert (info["moves"], info["turn"], info["score"]) == (0, 0, 0.0)
    assert not set(EXTRAS) & set(info)


def test_rewards_add_up_to_one(env: SciWorldEnv) -> None:
    begin(env, THING)
    rewards = [env.step(command)[1] for command in GOLD]
    _, reward, terminated, truncated, info = env.step(LAST)
    assert all(gain >= 0 for gain in rewards) and 0 < sum(rewards) < 1 and sum([*rewards, reward]) == 1.0
    assert (terminated, truncated, info["success"], info["stop_reason"]) == (True, False, True, "success")
    assert (info["score"], info["turn"], info["moves"]) == (1.0, 4, 4)
    with pytest.raises(EpisodeOver):
        env.step("look around")


def test_a_wrong_focus_is_a_failure_without_negative_reward(env: SciWorldEnv) -> None:
    begin(env, TWO, "open door to hallway", "go to hallway", "open door to greenhouse", "go to greenhouse")
    for command in ("open door to outside", "go to outside", "focus on crocodile"):
        score = env.step(command)[4]["score"]
    assert score > 0.4
    observation, reward, terminated, truncated, info = env.step("Focus on air.")
    assert observation == "You focus on the air."
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert (info["success"], info["stop_reason"], info["score"]) == (False, "failure", score)


def test_a_lost_and_regained_score_counts_once(env: SciWorldEnv) -> None:
    score = begin(env, THING, *GOLD)["score"]
    assert score > 0.4
    for command in ("reset task", "look around", "focus on cupboard"):
        _, reward, terminated, _, info = env.step(command)
        assert (reward, terminated, info["score"]) == (0.0, False, score)
    _, reward, terminated, _, info = env.step(LAST)
    assert terminated and info["success"] and info["score"] == score + reward == 1.0


def test_each_move_is_one_tick(env: SciWorldEnv) -> None:
    begin(env, THING)
    ticks = {"look around": 0, "inventory": 0, "task": 0, "HELP": 0, "objects": 0, "wait1": 2, "wait": 11, "eat air": 1}
    for turn, command in enumerate(ticks, 1):
        *_, info = env.step(command)
        assert (info["turn"], info["invalid_action"]) == (turn, None)
        assert info["moves"] == sum(list(ticks.values())[:turn]), command


def test_meta_commands_take_no_move(env: SciWorldEnv) -> None:
    begin(env, THING)
    assert env.step("Task?")[0] == f"Task description:\n{env.task.goal}"  # type: ignore[union-attr]
    assert env.step("help")[0].startswith("Possible actions: \n\tactivate OBJ\n\tclose OBJ\n")
    assert env.step("objects")[0].startswith("Possible object references: \n\t")
    assert env.step("inventory")[0].startswith("In your inventory, you see:\n")


# The limit of moves


def test_more_moves_than_the_limit_truncate_the_episode() -> None:
    with closing(SciWorldEnv(max_moves=11)) as env:
        begin(env, THING, "wait")
        observation, reward, terminated, truncated, info = env.step("open door to kitchen")
        assert (observation, reward, terminated, truncated) == ("The door is now open.", 0.08, False, True)
        assert (info["moves"], info["stop_reason"], info["success"]) == (12, "turn_limit", False)
        with pytest.raises(EpisodeOver):
            env.step("look around")


@pytest.mark.parametrize(
    ("task", "first", "last", "success"), [(THING, GOLD, LAST, True), (TWO, ("eat air",), "focus on air", False)]
)
def test_an_episode_that_ends_at_the_limit_is_not_truncated(
    task: str, first: tuple[str, ...], last: str, success: bool
) -> None:
    with closing(SciWorldEnv(max_moves=len(first))) as env:
        begin(env, task, *first)
        _, _, terminated, truncated, info = env.step(last)
        assert (terminated, truncated, info["success"], info["moves"]) == (True, False, success, len(first) + 1)


# What is no command, and menus


def test_an_unknown_command_changes_nothing_and_is_invalid(env: SciWorldEnv) -> None:
    begin(env, THING)
    for command in ("dance", "", "...", "0", "lok", "open", "x" * 16_384, "é漢🙂\x00\\", "$1 %s {}"):
        observation, reward, terminated, truncated, info = env.step(command)
        assert (observation, info["invalid_action"]) == (UNKNOWN, UNKNOWN), command
        assert (reward, terminated, truncated, info["moves"]) == (0.0, False, False, 0)


def test_an_impossible_command_is_not_invalid(env: SciWorldEnv) -> None:
    begin(env, THING)
    for moves, command in enumerate(("go to kitchen", "pick up agent", "eat air", "read door to kitchen"), 1):
        observation, reward, _, _, info = env.step(command)
        assert observation != UNKNOWN and info["invalid_action"] is None and (reward, info["moves"]) == (0.0, moves)


def test_case_punctuation_quotes_and_lines_are_ignored(env: SciWorldEnv) -> None:
    begin(env, THING)
    for reply in ("OPEN the door\nto Kitchen.", '"go to kitchen".', "**Focus on the cupboard!**"):
        assert env.step(reply)[4]["invalid_action"] is None
    assert env.step("move cupboard to\tred box")[4]["success"]


def test_a_number_chooses_from_a_menu(easy: SciWorldEnv) -> None:
    begin(easy, THING)
    for answer in ("1", "1.", "1:", " '1' ", "+1", "01"):
        moves = to_menu(easy)["moves"]
        observation, _, _, _, info = easy.step(answer)
        assert observation == "You move through the door to the bathroom." and info["invalid_action"] is None, answer
        assert info["moves"] == moves + 1
        assert easy.step("1")[4]["invalid_action"] == UNKNOWN


def test_any_other_action_cancels_the_menu(easy: SciWorldEnv) -> None:
    """It costs a move and gets the reply to a command without a result, but is not invalid."""
    begin(easy, THING, "teleport to kitchen")
    for answer in ("", "cancel", "look around", "3", "-1", "99999999999", "0 1", "0: go door", "task 1"):
        moves = to_menu(easy)["moves"]
        observation, reward, _, _, info = easy.step(answer)
        assert (observation, reward, info["invalid_action"]) == (CANCELLED, 0.0, None), answer
        assert info["moves"] == moves + 1
        assert easy.step("look around")[0].startswith("This room is called the kitchen")


def test_a_meta_command_leaves_the_menu_open(easy: SciWorldEnv) -> None:
    begin(easy, THING)
    to_menu(easy)
    assert easy.step("task")[0].startswith("Task description:")
    assert easy.step("2")[0] == "You move through the door to the outside."


@pytest.mark.parametrize(
    ("grammar", "reply"),
    [
        ("react", "Thought: the second\nAction: 1"),
        ("tag", "<action>1</action>"),
        ("tool_call", '<tool_call>\n{"name": "act", "arguments": {"action": "1."}}\n</tool_call>'),
    ],
)
def test_menus_work_in_every_grammar(grammar: str, reply: str) -> None:
    with closing(SciWorldEnv(grammar=grammar, simplifications="easy")) as env:
        env.reset(seed=0, options={"task": THING})
        for command in ("teleport to kitchen", "go to door"):
            observation, *_ = env.step(env.grammar.format(command, "hm"))
        assert observation == DOORS
        assert env.step("what?")[4]["invalid_action"], "no action, so the menu is still there"
        assert env.step(reply)[0] == "You move through the door to the bathroom."


# Options and info


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"simplifications": "hard"}, 'simplifications are "easy" or some of teleportAction'),
        ({"simplifications": ["easy", "openDoors"]}, "got"),
        ({"simplifications": 7}, "got"),
        ({"simplifications": [None]}, "got"),
        ({"max_moves": 0}, "max_moves must be a whole number of at least 1, got 0"),
        ({"max_moves": 1.5}, "max_moves"),
        ({"max_moves": True}, "max_moves"),
        ({"info": "inventry"}, "info may list available_actions, .* not"),
        ({"info": ["look", 3]}, "info may list"),
        ({"info": 3}, "info may list"),
        ({"jvms": 0}, "jvms must be a whole number of at least 1"),
        ({"heap_mb": 10}, "heap_mb must be a whole number of at least 100"),
        ({"heap_mb": "600"}, "heap_mb"),
        ({"call_seconds": 0}, "call_seconds must be a number of seconds above 0, got 0"),
        ({"call_seconds": "60"}, "call_seconds"),
        ({"call_seconds": float("nan")}, "call_seconds"),
        ({"call_seconds": None}, "call_seconds"),
        ({"java_path": "/nowhere/java"}, "java_path must be a program"),
        ({"java_path": 3}, "java_path"),
        ({"dev": "test"}, "dev must be one of train, validation, got 'test'"),
        ({"dev": ["train"]}, "dev must be"),
        ({"tasks": []}, "tasks must be"),
        ({"tasks": 3}, "tasks must be"),
        ({"groups": ["Matter"]}, "has no group"),
        ({"render_mode": "rgb_array"}, "render_mode"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        SciWorldEnv(**options)
    assert "\n" not in str(caught.value)


def test_unknown_tasks_are_refused() -> None:
    with pytest.raises(UnknownTask, match=r"ScienceWorld has no task '11-1'; .*docs/sciworld.md lists"):
        SciWorldEnv(tasks=["boyl", "boil", "11-1"])


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("", ""),
        ([], ""),
        ("easy", "easy"),
        (["easy"], "easy"),
        (" openDoors, teleportAction", "teleportAction,openDoors"),
        (("openContainers", "openContainers"), "openContainers"),
    ],
)
def test_simplifications_are_parsed_and_enable_teleport(chosen: Any, expected: str) -> None:
    env = SciWorldEnv(simplifications=chosen)
    assert env.simplifications == expected
    assert ("teleport to LOC" in env.instructions) == ("eas" in expected or "teleport" in expected)
    env.close()


def test_simplifications_change_the_world(env: SciWorldEnv, easy: SciWorldEnv) -> None:
    hard_start, easy_start = (e.reset(seed=0, options={"task": THING})[0] for e in (env, easy))
    assert "(that is closed)" in hard_start and "(that is open)" in easy_start
    assert env.step("teleport to kitchen")[4]["invalid_action"] == UNKNOWN
    assert easy.step("teleport to kitchen")[0] == "You teleport to the kitchen."


def test_remote_clients_cannot_set_programs_and_memory() -> None:
    assert SciWorldEnv.remote_options >= {"tasks", "dev", "simplifications", "max_moves", "info"}
    assert not SciWorldEnv.remote_options & {"java_path", "heap_mb", "jvms", "call_seconds", "any_simulator"}


@pytest.mark.slow
def test_info_holds_the_requested_keys() -> None:
    with closing(SciWorldEnv(info=EXTRAS, simplifications="easy")) as env:
        _, info = env.reset(seed=0, options={"task": THING})
        for command in ("teleport to kitchen", "nonsense", "go to door", "1"):
            check_extras(info)
            *_, info = env.step(command)
        check_extras(info)
        assert "bathroom" in info["look"] and "activate sink" in info["available_actions"]
    with closing(SciWorldEnv(info="look")) as env:
        assert set(EXTRAS) & set(env.reset(seed=0)[1]) == {"look"}


def check_extras(info: dict[str, Any]) -> None:
    assert json.loads(json.dumps(info)) == info
    for name in ("available_actions", "possible_actions", "possible_objects"):
        assert info[name] and all(isinstance(text, str) and text for text in info[name])
    assert info["look"].startswith("This room is called") and info["inventory"].startswith("In your inventory")
    assert "focus" in info["goal_progress"] and json.loads(info["object_tree"])


@pytest.mark.slow
def test_a_menu_offers_its_numbers() -> None:
    with closing(SciWorldEnv(info="available_actions", simplifications="easy")) as asking:
        begin(asking, THING)
        assert to_menu(asking)["available_actions"] == ["0", "1", "2"]


def wander(env: SciWorldEnv, rng: random.Random | None = None) -> list[Any]:
    """Play for a long time outside, where animals move and bees pollinate at random."""
    message = [env.reset(seed=0, options={"task": "sciworld/grow-fruit/3"})[0]]
    for command in ["teleport to outside", *["wait", "look around"] * 4, "teleport to greenhouse", "look around"]:
        message.append(env.step(command)[0])
        if rng is not None:
            env.random_command(rng)
            env.render()
    return message


@pytest.mark.slow
def test_optional_info_does_not_change_the_world(easy: SciWorldEnv) -> None:
    """The simulator draws object names from the same random generator that moves its animals."""
    alone = wander(easy)
    assert len({message for message in alone if "outside" in message}) > 3, "nothing moves"
    assert wander(easy, random.Random(3)) == alone
    with closing(SciWorldEnv(info=["available_actions", "possible_objects"], simplifications="easy")) as asking:
        assert wander(asking) == alone


@pytest.mark.slow
def test_random_commands_are_nearly_always_valid(easy: SciWorldEnv) -> None:
    assert SciWorldEnv().random_command(random.Random(0)) == "look around"
    begin(easy, THING)
    rng, invalid = random.Random(1), 0
    for _ in range(40):
        *_, terminated, truncated, info = easy.step(easy.random_command(rng))
        invalid += info["invalid_action"] is not None
        if terminated or truncated:
            easy.reset(seed=0, options={"task": THING})
    assert invalid < 10


def test_a_copy_continues_at_a_menu(easy: SciWorldEnv) -> None:
    begin(easy, THING)
    to_menu(easy)
    with closing(pickle.loads(pickle.dumps(easy))) as copy:
        for reply in ("x" * 20_000, "2"):  # the first does not reach the simulator
            assert copy.step(reply) == easy.step(reply)
        assert "outside" in copy.step("look around")[0]


def test_rendering_shows_the_task_the_room_and_the_inventory(env: SciWorldEnv) -> None:
    with closing(SciWorldEnv(render_mode="ansi")) as seen:
        seen.reset(seed=0, options={"task": THING})
        seen.step("open door to kitchen")
        drawn = seen.render()
    assert drawn.startswith("Your task is to find a(n) non-living thing.")
    assert "A door to the kitchen (that is open)" in drawn and "In your inventory" in drawn


PIECES = st.sampled_from(["open", "go to", "focus on", "use", "on", "move", "door", "kitchen", "agent", "(", "1"])


@pytest.mark.slow
@examples(15)
@given(st.lists(st.lists(PIECES, max_size=6).map(" ".join) | st.text(max_size=30), max_size=10), st.randoms())
def test_no_text_crashes_the_simulator(easy: SciWorldEnv, reply: list[str], rng: random.Random) -> None:
    easy.reset(seed=rng.randrange(2**31))
    for text in reply:
        for command in (text, easy.random_command(rng)):
            _, reward, terminated, truncated, info = easy.step(command)
            assert info["stop_reason"] != "env_error" and not truncated and reward >= 0
            if terminated:
                return


@pytest.mark.rotating
def test_a_fork_with_the_same_answers_is_the_same_episode() -> None:
    """`tests/rollout/test_forks.py` has the scenarios that need no Java and no browser."""
    texts = ["open door to hallway", "go to hallway", "look around", "inventory", "fly"]
    played, forked = fork_every_turn(lambda: SciWorldEnv(split=None), TextEngine(CODEC, texts), task=THING)
    assert len(played.trajectory.turns) > 2 and forked == [played] * len(played.trajectory.turns)
