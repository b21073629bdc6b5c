"""TRL and verl train on equal data: the same scripted episodes through both adapters, and their advantages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import text_env
from agentgym_envs.rollout import ChatCodec, TokenTrajectory
from agentgym_verl.rows import TaskRow
from tests.rollout.contexts import split
from tests.rollout.families import FAMILIES, UP

if TYPE_CHECKING:  # torch and TRL take seconds to import, so the tests import them, not the collection
    import torch

pytestmark = pytest.mark.slow

MEMBERS = 4
ENVS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "textcraft": ("AgentGym/TextCraft-v0", {"worlds": "fictional"}, ["train", "train", "test"]),
    "babyai": ("AgentGym/BabyAI-v0", {}, ["train", "train", "test"]),
}
LIMITS: dict[str, dict[str, int]] = {
    "wide": {"turns": 12, "tokens": 6000, "turn_tokens": 200},
    "few turns": {"turns": 3, "tokens": 6000, "turn_tokens": 200},
    "few tokens": {"turns": 12, "tokens": 700, "turn_tokens": 200},
    "short answers": {"turns": 6, "tokens": 3000, "turn_tokens": 9},
    "next to nothing": {"turns": 12, "tokens": 12, "turn_tokens": 200},
}


@cache
def tasks(name: str) -> list[tuple[str, int, str, tuple[str, ...]]]:
    """Task, seed, goal, and the commands that solve it, of a few groups."""
    env_id, kwargs, splits = ENVS[name]
    env, found = gym.make(env_id, **kwargs), []
    for seed, part in enumerate(splits):
        env.reset(seed=seed, options={"split": part})
        task = text_env(env).task
        assert task is not None
        env.reset(seed=seed, options={"task": task.id})
        commands = []
        for command in text_env(env).oracle():
            commands.append(command)
            env.step(command)
        found.append((task.id, seed, task.goal, tuple(commands)))
    env.close()
    return found


def scripts(name: str, codec: ChatCodec) -> list[list[list[int]]]:
    """For every group: one script solves it, one has mistakes, one is truncated, one stops unusually.

    The first answers of a group begin with different tokens, so that a prompt identifies its episode.
    """
    end = codec.turn_end_id
    found = []
    for *_, commands in tasks(name):
        answers = [codec.encode_answer(command) for command in commands]
        wrong = codec.encode_answer("dance <|im_end|> wildly")
        found += [
            answers + [wrong] * 12,
            [codec.encode_answer(f" {commands[0]}"), wrong, *answers[1:]] + [wrong] * 12,
            [[33] * 300, *answers] + [wrong] * 12,
            [[10, *answers[0][:-1], 257 if end != 257 else end], *answers[1:-1]] + [wrong] * 12,
        ]
    return found


@dataclass
class Policy:
    """The part of a trainer that TRL's rollout uses; returns scripts, and finds an episode by its earlier answers."""

    scripts: list[list[list[int]]]
    logprob: Any
    open: list[tuple[list[int], list[list[int]], int]] = field(default_factory=list)
    generation_kwargs: dict[str, Any] = field(default_factory=dict)

    def _generate_single_turn(self, prompts: Sequence[list[int]], *_: Any, **__: Any) -> Any:
        answers = [self._answer(prompt)[: self.generation_config.max_new_tokens] for prompt in prompts]
        scores = [
            [self.logprob(len(prompt) + index) for index in range(len(answer))]
            for prompt, answer in zip(prompts, answers, strict=True)
        ]
        return answers, scores

    def _answer(self, prompt: list[int]) -> list[int]:
        known = (n for n, (before, _, first) in enumerate(self.open) if prompt[: len(before) + 1] == [*before, first])
        number = next(known, len(self.open))
        if number == len(self.open):
            self.open.append(([], list(self.scripts[number]), -1))
        script = self.open[number][1]
        answer = script.pop(0)
        self.open[number] = (prompt, script, answer[0])
        return answer

    state = SimpleNamespace(global_step=0)
    model = SimpleNamespace(training=True)
    accelerator = SimpleNamespace(process_index=0, num_processes=1)
    args = SimpleNamespace(reuse_kv_cache=False)
    generation_config = SimpleNamespace(max_new_tokens=1)
    eos_token_ids = ()
    temperature, top_p, top_k = 1.0, 1.0, 0
    num_generations = MEMBERS
    use_vllm = False
    trains_contexts = True


def through_trl(name: str, limits: dict[str, int], tokenizer: Any, logprob: Any) -> dict[str, Any]:
    from agentgym_trl.rollout import make_rollout_func
    from agentgym_trl.trl_format import prompt_of

    env_id, kwargs, _ = ENVS[name]
    rollout = make_rollout_func(
        env_id,
        tokenizer,
        env_kwargs=kwargs,
        schedule=limits["turns"],
        max_tokens=limits["tokens"],
        max_turn_tokens=limits["turn_tokens"],
    )
    prompts = [prompt_of(task, seed, goal) for task, seed, goal, _ in tasks(name) for _ in range(MEMBERS)]
    found = rollout(prompts, Policy(scripts(name, rollout.codec), logprob))
    order = sorted(range(len(prompts)), key=lambda index: (index // MEMBERS, found["completion_ids"][index]))
    return {column: [values[index] for index in order] for column, values in found.items()}


def through_verl(name: str, limits: dict[str, int], make_worker: Any, stub: Any) -> list[list[dict[str, Any]]]:
    """The rows of each episode, one for each context."""
    env_id, kwargs, _ = ENVS[name]
    settings = {"max_turns": limits["turns"], "max_turn_tokens": limits["turn_tokens"]}
    worker = make_worker(
        [], agentgym=settings, n=MEMBERS, response_length=limits["tokens"], prompt_length=8000, max_model_len=99999
    )
    worker.server = worker.llm_client = ByGroup(name, worker.runner.codec, stub)
    rows = [TaskRow(env_id, task, seed, "g", env_kwargs=kwargs, goal=goal) for task, seed, goal, _ in tasks(name)]
    queue = worker.play(rows)
    names = [[f"{group}_{member}_" for member in range(MEMBERS)] for group in range(len(rows))]
    groups = [[[queue.rows[key] for key in sorted(queue.rows) if key.startswith(name)] for name in g] for g in names]
    return [episode for group in groups for episode in sorted(group, key=joined_ids)]


def joined_ids(contexts: list[dict[str, Any]]) -> list[int]:
    """The ids behind the first prompt, as TRL has them."""
    first, *others = contexts
    rest = [token for row in others for name in ("prompts", "responses") for token in row[name].tolist()]
    return [*first["responses"].tolist(), *rest]


class ByGroup:
    """A server for each group; within a group, the environment decides which member sends the first request."""

    def __init__(self, name: str, codec: ChatCodec, stub: Any) -> None:
        all_scripts, self._codec = scripts(name, codec), codec
        self._goals = [goal for *_, goal, _ in tasks(name)]
        self._servers = [
            stub.StubServer(*all_scripts[n * MEMBERS : (n + 1) * MEMBERS]) for n in range(len(self._goals))
        ]
        self._groups: dict[str, int] = {}

    async def generate(self, request_id: str, *, prompt_ids: list[int], **more: Any) -> Any:
        """An answer of the group whose goal is in the first prompt."""
        if request_id not in self._groups:
            prompt = self._codec.tokenizer.decode(prompt_ids)
            [self._groups[request_id]] = [n for n, goal in enumerate(self._goals) if goal in prompt]
        return await self._servers[self._groups[request_id]].generate(request_id, prompt_ids=prompt_ids, **more)


@pytest.mark.rotating(always=8)
@pytest.mark.parametrize("family", ["qwen2.5", "qwen3-training"])
@pytest.mark.parametrize("limits", list(LIMITS))
@pytest.mark.parametrize("name", list(ENVS))
def test_both_adapters_train_on_equal_tokens(name: str, limits: str, family: str, make_worker: Any, stub: Any) -> None:
    tokenizer = FAMILIES[family].tokenizer()
    trl = through_trl(name, LIMITS[limits], tokenizer, stub.logprob)
    if family != "qwen2.5":
        make_worker = with_tokenizer(make_worker, tokenizer)
    verl = through_verl(name, LIMITS[limits], make_worker, stub)
    assert len(verl) == len(trl["prompt_ids"]) == 3 * MEMBERS
    for index, (row,) in enumerate(verl):
        assert row["prompts"].tolist() == trl["prompt_ids"][index]
        assert row["responses"].tolist() == trl["completion_ids"][index]
        assert row["response_mask"].tolist() == trl["env_mask"][index]
        assert row["rm_scores"].tolist() == pytest.approx(trl["token_rewards"][index])
        assert row["rollout_log_probs"].tolist() == trl["logprobs"][index]
        assert row["rm_scores"].sum().item() == pytest.approx(trl["episode_score"][index])
    if limits == "wide":  # check that the cases are the intended ones
        assert all(max(trl["episode_score"][first:][:MEMBERS]) > 0.3 for first in range(0, len(verl), MEMBERS))
        assert len({len(ids) for ids in trl["completion_ids"]}) > MEMBERS
        assert min(trl["episode_score"]) == 0 < max(trl["episode_score"])


def with_tokenizer(make_worker: Any, tokenizer: Any) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        worker = make_worker(*args, **kwargs)
        worker.tokenizer, worker.hf_model_type = tokenizer, None
        return worker

    return make


def padded(rows: Sequence[Any], dtype: Any = None) -> torch.Tensor:
    import torch

    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=dtype or torch.float64)


def verl_advantages(
    rows: list[dict[str, Any]], keys: list[str], values: Sequence[torch.Tensor], name: str, algorithm: Any
) -> torch.Tensor:
    """As verl's trainer has them computed (`_compute_advantage`)."""
    import numpy as np
    from verl.protocol import DataProto
    from verl.trainer.ppo.v1 import trainer_base
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    fields = [
        {"response_mask": row["response_mask"], "rm_scores": row["rm_scores"], "values": value[: len(row["responses"])]}
        for row, value in zip(rows, values, strict=True)
    ]
    data = DataProto(batch=list_of_dict_to_tensordict(fields).to_padded_tensor())
    data.batch["token_level_rewards"] = data.batch["rm_scores"].double()
    data.non_tensor_batch["uid"] = np.array([key.split("_")[0] for key in keys], dtype=object)
    found = trainer_base.compute_advantage_for_multi_trajectories(
        data,
        batch_keys=keys,
        adv_estimator=name,
        gamma=algorithm.gamma,
        lam=algorithm.lam,
        num_repeat=MEMBERS,
        norm_adv_by_std_in_grpo=True,
        config=algorithm,
    )
    advantages: torch.Tensor = found.batch["advantages"] * data.batch["response_mask"]
    return advantages


def keys_of(episodes: Sequence[Sequence[Any]]) -> list[str]:
    """The keys of verl's queue for the contexts of episodes."""
    sizes = enumerate(map(len, episodes))
    return [f"{number // MEMBERS}_{number % MEMBERS}_{context}" for number, size in sizes for context in range(size)]


def by_context(values: torch.Tensor, episodes: list[list[dict[str, Any]]]) -> list[torch.Tensor]:
    """Values of TRL's rows, (B, T) with the contexts of an episode end to end, as those of verl's rows."""
    found = []
    for row, contexts in zip(values, episodes, strict=True):
        at = 0
        for number, context in enumerate(contexts):
            at += len(context["prompts"]) if number else 0
            found.append(row[at : at + len(context["responses"])])
            at += len(context["responses"])
    return found


NAMES = {
    "grpo": "grpo",
    "rloo": "rloo",
    "reinforce++": "reinforce_plus_plus",
    "reinforce++-baseline": "reinforce_plus_plus_baseline",
    "ppo": "gae",
}


@pytest.fixture
def _split_in_both(stub: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a context with each turn, in both adapters, if the test's parameter says so."""
    from agentgym_trl.episode_player import PlaySession
    from agentgym_verl.episode_runner import EpisodeRunner

    in_trl, in_verl = PlaySession.play, EpisodeRunner._play_on

    async def play(*args: Any) -> Any:
        return [split(episode) for episode in await in_trl(*args) if isinstance(episode, TokenTrajectory)]

    async def play_on(*args: Any) -> Any:
        return split(await in_verl(*args))

    if request.param:
        monkeypatch.setattr(PlaySession, "play", play)
        monkeypatch.setattr(EpisodeRunner, "_play_on", play_on)


@pytest.mark.usefixtures("_split_in_both")
@pytest.mark.parametrize("_split_in_both", [False, True], indirect=True, ids=["whole", "contexts"])
@pytest.mark.parametrize("name", [*ENVS][:1] + [pytest.param(name, marks=pytest.mark.rotating) for name in [*ENVS][1:]])
def test_both_adapters_compute_equal_advantages(
    name: str, make_worker: Any, stub: Any, tokenizer: Any, base_config: Any, request: pytest.FixtureRequest
) -> None:
    """For equal settings: discounts per token, no value after truncation, and without GRPO's epsilon."""
    import torch
    from omegaconf import OmegaConf

    from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig
    from agentgym_trl.algorithms import ALGORITHMS

    limits = {**LIMITS["wide"], "turns": 7}
    trl = through_trl(name, limits, tokenizer, stub.logprob)
    verl = through_verl(name, limits, make_worker, stub)
    assert (max(map(len, verl)) > 5) == ("contexts" in request.node.callspec.id)
    assert [joined_ids(contexts) for contexts in verl] == trl["completion_ids"]
    rewards, numbers = padded(trl["token_rewards"]), padded(trl["turn_numbers"], torch.long)
    mask = numbers > 0
    values = torch.randn(mask.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    usable = torch.tensor([score is not None for score in trl["episode_score"]])
    batch = AdvantageBatch(rewards, numbers, usable, MEMBERS, values, torch.zeros(len(mask), dtype=torch.float64))
    rows = [row for contexts in verl for row in contexts]
    for gamma, lam in ((1.0, 1.0), (0.99, 0.95)):
        algorithm = OmegaConf.merge(base_config.algorithm, {"gamma": gamma, "lam": lam})
        for ours, theirs in NAMES.items():
            grouped = ALGORITHMS[ours].grouped
            options = (
                AdvantageConfig() if grouped else AdvantageConfig(gamma=gamma, gae_lambda=lam, discount_per="token")
            )
            found = ALGORITHMS[ours].estimate(batch, options)
            found = found[:, None] * mask if found.dim() == 1 else found
            expected = verl_advantages(rows, keys_of(verl), by_context(values, verl), theirs, algorithm).double()
            if ours == "grpo":
                deviation = rewards.sum(1).view(-1, MEMBERS).std(1).repeat_interleave(MEMBERS)[:, None]
                found = found * (deviation + 1e-4) / (deviation + 1e-6)
            own = padded(by_context(found, verl))
            torch.testing.assert_close(own, expected, atol=1e-5, rtol=1e-5)
            assert own.abs().sum() == pytest.approx(found.abs().sum()) and found.abs().max() > 0.01


def test_both_adapters_compare_the_surviving_episodes_of_a_group(
    make_worker: Any, answer_in_order: Any, stub: Any, tokenizer: Any, base_config: Any
) -> None:
    """A failed episode is in TRL's batch without weight, and missing in verl's."""
    import torch
    from omegaconf import OmegaConf

    from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig
    from agentgym_trl.algorithms import ALGORITHMS
    from agentgym_trl.rollout import make_rollout_func
    from agentgym_trl.trl_format import prompt_of

    codec, end = ChatCodec(tokenizer), 259
    crash = codec.encode_answer("crash")
    group = [[[UP, end]] * 9, [[10, UP, end], crash], [[9, UP, end], [33, end], [33, end]], [[33, end]] * 3]
    scripts = [[*script] for script in (*group, *reversed(group))]
    rollout = make_rollout_func("Toy/Count-v0", tokenizer, schedule=3, max_tokens=400, env_retries=0)
    trl = rollout(
        [prompt_of("count/3", seed, "count") for seed in (1, 2) for _ in range(MEMBERS)],
        Policy([[*script] for script in scripts], stub.logprob),
    )
    worker = make_worker(*scripts, n=MEMBERS, agentgym={"max_turns": 3, "env_retries": 0}, response_length=400)
    answer_in_order(worker, 2, MEMBERS)
    queue = worker.play([stub.count(seed=1), stub.count(seed=2)])
    keys = [f"{group}_{member}_0" for group in range(2) for member in range(MEMBERS)]
    assert [index for index, key in enumerate(keys) if key not in queue.rows] == [1, 6]
    usable = torch.tensor([score is not None for score in trl["episode_score"]])
    assert [index for index, on in enumerate(usable.tolist()) if not on] == [1, 6]
    rewards, numbers = padded(trl["token_rewards"]), padded(trl["turn_numbers"], torch.long)
    mask = numbers > 0
    batch = AdvantageBatch(rewards, numbers, usable, MEMBERS)
    left = [key for key in keys if key in queue.rows]
    rows = [queue.rows[key] for key in left]
    for name in ("rloo", "reinforce++"):
        found = ALGORITHMS[name].estimate(batch, AdvantageConfig(discount_per="token"))
        found = (found[:, None] * mask if found.dim() == 1 else found)[usable]
        values = torch.zeros(len(rows), mask.size(1))
        algorithm = OmegaConf.merge(base_config.algorithm, {"gamma": 1.0})
        expected = verl_advantages(rows, left, list(values), NAMES[name], algorithm).double()
        width = expected.size(1)
        torch.testing.assert_close(found[:, :width], expected, atol=1e-5, rtol=1e-5)
        assert not found[:, width:].any() and found.abs().max() > 0.1


def test_verl_divides_by_tokens_or_by_the_configured_episodes() -> None:
    """One of four episodes failed: verl has a masked row in its place. The numbers are those of docs/algorithms.md."""
    import torch
    from verl.trainer.ppo.core_algos import agg_loss

    losses = torch.tensor([[1.0, 1.0], [2.0, 9.0], [9.0, 9.0], [4.0, 4.0]])
    mask = torch.tensor([[1, 1], [1, 0], [0, 0], [1, 1]])
    batch = {"batch_num_tokens": 5, "global_batch_size": 4}
    assert agg_loss(losses, mask, "token-mean", **batch) == pytest.approx((2 + 2 + 8) / 5)
    assert agg_loss(losses, mask, "seq-mean-token-mean", **batch) == pytest.approx((1 + 2 + 4) / 4)
    assert agg_loss(losses, mask, "seq-mean-token-sum", **batch) == pytest.approx((2 + 2 + 8) / 4)
