"""Teams in training: a row is one agent's trajectory, a group is a role on a task, untrained agents have no effect."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch

from agentgym_envs.errors import UsageError
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.rollout import encode_trajectory
from agentgym_envs.rollout.token_file import TokenFile
from agentgym_envs.trajectory import Trajectory, line_mark
from agentgym_envs.vector import RunnerPool
from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig
from agentgym_trl.agent_trajectories import agent_views
from agentgym_trl.agentevol import EvolSettings, agentevol
from agentgym_trl.algorithms import ALGORITHMS
from agentgym_trl.dagger import DaggerSettings, dagger
from agentgym_trl.dataset import make_dataset
from agentgym_trl.demonstrations import environment_corpus, oracle_demonstrations
from agentgym_trl.dpo import dpo_dataset
from agentgym_trl.dynamic_sampling import whole_groups
from agentgym_trl.models import make_codec
from agentgym_trl.pairs import Pair, Preference, make_pairs
from agentgym_trl.rollout_metrics import EpisodeMetrics, summarise
from agentgym_trl.sft import sft_dataset
from agentgym_trl.teams import TeamRoles, find_team_roles
from agentgym_trl.tiny import make_tokenizer
from tests.adapters.trl.crews import AGENTS, COOP, EASY, OPTIONS, ScoredCoop, broken_coop, team_trainer
from tests.adapters.trl.small import craft, demonstrations, first_batch, make_small_model, played
from tests.adapters.trl.test_dynamic_sampling import logged
from tests.adapters.trl.test_sft import sft_config
from tests.adapters.trl.turn_numbers import turn_numbers

PAIR = TeamRoles(AGENTS, AGENTS)
ONE_OF = TeamRoles(AGENTS, AGENTS[1:])


def coop() -> gym.Env[str, str]:
    return gym.make(COOP, **OPTIONS)


def roles_of(makers: Any, **options: Any) -> TeamRoles:
    pool = RunnerPool(makers, 1)
    try:
        return find_team_roles(pool, [""] if callable(makers) else makers, **options)
    finally:
        pool.close()


def test_rows_of_a_team_are_episodes_ordered_by_agent() -> None:
    assert PAIR.group_size(6) == 3 and TeamRoles().group_size(6) == ONE_OF.group_size(6) == 6
    assert PAIR.episode_prompts("aaaabbbb", 4) == ["a", "a", "b", "b"]
    assert PAIR.per_row(["a1", "a2", "b1", "b2"], 2) == ["a1", "a2", "a1", "a2", "b1", "b2", "b1", "b2"]
    for team in (TeamRoles(), ONE_OF):
        assert team.episode_prompts("aaab", 4) == team.per_row("aaab", 4) == list("aaab")
    assert whole_groups([0, 1, 3, 4, 5], 2) == [0, 2] and whole_groups([0, 3], 1) == [0, 3]


@pytest.mark.parametrize(
    ("team", "num_generations", "process_rows", "message"),
    [
        (PAIR, 5, 10, "--num_generations must be a multiple of 2, got 5"),
        (PAIR, 2, 4, "--num_generations must be at least 4, got 2"),
        (ONE_OF, 1, 4, "--num_generations must be at least 2, got 1"),
        (PAIR, 8, 12, "is 12, and must be a multiple of --num_generations"),
    ],
)
def test_impossible_groups_are_refused(team: TeamRoles, num_generations: int, process_rows: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        team.check(num_generations, process_rows, grouped=True)


def test_possible_groups_are_accepted() -> None:
    TeamRoles().check(1, 3, grouped=True)  # a single agent is checked elsewhere
    ONE_OF.check(8, 12, grouped=True)
    PAIR.check(2, 4, grouped=False)
    for prompts in ("aaaabb", "aaabbbbb"):
        with pytest.raises(UsageError, match="a part of a group"):
            PAIR.episode_prompts(prompts, 4)


def test_the_team_of_the_environments_is_found() -> None:
    assert roles_of(craft) == TeamRoles()
    assert roles_of(coop) == roles_of(ScoredCoop) == PAIR
    assert roles_of(coop, train_agents=["crafter_1"]) == ONE_OF
    assert roles_of({"a": coop, "b": ScoredCoop}, train_agents=["crafter_1", "crafter_0"]) == PAIR
    assert roles_of(lambda: gym.make("AgentGym/PlannerActor-v0")).trained == ("planner", "actor")


@pytest.mark.parametrize(
    ("makers", "agents", "message"),
    [
        (craft, ["crafter_0"], "has a single agent"),
        (coop, ["crafter_2"], "members of the team, crafter_0, crafter_1; got crafter_2"),
        (coop, [], "got none"),
        ({"a": coop, "b": craft}, None, "these differ: a: crafter_0, crafter_1; b: a single agent"),
    ],
)
def test_agents_that_cannot_be_trained_are_refused(makers: Any, agents: list[str] | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        roles_of(makers, train_agents=agents)


def test_team_metrics_count_an_episode_once() -> None:
    def fact(score: float, turns: int, agent: str = "", usable: bool = True) -> EpisodeMetrics:
        return EpisodeMetrics("", 4, usable, score > 0.5, score, turns, 1, 0, "success", agent)

    found = summarise(
        [
            *(fact(1.0, 4), fact(1.0, 4, "a"), fact(1.0, 2, "b")),
            *(fact(0.25, 2), fact(0.5, 2, "a"), fact(0.0, 2, "b")),
            *(fact(0.0, 0, usable=False), fact(0.0, 0, "a", False), fact(0.0, 0, "b", False)),
        ]
    )
    assert (found["rollout/success"], found["rollout/score"], found["rollout/turns"]) == (0.5, 0.625, 3)
    assert found["rollout/stop/success"] == 1
    assert (found["rollout/a/score"], found["rollout/a/turns"], found["rollout/a/invalid_actions"]) == (0.75, 3, 1 / 3)
    assert (found["rollout/b/score"], found["rollout/b/turns"], found["rollout/b/invalid_actions"]) == (0.5, 2, 0.5)
    assert "rollout/a/success" not in found and "rollout/b/max_turns" not in found


@pytest.mark.slow
def test_demonstrations_of_a_team_are_rows_of_its_agents(tokenizer: Any) -> None:
    codec = make_codec(tokenizer)
    made = oracle_demonstrations(coop, 4, groups=EASY)
    rows = sft_dataset(made, codec)
    seen = [view for joint in made for view in per_agent_trajectories(joint).values()]
    assert len(rows) == len(seen) == 8
    for row, view in zip(rows, seen, strict=True):
        tokens = encode_trajectory(view, codec)
        assert row["input_ids"] == tokens.prompt_ids + tokens.ids
        learned = [label for label in row["labels"] if label != -100]
        assert codec.decode(learned).replace("<|end|>", "") == "".join(view.actions)
        prompt = codec.decode(tokens.prompt_ids)
        assert view.meta["agent"] in prompt and '{"' not in prompt
    texts = environment_corpus(coop, groups=EASY)
    assert not any(text.startswith("{") for text in texts) and any("gives you" in text for text in texts)


def test_a_joint_record_is_detected_without_its_infos(tokenizer: Any) -> None:
    codec = make_codec(tokenizer)
    joints = oracle_demonstrations(coop, 2, groups=EASY)
    bare = [replace(joint, turns=tuple(replace(turn, info={}) for turn in joint.turns)) for joint in joints]
    assert all(map(is_team_record, bare)) and not any(is_team_record(v) for joint in bare for v in agent_views(joint))
    assert sft_dataset(bare, codec).to_list() == sft_dataset(joints, codec).to_list()
    assert not is_team_record(replace(bare[0], turns=bare[0].turns[:1], instructions="Play."))
    assert not is_team_record(replace(bare[0], turns=(), final_observation="The machine failed."))


def test_algorithms_for_single_agents_refuse_teams(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    codec, alone = make_codec(tokenizer), list(demonstrations()[:2])
    joint = oracle_demonstrations(coop, 1, groups=EASY)[0]
    shorter = replace(joint, turns=joint.turns[:1], success=False, score=0.0)
    with pytest.raises(UsageError, match=f"{COOP} .*{joint.task.id}.* is a team, and dpo trains a single agent"):
        make_pairs([*alone, joint, shorter])
    with pytest.raises(UsageError, match="and dpo trains a single agent"):
        dpo_dataset(iter([Pair(joint, shorter, Preference.SUCCESS)]), codec)

    def evolve(demos: list[Trajectory], env: Any, rounds: int = 1) -> None:
        plan = EvolSettings(rounds=rounds, tasks=1, episodes_per_task=1, groups=None)
        agentevol(model_path, demos, env, codec, sft_config(tmp_path / "out"), plan)

    with pytest.raises(UsageError, match=f"{COOP} .* is a team, and agentevol trains"):
        evolve([*alone, joint], craft, rounds=0)
    with pytest.raises(UsageError, match=r"\(crafter_0, crafter_1\) is a team, and agentevol trains"):
        evolve(alone, coop)
    with pytest.raises(UsageError, match=r"\(crafter_0, crafter_1\) is a team, and dagger trains"):
        settings = DaggerSettings(rounds=1, tasks=1)
        dagger(model_path, [], coop, codec, sft_config(tmp_path / "out"), settings)
    assert not (tmp_path / "out").exists()


def test_whitening_is_by_role() -> None:
    """Two tasks, two roles, two episodes of each: the rewards of one role do not change the other."""
    rng = torch.Generator().manual_seed(0)
    mask = torch.rand(8, 5, generator=rng) < 0.7
    rewards = torch.randn(8, 5, generator=rng, dtype=torch.float64)
    usable = torch.tensor([True, True, True, False, True, True, True, True])
    numbers = turn_numbers(mask)
    batch = AdvantageBatch(rewards, numbers, usable, 2, rewards * 0, rewards[:, 0] * 0, roles=2)
    first, second = [0, 1, 4, 5], [2, 3, 6, 7]
    for name in ("reinforce++", "reinforce++-baseline", "ppo"):
        estimate = ALGORITHMS[name].estimate
        found = estimate(batch, AdvantageConfig())
        for rows in (first, second):
            own = found[rows][batch.trained_mask[rows]]
            assert abs(float(own.mean())) < 1e-12 and float(own.std()) == pytest.approx(1, abs=1e-6)
            values, after = rewards[rows] * 0, rewards[rows, 0] * 0
            alone = AdvantageBatch(rewards[rows], numbers[rows], usable[rows], 2, values, after)
            torch.testing.assert_close(found[rows], estimate(alone, AdvantageConfig()))
        assert (found[~batch.trained_mask] == 0).all()


def last_scores(trainer: Any, groups: int) -> torch.Tensor:
    """(groups, size) of the rows of the last rollout; NaN where the environment failed."""
    rows = [row.trajectory for row in trainer.rollout.last]
    return torch.tensor([row.score if row.usable else math.nan for row in rows]).view(groups, -1)


@pytest.mark.train
@pytest.mark.parametrize("estimator", ["grpo", "rloo"])
def test_each_role_has_its_own_baseline(estimator: str, tokenizer: Any, tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {}

    def note(completions: Any, **found: Any) -> list[None]:
        columns.update(found)
        return [None] * len(completions)

    trainer = team_trainer(tmp_path, tokenizer, algorithm=estimator, extra={"reward_funcs": note})
    batch = first_batch(trainer)
    rows = [row.trajectory for row in trainer.rollout.last]
    assert [row.meta["agent"] for row in rows] == columns["agent"] == (["crafter_0"] * 4 + ["crafter_1"] * 4) * 2
    assert [row.task.id for row in rows] == columns["task"] and len(set(columns["task"][:8])) == 1
    for first in (0, 8):  # trajectories of the same episodes, in the same order
        marks = [row.meta["episode"] for row in rows[first : first + 8]]
        assert marks[:4] == marks[4:] and len(set(marks)) == 4

    scores = last_scores(trainer, 4)
    assert scores.shape == (4, 4) and (scores.std(1) > 0).all()
    mean = scores.mean(1, keepdim=True)
    by_hand = {"grpo": (scores - mean) / (scores.std(1, keepdim=True) + 1e-4), "rloo": (scores - mean) * 4 / 3}
    torch.testing.assert_close(batch["advantages"], by_hand[estimator].view(-1))
    assert logged(trainer)["frac_reward_zero_std"] == logged(trainer)["rollout/zero_variance_groups"] == 0


@pytest.mark.train
def test_a_role_without_rewards_is_whitened_separately(tokenizer: Any, tmp_path: Path) -> None:
    def make() -> ScoredCoop:
        return ScoredCoop(poor="crafter_1")

    trainer = team_trainer(tmp_path, tokenizer, make, algorithm="reinforce++")
    batch = first_batch(trainer)
    rich, poor = batch["advantages"].view(2, 2, 4, -1).unbind(1)
    learned = (batch["completion_mask"] * batch["tool_mask"]).bool().view(2, 2, 4, -1)[:, 0]
    assert (poor == 0).all()
    assert float(rich[learned].mean()) == pytest.approx(0, abs=1e-5)
    assert float(rich[learned].std()) == pytest.approx(1, abs=1e-3)


@pytest.mark.train
def test_trained_tokens_are_those_that_each_agent_sampled(tokenizer: Any, tmp_path: Path) -> None:
    trainer = team_trainer(tmp_path, tokenizer, record_tokens=True)
    batch = first_batch(trainer)
    answers = [answer for _, answer in trainer.generated]
    for index, row in enumerate(trainer.rollout.last):
        on = (batch["completion_mask"][index] * batch["tool_mask"][index]).bool()
        sampled = batch["completion_ids"][index][on].tolist()
        assert sampled == [i for i, own in zip(row.ids, row.assistant_mask, strict=True) if own]
        assert sampled in [first + second for first in answers for second in answers]
        assert sum(row.rewards) == pytest.approx(row.trajectory.score)

    file = tmp_path / "trajectories" / "step-0.jsonl"
    lines, tokens = file.read_bytes().splitlines(), TokenFile(file)
    assert len(lines) == 8  # episodes, not trajectories
    rows = {(row.trajectory.meta["episode"], row.trajectory.meta["agent"]): row for row in trainer.rollout.last}
    for line in lines:
        segments = tokens.read(line_mark(line))
        assert segments is not None and json.loads(line)["env_id"] == "ScoredCoop"
        for agent, segment in zip(AGENTS, segments, strict=True):
            row = rows[line_mark(line), agent]
            assert (segment.prompt_ids, segment.ids, segment.mask) == (row.prompt_ids, row.ids, row.assistant_mask)


@pytest.mark.train
def test_metrics_are_logged_for_the_team_and_its_agents(tokenizer: Any, tmp_path: Path) -> None:
    trainer = team_trainer(tmp_path, tokenizer, lambda: ScoredCoop(poor="crafter_1"))
    first_batch(trainer)
    found, scores = logged(trainer), last_scores(trainer, 4)
    assert found["rollout/crafter_0/score"] == pytest.approx(float(scores[::2].mean()))
    assert found["rollout/crafter_1/score"] == 0
    assert found["rollout/score"] == pytest.approx(float(scores.mean()))
    assert found["rollout/zero_variance_groups"] == found["frac_reward_zero_std"] == 0.5
    assert found["rollout/crafter_0/turns"] == found["rollout/turns"] == 2


@pytest.mark.train
def test_a_failed_episode_is_left_out_in_every_role(tokenizer: Any, tmp_path: Path) -> None:
    trainer = team_trainer(tmp_path, tokenizer, broken_coop(lambda number: number == 2 or number >= 8))
    batch = first_batch(trainer)
    scores, advantages = last_scores(trainer, 4), batch["advantages"].view(4, 4)
    lost = scores.isnan()
    assert lost[:2, 2].all() and lost.sum() == 2
    learned = (batch["completion_mask"] * batch["tool_mask"]).view(4, 4, -1).sum(-1)
    assert (advantages[lost] == 0).all() and (learned[lost] == 0).all() and (learned[~lost] > 0).all()
    kept = scores[0][~lost[0]]
    torch.testing.assert_close(advantages[0][~lost[0]], (kept - kept.mean()) / (kept.std() + 1e-4))
    found = logged(trainer)
    assert (found["rollout/stop/env_error"], found["rollout/retried"]) == (1 / 8, 2)

    again = team_trainer(tmp_path / "again", tokenizer, broken_coop(lambda number: number == 2))
    first_batch(again)
    assert not last_scores(again, 4).isnan().any() and logged(again)["rollout/retried"] == 1


@pytest.mark.train
def test_a_task_is_replaced_only_if_all_roles_have_zero_variance(tokenizer: Any, tmp_path: Path) -> None:
    plain = team_trainer(tmp_path / "plain", tokenizer)
    first_batch(plain)
    tasks = [row.trajectory.task.id for row in plain.rollout.last]
    dull = frozenset([tasks[0]])
    trainer = team_trainer(tmp_path / "dull", tokenizer, lambda: ScoredCoop(dull), dynamic_sampling_retries=1)
    first_batch(trainer)
    found = [row.trajectory.task.id for row in trainer.rollout.last]
    assert found[8:] == tasks[8:] and len(set(found[:8])) == 1 and found[0] not in tasks
    assert logged(trainer)["rollout/zero_variance_groups"] == 0.5 and logged(trainer)["rollout/resampled_groups"] == 1
    assert (last_scores(trainer, 4).std(1) > 0).all()

    poor = team_trainer(tmp_path / "poor", tokenizer, lambda: ScoredCoop(poor="crafter_0"), dynamic_sampling_retries=1)
    first_batch(poor)
    assert [row.trajectory.task.id for row in poor.rollout.last] == tasks
    assert logged(poor)["rollout/resampled_groups"] == 0


def policy_gradient(trainer: Any, batch: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    names, weights = zip(*trainer.model.named_parameters(), strict=True)
    loss = trainer._compute_loss(trainer.model, dict(batch))
    return dict(zip(names, torch.autograd.grad(loss, weights), strict=True))


@pytest.mark.train
def test_untrained_agents_have_no_gradient(tokenizer: Any, tmp_path: Path) -> None:
    """The same episodes with both agents in the loss and with one: the latter is that one's part."""
    both = team_trainer(tmp_path / "both", tokenizer, loss_type="grpo")
    one = team_trainer(
        tmp_path / "one", tokenizer, loss_type="grpo", train_agents=["crafter_1"],
        num_generations=4, per_device_train_batch_size=8,
    )  # fmt: skip
    batches = []
    for trainer in (both, one):
        torch.manual_seed(3)
        batches.append(first_batch(trainer))
    assert [t.task.id for t in played(tmp_path / "both", 0)] == [t.task.id for t in played(tmp_path / "one", 0)]
    assert sorted(t.score for t in played(tmp_path / "both", 0)) == sorted(t.score for t in played(tmp_path / "one", 0))
    assert {row.trajectory.meta["agent"] for row in one.rollout.last} == {"crafter_1"}
    batches[0]["advantages"].view(2, 2, 4)[:, 0] = 0
    whole, part = (policy_gradient(t, b) for t, b in zip((both, one), batches, strict=True))
    assert any(gradient.abs().max() > 1e-3 for gradient in part.values())
    torch.testing.assert_close({name: 2 * gradient for name, gradient in whole.items()}, part, atol=2e-5, rtol=1e-3)


@pytest.mark.train
def test_a_frozen_partner_plays_and_is_not_trained(tokenizer: Any, tmp_path: Path) -> None:
    path = tmp_path / "partner"
    make_small_model(tokenizer, seed=5).save_pretrained(path)
    tokenizer.save_pretrained(path)
    settings: dict[str, Any] = {"num_generations": 4, "per_device_train_batch_size": 8, "max_steps": 1}
    trainer = team_trainer(tmp_path / "run", tokenizer, train_agents=["crafter_0"], partner=str(path), **settings)
    partner = trainer.rollout.partner
    before = {name: weight.clone() for name, weight in partner.model.state_dict().items()}
    prompted: list[tuple[int, ...]] = []
    generate = partner.generate_batch

    def spy(prompts: Any, samplings: Any) -> Any:
        prompted.extend(tuple(prompt) for prompt in prompts)
        assert {s.temperature for s in samplings} == {trainer.args.temperature}
        return generate(prompts, samplings)

    partner.generate_batch = spy
    trainer.train()
    decode = make_codec(tokenizer).decode
    names = [{"You are crafter_0" in decode(list(prompt)) for prompt, _ in trainer.generated}]
    names.append({"You are crafter_0" in decode(list(prompt)) for prompt in prompted})
    assert names == [{True}, {False}] and len(prompted) == len(trainer.generated) == 16
    answers = [answer for _, answer in trainer.generated]
    for row in trainer.rollout.last:
        assert row.trajectory.meta["agent"] == "crafter_0" and len(row.trajectory.turns) == 2
        sampled = [i for i, own in zip(row.ids, row.assistant_mask, strict=True) if own]
        assert sampled in [first + second for first in answers for second in answers]
    assert all(set(per_agent_trajectories(joint)) == set(AGENTS) for joint in played(tmp_path / "run", 0))
    torch.testing.assert_close(partner.model.state_dict(), before, atol=0, rtol=0)
    assert not any(weight.requires_grad or weight.grad is not None for weight in partner.model.parameters())
    log = trainer.state.log_history[0]
    assert log["grad_norm"] > 0 and {"rollout/crafter_0/score", "rollout/crafter_1/score"} <= set(log)


def test_a_partner_with_another_vocabulary_is_refused(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="but all of crafter_0, crafter_1 are trained"):
        team_trainer(tmp_path, tokenizer, partner=str(model_path))
    other = make_tokenizer(["quite another world"])
    with pytest.raises(UsageError, match="another vocabulary"):
        team_trainer(tmp_path, other, train_agents=["crafter_0"], partner=str(model_path))


@pytest.mark.rotating(always=1)
@pytest.mark.train
@pytest.mark.parametrize("estimator", ["reinforce++", "reinforce++-baseline", "ppo"])
def test_every_estimator_trains_a_planner_and_an_actor(estimator: str, tokenizer: Any, tmp_path: Path) -> None:
    def make() -> Any:
        return gym.make("AgentGym/PlannerActor-v0", env_kwargs={"max_distractors": 0}, instructions="").unwrapped

    trainer = team_trainer(
        tmp_path, tokenizer, make, algorithm=estimator, max_turns="4", max_steps=1, num_generations=4,
        per_device_train_batch_size=4,
    )  # fmt: skip
    trainer.train_dataset = make_dataset(make(), 4)
    trainer.train()
    rows = [row.trajectory for row in trainer.rollout.last]
    assert [row.meta["agent"] for row in rows] == ["planner"] * 2 + ["actor"] * 2
    assert [len(row.turns) for row in rows] == [2] * 4
    log = trainer.state.log_history[0]
    assert math.isfinite(log["loss"]) and log["rollout/turns"] == 4 and log["rollout/actor/turns"] == 2


@pytest.mark.train
def test_a_team_is_evaluated_in_whole_groups(tokenizer: Any, tmp_path: Path) -> None:
    trainer = team_trainer(tmp_path / "a", tokenizer, per_device_eval_batch_size=8)
    found = trainer.evaluate(trainer.train_dataset.select(range(2)))
    assert len((tmp_path / "a" / "trajectories" / "eval-0.jsonl").read_text().splitlines()) == 8
    assert found["eval_rollout/crafter_1/score"] > 0
    parts = team_trainer(tmp_path / "b", tokenizer, per_device_eval_batch_size=4)
    with pytest.raises(UsageError, match="--per_device_eval_batch_size"):
        parts.evaluate(parts.train_dataset.select(range(2)))
