"""Episodes of several contexts in verl: the rows of the agent loop, and credit, losses and steps over episodes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.rollout import AGENTS
from tests.rollout.contexts import split
from tests.rollout.families import FAMILIES, UP, trl_template
from tests.trying import examples

if TYPE_CHECKING:
    import torch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("stub")]

END = 259
MEMBERS = 4
SCRIPTS = [
    [[UP, END]] * 9,
    [[UP, END], [33, 34, END], [UP, END]],
    [[33, END], [33, UP, END], [UP, END]],
    [[33, END]] * 9,
]


@pytest.fixture
def splits(stub: Any, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Episodes are played as they are, or split into contexts while the last value is true."""
    from agentgym_verl.episode_runner import EpisodeRunner

    on, play = [True], EpisodeRunner._play_on

    async def playing(*args: Any) -> Any:
        episode = await play(*args)
        return split(episode) if on[-1] else episode

    monkeypatch.setattr(EpisodeRunner, "_play_on", playing)
    return on


def contexts_of(queue: Any, episode: str) -> list[dict[str, Any]]:
    """The rows of an episode, by context."""
    keys = sorted((key for key in queue.rows if key.rsplit("_", 1)[0] == episode), key=lambda key: int(key[-1]))
    return [queue.rows[key] for key in keys]


def lists(row: dict[str, Any]) -> tuple[list[int], list[int], list[int]]:
    return row["prompts"].tolist(), row["responses"].tolist(), row["response_mask"].tolist()


def test_a_thinking_model_has_a_row_for_each_rewritten_conversation(make_worker: Any, stub: Any) -> None:
    """With the template as it is shipped; the prompt of a row is the template's own rendering."""
    worker = make_worker([[0]], agentgym={"max_turns": 3})
    worker.hf_model_type = None  # verl has a class per family, which reads its special tokens
    worker.tokenizer = tokenizer = FAMILIES["qwen3-training"].tokenizer()
    tokenizer.chat_template = trl_template("qwen3")
    codec = stub.runner_of(worker.config, tokenizer).codec
    thoughts = ["<think>\nhm\n</think>\n\nup", "<think>\nso\n</think>\n\nup"]
    script = [codec.encode_answer(text) for text in ("up", *thoughts)]
    worker.server = worker.llm_client = stub.StubServer(script)
    queue = worker.play([stub.count()])
    rows = contexts_of(queue, "0_0")
    sampled = [[t for t, mask in zip(*lists(row)[1:], strict=True) if mask] for row in rows]
    assert [answer for own in sampled for answer in own] == [token for answer in script for token in answer]
    assert len(rows) > 1 and [row["rm_scores"].sum().item() for row in rows][:1] == pytest.approx([1 / 3])
    read = [request.prompt_ids for request in worker.server.requests]
    assert rows[0]["prompts"].tolist() == read[0] and rows[-1]["prompts"].tolist() == read[2]
    dropped = "assistant\n<think>\nhm"
    assert dropped not in tokenizer.decode(read[2]) and "hm" in tokenizer.decode(script[1])
    assert {row["num_turns"] for row in rows} == {6}
    assert all(queue.metrics(f"0_0_{number}")["score"] == pytest.approx(1 / 3) for number in range(len(rows)))


def test_verls_validation_reads_the_score_in_the_last_row(splits: list[bool], make_worker: Any, stub: Any) -> None:
    worker = make_worker([[UP, END]] * 9)
    for evaluation, expected in ((True, [0, 0, 1]), (False, [1 / 3] * 3)):
        queue = worker.play([stub.count(evaluation=evaluation)], validate=evaluation)
        found = [row["rm_scores"].sum().item() for row in contexts_of(queue, "0_0")]
        assert found == pytest.approx(expected)
    queue = make_worker([[UP, END]] * 9, agentgym={"reward": "final"}).play([stub.count()])
    assert [row["rm_scores"].sum().item() for row in contexts_of(queue, "0_0")] == pytest.approx([0, 0, 1])


def test_without_our_settings_a_thinking_template_is_refused(make_worker: Any) -> None:
    """Stock trainers would count contexts as episodes. So does `keep_thoughts`."""
    from agentgym_envs.errors import TemplateError

    for block in (None, {"keep_thoughts": True}):
        worker = make_worker([[0]], agentgym=block)
        worker.tokenizer = FAMILIES["qwen3-training"].tokenizer()
        worker.tokenizer.chat_template = trl_template("qwen3")
        with pytest.raises(TemplateError, match="not prefix-preserving"):
            _ = worker.runner


@pytest.mark.rotating(always=3)
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("context", ["full", "last:1", "summarise:1"])
def test_every_agent_has_a_row_for_each_context(name: str, context: str, make_worker: Any, stub: Any) -> None:
    def script(codec: Any) -> list[list[int]]:
        texts = ("up", "Thought: hm\nAction: down", "a plan", "Thought: so\nAction: up", "well")
        return [codec.encode_answer(text) for text in texts] * 9

    settings = {"agent": name, "context": context, "attempts": 2, "max_turns": 4}
    worker = make_worker([[0]], agentgym=settings, response_length=4000, max_model_len=9000)
    row, codec = stub.count("count/9"), worker.runner.codec
    worker.server = worker.llm_client = stub.StubServer(script(codec))
    rows = contexts_of(worker.play([row]), "0_0")
    server = stub.StubServer(script(codec))
    _, _, episode = asyncio.run(worker.runner.play(server, {}, {**row.as_columns(0), "global_steps": 1}))
    expected = [(c.prompt_ids, c.ids, c.assistant_mask) for c in episode.contexts()]
    assert [lists(found) for found in rows] == expected
    assert (len(rows) > 1) == (context != "full" or name == "reflect")
    assert sum(sum(found["rm_scores"].tolist()) for found in rows) == pytest.approx(episode.trajectory.score)
    sampled = [ids for _, own, mask in expected for ids, on in zip(own, mask, strict=True) if on]
    assert sampled == [ids for answer in script(codec)[: len(worker.server.requests)] for ids in answer]


def test_an_agent_keeps_to_the_context_of_the_server(make_worker: Any, stub: Any) -> None:
    noise = [33] * 60
    settings = {"agent": "act", "context": "last:1", "max_turn_tokens": 50, "max_turns": 9}
    worker = make_worker([noise] * 9, agentgym=settings, max_model_len=300)
    worker.play([stub.count("count/9")])
    ends = [request.end for request in worker.server.requests]
    assert len(ends) > 2 and max(ends) <= 300


def played(make_worker: Any, stub: Any, answer_in_order: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """The keys and rows of two groups of episodes."""
    worker = make_worker(*SCRIPTS, *reversed(SCRIPTS), n=MEMBERS, agentgym={"max_turns": 3})
    answer_in_order(worker, 2, MEMBERS)
    queue = worker.play([stub.count(seed=1), stub.count(seed=2)])
    keys = sorted(queue.rows, key=lambda key: [int(part) for part in key.split("_")])
    return keys, [queue.rows[key] for key in keys]


def as_batch(keys: Sequence[str], rows: list[dict[str, Any]]) -> Any:
    """The data of verl's `_compute_advantage`, with values that are equal for equal sampled tokens."""
    import numpy as np
    from verl.protocol import DataProto
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    names = ("response_mask", "rm_scores", "rollout_log_probs")
    fields = [{name: row[name] for name in names} for row in rows]
    data = DataProto(batch=list_of_dict_to_tensordict(fields).to_padded_tensor())
    data.batch["token_level_rewards"] = data.batch["rm_scores"].double()
    data.batch["values"] = data.batch["rollout_log_probs"].double() * 3
    data.non_tensor_batch["uid"] = np.array([key.split("_")[0] for key in keys], dtype=object)
    return data


ESTIMATORS = (
    *("grpo", "rloo", "reinforce_plus_plus", "gae", "reinforce_plus_plus_baseline"),
    *("opo", "gpg", "rloo_vectorized", "grpo_vectorized", "grpo_passk"),
)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_compute_over_episodes_and_not_over_rows(
    name: str, splits: list[bool], make_worker: Any, answer_in_order: Any, stub: Any, base_config: Any
) -> None:
    """The advantages of an episode's tokens are the same with and without a context for each turn."""
    import torch
    from omegaconf import OmegaConf

    from agentgym_verl.episode_advantages import JoinedTokens, compute_episode_advantages, episode_rows

    found = []
    for splits[-1] in (False, True):
        keys, rows = played(make_worker, stub, answer_in_order)
        data = as_batch(keys, rows)
        algorithm = OmegaConf.merge(base_config.algorithm, {"gamma": 0.9, "lam": 0.8})
        settings = {"gamma": 0.9, "lam": 0.8, "num_repeat": MEMBERS, "config": algorithm}
        compute_episode_advantages(data, keys, adv_estimator=name, **settings)
        joined = JoinedTokens(episode_rows(keys), data.batch["response_mask"].bool())
        found.append([joined.join(data.batch[column].double()) for column in ("advantages", "returns")])
    assert len(rows) > 2 * MEMBERS + 5
    for whole, parts in zip(*found, strict=True):
        torch.testing.assert_close(parts, whole, atol=1e-6, rtol=1e-6)
    assert found[0][0].abs().max() > 0.05


def test_the_trainers_of_all_modes_are_ours(stub: Any) -> None:
    from verl.trainer.ppo.v1 import get_trainer_cls, trainer_base

    from agentgym_verl.episode_advantages import compute_episode_advantages
    from agentgym_verl.trainers import EpisodeBatches

    for mode in ("sync", "colocate_async", "separate_async"):
        assert issubclass(get_trainer_cls(mode), EpisodeBatches)
    assert trainer_base.compute_advantage_for_multi_trajectories is compute_episode_advantages
    names = trainer_base.PPOTrainer._compute_advantage.__code__.co_names
    assert "compute_advantage_for_multi_trajectories" in names, "verl calls another function"


LOSSES = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean")


@pytest.mark.parametrize("mode", LOSSES)
def test_an_unchanged_context_split_into_contexts_has_the_same_gradient(
    mode: str,
    splits: list[bool],
    make_worker: Any,
    answer_in_order: Any,
    stub: Any,
    base_config: Any,
    tokenizer: Any,
) -> None:
    """With verl's losses of policy and critic; the denominators are those of the trainer, numbers of episodes."""
    import torch

    from agentgym_trl.tiny import make_model

    model = make_model(tokenizer, hidden_size=32, layers=1)
    found, losses = [], []
    for splits[-1] in (False, True):
        keys, rows = played(make_worker, stub, answer_in_order)
        loss = loss_of(model, keys, rows, mode, base_config)
        found.append(torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(model.parameters()))]))
        losses.append(float(loss.detach()))
    assert len(rows) > 2 * MEMBERS + 5
    assert float((found[1] - found[0]).norm() / found[0].norm()) < 1e-5 and found[0].abs().max() > 1e-4
    if mode != "seq-mean-token-mean":  # its gradient is weighted, its value is not
        assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    else:
        assert losses[1] != pytest.approx(losses[0], rel=1e-2), "a mean over contexts, which the weights must correct"


def loss_of(model: Any, keys: Sequence[str], rows: list[dict[str, Any]], mode: str, base_config: Any) -> torch.Tensor:
    """The sum of verl's losses of policy and critic on one mini-batch with all rows."""
    from functools import partial

    import torch
    from omegaconf import OmegaConf
    from tensordict import TensorDict
    from verl.utils.config import omega_conf_to_dataclass
    from verl.utils.tensordict_utils import assign_non_tensor
    from verl.workers.utils.losses import ppo_loss, value_loss

    from agentgym_verl.episode_advantages import JoinedTokens, episode_rows
    from agentgym_verl.episode_loss import LOSS_WEIGHTS, context_weights, weighted_loss

    numbers = episode_rows(keys)
    fields = [{name: row[name] for name in ("prompts", "responses", "response_mask", "input_ids")} for row in rows]
    mask = torch.nn.utils.rnn.pad_sequence([row["response_mask"] for row in rows], batch_first=True)
    joined = JoinedTokens(numbers, mask.bool())
    shape = joined.join(mask).shape
    noise = torch.randn(3, *shape, generator=torch.Generator().manual_seed(1))
    per_token = [joined.lay_back(values) for values in noise]
    weights = context_weights(numbers, mask)
    scores = [model(input_ids=row["input_ids"][None]).logits[0].log_softmax(-1) for row in rows]
    logprobs = [own[:-1].gather(1, row["input_ids"][1:, None])[:, 0] for own, row in zip(scores, rows, strict=True)]
    for number, row in enumerate(fields):
        length, prompt = len(row["responses"]), len(row["prompts"])
        old = logprobs[number][prompt - 1 :].detach()
        values = [own[number, :length] for own in per_token]
        row |= {"advantages": values[0], "old_log_probs": old + values[1] / 3, "ref_log_prob": old + values[2] / 3}
        row |= {"values": values[1], "returns": values[2], LOSS_WEIGHTS: weights[number].expand(length)}
    data = TensorDict({name: nested([row[name] for row in fields]) for name in fields[0]}, batch_size=len(fields))
    sizes = {"dp_size": 1, "batch_num_tokens": int(mask.sum()), "global_batch_size": 2 * MEMBERS}
    assign_non_tensor(data, **sizes)
    settings = {"loss_agg_mode": mode, "loss_scale_factor": 100, "entropy_coeff": 0.1, "use_kl_loss": True}
    sized = {"ppo_micro_batch_size_per_gpu": 1, "kl_loss_coef": 0.5, "rollout_n": MEMBERS}
    actor = OmegaConf.merge(base_config.actor_rollout_ref.actor, settings | sized)
    policy = partial(ppo_loss, config=omega_conf_to_dataclass(actor))
    pad = logprobs[0].new_zeros(1)  # verl's model output has a score for the token after the last
    output = {
        "log_probs": nested([torch.cat([own, pad]) for own in logprobs]),
        "entropy": nested([-(own.exp() * own).sum(1) for own in scores]),
        "values": nested([own[:, 0] for own in scores]),
    }
    run = partial(weighted_loss, model_output=output, data=data)
    if mode != "seq-mean-token-mean":
        run = partial(weighted_loss, model_output=output, data=data.exclude(LOSS_WEIGHTS))
    critic = SimpleNamespace(cliprange_value=0.5, loss_agg_mode=mode, loss_scale_factor=100)
    found: torch.Tensor = run(policy)[0] + run(partial(value_loss, config=critic))[0]
    return found


def nested(rows: list[Any]) -> Any:
    import torch

    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


@examples(100)
@given(data=st.data())
def test_joined_tokens_laid_back_are_those_of_the_rows(stub: Any, data: st.DataObject) -> None:
    import torch

    from agentgym_verl.episode_advantages import JoinedTokens, episode_rows

    names = data.draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 12)), unique=True, min_size=1)
    )
    keys = [f"{uid}_{session}_{context}" for uid, session, context in names]
    mask = torch.tensor(
        data.draw(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=len(keys), max_size=len(keys)))
    )
    rows = episode_rows(keys)
    values = torch.arange(1.0, mask.numel() + 1).view(mask.shape)
    tokens = JoinedTokens(rows, mask.bool())
    joined = tokens.join(values)
    assert torch.equal(tokens.lay_back(joined), values * mask)
    for episode in range(rows.count):
        own = sorted((names[row][2], row) for row in range(len(keys)) if rows.numbers[row] == episode)
        expected = [float(values[row, at]) for _, row in own for at in range(4) if mask[row, at]]
        assert joined[episode, : len(expected)].tolist() == expected and not joined[episode, len(expected) :].any()
        assert names[int(rows.first_rows[episode])][2] == own[0][0]
    assert rows.several == (len(set(key.rsplit("_", 1)[0] for key in keys)) < len(keys))


def test_the_logged_numbers_are_those_of_episodes(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An episode of two contexts and six messages, one of two messages, and a row that fills the batch."""
    import torch
    import transfer_queue

    from agentgym_verl import trainers

    keys, rows = ["0_0_0", "0_0_1", "0_1_0", "0_1_1"], ([0.0, 0.25], [0.5], [1.0, 0.0, 0.0])
    data = {"rm_scores": nested([torch.tensor(row) for row in rows]), "num_turns": [6, 6, 2]}
    asked: list[list[str]] = []

    def get(names: list[str], *_: Any, **__: Any) -> Any:
        asked.append(names)
        return data

    monkeypatch.setattr(transfer_queue, "kv_batch_get", get)
    tags = [{}, {}, {}, {"is_padding": True}]
    found = trainers._episode_metrics(SimpleNamespace(keys=keys, partition_id="train", tags=tags))
    assert asked == [keys[:3]] and found["training/padding_rows"] == 1
    means = {name: found[f"{name}/mean"] for name in ("critic/score", "num_turns", "training/contexts")}
    assert means == {"critic/score": (0.75 + 1) / 2, "num_turns": 4, "training/contexts": 1.5}
    assert found["critic/rewards/min"] == 0.75 and found["training/num_turns/max"] == 6


class FakeWorkers:
    """Records the batches that it is asked to train on."""

    def __init__(self) -> None:
        self.sizes: dict[str, Any] = {}

    def update_actor(self, batch: Any) -> Any:
        self.sizes = dict(batch.extra_info)
        raise InterruptedError

    train_mini_batch = update_actor


def fake_trainer(base_config: Any, **settings: Any) -> Any:
    from omegaconf import OmegaConf, open_dict

    from agentgym_verl.trainers import SyncTrainer

    trainer = object.__new__(SyncTrainer)
    config = OmegaConf.merge(base_config, settings)
    with open_dict(config):
        config.agentgym = {}
    trainer.config, trainer.parameter_sync_step, trainer.global_steps = config, 1, 1
    trainer.use_critic, trainer.use_reference_policy = True, True
    trainer.actor_rollout_wg = trainer.critic_wg = FakeWorkers()
    return trainer


@pytest.mark.parametrize("dynamic", [True, False])
def test_the_number_of_optimizer_steps_is_that_of_the_groups(dynamic: bool, base_config: Any) -> None:
    """Two steps of two groups of four episodes, whatever the number of rows; losses divide by eight episodes."""
    actor = {"ppo_mini_batch_size": 2, "use_dynamic_bsz": dynamic, "ppo_micro_batch_size_per_gpu": 3}
    settings = {
        "data": {"train_batch_size": 4},
        "actor_rollout_ref": {
            "actor": actor,
            "rollout": {"n": 4, "log_prob_use_dynamic_bsz": dynamic, "log_prob_micro_batch_size_per_gpu": 4},
            "ref": {"log_prob_use_dynamic_bsz": dynamic, "log_prob_micro_batch_size_per_gpu": 5},
        },
        "critic": {"ppo_mini_batch_size": 4, "use_dynamic_bsz": dynamic, "ppo_micro_batch_size_per_gpu": 1},
    }
    trainer = fake_trainer(base_config, **settings)
    trainer._by_episode = True
    multiple = trainer._get_required_batch_multiple(2)
    assert multiple == (2 * 2 if dynamic else 2 * 2 * 3 * 2 * 5)
    batch = SimpleNamespace(keys=[str(number) for number in range(36 * multiple)], extra_info={})
    with pytest.raises(InterruptedError):
        trainer._update_actor(batch, {})
    assert trainer.actor_rollout_wg.sizes["mini_batch_size"] == len(batch.keys) // 2
    assert trainer.actor_rollout_wg.sizes["global_batch_size"] == 8
    with pytest.raises(InterruptedError):
        trainer._update_critic(batch, {})
    assert (trainer.critic_wg.sizes["mini_batch_size"], trainer.critic_wg.sizes["global_batch_size"]) == (
        len(batch.keys),
        16,
    )
    trainer._by_episode = False
    assert trainer._get_required_batch_multiple(2) == 16
    with pytest.raises(InterruptedError):
        trainer._update_actor(batch, {})
    assert trainer.actor_rollout_wg.sizes["mini_batch_size"] == trainer.actor_rollout_wg.sizes["global_batch_size"] == 8
