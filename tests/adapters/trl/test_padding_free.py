"""Rows without padding: the same scores, gradients and values as on padded rows."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from trl.trainer.utils import add_fused_lm_head

from agentgym_trl.config import CHOICES
from agentgym_trl.critic import Critic
from agentgym_trl.padding_free import PaddingFree, group_prompts, model_inputs, pack
from agentgym_trl.padding_free.attention import ATTENTION
from agentgym_trl.padding_free.support import enable
from agentgym_trl.padding_free.training import enable_for, may_exchange_rows
from tests.adapters.trl.random_models import VOCABULARY, random_model
from tests.adapters.trl.small import make_trainer
from tests.adapters.trl.test_gradient import gradients, off_policy
from tests.trying import examples

pytestmark = pytest.mark.train
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
FAMILIES = ["qwen2", "qwen3", "llama", "mistral", "gemma2-sdpa", "gemma3"]


def random_batch(seed: int, groups: int = 3, size: int = 4, longest: int = 40) -> Batch:
    """Ids (B, P + T), mask (B, P + T), scored (B, T) of groups that share a prompt; some rows are short."""
    draw = Random(seed)
    rows = []
    for _ in range(groups):
        prompt = [draw.randrange(2, VOCABULARY) for _ in range(draw.randrange(1, 30))]
        for _ in range(size):
            rows.append((prompt, [draw.randrange(2, VOCABULARY) for _ in range(draw.choice([1, 3, 9, longest]))]))
    width, rest = max(len(p) for p, _ in rows), max(len(c) for _, c in rows)
    ids = [[0] * (width - len(p)) + p + c + [0] * (rest - len(c)) for p, c in rows]
    mask = [[0] * (width - len(p)) + [1] * (len(p) + len(c)) + [0] * (rest - len(c)) for p, c in rows]
    scored = [[int(t < len(c) and draw.random() < 0.7) for t in range(rest)] for _, c in rows]
    return torch.tensor(ids), torch.tensor(mask), torch.tensor(scored)


def headed(name: str) -> Any:
    model = random_model(name)
    add_fused_lm_head(model, 0.8, False, ("log_probs", "entropy"))
    return model


def padded_score(model: Any, ids: torch.Tensor, mask: torch.Tensor, scored: torch.Tensor) -> tuple[Any, Any]:
    """As TRL does it, with 0 where a token is not scored."""
    width = scored.size(1)
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :-width] = -100
    out = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
    return out.log_probs[:, -width:] * scored, out.entropy[:, -width:] * scored


def packed_score(model: Any, padding_free: PaddingFree, batch: Batch, batch_size: int = 99) -> tuple[Any, Any]:
    return padding_free.score(model, *batch, batch_size=batch_size, autocast=nullcontext)


def gradient(model: Any, scores: tuple[Any, Any]) -> torch.Tensor:
    """Of a loss that weighs every token differently."""
    model.zero_grad()
    logprobs, entropies = scores
    weights = torch.linspace(-1, 2, logprobs.numel()).view(logprobs.shape)
    (logprobs * weights + 0.3 * entropies * weights.flip(1)).sum().backward()
    return torch.cat([p.grad.reshape(-1).clone() for p in model.parameters() if p.grad is not None])


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_and_gradients_are_those_of_padded_rows(name: str) -> None:
    model, batch = headed(name), random_batch(1)
    expected = padded_score(model, *batch)
    wanted = gradient(model, expected)
    padding_free, reason = enable(model)
    assert padding_free is not None, reason
    for size in (99, 5):
        found = packed_score(model, padding_free, batch, size)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        assert apart(gradient(model, found), wanted) < 1e-5


@pytest.fixture(scope="module")
def gemma() -> tuple[Any, PaddingFree]:
    model = headed("gemma3")
    padding_free, _ = enable(model)
    assert padding_free is not None
    return model, padding_free


@examples(10)
@given(seed=st.integers(0, 10**6), groups=st.integers(1, 3), size=st.integers(1, 6), longest=st.integers(1, 60))
def test_batches_of_any_shape_have_the_gradients_of_padded_rows(
    gemma: tuple[Any, PaddingFree], seed: int, groups: int, size: int, longest: int
) -> None:
    """Sliding windows and whole attention in one model."""
    model, padding_free = gemma
    batch = random_batch(seed, groups, size, longest)
    batch[2][0, 0] = 1  # a batch without a scored token has no direction to compare
    expected = padded_score(model, *batch)
    wanted = gradient(model, expected)
    found = packed_score(model, padding_free, batch)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert apart(gradient(model, found), wanted) < 1e-5


@examples(50)
@given(seed=st.integers(0, 10**6), groups=st.integers(1, 4), size=st.integers(1, 6), shares=st.booleans())
def test_every_token_sees_its_own_row_up_to_itself(seed: int, groups: int, size: int, shares: bool) -> None:
    ids, mask, _ = random_batch(seed, groups, size)
    rows = pack(ids, mask, shares=shares)
    assert (rows.ids.numel() == mask.sum()) if size == 1 or not shares else (rows.ids.numel() <= mask.sum())
    queries = torch.cat([block.queries.reshape(-1) for block in rows.blocks])
    assert queries[rows.inverse].tolist() == list(range(rows.ids.numel()))
    seen = [tokens for block in rows.blocks for tokens in visible(block)]
    for number, row in enumerate(rows.index):
        places = row[row >= 0]
        assert rows.ids[0, places].tolist() == ids[number, mask[number].bool()].tolist()
        assert rows.positions[0, places].tolist() == list(range(len(places)))
        for t, place in enumerate(places):
            assert seen[rows.inverse[place]] == places[: t + 1].tolist()


def visible(block: Any) -> list[list[int]]:
    """The tokens that each query of a block may see."""
    causal = torch.ones(block.queries.size(1), block.keys.size(1), dtype=torch.bool).tril()
    masks = block.mask[:, 0] if block.mask is not None else causal.expand(len(block.queries), -1, -1)
    return [keys[row].tolist() for mask, keys in zip(masks, block.keys, strict=True) for row in mask]


def test_a_prompt_is_read_once_and_the_head_reads_scored_tokens_only() -> None:
    model, read = headed("qwen2"), []
    padding_free, _ = enable(model)
    assert padding_free is not None
    prompt = list(range(5, 15))
    ids = torch.tensor([[*prompt, 15, 16], [*prompt, 17, 0], [0, *prompt[:9], 18, 19]])
    mask, scored = (ids > 0).long(), torch.tensor([[0, 1], [1, 0], [0, 0]])
    model.model.register_forward_hook(lambda *a: read.append(a[2].last_hidden_state.shape[1]))
    model.model.embed_tokens.register_forward_hook(lambda *a: read.append(a[2].shape[1]))
    logprobs, entropies = packed_score(model, padding_free, (ids, mask, scored))
    assert read == [9 + (1 + 2) + (1 + 1) + 2, 2], "nine tokens are common; one more is too few to share"
    assert (logprobs != 0).tolist() == (entropies != 0).tolist() == scored.bool().tolist()


def test_a_batch_without_scored_tokens_has_a_gradient_of_zero() -> None:
    model, batch = headed("llama"), random_batch(2)
    padding_free, _ = enable(model)
    assert padding_free is not None
    found = gradient(model, packed_score(model, padding_free, (*batch[:2], torch.zeros_like(batch[2]))))
    assert len(found) and not found.any()


@pytest.mark.parametrize("kind", ["reentrant", "not reentrant"])
def test_checkpointed_gradients_are_the_same(kind: str) -> None:
    model, batch = headed("gemma3").train(), random_batch(3)
    wanted = gradient(model, padded_score(model, *batch))
    padding_free, _ = enable(model)
    assert padding_free is not None
    model.gradient_checkpointing_enable({"use_reentrant": kind == "reentrant"})
    model.enable_input_require_grads()
    assert apart(gradient(model, packed_score(model, padding_free, batch)), wanted) < 1e-5


def test_an_adapter_is_trained_on_packed_rows() -> None:
    model, batch = headed("qwen3"), random_batch(4)
    adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=4, target_modules="all-linear"))
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            weight.add_(0.1 * torch.randn_like(weight)) if "lora_B" in name else None
    wanted = gradient(adapted, padded_score(adapted, *batch))
    padding_free, reason = enable(adapted)
    assert padding_free is not None, reason
    assert apart(gradient(adapted, packed_score(adapted, padding_free, batch)), wanted) < 1e-5
    with adapted.disable_adapter():
        reference = packed_score(adapted, padding_free, batch)[0]
        torch.testing.assert_close(reference, padded_score(adapted, *batch)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["mistral", "gemma3"])
def test_values_and_gradients_of_a_critic_are_those_of_padded_rows(name: str) -> None:
    ids, mask, _ = random_batch(5)
    ids, mask = (torch.nn.functional.pad(x, (0, 4), value=v) for x, v in ((ids, 7), (mask, 0)))
    mask[::2, -4:-1] = 1  # the tokens of a last observation, behind the padding of the row
    critic = Critic(random_model(name).base_model)
    torch.nn.init.normal_(critic.head.weight, std=0.1)
    found = []
    for padding_free in (None, enable(critic.backbone)[0]):
        critic.padding_free = padding_free
        critic.zero_grad()
        values = critic(ids, mask)
        (values * torch.linspace(-1, 1, values.numel()).view(values.shape)).sum().backward()
        found.append(
            (
                values.detach(),
                torch.cat([p.grad.reshape(-1).clone() for p in critic.parameters() if p.grad is not None]),
            )
        )
    assert critic.padding_free is not None
    torch.testing.assert_close(found[1][0], found[0][0], atol=1e-5, rtol=1e-5)
    assert apart(found[1][1], found[0][1]) < 1e-5


@pytest.mark.parametrize("level", CHOICES["importance_sampling_level"])
def test_every_loss_has_the_gradient_of_padded_rows(
    level: str, tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    """With advantages by episode and by token, which is all in which the algorithms differ here."""
    trainer = make_trainer(
        tmp_path, tokenizer, model=str(model_path), importance_sampling_level=level, beta=0.1, kl_clip=0.5
    )
    packed = trainer.padding_free
    assert packed is not None and trainer.model.config._attn_implementation == ATTENTION
    batch = off_policy(trainer)
    by_token = torch.linspace(-1, 1, batch["completion_ids"].numel()).view(batch["completion_ids"].shape)
    trainer.entropy_coef, trainer._entropy_bonus_enabled = 0.01, True
    for trainer.loss_type in CHOICES["loss_type"]:
        for advantages in (batch["advantages"], by_token):
            found = []
            for trainer.padding_free in (None, packed):
                loss = trainer._compute_loss(trainer.model, {**batch, "advantages": advantages})
                found.append(torch.cat([g.reshape(-1) for g in gradients(loss, trainer.model).values()]))
            assert apart(found[1], found[0]) < 1e-5, trainer.loss_type


class Recording:
    """Counts the rows and the different prompts of every micro-batch."""

    def __init__(self, trainer: Any) -> None:
        self.prompts: list[int] = []
        self._compute = trainer._compute_loss
        trainer._compute_loss = self

    def __call__(self, model: Any, batch: dict[str, Any]) -> Any:
        self.prompts.append(len({tuple(row) for row in batch["prompt_ids"].tolist()}))
        return self._compute(model, batch)


@pytest.mark.parametrize("loss_type", ["dapo", "bnpo"])
def test_groups_share_a_micro_batch_unless_the_loss_depends_on_it(
    loss_type: str, tokenizer: Any, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "max_steps": 1}
    trainer = make_trainer(tmp_path, tokenizer, loss_type=loss_type, **settings)
    recording = Recording(trainer)
    trainer.train()
    assert (recording.prompts == [1, 1, 1, 1]) == (loss_type == "dapo") == may_exchange_rows(trainer)


@given(micro=st.integers(1, 4), accumulated=st.integers(1, 4), size=st.integers(1, 3), seed=st.integers(0, 99))
def test_rows_stay_whole_and_in_their_optimizer_step(micro: int, accumulated: int, size: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = micro * accumulated
    batches = [
        {
            "prompt_ids": torch.from_numpy(draw.integers(0, 3, (size, 2))),
            "advantages": torch.arange(size) + 10 * number,
            "num_items_in_batch": torch.tensor(5),
            "nothing": None,
        }
        for number in range(count)
    ]
    found = group_prompts(batches, accumulated)
    assert [len(batch["prompt_ids"]) for batch in found] == [size] * count
    for first in range(0, count, accumulated):
        before, after = (sorted(map(row_of, rows(b[first : first + accumulated]))) for b in (batches, found))
        assert before == after
        prompts = [row[0] for row in rows(found[first : first + accumulated])]
        assert prompts == sorted(prompts)
    assert all(batch["num_items_in_batch"] == 5 and batch["nothing"] is None for batch in found)


def rows(batches: list[dict[str, Any]]) -> list[tuple[list[int], int]]:
    return [pair for b in batches for pair in zip(b["prompt_ids"].tolist(), b["advantages"].tolist(), strict=True)]


def row_of(pair: tuple[list[int], int]) -> tuple[Any, ...]:
    return (*pair[0], pair[1])


def unsuitable(name: str) -> Any:
    model = random_model({"dynamic": "llama", "chunked": "qwen3", "blind": "gemma3", "deaf": "llama"}.get(name, name))
    if name == "dynamic":
        model.config.rope_parameters = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    if name == "chunked":
        model.config.layer_types = ["chunked_attention"] * 3
    if name == "blind":
        for layer in model.model.layers:
            layer.self_attn.sliding_window = None
    if name == "deaf":
        for layer in model.model.layers:
            layer.self_attn.forward = alone(layer.self_attn.forward)
    return model


def alone(forward: Any) -> Any:
    """An attention layer that drops the arguments that it does not know."""

    def inner(hidden_states: Any, attention_mask: Any, packed: Any = None, **kwargs: Any) -> Any:
        mask = attention_mask if packed is None else None
        return forward(hidden_states=hidden_states, attention_mask=mask, **kwargs)

    return inner


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("llama-eager", "attention is 'eager'"),
        ("mamba", "recurrent layers"),
        ("bloom", "attention is 'eager'"),
        ("dynamic", "longest row"),
        ("chunked", "chunked_attention"),
        ("blind", "sliding windows are unknown"),
        ("deaf", "hidden states of packed rows differ"),
    ],
)
def test_a_model_that_cannot_read_packed_rows_keeps_its_attention(name: str, reason: str) -> None:
    model = unsuitable(name)
    before = getattr(model.config, "_attn_implementation", None)
    found, why = enable(model)
    assert found is None and reason in why, why
    assert getattr(model.config, "_attn_implementation", None) == before


def test_flash_attention_gets_whole_rows_with_positions_from_zero() -> None:
    """The kernel itself needs a GPU."""
    ids, mask, _ = random_batch(6)
    rows = PaddingFree(flash=True).pack(ids, mask)
    inputs = model_inputs(rows)
    assert inputs["attention_mask"] is None
    assert inputs["input_ids"][0].tolist() == ids[mask.bool()].tolist()
    assert inputs["position_ids"][0].tolist() == [k for row in mask for k in range(int(row.sum()))]


def test_a_run_reports_why_it_trains_on_padded_rows(
    tokenizer: Any, tmp_path: Path, model_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    eager = AutoModelForCausalLM.from_pretrained(model_path, attn_implementation="eager")
    trainer = make_trainer(tmp_path / "eager", tokenizer, model=eager, algorithm="ppo", max_steps=1)
    assert trainer.padding_free is None and "'eager'" in trainer.why_padded and "'eager'" in caplog.text
    trainer.train()
    assert trainer.learner.critic.padding_free is None
    off = make_trainer(tmp_path / "off", tokenizer, padding_free=False)
    assert off.padding_free is None and off.why_padded == "padding_free is off"
    assert off.model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("is_fsdp_enabled", "sharded"), ("torch_compile", "compiled"), ("aux_loss_enabled", "experts")],
)
def test_settings_that_need_padded_rows(setting: str, reason: str) -> None:
    args = SimpleNamespace(padding_free=True, torch_compile=setting == "torch_compile")
    trainer = SimpleNamespace(
        args=args,
        accelerator=SimpleNamespace(state=SimpleNamespace()),
        is_fsdp_enabled=setting == "is_fsdp_enabled",
        aux_loss_enabled=setting == "aux_loss_enabled",
        model=None,
        ref_model=None,
    )
    found, why = enable_for(trainer)
    assert found is None and reason in why
