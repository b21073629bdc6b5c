"""The `state_key` of teams: equal for equal states, and different if an agent got another message."""

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
from tests.multiagent.engines import CODEC, LIMITS, coop, counting, says, soon
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


def test_a_message_changes_the_key_of_all() -> None:
    stated = after({"crafter_0": "say craft 6 cobblestone wall using 6 cobblestone"})
    for agent, key in after().items():
        assert after({})[agent] == key, "to pass changes nothing"
        assert stated[agent] != key
        assert after({"crafter_0": "say I need dirt"})[agent] not in (key, stated[agent])
        assert after({"crafter_1": "say craft 6 cobblestone wall using 6 cobblestone"})[agent] not in (
            key,
            stated[agent],
        )


def test_equal_messages_give_equal_states() -> None:
    hello, dirt = {"crafter_0": "say hello"}, {"crafter_1": "say dirt?"}
    assert after(hello, dirt) == after(dirt, hello) == after({**hello, **dirt}) == after(hello, hello, dirt)
    assert after(hello, {}) == after({}, {"crafter_0": "SAY  hello "})


def test_a_reset_forgets_messages() -> None:
    env = CoopTextCraftEnv(max_distractors=0)
    first = keys_of(env.reset(seed=0, options={"task": "textcraft-coop/2/22"})[1])
    env.step({**PASS, "crafter_0": "say hello"})
    assert keys_of(env.reset(seed=0, options={"task": "textcraft-coop/2/22"})[1]) == first


def test_the_inventory_of_other_agents_is_part_of_the_state() -> None:
    before, taken = after({}), after({"crafter_0": "get 1 cobblestone"})
    assert before["crafter_1"] != taken["crafter_1"] and before["crafter_0"] != taken["crafter_0"]


def test_the_known_recipes_of_each_agent_are_part_of_the_state() -> None:
    """The same messages in another order; one of them is a guess of an agent that does not know the recipe."""
    line = "say craft 6 cobblestone wall using 6 cobblestone"
    rounds = {"crafter_0": line}, {"crafter_1": line}
    assert after(*rounds, known_recipes_only=True) == after(
        *rounds[::-1], known_recipes_only=True
    )  # crafter_0 knows it and sends it in both
    assert after(rounds[1], known_recipes_only=True) != after(known_recipes_only=True)


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


def test_the_planners_key_depends_on_its_observation() -> None:
    def key(*actions: str) -> str:
        env = planner_actor(CountEnv())
        env.reset(seed=0, options={"task": "count/3"})
        for action in actions:
            env.step("go")
            env.step(action)
        return str(env.infos["planner"]["state_key"])

    assert len({key(), key("up"), key("up", "down"), key("up", "up")}) == 4
    assert key("up", "down") == key("up", "down")


def test_a_trajectory_begins_with_the_agents_own_key() -> None:
    """So the first turn can be grouped with a later one in the same state."""
    engines = {agent: says("pass", "pass", "say hi") for agent in PASS}
    episode = soon(play_team(coop(), engines, CODEC, EpisodeSpec("textcraft-coop/2/22"), limits=Limits(3)))
    own = keys_of(CoopTextCraftEnv().reset(seed=0, options={"task": "textcraft-coop/2/22"})[1])
    for agent, tokens in episode.per_agent.items():
        trajectory = tokens.trajectory
        assert trajectory.meta["state_key"] == own[agent] != episode.trajectory.meta["state_key"]
        assert [turn.info["state_key"] == own[agent] for turn in trajectory.turns] == [True, True, False]
        assert not any("state_before" in turn.info for turn in trajectory.turns)


def test_an_actors_first_key_includes_the_plan() -> None:
    engines = {"planner": says("go", "go"), "actor": says("up", "up")}
    episode = soon(play_team(counting(), engines, CODEC, EpisodeSpec("count/2"), limits=LIMITS))
    env = counting()
    _, info = env.reset(seed=0, options={"task": "count/2"})
    planner = info["agents"]["planner"]["state_key"]
    *_, info = env.step(json.dumps({"planner": "go"}))
    trajectories = {agent: tokens.trajectory for agent, tokens in episode.per_agent.items()}
    assert trajectories["planner"].meta["state_key"] == planner
    assert trajectories["actor"].meta["state_key"] == info["agents"]["actor"]["state_key"]


def test_any_joint_record_has_the_first_keys(tmp_path: Path) -> None:
    env = RecordTrajectory(gym.make("AgentGym/TextCraftCoop-v0"), tmp_path / "a.jsonl")
    _, info = env.reset(seed=5)
    env.step("no joint action")
    env.step(json.dumps(PASS))
    env.close()
    [record] = read_trajectories(tmp_path / "a.jsonl")
    own = keys_of(info["agents"])
    assert {agent: trajectory.meta["state_key"] for agent, trajectory in per_agent_trajectories(record).items()} == own


def test_an_agent_that_never_wrote_has_no_first_key() -> None:
    engines = {"planner": says("go"), "actor": says("up")}
    episode = soon(play_team(counting(), engines, CODEC, EpisodeSpec("count/2"), limits=Limits(1)))
    assert episode.per_agent["actor"].trajectory.meta["state_key"] is None


class Breaking(PlannerActorEnv):
    """Raises an unexpected error at the fifth step."""

    def step(self, action: str) -> Any:
        if self._turn == 4:
            raise RuntimeError("gone")
        return super().step(action)


def test_a_reward_is_not_counted_again_when_the_environment_fails() -> None:
    """The record of such a step repeats the last info."""
    env = Breaking(env_id="tests.toy_envs:Toy/Count-v0")
    engines = {"planner": says("go", "go", "go"), "actor": says("up", "up", "up")}
    episode = soon(play_team(env, engines, CODEC, EpisodeSpec("count/9"), limits=LIMITS))
    assert episode.trajectory.stop_reason == "env_error" and episode.trajectory.score == pytest.approx(2 / 9)
    assert [s.trajectory.score for s in episode.per_agent.values()] == pytest.approx([2 / 9, 2 / 9])
