"""`--credit vine`: values of states from continuations, and advantages as their differences."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from agentgym_envs.core import Snapshot, TextEnv, Transition, text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Fork,
    Generation,
    Limits,
    Sampling,
    TokenTrajectory,
    play_forks,
    play_many,
)
from agentgym_envs.task import Task, TaskTable
from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig
from agentgym_trl.credit_methods import ForkPoints, Vine
from agentgym_trl.engines import TrainerEngine
from agentgym_trl.episode_player import PlaySession
from agentgym_trl.fork_advantages import vine
from agentgym_trl.vine import TurnFacts, choose_turns, estimate_values, turn_facts
from tests.adapters.trl.small import broken_craft, config, craft, first_batch, make_trainer
from tests.rollout.families import FAMILIES

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
NAN = math.nan
EVERY, RANDOM, SURPRISING = map(ForkPoints.parse, ("every-turn", "random:1", "surprising:1"))


def batch_of(
    rewards: Sequence[Sequence[float]], values: Sequence[Sequence[float]], size: int, unusable: Sequence[int] = ()
) -> AdvantageBatch:
    """Episodes with two tokens per turn and an observation token between; values by turn, NaN where unknown."""
    width = 3 * max(map(len, rewards))
    tokens, numbers, known = (torch.zeros(len(rewards), width, dtype=torch.float64) for _ in range(3))
    for row, (own, value) in enumerate(zip(rewards, values, strict=True)):
        for turn in range(len(own)):
            tokens[row, 3 * turn + 1] = own[turn]
            numbers[row, 3 * turn : 3 * turn + 2] = turn + 1
            known[row, 3 * turn : 3 * turn + 2] = value[turn]
    usable = torch.tensor([row not in unusable for row in range(len(rewards))])
    return AdvantageBatch(tokens, numbers.long(), usable, size, state_values=known)


def by_turn(found: torch.Tensor) -> list[list[float]]:
    assert torch.equal(found[:, 0::3], found[:, 1::3]) and (found[:, 2::3] == 0).all()
    return found[:, 0::3].tolist()


@pytest.mark.parametrize(
    ("values", "gamma", "expected"),
    [
        # V(s1) is the other episode's return, 0.5; each turn its reward and the difference of values.
        ([[NAN, 0.4, 0.8], [NAN, 0.2, 0.3]], 1.0, [[-0.1, 0.4, 0.2], [-0.8, 0.1, 0.2]]),
        # Turns 1 and 2 are one segment; so is the whole second episode, as in rloo.
        ([[NAN, NAN, 0.8], [NAN, NAN, NAN]], 1.0, [[0.3, 0.3, 0.2], [-0.5, -0.5, -0.5]]),
        # Discounted: the returns are 0.25 and 0.125; 0 + 0.25 * 0.8 - 0.125, and 1 - 0.8.
        ([[NAN, NAN, 0.8], [NAN, NAN, NAN]], 0.5, [[0.075, 0.075, 0.2], [-0.125, -0.125, -0.125]]),
    ],
)
def test_advantages_equal_hand_computed_values(values: Any, gamma: float, expected: Any) -> None:
    batch = batch_of([[0.0, 0.0, 1.0], [0.0, 0.0, 0.5]], values, 2)
    found = by_turn(vine(batch, AdvantageConfig(scale="none", gamma=gamma)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_an_episode_without_others_is_trained_from_its_first_value_on() -> None:
    batch = batch_of([[0.25, 0.0, 0.5], [9.0, 9.0, 9.0]], [[NAN, NAN, 0.75], [NAN, 1.0, 1.0]], 2, unusable=[1])
    assert by_turn(vine(batch, AdvantageConfig(scale="none"))) == [[0.0, 0.0, -0.25], [0.0, 0.0, 0.0]]


def test_scaling_divides_by_the_root_mean_square_of_turns() -> None:
    rewards, values = [[0.0, 1.0], [0.5], [0.0, 0.0], [0.0]], [[NAN, 0.75], [NAN], [NAN, 0.125], [NAN]]
    batch = batch_of(rewards, values, 2)
    plain = torch.tensor([[0.25, 0.25], [-0.5, 0.0], [0.125, -0.125], [0.0, 0.0]], dtype=torch.float64)
    assert by_turn(vine(batch, AdvantageConfig(scale="none"))) == plain.tolist()
    squares = plain.square().view(2, 4).sum(1)
    for scale, roots in (("group", (squares / 3).sqrt().repeat_interleave(2)), ("batch", (squares.sum() / 6).sqrt())):
        found = by_turn(vine(batch, AdvantageConfig(scale=scale)))  # type: ignore[arg-type]
        torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), plain / (roots + 1e-4).reshape(-1, 1))


def facts(*episodes: Sequence[float], unusable: Sequence[int] = ()) -> list[TurnFacts]:
    return [TurnFacts(index not in unusable, tuple(own)) for index, own in enumerate(episodes)]


def test_every_turn_but_the_first_has_a_state_to_fork() -> None:
    found = facts([0] * 4, [0], [], [0] * 3, unusable=[3])
    assert [choose_turns(EVERY, found, index, 4, (0,)) for index in range(4)] == [[2, 3, 4], [], [], []]


def test_random_turns_depend_on_the_other_episodes_and_the_seed_only() -> None:
    def chosen(own: int, seed: int) -> list[int]:
        return choose_turns(ForkPoints.parse("random:3"), facts([0] * own, [0] * 9, [0] * 4), 0, 3, (seed,))

    assert all(len(chosen(9, seed)) == 3 and min(chosen(9, seed)) > 1 for seed in range(20))
    assert all(chosen(5, seed) == [turn for turn in chosen(9, seed) if turn < 6] for seed in range(20))
    assert {tuple(chosen(9, seed)) for seed in range(20)} != {tuple(chosen(9, 0))}
    assert choose_turns(RANDOM, facts([0] * 9, [0] * 9, unusable=[1]), 0, 2, (0,)) == []


def test_random_turns_differ_between_episodes() -> None:
    found = facts(*[[0.0] * 9] * 8)
    assert len({tuple(choose_turns(RANDOM, found, index, 8, (0,))) for index in range(8)}) > 1


def test_surprising_answers_reach_a_threshold_of_the_other_episodes() -> None:
    others = [[0.1, 0.9, 5.0], [0.3, 0.2, 0.1, 5.0]]  # nothing follows the last answers
    assert choose_turns(SURPRISING, facts([0.3, 0.2, 0.9, 0.9], *others), 0, 3, ()) == [2, 4]
    assert choose_turns(ForkPoints.parse("surprising:9"), facts([0.0] * 3, *others), 0, 3, ()) == [2, 3]
    assert choose_turns(SURPRISING, facts([9.0] * 3, [9.0], unusable=[1]), 0, 2, ()) == []


GOOD, LOST, TURNS = 0.3, 0.3, 4


def chain_value(turn: int, good: int) -> float:
    """The exact value before a turn, after `good` good actions; two are needed, and a bad one may lose."""
    if turn > TURNS:
        return float(good > 1)
    return GOOD * chain_value(turn + 1, good + 1) + (1 - GOOD) * (1 - LOST) * chain_value(turn + 1, good)


def chain_episode(rng: np.random.Generator) -> tuple[list[bool], float]:
    """The actions, True for a good one, and the return."""
    actions: list[bool] = []
    while len(actions) < TURNS:
        actions.append(bool(rng.random() < GOOD))
        if not actions[-1] and rng.random() < LOST:
            return actions, 0.0
    return actions, float(sum(actions) > 1)


@pytest.mark.slow
@pytest.mark.parametrize("points", [EVERY, RANDOM, SURPRISING], ids=lambda points: points.kind)
def test_advantages_are_unbiased_for_every_choice_of_states(points: ForkPoints) -> None:
    """Mean advantages of two actions differ as their Q. A choice that looks at what follows a state would fail."""
    rng, size = np.random.default_rng(5), 3
    played = [chain_episode(rng) for _ in range(5000 * size)]
    rewards = [[0.0] * (len(actions) - 1) + [total] for actions, total in played]
    found = facts(*([-math.log(GOOD if good else 1 - GOOD) for good in actions] for actions, _ in played))
    values = [[NAN] * len(own) for own in rewards]
    for index, (actions, _) in enumerate(played):
        for turn in choose_turns(points, found, index, size, (7,)):
            values[index][turn - 1] = rng.binomial(2, chain_value(turn, sum(actions[: turn - 1]))) / 2  # K = 2
    advantages = by_turn(vine(batch_of(rewards, values, size), AdvantageConfig(scale="none")))
    for before in ((), (True,), (False,), (True, False)):
        turn, good = len(before) + 1, sum(before)
        own = [
            [
                a[turn - 1]
                for a, (actions, _) in zip(advantages, played, strict=True)
                if actions[:turn] == [*before, action]
            ]
            for action in (True, False)
        ]
        exact = chain_value(turn + 1, good + 1) - (1 - LOST) * chain_value(turn + 1, good)
        error = np.mean(own[0]) - np.mean(own[1]) - exact
        assert abs(error) < 3.5 * math.sqrt(sum(np.var(each) / len(each) for each in own)), (before, error)


class WalkEnv(TextEnv):
    """From 2, `right` to 4 is the goal, `left` to 0 the end."""

    tasks = TaskTable("walk", 1, [Task("walk/1", "train", "walk", "go right", {})])

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.place = 2
        return "You are at 2."

    def _act(self, command: str) -> Transition:
        self.place += 1 if command == "right" else -1
        at = f"You are at {self.place}."
        return Transition(at, float(self.place == 4), self.place in (0, 4))

    def _state(self) -> str:
        return str(self.place)


class RandomEngine:
    """Answers with random texts, and counts the sampled tokens."""

    def __init__(self, texts: Sequence[str], seed: int) -> None:
        self.rng, self.answers = np.random.default_rng(seed), [CODEC.encode_answer(text) for text in texts]
        self.tokens = 0

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        ids = self.answers[self.rng.integers(len(self.answers))]
        self.tokens += len(ids)
        return Generation(ids, "stop", [-math.log(len(self.answers))] * len(ids))


class Session:
    """A `PlaySession` without a model."""

    def __init__(self, make: Any, engine: Any, limits: Limits) -> None:
        self.make, self.engine, self.limits = make, engine, limits
        self.trainer = SimpleNamespace(accelerator=SimpleNamespace(process_index=0))

    async def play_forks(self, forks: Sequence[Fork]) -> list[TokenTrajectory]:
        return await play_forks(forks, self.make, self.engine, CODEC, limits=self.limits)


def exact_value(env: TextEnv, snapshot: Snapshot, texts: Sequence[str], turns: int) -> float:
    """The value under the policy that draws one of the texts, by visiting every path."""
    env.restore(snapshot)
    if turns == 0 or env.status()["stop_reason"] is not None:
        return 0.0
    total = 0.0
    for text in texts:
        env.restore(snapshot)
        reward = env.step(text)[1]
        total += float(reward) + exact_value(env, env.snapshot(), texts, turns - 1)
    return total / len(texts)


WORLDS: dict[str, tuple[Any, list[str], int]] = {
    "walk": (WalkEnv, ["right", "left"], 7),
    "craft": (craft, [], 4),  # the commands of the oracle, and one that does nothing
}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_values_of_64_continuations_contain_the_exact_value(world: str) -> None:
    make, texts, turns = WORLDS[world]
    env = text_env(make())
    task = "walk/1" if world == "walk" else env.tasks.draw(3, split="train", groups=("depth-1",)).id
    if world == "craft":
        env.reset(seed=1, options={"task": task})
        texts = [*env.oracle(), "inventory"]
    limits = Limits(max_turns=turns, max_tokens=4000)

    async def run() -> Any:
        session = Session(make, RandomEngine(texts, 2), limits)
        specs = [EpisodeSpec(task, 1)] * 6
        episodes = await play_many(specs, make, session.engine, CODEC, limits=limits)
        return episodes, await estimate_values(session, specs, episodes, Vine(EVERY, 64, 1.0), 6, (0,))  # type: ignore[arg-type]

    episodes, (values, counts) = asyncio.run(run())
    assert counts.states == sum(map(len, values)) > 2 and counts.branches == 64 * counts.states
    errors = []
    for episode, own in zip(episodes, values, strict=True):
        actions = tuple(turn.action for turn in episode.trajectory.turns)
        for turn, value in own.items():
            exact = exact_value(env, Snapshot(task, 1, actions[: turn - 1]), texts, turns - turn + 1)
            errors.append((value - exact) / math.sqrt(exact * (1 - exact) / 64 + 1e-9))
    assert max(map(abs, errors)) < 3.5 and abs(np.mean(errors)) < 3.5 / math.sqrt(len(errors)), errors


@pytest.fixture
def continuations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Fork, TokenTrajectory]]:
    """All continuations that trainers sample."""
    found: list[tuple[Fork, TokenTrajectory]] = []
    play = PlaySession.play_forks

    async def playing(self: PlaySession, forks: Sequence[Fork], on_done: Any = None) -> list[TokenTrajectory]:
        played = await play(self, forks, on_done)
        found.extend(zip(forks, played, strict=True))
        return played

    monkeypatch.setattr(PlaySession, "play_forks", playing)
    return found


def expected_advantages(
    episodes: Sequence[TokenTrajectory], found: Sequence[tuple[Fork, TokenTrajectory]], size: int
) -> list[list[float]]:
    """The advantages of turns by the formula, for values at every turn."""
    rows = []
    for index, episode in enumerate(episodes):
        rewards = [turn.reward for turn in episode.trajectory.turns]
        group = range(index // size * size, index // size * size + size)
        others = [episodes[i].trajectory for i in group if i != index and episodes[i].trajectory.usable]
        values: dict[int, Any] = {
            1: np.mean([sum(turn.reward for turn in t.turns) for t in others]),
            len(rewards) + 1: 0.0,
        }
        for turn in range(2, len(rewards) + 1):
            own = [p.trajectory for fork, p in found if fork.played is episode and fork.turn == turn]
            usable = [sum(t.reward for t in p.turns[turn - 1 :]) for p in own if p.usable]
            values |= {turn: np.mean(usable)} if usable else {}
        known = sorted(values)
        segment = {t: max(k for k in known if k <= t) for t in range(1, len(rewards) + 1)}
        end = {k: known[known.index(k) + 1] for k in known[:-1]}
        row = []
        for turn in range(1, len(rewards) + 1):
            begin, after = segment[turn], end[segment[turn]]
            row.append(sum(rewards[begin - 1 : after - 1]) + values[after] - values[begin])
        rows.append(row if episode.trajectory.usable else [])
    return rows


def check_advantages(trainer: Any, batch: dict[str, Any], found: Sequence[tuple[Fork, TokenTrajectory]]) -> None:
    episodes = trainer.rollout.last
    for row, episode, expected in zip(
        batch["advantages"].double(), episodes, expected_advantages(episodes, found, 4), strict=True
    ):
        wanted = torch.zeros(len(row), dtype=torch.float64)
        for (begin, end), value in zip(episode.turn_spans, expected, strict=False):
            wanted[begin:end] = value
        torch.testing.assert_close(row, wanted, atol=1e-5, rtol=1e-5)


VINE: dict[str, Any] = {"credit": "vine", "branches": 2, "scale_rewards": "none", "max_turns": "3"}


def test_a_rollout_has_the_advantages_of_its_continuations(
    continuations: list[tuple[Fork, TokenTrajectory]], tokenizer: Any, tmp_path: Path
) -> None:
    trainer = make_trainer(tmp_path, tokenizer, **VINE)
    batch = first_batch(trainer)
    assert len(continuations) == 2 * 2 * 8 and batch["advantages"].abs().sum() > 0
    check_advantages(trainer, batch, continuations)
    logged = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    sampled = sum(
        sum(p.assistant_mask) - sum(p.assistant_mask[: f.played.turn_spans[f.turn - 1][0]]) for f, p in continuations
    )
    own = sum(sum(episode.assistant_mask) for episode in trainer.rollout.last)
    assert logged["vine/states"] == 16 and logged["vine/branches"] == 32 and logged["vine/failed"] == 0
    assert logged["vine/sampled_tokens"] == sampled and logged["rollout/tokens"] == sampled + own
    assert not any(len(p.trajectory.turns) > 3 for _, p in continuations)


def test_failed_continuations_enter_no_mean(
    continuations: list[tuple[Fork, TokenTrajectory]], tokenizer: Any, tmp_path: Path
) -> None:
    """Episodes fail from the ninth on that begins, two of three: some states keep a continuation, some keep none."""
    env = broken_craft(lambda number: number >= 8 and number % 3 != 0, turn=3)
    trainer = make_trainer(tmp_path, tokenizer, env, **VINE)
    batch = first_batch(trainer)
    logged = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert 0 < logged["vine/failed"] < 32 and logged["vine/states_without_value"] > 0
    check_advantages(trainer, batch, continuations)


def test_a_fork_reads_nothing_again_but_one_token(
    continuations: list[tuple[Fork, TokenTrajectory]], tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    end = TrainerEngine.aclose

    async def closing(self: TrainerEngine) -> None:
        assert self._decoder is not None
        read.append(self._decoder.tokens_read)
        await end(self)

    monkeypatch.setattr(TrainerEngine, "aclose", closing)
    trainer = make_trainer(tmp_path, tokenizer, **VINE)
    first_batch(trainer)
    prompts = {tuple(episode.prompt_ids) for episode in trainer.rollout.last}
    of_episodes = sum(map(len, prompts)) + sum(len(e.prompt_ids) + len(e.ids) for e in trainer.rollout.last)
    after_forks = sum(len(p.ids) - f.played.turn_spans[f.turn - 1][0] for f, p in continuations)
    [total] = read
    assert total <= of_episodes + after_forks + len(continuations)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("options", [{"agent": "act", "context": "last:1"}, {"at": "surprising:1"}, {"at": "random:1"}])
def test_agents_and_choices_of_states_train(options: dict[str, Any], tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, **{**VINE, "max_steps": 1, "max_completion_length": 600, **options})
    trainer.train()
    row = next(row for row in trainer.state.log_history if "vine/states" in row)
    assert 0 < row["vine/states"] <= 16 and row["vine/branches"] == 2 * row["vine/states"]


def test_surprisals_are_means_over_the_tokens_of_a_turn(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, **VINE)
    first_batch(trainer)
    episode = trainer.rollout.last[0]
    means = [-np.mean(episode.logprobs[begin:end]) for begin, end in episode.turn_spans]
    np.testing.assert_allclose(turn_facts(episode, SURPRISING).surprisals, means)
    assert turn_facts(episode, EVERY).surprisals == (0.0,) * len(means)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"credit": "wine"}, "there is no credit 'wine'; choose from episode, vine, tree"),
        ({"branches": 2}, "--branches and --at are for --credit vine"),
        ({"credit": "vine", "at": "random"}, "every-turn, random:N or surprising:N with N of at least 1, got 'random'"),
        ({"credit": "vine", "branches": 0}, "--branches must be at least 1, got 0"),
        ({"credit": "vine", "algorithm": "ppo"}, "--credit vine is for grpo, got ppo"),
        ({"credit": "vine", "turn_level_advantage": True}, "cannot be combined with --turn-level-advantage"),
        ({"credit": "vine", "asynchronous": True}, "cannot be combined with --async"),
        ({"credit": "vine", "agent": "reflect"}, "cannot be combined with --agent reflect"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        config(tmp_path, **settings)


def test_other_rewards_and_missing_log_probabilities_are_refused(tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pass no reward_funcs"):
        make_trainer(tmp_path, tokenizer, extra={"reward_funcs": [lambda **_: [0.0]]}, **VINE)
    trainer = make_trainer(tmp_path, tokenizer, **{**VINE, "at": "surprising:1", "reuse_kv_cache": False})
    with pytest.raises(UsageError, match="needs the log-probabilities of sampled tokens"):
        first_batch(trainer)
