"""Played episodes as TRL's columns: the trained tokens, the context, and the inputs of estimators."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agentgym_envs.registration import short_names
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, ScriptedEngine, TokenTrajectory, play
from agentgym_trl.rollout_metrics import facts, summarise
from agentgym_trl.trl_format import columns
from tests.rollout.families import FAMILIES, UP
from tests.toy import CountEnv

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
END = CODEC.turn_end_id


def episode(*answers: Sequence[int], task: str = "count/3", seed: int = 0, **limits: Any) -> TokenTrajectory:
    engine = ScriptedEngine([list(answer) for answer in answers], CODEC.stop_ids)
    limits = {"max_turn_tokens": 3, **limits}
    return asyncio.run(play(CountEnv(), engine, CODEC, EpisodeSpec(task, seed), limits=Limits(**limits)))


def encoded(text: str) -> list[int]:
    return CODEC.encode_answer(text)


def row(tokens: TokenTrajectory, **options: Any) -> dict[str, Any]:
    spec = EpisodeSpec(tokens.trajectory.task.id, tokens.trajectory.seed or 0, env="Toy/Count-v0")
    return {name: column[0] for name, column in columns([spec], [tokens], CODEC, **options).items() if column}


def sampled(row: dict[str, Any]) -> list[int]:
    """The mask of the sampled tokens of a row."""
    return [int(number > 0) for number in row["turn_numbers"]]


def keys_by_turn(row: dict[str, Any]) -> list[list[int]]:
    """The state keys of the tokens of each turn."""
    numbers, keys = row["turn_numbers"], row["state_keys"]
    turns = range(1, max(numbers) + 1)
    return [[key for key, own in zip(keys, numbers, strict=True) if own == turn] for turn in turns]


def test_an_episode_has_the_literal_columns() -> None:
    between = CODEC.encode_observation("1")
    tokens = episode([UP, END], [UP, END], seed=5, max_turns=2)
    found = row(tokens)
    gap = [0] * len(between)
    assert found["prompt_ids"] == tokens.prompt_ids
    assert found["completion_ids"] == [UP, END, *between, UP, END]
    assert found["env_mask"] == [1, 1, *gap, 1, 1] and found["turn_numbers"] == [1, 1, *gap, 2, 2]
    assert found["token_rewards"] == [0, 1 / 3, *gap, 0, 1 / 3]
    assert found["bootstrap_ids"] == CODEC.encode_observation("2")
    assert found["episode_score"] == pytest.approx(2 / 3)
    names = ("task", "group", "seed", "env")
    assert [found[name] for name in names] == ["count/3", "small", 5, "Toy/Count-v0"]
    assert "logprobs" not in found or len(found["logprobs"]) == len(found["completion_ids"])


def test_a_truncated_answer_can_be_left_out_of_the_loss_only() -> None:
    """Its tokens stay in the context, and rewards and turn numbers do not change."""
    truncated = [117, 112, UP, 33, 33]
    tokens = episode([UP, END], truncated, [UP, END], max_turns=3)
    assert [turn.info["finish"] for turn in tokens.trajectory.turns] == ["stop", "length", "stop"]
    whole, without = row(tokens), row(tokens, mask_truncated_answers=True)
    assert [whole["turn_numbers"].count(number) for number in (1, 2, 3)] == [2, 3, 2]
    assert whole["env_mask"] == sampled(whole)
    begin, end = tokens.turn_spans[1]
    assert whole["completion_ids"][begin:end] == truncated[:3]
    assert without["env_mask"] == [0 if begin <= index < end else on for index, on in enumerate(whole["env_mask"])]
    assert {name: value for name, value in without.items() if name != "env_mask"} == {
        name: value for name, value in whole.items() if name != "env_mask"
    }
    assert row(episode([UP, END], max_turns=1), mask_truncated_answers=True)["env_mask"] == [1, 1]


@pytest.mark.parametrize("mask_truncated_answers", [False, True])
def test_no_token_of_a_failed_episode_is_trained_on(mask_truncated_answers: bool) -> None:
    late = row(episode([UP, END], encoded("crash"), max_turn_tokens=9), mask_truncated_answers=mask_truncated_answers)
    assert set(late["env_mask"]) == {0} and sum(sampled(late)) == 2 + len(encoded("crash"))
    early = row(episode(task="count/0"), mask_truncated_answers=mask_truncated_answers)
    assert early["completion_ids"] == [END]
    assert early["env_mask"] == early["turn_numbers"] == [0]
    assert early["token_rewards"] == [0.0] and early["state_keys"] == [0] and early["bootstrap_ids"] == []
    assert late["episode_score"] is early["episode_score"] is None
    assert early["group"] == "broken"


def test_turns_that_began_in_the_same_state_have_the_same_key() -> None:
    up, nothing = [UP, END], [33, END]
    one, other = (
        row(episode(*answers, max_turns=4)) for answers in ([up, nothing, nothing, up], [nothing, up, nothing, up])
    )
    turns = keys_by_turn(one), keys_by_turn(other)
    assert all(len(set(keys)) == 1 for keys in (*turns[0], *turns[1]))
    first, second = ([keys[0] for keys in own] for own in turns)
    assert first[0] == second[0] != first[1]
    assert first[1] == first[2] == first[3] == second[2] == second[3] != second[1]
    assert all(-(2**63) <= key < 2**63 for key in (*first, *second))


def played() -> tuple[list[EpisodeSpec], list[TokenTrajectory]]:
    """Six episodes with known numbers."""
    episodes = [
        episode([UP, END], [UP, END], task="count/2"),  # success in 2 turns
        episode([UP, END], [33, END], max_turns=2),  # a third, one invalid action of 2
        episode([117, 112, UP, 33], max_turns=1),  # 0: one truncated answer, which is also invalid
        episode(encoded("give up"), max_turn_tokens=9),  # 0, given up
        episode(encoded("crash"), max_turn_tokens=9),
        episode(task="count/0"),
    ]
    names = ["A/Left-v0", "A/Left-v0", "A/Right-v0", "A/Left-v0", "A/Left-v0", "A/Right-v0"]
    specs = [EpisodeSpec("any", 0, env=name, max_turns=turns) for name, turns in zip(names, range(1, 7), strict=True)]
    return specs, episodes


def test_metrics_equal_hand_computed_values() -> None:
    found = summarise(facts(*played()))
    expected = {
        "success": 1 / 4,
        "score": (1 + 1 / 3) / 4,
        "turns": 6 / 4,
        "max_turns": 3.5,
        "invalid_actions": 2 / 6,
        "truncated_answers": 1 / 6,
        "stop/success": 1 / 6,
        "stop/failure": 1 / 6,
        "stop/turn_limit": 2 / 6,
        "stop/token_limit": 0,
        "stop/env_error": 2 / 6,
    }
    assert found == {f"rollout/{name}": pytest.approx(value) for name, value in expected.items()}


def test_metrics_are_reported_per_environment() -> None:
    envs = ["A/Left-v0", "A/Right-v0", "B/Right-v0", "A/Never-v0"]
    found = summarise(facts(*played()), envs)
    own = {name: value for name, value in found.items() if name not in summarise(facts(*played()))}
    assert own == {
        "rollout/Left/success": pytest.approx(1 / 3),
        "rollout/Left/score": pytest.approx((1 + 1 / 3) / 3),
        "rollout/Left/turns": pytest.approx(5 / 3),
        "rollout/Left/max_turns": (1 + 2 + 4 + 5) / 4,
        "rollout/Left/invalid_actions": 1 / 5,
        "rollout/Left/truncated_answers": 0.0,
        "rollout/A/Right-v0/success": 0.0,
        "rollout/A/Right-v0/score": 0.0,
        "rollout/A/Right-v0/turns": 1.0,
        "rollout/A/Right-v0/max_turns": 4.5,
        "rollout/A/Right-v0/invalid_actions": 1.0,
        "rollout/A/Right-v0/truncated_answers": 1.0,
    }


def test_an_environment_with_failures_only_has_no_success_metric() -> None:
    specs, episodes = played()
    found = summarise(facts(specs[-1:], episodes[-1:]), ["A/Left-v0", "A/Right-v0"])
    assert "rollout/success" not in found and "rollout/Right/success" not in found
    assert found["rollout/stop/env_error"] == 1 and found["rollout/Right/max_turns"] == 6


@pytest.mark.parametrize(
    "ids, short",
    [
        (["AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0"], ["TextCraft", "BabyAI"]),
        (["AgentGym/TextCraft-v0", "AgentGym/TextCraft-v1"], ["AgentGym/TextCraft-v0", "AgentGym/TextCraft-v1"]),
        (["Plain-v3", "noversion", "a/b"], ["Plain", "noversion", "a/b"]),
        ([], []),
    ],
)
def test_short_names_are_distinct(ids: list[str], short: list[str]) -> None:
    assert list(short_names(ids).items()) == list(zip(ids, short, strict=True))
