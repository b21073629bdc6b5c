"""The oracle as a policy: every defect does what its definition says, and nothing else."""

import asyncio
import random
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.core import text_env
from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.rollout import Defects, EpisodeSpec, Limits, OraclePolicy, play_text
from agentgym_envs.rollout.oracle_policy import DETOUR_TURNS
from agentgym_envs.trajectory import Trajectory


def craft() -> Any:
    return gym.make("AgentGym/TextCraft-v0", disable_env_checker=True)


def episode(*, episode_seed: int = 1, turns: int = 60, env: Any = None, **options: Any) -> Trajectory:
    env = env or craft()
    return asyncio.run(play_text(env, OraclePolicy(**options), EpisodeSpec(seed=episode_seed), limits=Limits(turns)))


def planned_and_played(**options: Any) -> list[tuple[str, str]]:
    """The oracle's command in each visited state, and the one that was played."""
    env = text_env(craft())
    env.reset(seed=1)
    policy, pairs = OraclePolicy(**options), []
    for _ in range(40):
        planned = next(env.oracle())
        action = asyncio.run(policy.act(env, []))
        pairs.append((planned, action))
        if env.step(action)[2]:
            break
    return pairs


def test_idle_turns_change_nothing() -> None:
    careless = episode(idle=0.5)
    assert careless.success
    assert careless.actions == episode(idle=0.5).actions != episode(idle=0.5, seed=1).actions
    assert "wait" in careless.actions
    assert [action for action in careless.actions if action != "wait"] == episode().actions
    assert episode(idle=1, turns=60).actions == ["wait"] * 60
    assert "inventory" in episode(idle=0.5, idle_action="inventory").actions


def test_idle_turns_are_drawn_one_number_per_turn() -> None:
    rng = random.Random(7)
    wasted = [rng.random() < 0.75 for _ in range(10)]
    assert [action == "wait" for action in episode(idle=0.75, seed=7).actions[:10]] == wasted


def test_slips_are_random_commands_and_the_rest_follows_the_oracle() -> None:
    pairs = planned_and_played(slip=0.4)
    slipped = [played for planned, played in pairs if played != planned]
    assert 0 < len(slipped) < len(pairs)
    assert all(played.startswith(("get ", "craft ")) for played in slipped)
    assert all(played != planned for planned, played in planned_and_played(slip=1))


def test_detours_have_a_fixed_length() -> None:
    away = "".join("-x"[played != planned] for planned, played in planned_and_played(detour=0.25, seed=3))
    runs = [len(run) for run in away.split("-") if run]
    assert runs and all(length % DETOUR_TURNS == 0 for length in runs)


def test_a_forgetful_oracle_repeats_its_own_commands() -> None:
    assert episode(forget=1, turns=5).actions == [episode().actions[0]] * 5
    pairs = planned_and_played(forget=0.4)
    earlier: list[str] = []
    for planned, played in pairs:
        assert played == planned or played in earlier
        earlier.append(played)
    assert any(played != planned for planned, played in pairs)


def test_defects_that_lead_to_a_dead_end_go_on_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    env = text_env(craft())
    env.reset(seed=1)
    policy = OraclePolicy(slip=0.5, seed=1)
    assert asyncio.run(policy.act(env, [])) != next(env.oracle())  # a slip

    def no_plan() -> list[str]:
        raise NoOracle("nothing leads to the goal")

    monkeypatch.setattr(env, "_plan", no_plan)
    assert [asyncio.run(policy.act(env, [])).split()[0] in ("get", "craft") for _ in range(4)] == [True] * 4
    with pytest.raises(NoOracle):
        asyncio.run(OraclePolicy(slip=0.0).act(env, []))


def test_invalid_rates_are_refused() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"idle": 1.5}, r"idle must be between 0 and 1, got 1\.5"),
        ({"slip": -0.1}, "slip must be between"),
        ({"idle": 0.6, "forget": 0.6}, r"sum to 1\.2"),
    )
    for rates, reason in cases:
        with pytest.raises(UsageError, match=reason):
            OraclePolicy(**rates)


def test_a_text_gives_the_rates() -> None:
    assert Defects.parse("idle=0.5, forget=0.25") == Defects(idle=0.5, forget=0.25)
    for text in ("x", "idle", "idle=much", "idle=0.1,idle=0.1", "seed=3"):
        with pytest.raises(UsageError, match=f"oracle:{text}"):
            Defects.parse(text)
