"""`state_key` of teams: equal for equal states, and never equal for an agent that was told and one that was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.multiagent.coop import CoopTextCraftEnv
from agentgym_envs.multiagent.joint_envs import PlannerActorEnv
from agentgym_envs.multiagent.planner_actor import planner_actor
from agentgym_envs.multiagent.play import play_team
from agentgym_envs.rollout import EpisodeSpec, Limits
from agentgym_envs.trajectory import read_trajectories
from agentgym_envs.wrappers import RecordTrajectory
from tests.multiagent.crews import CODEC, LIMITS, coop, counting, says, soon
from tests.toy import CountEnv

PASS = dict.fromkeys(("crafter_0", "crafter_1"), "pass")


def keys_of(infos: Any) -> dict[str, str]:
    return {agent: info["state_key"] for agent, info in infos.items()}


def after(*rounds: dict[str, str], **options: Any) -> dict[str, str]:
    """Each agent's key after these rounds of the cobblestone wall."""
    env = CoopTextCraftEnv(max_distractors=0, **options)
    _, infos = env.reset(seed=0, options={"task": "textcraft-coop/2/22"})
    for each in rounds:
        *_, infos = env.step({**PASS, **each})
    return keys_of(infos)


def test_words_change_the_key_of_all() -> None:
    told = after({"crafter_0": "say craft 6 cobblestone wall using 6 cobblestone"})
    for agent, key in after().items():
        assert after({})[agent] == key, "to pass changes nothing"
        assert told[agent] != key
        assert after({"crafter_0": "say I need dirt"})[agent] not in (key, told[agent])
        assert after({"crafter_1": "say craft 6 cobblestone wall using 6 cobblestone"})[agent] not in (key, told[agent])


def test_equal_words_are_an_equal_state() -> None:
    hello, dirt = {"crafter_0": "say hello"}, {"crafter_1": "say dirt?"}
    assert after(hello, dirt) == after(dirt, hello) == after({**hello, **dirt}) == after(hello, hello, dirt)
    assert after(hello, {}) == after({}, {"crafter_0": "SAY  hello "})


def test_words_do_not_outlive_an_episode() -> None:
    env = CoopTextCraftEnv(max_distractors=0)
    first = keys_of(env.reset(seed=0, options={"task": "textcraft-coop/2/22"})[1])
    env.step({**PASS, "crafter_0": "say hello"})
    assert keys_of(env.reset(seed=0, options={"task": "textcraft-coop/2/22"})[1]) == first


def test_what_a_mate_carries_is_part_of_the_state() -> None:
    before, taken = after({}), after({"crafter_0": "get 1 cobblestone"})
    assert before["crafter_1"] != taken["crafter_1"] and before["crafter_0"] != taken["crafter_0"]


def test_who_knows_what_is_part_of_the_state() -> None:
    """The same words said in another order, of which one was a guess when it was said."""
    line = "say craft 6 cobblestone wall using 6 cobblestone"
    rounds = {"crafter_0": line}, {"crafter_1": line}
    assert after(*rounds, told_only=True) == after(*rounds[::-1], told_only=True)  # crafter_0 told it in both
    assert after(rounds[1], told_only=True) != after(told_only=True)


def test_a_plan_changes_the_key_of_the_actor() -> None:
    def key(plan: str) -> tuple[str, str]:
        env = planner_actor(CountEnv())
        env.reset(seed=0, options={"task": "count/3"})
        env.step(plan)
        return env.infos["planner"]["state_key"], env.infos["actor"]["state_key"]

    planner = key("")[0]
    actors = [key(plan)[1] for plan in ("", "A", "B")]
    assert len({planner, *actors}) == 4
    assert key("A") == (planner, actors[1]) and key(" \n") == (planner, actors[0])


def test_what_the_planner_sees_is_in_its_key() -> None:
    def key(*actions: str) -> str:
        env = planner_actor(CountEnv())
        env.reset(seed=0, options={"task": "count/3"})
        for action in actions:
            env.step("go")
            env.step(action)
        return str(env.infos["planner"]["state_key"])

    assert len({key(), key("up"), key("up", "down"), key("up", "up")}) == 4
    assert key("up", "down") == key("up", "down")


def test_a_view_begins_in_the_agents_own_state() -> None:
    """So the first turn is grouped with a later one in the same state."""
    engines = {agent: says("pass", "pass", "say hi") for agent in PASS}
    episode = soon(play_team(coop(), engines, CODEC, EpisodeSpec("textcraft-coop/2/22"), limits=Limits(3)))
    own = keys_of(CoopTextCraftEnv().reset(seed=0, options={"task": "textcraft-coop/2/22"})[1])
    for agent, stream in episode.per_agent.items():
        view = stream.trajectory
        assert view.meta["state_key"] == own[agent] != episode.trajectory.meta["state_key"]
        assert [turn.info["state_key"] == own[agent] for turn in view.turns] == [True, True, False]
        assert not any("state_before" in turn.info for turn in view.turns)


def test_an_actor_begins_when_it_has_read_the_plan() -> None:
    engines = {"planner": says("go", "go"), "actor": says("up", "up")}
    episode = soon(play_team(counting(), engines, CODEC, EpisodeSpec("count/2"), limits=LIMITS))
    env = counting()
    _, info = env.reset(seed=0, options={"task": "count/2"})
    planner = info["agents"]["planner"]["state_key"]
    *_, info = env.step(json.dumps({"planner": "go"}))
    views = {agent: stream.trajectory for agent, stream in episode.per_agent.items()}
    assert views["planner"].meta["state_key"] == planner
    assert views["actor"].meta["state_key"] == info["agents"]["actor"]["state_key"]


def test_any_record_tells_it(tmp_path: Path) -> None:
    env = RecordTrajectory(gym.make("AgentGym/TextCraftCoop-v0"), tmp_path / "a.jsonl")
    _, info = env.reset(seed=5)
    env.step("no joint action")
    env.step(json.dumps(PASS))
    env.close()
    [record] = read_trajectories(tmp_path / "a.jsonl")
    own = keys_of(info["agents"])
    assert {agent: view.meta["state_key"] for agent, view in per_agent_trajectories(record).items()} == own


def test_of_one_that_never_wrote_no_state_is_told() -> None:
    engines = {"planner": says("go"), "actor": says("up")}
    episode = soon(play_team(counting(), engines, CODEC, EpisodeSpec("count/2"), limits=Limits(1)))
    assert episode.per_agent["actor"].trajectory.meta["state_key"] is None


class Breaking(PlannerActorEnv):
    """Fails at the fifth step in a way that nobody foresaw."""

    def step(self, action: str) -> Any:
        if self._turn == 4:
            raise RuntimeError("gone")
        return super().step(action)


def test_a_reward_is_not_counted_again_when_the_machine_fails() -> None:
    """The record of such a step repeats what was known last."""
    env = Breaking(env_id="tests.toy_envs:Toy/Count-v0")
    engines = {"planner": says("go", "go", "go"), "actor": says("up", "up", "up")}
    episode = soon(play_team(env, engines, CODEC, EpisodeSpec("count/9"), limits=LIMITS))
    assert episode.trajectory.stop_reason == "env_error" and episode.trajectory.score == pytest.approx(2 / 9)
    assert [s.trajectory.score for s in episode.per_agent.values()] == pytest.approx([2 / 9, 2 / 9])
