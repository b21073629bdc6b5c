"""Batches have the tokens of trajectories, a loss on answers only, and packed rows that do not attend to each other."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import TokenTrajectory
from agentgym_envs.rollout.tokens import spans_of_mask
from agentgym_trl.collator import IGNORED, MultiTurnCollator, best_fit, make_row
from tests.adapters.trl.small import demonstrations

PAD = 2  # also the end of an answer below
VOCABULARY = 40


def episode(prompt: list[int], ids: list[int], mask: list[int], rewards: list[float] | None = None) -> TokenTrajectory:
    return TokenTrajectory(
        demonstrations()[0], prompt, ids, mask, rewards or [0.0] * len(ids), tuple(spans_of_mask(mask))
    )


SHORT = episode([7, 8], [5, PAD], [1, 1], [0.0, 1.0])
LONG = episode([9], [6, PAD, 8, 6, PAD], [1, 1, 0, 1, 1], [0.0, 0.25, 0.0, 0.0, 0.5])


@st.composite
def episodes(draw: st.DrawFn) -> TokenTrajectory:
    token = st.integers(0, VOCABULARY - 1)
    ids = draw(st.lists(token, min_size=1, max_size=8))
    mask = [*draw(st.lists(st.integers(0, 1), min_size=len(ids) - 1, max_size=len(ids) - 1)), 1]
    rewards = [draw(st.sampled_from([0.0, 0.5, -1.0])) * m for m in mask]
    return episode(draw(st.lists(token, min_size=1, max_size=5)), ids, mask, rewards)


some_episodes = st.lists(episodes(), min_size=1, max_size=6)


def test_a_batch_equals_the_hand_written_one() -> None:
    batch = MultiTurnCollator(PAD)([SHORT, LONG])
    assert {key: value.tolist() for key, value in batch.items()} == {
        "input_ids": [[7, 8, 5, PAD, PAD, PAD], [9, 6, PAD, 8, 6, PAD]],
        "labels": [[-100, -100, 5, PAD, -100, -100], [-100, 6, PAD, -100, 6, PAD]],
        "attention_mask": [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]],
    }
    batch = MultiTurnCollator(PAD, padding_side="left", pad_to_multiple_of=4)([SHORT, LONG])
    assert {key: value.tolist() for key, value in batch.items()} == {
        "input_ids": [[PAD, PAD, PAD, PAD, 7, 8, 5, PAD], [PAD, PAD, 9, 6, PAD, 8, 6, PAD]],
        "labels": [[-100, -100, -100, -100, -100, -100, 5, PAD], [-100, -100, -100, 6, PAD, -100, 6, PAD]],
        "attention_mask": [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1, 1]],
        "position_ids": [[0, 0, 0, 0, 0, 1, 2, 3], [0, 0, 0, 1, 2, 3, 4, 5]],
    }


def test_a_packed_batch_equals_the_hand_written_one() -> None:
    rows = [SHORT, LONG, SHORT]
    batch = MultiTurnCollator(PAD, packing=True, max_length=8)(rows)
    assert batch.pop("use_cache") is False
    assert {key: value.tolist() for key, value in batch.items()} == {
        "input_ids": [[9, 6, PAD, 8, 6, PAD, PAD, PAD], [7, 8, 5, PAD, 7, 8, 5, PAD]],
        "labels": [[-100, 6, PAD, -100, 6, PAD, -100, -100], [-100, -100, 5, PAD, -100, -100, 5, PAD]],
        "position_ids": [[0, 1, 2, 3, 4, 5, 0, 0], [0, 1, 2, 3, 0, 1, 2, 3]],
    }
    flat = MultiTurnCollator(PAD, packing=True, max_length=8, flat=True)(rows)
    assert flat["input_ids"].tolist() == [[9, 6, PAD, 8, 6, PAD, 7, 8, 5, PAD, 7, 8, 5, PAD]]
    assert flat["position_ids"].tolist() == [[0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 0, 1, 2, 3]]


@given(some_episodes, st.sampled_from(["left", "right"]), st.booleans(), st.sampled_from([None, 4]))
def test_a_batch_has_every_label_once(
    rows: list[TokenTrajectory], side: Any, packing: bool, multiple: int | None
) -> None:
    """In every layout, the labels are the answers and nothing else."""
    collator = MultiTurnCollator(PAD, padding_side=side, packing=packing, max_length=13, pad_to_multiple_of=multiple)
    batch = collator(rows)
    labels, ids = batch["labels"], batch["input_ids"]
    answered = labels != IGNORED
    assert (labels[answered] == ids[answered]).all()
    spoken = sorted(i for row in rows for i, m in zip(row.ids, row.assistant_mask, strict=True) if m)
    assert sorted(labels[answered].tolist()) == spoken
    assert multiple is None or labels.size(1) % multiple == 0
    assert packing or batch["attention_mask"].sum(1).tolist() == [len(row.prompt_ids + row.ids) for row in rows]


@given(st.lists(st.integers(1, 20), max_size=40), st.integers(20, 50))
def test_best_fit_uses_every_sequence_once_and_opens_few_rows(lengths: list[int], room: int) -> None:
    rows = best_fit(lengths, room)
    assert sorted(itertools.chain(*rows)) == list(range(len(lengths)))
    filled = [sum(lengths[index] for index in row) for row in rows]
    assert all(0 < used <= room for used in filled)
    assert all(a + b > room for a, b in itertools.combinations(filled, 2))  # else one row would be enough


def test_best_fit_chooses_the_fullest_row_that_has_room() -> None:
    assert best_fit([3, 6, 7, 4], 10) == [[2, 0], [1, 3]]
    assert best_fit([3, 8, 6, 4], 10) == [[1], [2, 3], [0]]
    assert best_fit([1, 5, 8], 10) == [[2, 0], [1]]  # 8 leaves less room than 5


def test_over_long_trajectories_are_refused() -> None:
    with pytest.raises(UsageError, match="has 6 tokens, more than --max_length 5, and is not truncated"):
        MultiTurnCollator(PAD, packing=True, max_length=5)([SHORT, LONG])
    with pytest.raises(UsageError, match="packing needs the length of a row: --max_length"):
        MultiTurnCollator(PAD, packing=True)


SIZES: dict[str, Any] = {"vocab_size": VOCABULARY, "num_hidden_layers": 2, "num_attention_heads": 2}
WIDE: dict[str, Any] = {**SIZES, "hidden_size": 16, "intermediate_size": 32, "num_key_value_heads": 1}
CONFIGS = {
    "llama": LlamaConfig(**WIDE),
    "qwen2": Qwen2Config(**WIDE),
    "sliding": MistralConfig(**WIDE, sliding_window=4),
    "absolute": GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=64),
}


def model_of(name: str, attention: str = "sdpa") -> Any:
    """A model with weights large enough for every token to depend visibly on those before it."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIGS[name], attn_implementation=attention).eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.2)
    return model


def loss_and_gradient(model: Any, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean loss over all labels as trainers compute it, across the borders of packed trajectories."""
    model.zero_grad()
    batch = dict(batch)
    labels = batch.pop("labels")
    logits = model(**batch).logits[:, :-1].flatten(0, 1)
    loss = cross_entropy(logits, labels[:, 1:].flatten(), ignore_index=IGNORED)
    loss.backward()
    return loss.detach(), torch.cat([weight.grad.flatten() for weight in model.parameters()])


def random_rows(count: int, seed: int = 0) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)

    def draw(high: int, size: int) -> list[int]:
        return torch.randint(high, (size,), generator=generator).tolist()

    lengths = zip(draw(6, count), draw(14, count), strict=True)
    return [make_row(draw(VOCABULARY, p + 1), draw(VOCABULARY, t + 1), [*draw(2, t), 1]) for p, t in lengths]


LAYOUTS: dict[str, dict[str, Any]] = {
    "left": {"padding_side": "left"},
    "packed": {"packing": True, "max_length": 30},
    "packed left": {"packing": True, "max_length": 30, "padding_side": "left"},
    "packed flat": {"packing": True, "max_length": 30, "flat": True, "pad_to_multiple_of": 8},
    "packed in one row": {"packing": True, "max_length": 1000},
}


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_layout_has_the_same_loss_and_gradient(name: str, attention: str) -> None:
    model, rows = model_of(name, attention), random_rows(9)
    alone = [loss_and_gradient(model, MultiTurnCollator(PAD)([row])) for row in rows]
    shares = [sum(label != IGNORED for label in row["labels"]) for row in rows]
    total = sum(shares)
    loss = sum(share / total * loss for share, (loss, _) in zip(shares, alone, strict=True))
    gradient = sum(share / total * gradient for share, (_, gradient) in zip(shares, alone, strict=True))
    for layout in ({}, *LAYOUTS.values()):
        found = loss_and_gradient(model, MultiTurnCollator(PAD, **layout)(rows))
        torch.testing.assert_close(found[0], loss, rtol=1e-5, atol=0)
        torch.testing.assert_close(found[1], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("missing", ["cache", "mask", "positions"])
def test_packed_trajectories_mix_if_a_separation_is_missing(missing: str) -> None:
    """Each of the three is needed: without one, transformers silently mixes the trajectories."""
    model, rows = model_of("llama"), random_rows(9)
    batch = MultiTurnCollator(PAD, packing=True, max_length=1000)(rows)
    _, right = loss_and_gradient(model, batch)
    if missing == "cache":
        del batch["use_cache"]
    elif missing == "mask":
        batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    else:
        del batch["position_ids"]
    _, wrong = loss_and_gradient(model, batch)
    assert (wrong - right).norm() > 0.1 * right.norm()
