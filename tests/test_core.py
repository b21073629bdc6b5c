import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs import StopReason, Task, TaskTable, TextEnv, Transition
from agentgym_envs.core import MAX_ACTION_CHARS, Snapshot, text_env
from agentgym_envs.errors import EnvError, EpisodeOver, NoOracle, UnknownTask, UsageError
from tests.toy import CountEnv

COMMANDS = st.lists(st.sampled_from(["up", "down", "give up", "cheat", "crash"]), max_size=12)


def begun(task: str = "count/3", **kwargs: Any) -> CountEnv:
    env = CountEnv(**kwargs)
    env.reset(seed=0, options={"task": task})
    return env


def run(env: TextEnv, actions: list[str]) -> list[Any]:
    """The steps of an episode, until it ends."""
    steps: list[Any] = []
    for action in actions:
        steps.append(env.step(action))
        if steps[-1][2] or steps[-1][3]:
            break
    return steps


def test_the_info_of_a_reset_is_complete() -> None:
    observation, info = CountEnv().reset(seed=5, options={"task": "count/3"})
    assert observation.startswith("Count to 3.")
    key = info.pop("state_key")
    assert len(key) == 16
    assert info == {
        "task_id": "count/3",
        "seed": 5,
        "turn": 0,
        "score": 0.0,
        "success": False,
        "stop_reason": None,
        "target": 3,
    }


def test_a_reward_is_the_increase_of_the_score() -> None:
    env = begun()
    steps = run(env, ["up", "down", "up", "up"])
    assert [step[1] for step in steps] == [1 / 3, 0.0, 1 / 3, 1 / 3]
    assert [step[4]["score"] for step in steps] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 1.0])
    assert [step[4]["turn"] for step in steps] == [1, 2, 3, 4]
    assert [step[2] for step in steps] == [False, False, False, True]
    assert steps[-1][4]["success"] is True
    assert steps[-1][4]["stop_reason"] == "success"


@given(COMMANDS, st.integers(0, 2**31), st.sampled_from(["bare", "tag"]))
def test_every_episode_keeps_the_contract(commands: list[str], seed: int, grammar: str) -> None:
    env = CountEnv(grammar=grammar, split=None)
    observation, info = env.reset(seed=seed)
    total, over = 0.0, info["stop_reason"] is not None
    for command in commands:
        if over:
            break
        observation, reward, terminated, truncated, info = env.step(env.grammar.format(command))
        total, over = total + reward, terminated or truncated
        assert info["score"] == pytest.approx(total)
        assert over == (info["stop_reason"] is not None)
        assert info["success"] == (info["stop_reason"] == "success")
        assert not (terminated and truncated)
    assert observation in env.observation_space
    assert 0.0 <= info["score"] <= 1.0 + 1e-9
    assert json.loads(json.dumps(info)) == info
    if over:
        with pytest.raises(EpisodeOver):
            env.step("up")


def test_success_follows_the_score_unless_the_scenario_sets_it() -> None:
    *_, info = begun().step("give up")
    assert (info["success"], info["stop_reason"], info["score"]) == (False, "failure", 0.0)
    *_, info = begun().step("cheat")
    assert (info["success"], info["stop_reason"], info["score"]) == (True, "success", 0.0)


def test_ten_tenths_are_a_success() -> None:
    steps = run(begun("count/10"), ["up"] * 10)
    assert steps[-1][4]["score"] < 1.0  # in floating point
    assert steps[-1][4]["success"] is True


def test_errors_of_the_policy_get_a_reply() -> None:
    env = begun()
    observation, reward, terminated, truncated, info = env.step("down")
    assert (observation, reward, terminated, truncated) == ("Unknown command: down", 0.0, False, False)
    assert info["invalid_action"] == "Unknown command: down"
    assert info["turn"] == 1
    assert env.step("up")[4]["invalid_action"] is None


def test_a_message_without_an_action_gets_a_reply() -> None:
    observation, _, _, _, info = begun(grammar="react").step("I would rather not")
    assert "Action:" in observation
    assert info["invalid_action"] == observation


def test_an_env_error_ends_the_episode_without_a_reward() -> None:
    env = begun()
    env.step("up")
    observation, reward, terminated, truncated, info = env.step("crash")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["stop_reason"] == "env_error"
    assert info["error"] == "EnvError: the abacus broke"
    assert info["invalid_action"] is None
    assert (info["success"], info["score"]) == (False, 1 / 3)
    assert "abacus" not in observation
    with pytest.raises(EpisodeOver, match="env_error"):
        env.step("up")


def test_an_env_error_at_reset_gives_an_episode_without_turns() -> None:
    env = CountEnv()
    observation, info = env.reset(seed=1, options={"task": "count/0"})
    assert observation in env.observation_space
    assert (info["stop_reason"], info["error"], info["turn"]) == ("env_error", "EnvError: no power", 0)
    with pytest.raises(EpisodeOver):
        env.step("up")
    _, info = env.reset(seed=1, options={"task": "count/2"})
    assert info["stop_reason"] is None
    assert "error" not in info


def test_the_state_is_not_read_after_an_env_error() -> None:
    class Dead(CountEnv):
        def _state(self) -> str:
            raise EnvError("no state without power")

    _, info = Dead().reset(seed=1, options={"task": "count/0"})
    assert info["stop_reason"] == "env_error"


@pytest.mark.parametrize("action", [None, 3, b"up", ["up"]])
def test_an_action_must_be_a_string(action: Any) -> None:
    env = begun()
    with pytest.raises(UsageError, match=f"an action is a string, got {type(action).__name__}"):
        env.step(action)
    assert env.step("up")[4]["turn"] == 1


def test_a_long_action_is_refused_in_text() -> None:
    env = begun()
    observation, *_ = env.step("x" * (MAX_ACTION_CHARS + 1))
    assert observation == f"The action is too long (at most {MAX_ACTION_CHARS} characters)."
    assert env.step("x" * MAX_ACTION_CHARS)[0].startswith("Unknown command: xxx")


def test_a_lone_surrogate_is_refused_and_not_echoed() -> None:
    message = '<tool_call>{"name": "act", "arguments": {"action": "up \\ud800"}}</tool_call>'
    env = begun(grammar="tool_call")
    observation, _, _, _, info = env.step(message)
    assert observation in env.observation_space
    assert info["invalid_action"] == observation


def test_a_step_before_a_reset_or_after_the_end_is_refused() -> None:
    with pytest.raises(EpisodeOver, match="reset"):
        CountEnv().step("up")
    env = begun("count/2")
    run(env, ["up", "up"])
    with pytest.raises(EpisodeOver, match="ended: success"):
        env.step("up")


@given(st.integers(0, 2**31))
def test_a_drawn_task_and_the_same_task_by_name_play_the_same(seed: int) -> None:
    drawn, named = CountEnv(), CountEnv()
    observation, info = drawn.reset(seed=seed)
    assert named.reset(seed=seed, options={"task": info["task_id"]}) == (observation, info)
    assert named.step("up") == drawn.step("up")


def test_seeds_decide_the_task_and_its_randomness() -> None:
    firsts = [CountEnv(split=None).reset(seed=seed) for seed in range(40)]
    assert {info["task_id"] for _, info in firsts} == {f"count/{n}" for n in (2, 3, 9, 4, 10, 0)}
    assert len({CountEnv().reset(seed=seed, options={"task": "count/3"})[0] for seed in range(10)}) == 10


def test_resets_without_a_seed_continue_the_generator() -> None:
    def play() -> list[Any]:
        env = CountEnv()
        return [env.reset(seed=7), *(env.reset() for _ in range(5))]

    episodes = play()
    assert episodes == play()
    assert len({info["seed"] for _, info in episodes}) == 6


def test_the_seed_in_the_info_repeats_the_episode() -> None:
    env = CountEnv()
    observation, info = env.reset()
    again = CountEnv()
    assert again.reset(seed=info["seed"], options={"task": info["task_id"]}) == (observation, info)
    assert again.reset(seed=info["seed"]) == (observation, info)


def test_split_and_group_options_select() -> None:
    env = CountEnv(split="train", groups=["small"])
    assert {env.reset()[1]["task_id"] for _ in range(30)} == {"count/2", "count/3"}
    assert env.reset(options={"split": "validation"})[1]["task_id"] == "count/4"
    assert env.reset(options={"group": "large"})[1]["task_id"] == "count/9"
    assert env.reset(options={"split": "test", "group": "large"})[1]["task_id"] == "count/10"
    assert {env.reset(options={"split": None, "group": "large"})[1]["task_id"] for _ in range(30)} == {
        "count/10",
        "count/9",
    }


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"task": "count/7"}, UnknownTask, "no task 'count/7'"),
        ({"split": "dev"}, UnknownTask, "no split 'dev'; choose one of train"),
        ({"group": "tiny"}, UnknownTask, "no group 'tiny'; choose from small"),
        ({"goal": "x"}, UsageError, r"knows the options \['group', 'split', 'task'\], not \['goal'\]"),
        ({"task": 3}, UsageError, "names as its options, got {'task': 3}"),
        ({"group": ["small"]}, UsageError, "names as its options"),
        ({"task": None}, UsageError, "names as its options"),
        ({"task": "count/3", "split": "test"}, UsageError, "'count/3' is of the split 'train', not 'test'"),
        ({"task": "count/3", "group": "none"}, UsageError, "'count/3' is of the group '[a-z]+', not 'none'"),
    ],
)
def test_invalid_reset_options_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CountEnv().reset(seed=0, options=options)


def test_a_refused_reset_keeps_the_running_episode() -> None:
    env = begun()
    env.step("up")
    before = env.snapshot()
    with pytest.raises(UnknownTask):
        env.reset(seed=99, options={"task": "count/7"})
    assert env.snapshot() == before
    assert env.step("up")[0] == "2"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"split": "dev"}, "no split 'dev'"),
        ({"groups": ["tiny"]}, "no group 'tiny'"),
        ({"groups": []}, "no group"),
        ({"grammar": "xml"}, "no grammar 'xml'"),
        ({"render_mode": "human"}, "render_mode must be one of .*'ansi'.*, got 'human'"),
    ],
)
def test_invalid_arguments_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CountEnv(**kwargs)


@given(COMMANDS, st.integers(0, 1000))
def test_a_snapshot_brings_another_environment_to_the_same_state(commands: list[str], seed: int) -> None:
    env, other = CountEnv(), CountEnv()
    env.reset(seed=seed)
    run(env, commands)
    other.restore(pickle.loads(pickle.dumps(env.snapshot())))
    assert other.snapshot() == env.snapshot()
    assert other.render() == env.render()
    assert (other.count, other.lucky) == (env.count, env.lucky)
    try:
        step = env.step("up")
    except EpisodeOver:
        with pytest.raises(EpisodeOver):
            other.step("up")
    else:
        assert other.step("up") == step


def test_a_snapshot_holds_the_actions_of_its_own_episode() -> None:
    env = begun()
    env.step("up")
    env.reset(seed=8, options={"task": "count/2"})
    env.step("down")
    assert env.snapshot() == Snapshot("count/2", 8, ("down",))


def test_a_too_long_action_is_too_long_when_it_is_replayed() -> None:
    env, other = begun(), CountEnv()
    env.step("up".ljust(MAX_ACTION_CHARS + 9))
    assert other.restore(env.snapshot()).startswith("The action is too long")


def test_restore_returns_the_last_observation() -> None:
    assert CountEnv().restore(Snapshot("count/3", 4, ("up", "up"))) == "2"
    assert CountEnv().restore(Snapshot("count/3", 4)).startswith("Count to 3.")
    with pytest.raises(EpisodeOver, match="nothing to save"):
        CountEnv().snapshot()


def test_equal_states_have_equal_keys() -> None:
    one, two = begun(), begun()
    one.step("up")
    two.step("down")
    assert one.step("down")[4]["state_key"] == two.step("up")[4]["state_key"]
    assert one.step("up")[4]["state_key"] != two.step("down")[4]["state_key"]
    assert begun("count/2").step("down")[4]["state_key"] != begun("count/3").step("down")[4]["state_key"]


def test_the_default_state_is_the_history_of_actions() -> None:
    class Plain(TextEnv):
        tasks = TaskTable("plain", 1, [Task("p/1", "train", "g", "none")])

        def _begin(self, task: Task, rng: Any) -> str:
            return "Go."

        def _act(self, command: str) -> Transition:
            return Transition("So?")

    def keys(*actions: str) -> list[str]:
        env = Plain()
        return [env.reset(seed=0)[1]["state_key"], *(env.step(action)[4]["state_key"] for action in actions)]

    assert keys("a", "b") == keys("a", "b")
    assert len({*keys("a", "b"), *keys("b", "a")}) == 5
    assert keys("\ud800")  # a surrogate, though refused, is part of the history
    env = Plain()
    env.reset(seed=0)
    with pytest.raises(NoOracle, match="Plain has no oracle"):
        env.oracle()


def test_the_oracle_solves_the_current_state() -> None:
    env = begun()
    with pytest.raises(NoOracle, match="reset"):
        CountEnv().oracle()
    env.step("up")
    assert list(env.oracle()) == ["up", "up"]
    assert run(env, list(env.oracle()))[-1][4]["success"]
    with pytest.raises(NoOracle):
        env.oracle()


def test_render_returns_the_observation_in_ansi_mode() -> None:
    env = begun(render_mode="ansi")
    env.step("up")
    assert env.render() == "1"
    assert begun().render() is None


def test_close_frees_resources_once_and_is_final() -> None:
    env = begun()
    env.close()
    env.close()
    assert env.closed == 1
    with pytest.raises(EpisodeOver, match="closed"):
        env.step("up")
    with pytest.raises(EpisodeOver, match="closed; make a new one"):
        env.reset(seed=0)


def test_pickling_preserves_the_running_episode() -> None:
    env = begun()
    env.step("up")
    assert pickle.loads(pickle.dumps(env)).step("up") == env.step("up")


def test_instructions_have_the_rules_and_the_grammar() -> None:
    env = CountEnv(grammar="react")
    assert env.instructions.startswith("Count up with the command: up\n\n")
    assert env.instructions.endswith(env.grammar.instructions)


def test_text_env_finds_the_environment_under_wrappers() -> None:
    import gymnasium as gym

    env = CountEnv()
    assert text_env(gym.wrappers.TimeLimit(env, 3)) is env
    with pytest.raises(UsageError, match="got CartPoleEnv"):
        text_env(gym.make("CartPole-v1"))


def test_stop_reasons_are_strings() -> None:
    assert [reason.value for reason in StopReason] == [
        "success",
        "failure",
        "turn_limit",
        "token_limit",
        "env_error",
        "closed",
    ]
    assert json.dumps(StopReason.SUCCESS) == '"success"'
