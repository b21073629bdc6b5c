"""The contract of every environment of the suite. `tests/test_contract.py` checks every registered id.

Each function takes a `Make`, which makes a new environment with the keyword arguments of `gym.make`.
A scenario is covered by its registration; a remote environment is covered by another `Make`.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_envs.core import StopReason, TextEnv, text_env
from agentgym_envs.errors import EpisodeOver, NoOracle, UnknownTask, UsageError
from agentgym_envs.grammar import GRAMMARS, make_grammar
from agentgym_envs.image_files import media_type
from agentgym_envs.image_observations import text_of
from agentgym_envs.task import SPLITS, Task
from tests.garbage import JUNK, complaints_of_members, mutated, with_long_numbers
from tests.plugins.startup import python_path

PNG = b"\x89PNG\r\n\x1a\n"
REQUIRED = {"task_id", "seed", "turn", "score", "success", "stop_reason", "state_key"}
TASKS_PER_GROUP = 2
SAMPLED_GROUPS = {
    "sciworld": ("find-plant", "power-component", "lifespan-longest-lived"),
    "miniwob": ("choose",),
    "webarena": ("shopping", "maps"),
}
"""The groups to check in sets with many groups, some of them slow. Their own tests play the others."""
FEW_TASKS = {"miniwob", "webarena"}
"""Environments in a browser: one task per split and a few garbage texts are checked, as browsers are slow."""
SLOW = {*FEW_TASKS, "sciworld"}
"""Environments with slow resets (near a second) and plans (several seconds): fewer repetitions."""
EXAMPLES = {"miniwob": 15, "webarena": 15, "sciworld": 30}
"""Numbers of garbage examples. tests/sciworld/test_env.py has more of them."""
SEED = 5
PIXEL_ENVS = {"AgentGym/MiniWoBPixels-v0", "AgentGym/WebArenaPixels-v0"}
BROWSER_ENVS = {"AgentGym/MiniWoB-v0", "AgentGym/WebArena-v0", *PIXEL_ENVS}
SLOW_ENVS = {"AgentGym/SciWorld-v0", "AgentGym/SearchPages-v0", "AgentGym/SearchRetry-v0", *BROWSER_ENVS}
"""Environments that are too slow for the daily run, or almost equal to another one."""
NEEDS_SITES = {"AgentGym/WebArenaOfficial-v0"}
"""Environments that need running web sites. Their own tests check the contract."""
NO_EXCUSE = "an EnvError is for infrastructure failures; a policy could hide its own errors behind one"
SOLVED = "its last step must be `terminated`, with rewards that add up to 1 or with `success=True`"
ONLY_RNG = "draw only from the `rng` of `_begin`, set all state there, and share no state between environments"
_REPO = Path(__file__).parents[1]


class Make(Protocol):
    """Makes an environment."""

    def __call__(self, **options: Any) -> gym.Env[str, str]: ...


@contextmanager
def opened(make: Make, **options: Any) -> Iterator[TextEnv]:
    env = make(**options)
    try:
        yield text_env(env)
    finally:
        env.close()


def sample_tasks(env: TextEnv, per_group: int = TASKS_PER_GROUP) -> list[Task]:
    """Some tasks of each group and split."""
    found = {}
    per_group = 1 if env.tasks.name in SLOW else per_group
    groups = [g for g in env.tasks.groups if g in SAMPLED_GROUPS.get(env.tasks.name, env.tasks.groups)]
    for number, split in enumerate(SPLITS):
        for group in (groups[number % len(groups)],) if env.tasks.name in FEW_TASKS else groups:
            for count in range(per_group, 0, -1):
                try:
                    tasks = env.tasks.sample(count, split=split, groups=(group,), seed=1)
                except UsageError:
                    continue
                found.update({task.id: task for task in tasks})
                break
    return list(found.values())


def play(env: TextEnv, task_id: str, seed: int, actions: Iterable[str]) -> list[Any]:
    """Reset and act until the end, and return all results as JSON."""
    seen: list[Any] = [env.reset(seed=seed, options={"task": task_id})]
    for action in actions:
        seen.append(env.step(action))
        if seen[-1][2] or seen[-1][3]:
            break
    return plain(seen)


def plain(results: Any) -> Any:
    """Results as JSON, for comparisons: of images only their hashes."""
    return json.loads(json.dumps(results, default=_hash_of_image))


def _hash_of_image(image: Any) -> str:
    return hashlib.sha256(image if isinstance(image, bytes) else image.tobytes()).hexdigest()


def repetitions(env: TextEnv, many: int) -> int:
    """The number of repetitions of a check: `many`, or fewer in slow environments."""
    return min(many, 3) if env.tasks.name in SLOW else many


def actions_for(env: TextEnv, task_id: str, seed: int = SEED) -> list[str]:
    """Junk and then the solution, in the environment's grammar; only junk without an oracle."""
    env.reset(seed=seed, options={"task": task_id})
    try:
        solution = [env.grammar.format(command) for command in env.oracle()]
    except NoOracle:
        solution = []
    return ["what now?", *solution[:-1], "", *solution[-1:]]


_known: dict[tuple[Any, ...], list[str]] = {}


def known_actions(env: TextEnv, task_id: str, seed: int = SEED) -> list[str]:
    """`actions_for`, cached in slow environments. For checks that work with any actions."""
    if env.spec is None or env.tasks.name not in SLOW:
        return actions_for(env, task_id, seed)
    key = (type(env), env.spec.id, json.dumps(env.spec.kwargs, sort_keys=True, default=str), task_id, seed)
    if key not in _known:
        _known[key] = actions_for(env, task_id, seed)
    return _known[key]


def transcript_hash(make: Make) -> str:
    """A hash of several episodes, equal in every process for the same environment."""
    digest = hashlib.sha256()
    with opened(make) as env:
        digest.update(env.tasks.digest.encode())
        for seed, task in enumerate(sample_tasks(env, per_group=2)):
            seen = play(env, task.id, seed, actions_for(env, task.id, seed))
            digest.update(json.dumps(seen, sort_keys=False).encode())
        for seed in range(repetitions(env, 5)):
            digest.update(json.dumps(plain(env.reset(seed=seed))).encode())
    return digest.hexdigest()


def check_info(info: dict[str, Any], *, step: bool) -> None:
    missing = (REQUIRED | ({"invalid_action"} if step else set())) - set(info)
    assert not missing, f"info lacks {sorted(missing)}"
    without_image = {name: value for name, value in info.items() if name != "screenshot"}
    assert json.loads(json.dumps(without_image)) == without_image, "info is not JSON"
    assert media_type(info.get("screenshot", PNG)), "a screenshot is the bytes of a PNG or JPEG"
    assert info["stop_reason"] is None or info["stop_reason"] in set(StopReason)
    assert 0.0 <= info["score"] <= 1.0 + 1e-9, f"a score of {info['score']}: the rewards must add up to 0 to 1"
    assert isinstance(info["success"], bool)
    assert len(info["state_key"]) == 16


def gymnasium_accepts(make: Make) -> None:
    with opened(make) as env, warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=False)


def spaces_contain(make: Make) -> None:
    with opened(make) as env:
        for task in sample_tasks(env, per_group=1):
            observation, _ = env.reset(seed=SEED, options={"task": task.id})
            assert observation in env.observation_space, f"{task.id}: `_begin` must return a text of limited length"
            for action in known_actions(env, task.id):
                assert action in env.action_space
            env.reset(seed=SEED, options={"task": task.id})
            assert env.instructions, "a model would not know the commands: list them in `rules`"


def infos_are_complete(make: Make) -> None:
    with opened(make) as env:
        for task in sample_tasks(env, per_group=1):
            observation, info = env.reset(seed=SEED, options={"task": task.id})
            check_info(info, step=False)
            assert (info["task_id"], info["seed"], info["turn"]) == (task.id, SEED, 0)
            assert (info["score"], info["success"], info["stop_reason"]) == (0.0, False, None)
            for turn, action in enumerate(known_actions(env, task.id), 1):
                if turn == 1:
                    again, _ = env.reset(seed=SEED, options={"task": task.id})
                    assert plain(again) == plain(observation), (
                        f"{task.id} begins differently with the same seed: {ONLY_RNG}"
                    )
                *_, info = env.step(action)
                check_info(info, step=True)
                assert (info["task_id"], info["seed"], info["turn"]) == (task.id, SEED, turn)


def rewards_add_up(make: Make) -> None:
    with opened(make) as env:
        for task in sample_tasks(env, per_group=2):
            total = 0.0
            for _, reward, terminated, truncated, info in play(env, task.id, SEED, known_actions(env, task.id))[1:]:
                total += reward
                assert info["score"] == pytest.approx(total)
                assert (info["stop_reason"] is not None) == (terminated or truncated)
                assert not info["success"] or terminated


def instances_agree(make: Make) -> None:
    with opened(make) as one, opened(make) as other:
        for number, task in enumerate(sample_tasks(one, per_group=1)):
            seed = SEED if one.tasks.name in SLOW else number
            actions = known_actions(one, task.id, seed)
            same = play(one, task.id, seed, actions) == play(other, task.id, seed, actions)
            assert same, f"{task.id} differs in a second environment: {ONLY_RNG}"
        for seed in range(repetitions(one, 10)):
            assert plain(one.reset(seed=seed)) == plain(other.reset(seed=seed)), (
                f"seed {seed} begins in two ways: {ONLY_RNG}"
            )
        more = repetitions(one, 5)
        assert plain([one.reset() for _ in range(more)]) == plain([other.reset() for _ in range(more)])


def processes_agree(env_id: str, options: dict[str, Any], local_hash: str) -> None:
    """Compare with the transcript of another process, which makes the environment itself."""
    code = (
        "import functools, json, sys, gymnasium as gym, agentgym_envs; from tests.contract import transcript_hash\n"
        "print(transcript_hash(functools.partial(gym.make, sys.argv[1], **json.loads(sys.argv[2]))))"
    )
    another = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    environ = {**os.environ, "PYTHONHASHSEED": another, "PYTHONPATH": python_path(_REPO)}
    command = [sys.executable, "-c", code, env_id, json.dumps(options)]
    done = subprocess.run(command, env=environ, cwd=_REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == local_hash, "the transcript depends on the process: sort sets"


def end_is_final(make: Make) -> None:
    with opened(make) as env:
        with pytest.raises(EpisodeOver, match="reset"):
            env.step("anything")
        task = sample_tasks(env, per_group=1)[0]
        last = play(env, task.id, SEED, known_actions(env, task.id))[-1]
        if last[2] or last[3]:
            with pytest.raises(EpisodeOver):
                env.step("anything")
            with pytest.raises(NoOracle):
                env.oracle()
        env.reset(seed=0)
        env.step("anything")


def close_is_final(make: Make) -> None:
    with opened(make) as env:
        env.reset(seed=0)
        env.close()
        env.close()
        with pytest.raises(EpisodeOver):
            env.step("anything")
        with pytest.raises(EpisodeOver):
            env.reset(seed=0)


def pickles_within_an_episode(make: Make) -> None:
    with opened(make) as env:
        task = sample_tasks(env, per_group=1)[-1]
        actions = known_actions(env, task.id)
        env.reset(seed=SEED, options={"task": task.id})
        half = len(actions) // 2
        for action in actions[:half]:
            env.step(action)
        with opened(lambda **_: pickle.loads(pickle.dumps(env))) as copy:
            same = plain([copy.step(a) for a in actions[half:]]) == plain([env.step(a) for a in actions[half:]])
            assert same, "a pickled copy continues differently: keep all state in attributes that pickle copies"
            assert plain(copy.reset()) == plain(env.reset()), f"a pickled copy begins differently: {ONLY_RNG}"


def replays_from_info(make: Make) -> None:
    with opened(make) as env, opened(make) as other:
        env.reset(seed=11)
        for _ in range(repetitions(env, 5)):
            observation, info = env.reset()
            again = other.reset(seed=info["seed"], options={"task": info["task_id"]})
            assert plain(again) == plain((observation, info)), f"seed and task do not repeat the episode: {ONLY_RNG}"


def restores_a_snapshot(make: Make) -> None:
    with opened(make) as env, opened(make) as other:
        task = sample_tasks(env, per_group=1)[-1]
        actions = known_actions(env, task.id)
        env.reset(seed=SEED, options={"task": task.id})
        for action in actions[:-1]:
            observation, *_, info = env.step(action)
        snapshot = env.snapshot()
        replayed = pickle.loads(pickle.dumps(snapshot))
        after = env.step(actions[-1])
        hint = f"with `_save` and `_load`, they must copy all state; without, {ONLY_RNG}"
        for saved in (snapshot, replayed) if snapshot.state_copy is not None else (replayed,):
            assert other.restore(saved) == text_of(observation), f"a restored episode is in another state: {hint}"
            assert other.snapshot() == snapshot
            assert plain(other.step(actions[-1])) == plain(after), f"a restored episode continues differently: {hint}"
        assert info["turn"] == len(actions) - 1


def oracle_solves(make: Make) -> None:
    """Check that the oracle solves tasks of every group and split, without changing the state while it plans.

    Repeat this in other grammars. For the suite's own grammars, one task per split is enough, since all commands are
    also parsed back.
    """
    with opened(make) as env:
        shared = [name for name in GRAMMARS if env.grammars.get(name) is GRAMMARS[name]]
        grammars = [make_grammar(name) for name in shared]
        for seed, task in enumerate(sample_tasks(env)):
            plan = _solve(env, task, seed)
            for grammar in grammars:
                assert [grammar.parse(grammar.format(one, "so it goes")).command for one in plan] == plan
        tasks = sample_tasks(env, per_group=1)
    few = list({task.split: task for task in tasks}.values())
    for name in ("tool_call",) if env.tasks.name in SLOW else tuple(GRAMMARS)[1:]:
        with opened(make, grammar=name) as env:
            for seed, task in enumerate(few if name in shared else tasks):
                _solve(env, task, seed)


def _solve(env: TextEnv, task: Task, seed: int) -> list[str]:
    """Carry out the oracle's plan, and return it."""
    _, before = env.reset(seed=seed, options={"task": task.id})
    try:
        plan = list(env.oracle())
    except NoOracle:
        pytest.skip("this environment has no oracle")
    assert plan, f"{task.id} is solved from the start, or `_plan` gives up: a plan has at least one command"
    assert list(env.oracle()) == plan, f"{task.id}: a second `_plan` differs; it must not draw or change state"
    for command in plan:
        *_, info = env.step(env.grammar.format(command, "so it goes"))
        assert info["invalid_action"] is None, f"{task.id}: `_act` refuses the oracle's command {command!r}"
    solved = info["success"] and info["stop_reason"] == "success"
    assert solved, f"{task.id}: the plan ended as {info['stop_reason']} with score {info['score']}; {SOLVED}: {plan}"
    assert 0.0 < info["score"] <= 1.0 + 1e-9, f"{task.id}: solved with score {info['score']}, not above 0 to 1"
    moved = info["state_key"] != before["state_key"]
    assert moved, f"{task.id}: `_state` is equal at the start and at the goal; add to it if the goal is reached"
    return plan


def survives_garbage(make: Make) -> None:
    with opened(make) as env:
        commands = [command for task in sample_tasks(env, per_group=1) for command in known_actions(env, task.id)]
        text = st.text(max_size=200) | st.sampled_from(JUNK) | mutated(commands)

        @settings(max_examples=EXAMPLES.get(env.tasks.name, settings().max_examples))
        @given(st.lists(text, max_size=8), st.integers(0, 20))
        def check(actions: list[str], seed: int) -> None:
            env.reset(seed=seed)
            for action in actions:
                if _is_over_after(env, action):
                    return

        check()
        env.reset(seed=0)
        for action in with_long_numbers(commands):
            if _is_over_after(env, action):
                env.reset(seed=0)


def _is_over_after(env: TextEnv, action: str) -> bool:
    """True if an action, which may be garbage, ended the episode. Every action must get a reply."""
    try:
        observation, _, terminated, truncated, info = env.step(action)
    except Exception as error:
        why = "raise InvalidAction for errors of the policy (for a number: check its length before int())"
        raise AssertionError(f"step({action!r:.80}) raised {type(error).__name__}: {error}; {why}") from error
    assert observation in env.observation_space, f"step({action!r:.80}) must return a text of limited length"
    check_info(info, step=True)
    assert info["stop_reason"] != "env_error", f"step({action!r:.80}) ended as env_error: {info['error']}; {NO_EXCUSE}"
    text = text_of(observation)
    assert info["invalid_action"] in (None, text, *complaints_of_members(text, info))
    return terminated or truncated


def refuses_invalid_arguments(make: Make) -> None:
    with opened(make) as env:
        task = sample_tasks(env, per_group=1)[0]
        for options in ({"task": "no/such/task"}, {"split": "dev"}, {"group": "no such group"}):
            with pytest.raises(UnknownTask, match="no "):
                env.reset(seed=0, options=options)
        wrong: tuple[dict[str, Any], ...] = ({"tusk": task.id}, {"task": 7})
        for unknown in wrong:
            with pytest.raises(UsageError, match="options"):
                env.reset(seed=0, options=unknown)
        env.reset(seed=0, options={"task": task.id})
        with pytest.raises(UsageError, match="string"):
            env.step(3)  # type: ignore[arg-type]
    for arguments in ({"split": "dev"}, {"groups": ("no such group",)}, {"groups": ()}):
        with pytest.raises(UnknownTask):
            make(**arguments)
    for arguments in ({"grammar": "morse"}, {"render_mode": "hologram"}):
        with warnings.catch_warnings(), pytest.raises(UsageError):
            warnings.simplefilter("ignore")  # Gymnasium warns of the render mode before our error.
            make(**arguments)


def tasks_are_sound(make: Make) -> None:
    with opened(make) as env:
        tasks = sample_tasks(env)
        assert len({task.id for task in tasks}) == len(tasks)
        for task in tasks:
            assert env.tasks.get(task.id) == task
            assert task.group in env.tasks.groups
            kept = json.loads(json.dumps(dict(task.data))) == dict(task.data)
            assert kept, f"the data of {task.id} must be JSON: no tuples, no sets, names as keys"
        for split in {task.split for task in tasks} | {"train", "test"}:  # a set may have no validation split
            drawn = [env.tasks.draw(key, split=split) for key in range(50)]
            assert {task.split for task in drawn} == {split}
            assert drawn == [env.tasks.draw(key, split=split) for key in range(50)]
        for group in dict.fromkeys(task.group for task in tasks):
            assert env.reset(seed=0, options={"group": group})[1]["task_id"]
            assert env.task is not None and env.task.group == group
        assert len(env.tasks.digest) == 64


def renders_text(make: Make) -> None:
    with opened(make, render_mode="ansi") as env:
        env.reset(seed=0)
        text = env.render()
        assert isinstance(text, str) and text, "`_draw` must return a text that is not empty"
    with opened(make) as env:
        env.reset(seed=0)
        assert env.render() is None


def random_commands_are_repeatable_actions(make: Make) -> None:
    with opened(make) as env:
        env.reset(seed=0)
        one, other = random.Random(1), random.Random(1)
        for _ in range(20):
            command = env.random_command(one)
            assert command == env.random_command(other), "`random_command` must draw from the `rng` it is given alone"
            assert env.grammar.format(command) in env.action_space


def remote_agrees(make: Make, make_remote: Make, local_hash: str) -> None:
    """Compare all results and exceptions of both environments. `local_hash` is the hash of the local transcript."""
    assert transcript_hash(make_remote) == local_hash
    with opened(make) as env, opened(make_remote) as remote:
        same = attrgetter("rules", "instructions", "split", "groups", "tasks.name", "tasks.version", "tasks.groups")
        assert same(env) == same(remote)
        assert (env.observation_space, env.action_space) == (remote.observation_space, remote.action_space)
        assert env.tasks.counts() == remote.tasks.counts()
        for junk in JUNK[::3] if env.tasks.name in SLOW else JUNK:
            assert _outcome(env.step, junk) == _outcome(remote.step, junk)
            assert plain(env.reset(seed=1)) == plain(remote.reset(seed=1))
            assert _outcome(env.step, junk) == _outcome(remote.step, junk)
            assert env.snapshot() == remote.snapshot()
            assert env.status() == remote.status()
        for options in ({"task": "no/such/task"}, {"group": "?"}, {"split": "dev"}, {"tusk": 1}, {"task": None}, [1]):
            assert _outcome(partial(env.reset, seed=1), options=options) == _outcome(
                partial(remote.reset, seed=1), options=options
            )
        assert _outcome(env.tasks.get, 5)[0] is _outcome(remote.tasks.get, 5)[0] is UnknownTask
        for seed in (-1, 1.5, "x"):
            assert _outcome(env.reset, seed=seed) == _outcome(remote.reset, seed=seed)
        env.close()
        remote.close()
        assert _outcome(env.reset) == _outcome(remote.reset)
        assert _outcome(env.step, "x") == _outcome(remote.step, "x")


def remote_plays_the_same(make: Make, make_remote: Make) -> None:
    """Compare one episode and its snapshot with the remote environment, where `remote_agrees` takes too long."""
    with opened(make) as env, opened(make_remote) as remote:
        task = sample_tasks(env, per_group=1)[0]
        actions = known_actions(env, task.id)
        assert play(env, task.id, SEED, actions) == play(remote, task.id, SEED, actions)
        assert env.snapshot() == remote.snapshot()
        same = attrgetter("rules", "instructions", "tasks.digest")
        assert same(env) == same(remote)


def _outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        result = call(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return plain(result) if isinstance(result, tuple) else result


CHECKS = (
    gymnasium_accepts,
    spaces_contain,
    infos_are_complete,
    rewards_add_up,
    instances_agree,
    end_is_final,
    close_is_final,
    pickles_within_an_episode,
    replays_from_info,
    restores_a_snapshot,
    oracle_solves,
    survives_garbage,
    refuses_invalid_arguments,
    tasks_are_sound,
    renders_text,
    random_commands_are_repeatable_actions,
)
DAILY_CHECKS = {
    infos_are_complete,
    close_is_final,
    restores_a_snapshot,
    refuses_invalid_arguments,
    tasks_are_sound,
    renders_text,
    random_commands_are_repeatable_actions,
}
"""The checks in every run of environments that need Java or a browser; the others rotate."""
CHECKS_OF_PIXELS = (
    gymnasium_accepts,
    spaces_contain,
    infos_are_complete,
    instances_agree,
    pickles_within_an_episode,
    replays_from_info,
    restores_a_snapshot,
    refuses_invalid_arguments,
)
"""The checks of environments that differ from another one only in the images of their observations. All rotate."""

REMOTE_CHECKS = (
    infos_are_complete,
    end_is_final,
    close_is_final,
    restores_a_snapshot,
    refuses_invalid_arguments,
    renders_text,
)
"""Checks of a remote environment with equal transcripts, if another one passes all checks over the transport."""
REMOTE_CHECKS_OF_SLOW = (restores_a_snapshot, renders_text)
"""The part of them that depends on the environment: for slow environments with equal transcripts."""
