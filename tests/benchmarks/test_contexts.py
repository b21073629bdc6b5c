"""The study of limited contexts: its tasks, its arms and the contexts of demonstrations."""

from __future__ import annotations

from random import Random
from typing import Any

import gymnasium as gym

from agentgym_envs.core import text_env
from agentgym_envs.rollout import EpisodeSpec, Limits, OraclePolicy, play_text, run_sync
from agentgym_envs.rollout.tokens import TokenTrajectory, join_contexts
from benchmarks.contexts import STUDIES, chosen, conversations


def test_the_limited_agent_sees_a_quarter_of_long_episodes() -> None:
    settings = STUDIES["long"].make_settings(seed=1)
    tasks: Any = text_env(gym.make(settings.env_id, **settings.env_kwargs)).tasks
    turns = [tasks.difficulty(task).turns for task in tasks.sample(groups=settings.groups)]
    assert set(turns) == {6, 8}  # turns of the oracle; a careless policy takes up to 14, and sees three


def test_every_answer_of_a_demonstration_is_trained_on_once() -> None:
    settings = STUDIES["long"].make_settings(seed=1)
    env = gym.make(settings.env_id, **settings.env_kwargs)
    task = text_env(env).tasks.sample(groups=settings.groups)[0]
    played = run_sync(play_text(env, OraclePolicy(), EpisodeSpec(task.id, 0), limits=Limits(20)))
    records = conversations([played], STUDIES["long"].memory)
    trained = [exchange.answer for record in records for exchange in record.exchanges if exchange.trained]
    assert trained == [turn.action for turn in played.turns]
    assert max(len(record.exchanges) for record in records) == 3


def test_an_arm_trains_on_its_contexts_alone() -> None:
    record: Any = object()
    contexts = [
        TokenTrajectory(record, [7], [n, n], [0, 1], [0.0, 0.0], ((1, 2),), answer_turns=(n,)) for n in (1, 2, 3)
    ]
    episode = join_contexts(contexts)
    assert chosen(episode, "every", Random(0)) is episode
    assert chosen(episode, "last", Random(0)).turn_numbers == (3,)
    drawn = {chosen(episode, "random:2", Random(seed)).turn_numbers for seed in range(30)}
    assert drawn == {(1, 2), (1, 3), (2, 3)}
    assert len(chosen(episode, "random:9", Random(0)).contexts()) == 3


def test_arms_differ_only_in_their_steps() -> None:
    for study in STUDIES.values():
        arms = study.arms()
        for name, factor in study.equal.items():
            assert arms[f"{name}, {factor} x steps"] == arms[name]._replace(longer=factor)
    assert STUDIES["short"].arms()["full, 2.6 x steps"].context == "full"
