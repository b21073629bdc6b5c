"""Training on episodes of several contexts: the gradients, values and advantages of each algorithm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from trl import GRPOConfig, GRPOTrainer

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import AGENTS, Generation, TokenTrajectory, make_agent
from agentgym_trl.batch import loss_weights
from agentgym_trl.collator import MultiTurnCollator
from agentgym_trl.config import AVERAGES, CHOICES
from agentgym_trl.context_rows import context_numbers, context_rows
from agentgym_trl.conversations import ConversationRecord, Exchange, encode_conversation
from agentgym_trl.engines import TrainerEngine
from agentgym_trl.episode_player import PlaySession
from agentgym_trl.models import make_codec
from agentgym_trl.rollout import make_rollout_func
from agentgym_trl.sft import sft_dataset
from agentgym_trl.trainer import AgentTrainer
from tests.adapters.trl.small import (
    REWARDED,
    ScoredCraft,
    config,
    dataset,
    first_batch,
    make_small_model,
    make_trainer,
    settings,
)
from tests.adapters.trl.test_gradient import gradients
from tests.adapters.trl.test_padding_free import apart
from tests.rollout.contexts import split
from tests.rollout.families import FAMILIES, roll, trl_template
from tests.trying import examples

pytestmark = pytest.mark.train


@pytest.fixture
def splits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Episodes are played as they are, or split into contexts while the last value is true."""
    on, play = [False], PlaySession.play

    async def playing(self: PlaySession, *args: Any) -> Any:
        return [split(episode) if on[-1] else episode for episode in await play(self, *args)]  # type: ignore[arg-type]

    monkeypatch.setattr(PlaySession, "play", playing)
    return on


def step_of(out: Path, tokenizer: Any, model: str, **options: Any) -> Any:
    """The batch and the gradient of a rollout, with the same episodes each time."""
    torch.manual_seed(7)
    trainer = make_trainer(out, tokenizer, model=model, max_turns="3", **options)
    batch = first_batch(trainer)
    if trainer.learner:
        head = trainer.learner.critic.head.weight
        head.data = torch.linspace(-0.5, 0.5, head.numel()).view(head.shape)
        trainer.learner.learn(batch)
    trainer.learner, learner = None, trainer.learner
    loss = trainer._compute_loss(trainer.model, batch)
    grads = torch.cat([g.reshape(-1) for g in gradients(loss, trainer.model).values()])
    critic = [w.grad.reshape(-1).clone() for w in learner.critic.parameters() if w.grad is not None] if learner else []
    return trainer, batch, float(loss.detach()), grads, torch.cat(critic) if critic else None


@pytest.mark.rotating(always=2)
@pytest.mark.parametrize("padding_free", [True, False])
@pytest.mark.parametrize("algorithm", REWARDED)
def test_an_unchanged_context_split_into_contexts_has_the_same_gradient(
    algorithm: str, padding_free: bool, splits: list[bool], tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"padding_free": padding_free, "beta": 0.1, "steps_per_generation": 2}
    found = []
    for splits[-1] in (False, True):
        found.append(step_of(tmp_path, tokenizer, str(model_path), algorithm=algorithm, **options))
    (_, whole, loss, grads, critic), (trainer, parts, other_loss, other_grads, other_critic) = found
    assert "contexts" in parts and "contexts" not in whole and (trainer.padding_free is not None) == padding_free
    assert other_loss == pytest.approx(loss, rel=3e-6, abs=1e-6) and apart(other_grads, grads) < 1e-5
    assert grads.abs().max() > 1e-3
    for name in ("num_items_in_batch", "row_scale"):
        assert whole[name] == parts[name]
    if critic is not None:
        assert apart(other_critic, critic) < 1e-5 and critic.abs().max() > 1e-3


@pytest.mark.rotating(always=2)
@pytest.mark.parametrize("loss_type", CHOICES["loss_type"])
def test_every_loss_means_episodes_and_not_contexts(
    loss_type: str, splits: list[bool], tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    losses = []
    for splits[-1] in (False, True):
        _, _, loss, grads, _ = step_of(tmp_path, tokenizer, str(model_path), loss_type=loss_type, beta=0.1)
        losses.append((loss, grads))
    assert losses[1][0] == pytest.approx(losses[0][0], rel=3e-6, abs=1e-6) and apart(losses[1][1], losses[0][1]) < 1e-5


def test_the_loss_is_a_mean_over_episodes_turns_or_tokens(
    splits: list[bool], tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    splits[-1] = True
    found = {}
    for average in (None, *AVERAGES):
        options: dict[str, Any] = {"loss_average": average, "beta": 0.1, "per_device_train_batch_size": 8}
        trainer, batch, _, grads, _ = step_of(tmp_path, tokenizer, str(model_path), **options)
        found[average] = grads
    _, _, _, by_episode, _ = step_of(tmp_path, tokenizer, str(model_path), loss_type="grpo", beta=0.1)
    assert apart(found["token"], found[None]) < 1e-5 and apart(found["episode"], by_episode) < 1e-5
    weights, numbers = batch["loss_weights"], batch["tool_mask"] * batch["completion_mask"]
    assert float(weights.sum()) == pytest.approx(float(numbers.sum()), rel=1e-5), "episode: the weights of one batch"
    turns = loss_weights("turn", turn_numbers_of(trainer, batch), batch, trainer.accelerator)
    sums = [
        row[spans[0] : spans[1]].sum()
        for row, e in zip(turns, trainer.rollout.last, strict=True)
        for spans in e.turn_spans
    ]
    assert torch.stack(sums).std() < 1e-4 < found["turn"].abs().max()
    assert apart(found["turn"], found["token"]) > 1e-4 < apart(found["turn"], found["episode"])


def turn_numbers_of(trainer: Any, batch: dict[str, Any]) -> torch.Tensor:
    numbers = torch.zeros_like(batch["completion_ids"])
    for row, episode in zip(numbers, trainer.rollout.last, strict=True):
        for number, (begin, end) in zip(episode.turn_numbers, episode.turn_spans, strict=True):
            row[begin:end] = number
    return numbers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss_average": "row"}, "there is no loss_average 'row'; choose from token, turn, episode"),
        (
            {"loss_average": "turn", "loss_type": "grpo"},
            "--loss-average weighs the tokens of --loss_type dapo or cispo",
        ),
        ({"loss_average": "turn", "importance_sampling_level": "sequence"}, "got dapo and sequence"),
    ],
)
def test_a_mean_that_a_loss_cannot_have_is_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        config(tmp_path, **options)


@pytest.mark.rotating(always=3)
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("context", ["full", "last:1", "summarise:1"])
def test_agents_train_on_the_contexts_of_their_answers(
    name: str, context: str, tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    """The log-probabilities of the trainer are those of each context alone."""
    trainer = make_trainer(
        tmp_path,
        tokenizer,
        lambda: ScoredCraft(grammar=make_agent(name).grammar),
        model=str(model_path),
        max_turns="3",
        max_completion_length=400,
        agent=name,
        context=context,
        attempts=2,
        steps_per_generation=2,
        beta=0.1,
    )
    batch = first_batch(trainer)
    several = [len(episode.contexts()) for episode in trainer.rollout.last]
    assert (max(several) > 1) == (context != "full" or name == "reflect")
    for row, episode in enumerate(trainer.rollout.last):
        at = 0
        for number, context_ in enumerate(episode.contexts()):
            at += len(context_.prompt_ids) if number else 0
            own = alone(trainer.ref_model, context_, trainer.temperature)
            found = batch["ref_per_token_logps"][row, at : at + len(own)]
            mask = torch.tensor(context_.assistant_mask).bool()
            torch.testing.assert_close(found[mask], own[mask], atol=1e-4, rtol=1e-4)
            at += len(own)
        assert at == len(episode.ids) and int(batch["tool_mask"][row].sum()) >= sum(episode.assistant_mask)


@torch.no_grad()
def alone(model: Any, context: TokenTrajectory, temperature: float) -> torch.Tensor:
    """(T,) the log-probabilities of a context, from a forward pass over nothing else."""
    ids = torch.tensor([*context.prompt_ids, *context.ids])
    logits = model(input_ids=ids[None]).logits[0].float() / temperature
    at = torch.arange(len(context.prompt_ids), len(ids))
    return logits.log_softmax(-1)[at - 1, ids[at]]


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("algorithm", REWARDED)
def test_every_algorithm_takes_steps_with_an_agent(algorithm: str, tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(
        tmp_path,
        tokenizer,
        max_turns="3",
        max_completion_length=400,
        agent="act",
        context="last:1",
        algorithm=algorithm,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
    )
    before = [weight.clone() for weight in trainer.model.parameters()]
    trainer.train()
    assert any((a != b).any() for a, b in zip(before, trainer.model.parameters(), strict=True))
    assert all("contexts" in output for output in trainer.outputs)


@examples(100)
@given(data=st.data())
def test_contexts_taken_apart_and_put_back_are_the_episodes(data: st.DataObject) -> None:
    rows = data.draw(
        st.lists(st.tuples(st.integers(1, 5), st.lists(st.integers(1, 6), min_size=1, max_size=4)), min_size=1)
    )
    width, rest = max(p for p, _ in rows), max(sum(c) for _, c in rows)
    mask, numbers = torch.zeros(len(rows), width + rest), torch.zeros(len(rows), rest)
    for row, (prompt, sizes) in enumerate(rows):
        mask[row, width - prompt : width + sum(sizes)] = 1
        numbers[row] = len(sizes) - 1
        numbers[row, : sum(sizes)] = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    found = context_rows(mask.long(), numbers.long())
    values = torch.arange(1.0, mask.numel() + 1).view(mask.shape) * mask
    taken = found.take(values)
    assert len(taken) == sum(len(sizes) for _, sizes in rows) and (taken > 0).sum() == (values > 0).sum()
    assert torch.equal(found.put_all(taken), values)
    behind = found.put(taken[:, found.prompt :])
    scored = (behind != 0) == (values[:, width:] != 0)
    firsts = sum(len(sizes) - 1 for _, sizes in rows)
    assert int((~scored).sum()) == firsts, "only the first token of a further context is not scored"


def test_one_context_each_needs_no_numbers(splits: list[bool], tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer)
    batch = first_batch(trainer)
    assert context_numbers(trainer.rollout.last, batch["completion_ids"]) is None


def test_trls_own_trainer_is_refused(splits: list[bool], tokenizer: Any, tmp_path: Path) -> None:
    splits[-1] = True
    rollout = make_rollout_func(ScoredCraft, tokenizer, schedule=3, max_tokens=200, max_turn_tokens=10)
    trainer = GRPOTrainer(
        make_small_model(tokenizer),
        rollout.reward,
        args=GRPOConfig(**settings(tmp_path)),
        processing_class=tokenizer,
        train_dataset=dataset(),
        rollout_func=rollout,
    )
    with pytest.raises(UsageError, match=r"several contexts, on which GRPOTrainer cannot train: use AgentTrainer"):
        trainer.train()


def test_a_context_without_an_agent_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--context last:2 needs an agent"):
        make_trainer(tmp_path, tokenizer, context="last:2")
    with pytest.raises(UsageError, match="there is no agent 'sage'"):
        make_trainer(tmp_path, tokenizer, agent="sage")
    with pytest.raises(UsageError, match="there is no context policy 'first:2'"):
        make_trainer(tmp_path, tokenizer, agent="act", context="first:2")


THINKING = FAMILIES["qwen3-training"]


def thinking_codec(**options: Any) -> Any:
    tokenizer = THINKING.tokenizer()
    tokenizer.chat_template = trl_template("qwen3")
    return make_codec(tokenizer, **options)


def test_demonstrations_of_a_thinking_model_have_a_row_for_each_context() -> None:
    codec = thinking_codec()
    played = roll(codec, [codec.encode_answer("<think>\nhm\n</think>\n\nup")] * 3, ["a", "b", "c", "d"])
    assert len(played.contexts()) == 3
    dataset = sft_dataset([played.trajectory], codec)
    assert [list(row["input_ids"]) for row in dataset] == [c.prompt_ids + c.ids for c in played.contexts()]
    batch = MultiTurnCollator(0)([played])
    assert len(batch["input_ids"]) == 3 and int((batch["labels"] >= 0).sum()) == sum(played.assistant_mask)
    kept = thinking_codec(keep_thoughts=True)
    assert len(sft_dataset([played.trajectory], kept)) == 1


def test_a_conversation_of_a_thinking_model_has_a_row_for_each_context() -> None:
    codec = thinking_codec()
    exchanges = tuple(Exchange(f"see {n}", "<think>\nhm\n</think>\n\nup", n != 1) for n in range(3))
    rows = encode_conversation(ConversationRecord("talk", exchanges), codec)
    texts = [codec.tokenizer.decode(row["input_ids"]) for row in rows]
    assert [text.count("hm") for text in texts] == [1, 1] and "see 2" in texts[1] and "see 1" not in texts[0]


def test_a_thinking_model_trains_with_its_own_template(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Contexts come from the template, which drops the model's `<think>` blocks."""
    tokenizer = THINKING.tokenizer()
    tokenizer.chat_template = trl_template("qwen3")
    thought = tokenizer.encode("<think>a</think>up<|im_end|>")

    def answer(engine: TrainerEngine, prompts: Any, samplings: Any) -> list[Generation]:
        return [Generation(thought, "stop") for _ in prompts]

    monkeypatch.setattr(TrainerEngine, "generate_batch", answer)
    options: dict[str, Any] = {"max_turns": "3", "max_turn_tokens": 40, "max_completion_length": 400}
    trainer = make_trainer(tmp_path, tokenizer, trainer=AgentTrainer, **options)
    first_batch(trainer)
    assert {len(episode.context_starts) for episode in trainer.rollout.last} == {2}
    trainer.train()
