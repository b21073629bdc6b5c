"""`CachedDecoder` against `generate` and against passes over whole conversations."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from agentgym_envs.rollout import Sampling
from agentgym_trl.engines import HFEngine
from agentgym_trl.generation import support
from agentgym_trl.generation.cached_model import difference
from agentgym_trl.generation.decoder import CachedDecoder
from agentgym_trl.generation.rows import Rows
from agentgym_trl.generation.sampling import choose
from agentgym_trl.generation.seeds import Seeds
from tests.adapters.trl.random_models import VOCABULARY, full_logprobs, greedy, random_model

STOPS = tuple(range(2, 40))
FAMILIES = ["qwen2", "qwen3", "llama", "llama-eager", "mistral", "gemma2", "gemma3"]


def tokens(random: Random, low: int, high: int) -> list[int]:
    return [random.randrange(40, VOCABULARY) for _ in range(random.randrange(low, high))]


def ask(decoder: CachedDecoder, prompts: list[list[int]], samplings: list[Sampling], turn: int = 0) -> list[Any]:
    return decoder.answer(prompts, samplings, [(0, number, turn) for number in range(len(prompts))])


def check(model: Any, prompt: list[int], sampling: Sampling, answer: Any) -> None:
    """Greedy answers are those of `generate`; limits, stop ids and log-probabilities are right."""
    assert 1 <= len(answer.ids) <= sampling.max_tokens
    assert not set(answer.ids[:-1]) & set(sampling.stop_ids)
    assert answer.finish == ("stop" if answer.ids[-1] in sampling.stop_ids else "length")
    assert answer.finish == "stop" or len(answer.ids) == sampling.max_tokens
    expected = full_logprobs(model, prompt, answer.ids)
    torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-4, rtol=0)
    if sampling.temperature == 0:
        assert answer.ids == greedy(model, prompt, sampling.max_tokens, sampling.stop_ids)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_the_model(family: str) -> None:
    """Groups of equal prompts, answers of several lengths, episodes that end early, windows shorter than a text."""
    model, random = random_model(family), Random(0)
    decoder = CachedDecoder(model)
    talks = [list(prompt) for prompt in (tokens(random, 10, 40) for _ in range(3)) for _ in range(3)]
    for turn in range(4):
        talks = [talk for talk in talks if turn < 2 or random.random() < 0.7]
        samplings = [
            Sampling(random.randrange(2, 14), 0.0 if k % 2 else 0.8, (1.0, 0.9)[k % 3 == 0], (0, 20)[k % 4 == 0], STOPS)
            for k in range(len(talks))
        ]
        for talk, sampling, answer in zip(talks, samplings, ask(decoder, talks, samplings, turn), strict=True):
            check(model, talk, sampling, answer)
            talk += answer.ids + tokens(random, 3, 20)


def test_only_new_tokens_are_read() -> None:
    model, random = random_model("qwen2"), Random(1)
    decoder, prompt = CachedDecoder(model), tokens(random, 50, 51)
    group = [list(prompt) for _ in range(4)]
    answers = ask(decoder, group, [Sampling(5)] * 4)
    assert decoder.tokens_read == 50 + 3, "once, and the last token for each copy"
    for talk, answer in zip(group, answers, strict=True):
        talk += answer.ids + tokens(random, 7, 8)
    ask(decoder, group, [Sampling(5)] * 4, turn=1)
    assert decoder.tokens_read == 53 + 4 * (1 + 7), "the last token of each answer, and the observation"


def test_a_common_system_prompt_is_read_once() -> None:
    random = Random(2)
    decoder, system = CachedDecoder(random_model("qwen2")), tokens(random, 100, 101)
    prompts = [[*system, 40 + k, *tokens(random, 5, 6)] for k in range(6)]
    ask(decoder, prompts, [Sampling(2)] * 6)
    assert decoder.tokens_read == 100 + 6 * 6


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_any_order_of_joins_leaves_and_edits(data: st.DataObject) -> None:
    """Episodes join and leave, and a template may rewrite earlier text: it is read again from there."""
    random = Random(data.draw(st.integers(0, 10**6)))
    model = _model()
    row = 2 * 3 * 2 * 16 * 4
    decoder = CachedDecoder(model, max_bytes=data.draw(st.sampled_from([None, 1, 3 * 192 * row, 6 * 256 * row])))
    talks: list[list[int]] = []
    for turn in range(data.draw(st.integers(1, 5))):
        for _ in range(data.draw(st.integers(0 if talks else 1, 4))):
            old = data.draw(st.sampled_from([*talks, []]))
            talks.append(old[: random.randrange(len(old) + 1)] + tokens(random, 1, 25))
        if data.draw(st.booleans()):
            talks.pop(random.randrange(len(talks)))
        for talk in talks:
            if random.random() < 0.2:
                talk[random.randrange(len(talk))] = random.randrange(40, VOCABULARY)
        random.shuffle(talks)
        samplings = [Sampling(random.randrange(1, 9), random.choice([0.0, 1.0]), stop_ids=STOPS) for _ in talks]
        answers = ask(decoder, talks, samplings, turn) if talks else []
        for talk, sampling, answer in zip(talks, samplings, answers, strict=True):
            check(model, talk, sampling, answer)
            talk += answer.ids + tokens(random, 0, 12)


_MODELS: dict[str, Any] = {}


def _model() -> Any:
    return _MODELS.setdefault("gemma3", random_model("gemma3"))


def test_a_rewritten_text_is_read_from_the_first_change() -> None:
    random = Random(3)
    decoder, talk = CachedDecoder(random_model("qwen2")), tokens(random, 60, 61)
    ask(decoder, [talk], [Sampling(4)])
    talk[40] = 41 if talk[40] == 40 else 40
    before = decoder.tokens_read
    ask(decoder, [talk], [Sampling(4)])
    assert decoder.tokens_read - before == 20


@pytest.mark.slow
def test_the_memory_is_bounded_and_evicted_episodes_are_read_again() -> None:
    model, random = random_model("qwen2"), Random(4)
    place = 2 * 3 * 2 * 16 * 4
    decoder = CachedDecoder(model, max_bytes=4 * 128 * place)
    talks = [tokens(random, 40, 60) for _ in range(10)]
    for turn in range(3):
        samplings = [Sampling(6, 0.0, stop_ids=STOPS)] * 10
        for talk, sampling, answer in zip(talks, samplings, ask(decoder, talks, samplings, turn), strict=True):
            check(model, talk, sampling, answer)
            talk += [*answer.ids, 50]
    layer = decoder._model.cache.layers[0]
    held = sum(x.numel() * x.element_size() for x in (layer.keys, layer.values)) * 3
    assert held <= 4 * 128 * place and len(decoder._rows) <= 4


def test_new_weights_empty_the_cache() -> None:
    model, random = random_model("llama"), Random(5)
    decoder, talk = CachedDecoder(model), tokens(random, 30, 31)
    sampling = Sampling(6, 0.0, stop_ids=STOPS)
    talk += ask(decoder, [talk], [sampling])[0].ids
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model(torch.tensor([talk]), labels=torch.tensor([talk])).loss.backward()
    optimizer.step()
    check(model, talk, sampling, ask(decoder, [talk], [sampling])[0])
    assert decoder.tokens_read == 30 + len(talk)


def test_an_error_leaves_an_empty_cache_and_a_training_model() -> None:
    model = random_model("llama").train()
    model.lm_head.eval()
    decoder = CachedDecoder(model)
    with pytest.raises(IndexError):
        ask(decoder, [[VOCABULARY + 5]], [Sampling(2)])
    assert model.training and not model.lm_head.training and model.config._attn_implementation == "sdpa"
    check(model.eval(), [50, 51], Sampling(3, 0.0), ask(decoder, [[50, 51]], [Sampling(3, 0.0)])[0])


def test_gradient_checkpointing_is_no_obstacle() -> None:
    model = random_model("qwen2").train()
    model.gradient_checkpointing_enable()
    assert not difference(model, list(range(40, 60)))
    answer = ask(CachedDecoder(model), [[50, 51, 52]], [Sampling(5, 0.0)])[0]
    assert model.training
    check(model.eval(), [50, 51, 52], Sampling(5, 0.0), answer)


def test_an_adapter_is_applied() -> None:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(random_model("qwen2"), LoraConfig(init_lora_weights=False, task_type="CAUSAL_LM")).eval()
    assert not support.why_not(model, lambda: difference(model, [50, 51, 52]))
    check(model, [50, 51, 52], Sampling(5), ask(CachedDecoder(model), [[50, 51, 52]], [Sampling(5)])[0])


@pytest.mark.parametrize("family, reason", [("mamba", "recurrent"), ("bloom", "no cache of rows")])
def test_other_models_warn_once_and_use_generate(family: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    model = random_model(family)
    with caplog.at_level(logging.WARNING, "agentgym_trl"):
        for _ in range(2):
            engine = HFEngine(model, _Padding(), logprobs=True)
            sampling = Sampling(6, 0.0, stop_ids=STOPS)
            check(model, [50, 51, 52], sampling, engine.generate_batch([[50, 51, 52]], [sampling])[0])
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("agentgym_trl")]
    assert [reason in message for message in ours] == [True]


def test_a_model_whose_kept_logits_differ_uses_generate() -> None:
    model = random_model("llama")
    model.model.rotary_emb.forward = lambda x, position_ids: (torch.zeros(1, 1, 16), torch.zeros(1, 1, 16))
    model.config.layer_types = None
    assert not difference(model, list(range(40, 60))), "positions play no part in either"
    chunked = random_model("llama")
    chunked.config.layer_types = ["chunked_attention"] * 3
    assert "chunked" in support.why_not(chunked, lambda: "")


class _Padding:
    pad_token_id = 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("temperature, top_p, top_k", [(1.0, 1.0, 0), (0.7, 0.9, 0), (1.3, 1.0, 7), (0.8, 0.8, 10)])
def test_tokens_are_drawn_from_the_filtered_distribution(temperature: float, top_p: float, top_k: int) -> None:
    logits, count = torch.randn(1, 50, generator=torch.Generator().manual_seed(0)) * 2, 40_000
    wanted: Any = TemperatureLogitsWarper(temperature)(None, logits.clone())
    wanted = TopKLogitsWarper(top_k)(None, wanted) if top_k else wanted
    wanted = (TopPLogitsWarper(top_p)(None, wanted) if top_p < 1 else wanted).softmax(-1)[0]
    noise = ((np.arange(count) + 0.5) / count).tolist()  # evenly spread, so that shares are exact
    drawn = choose(logits.expand(count, -1), [Sampling(1, temperature, top_p, top_k)] * count, noise)
    shares = torch.bincount(drawn, minlength=50) / count
    torch.testing.assert_close(shares, wanted, atol=2 / count, rtol=0)


def test_a_row_is_sampled_by_its_own_settings() -> None:
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(1))
    ways = [Sampling(1, 0.0), Sampling(1, 1.0, 1.0, 1), Sampling(1, 2.0)]
    noise = [0.99, 0.99, 0.6]
    together = choose(logits, ways, noise).tolist()
    assert together[:2] == logits.argmax(-1).tolist()[:2]
    assert together == [int(choose(logits[k : k + 1], [ways[k]], [noise[k]])) for k in range(3)]


@pytest.mark.slow
def test_an_answer_does_not_depend_on_the_batch() -> None:
    """The same seed gives the same tokens, alone or beside other episodes."""
    model, random = random_model("qwen2"), Random(6)
    prompts = [tokens(random, 5, 60) for _ in range(8)]
    seeds = [(9, number) for number in range(8)]
    together = CachedDecoder(model).answer(prompts, [Sampling(12)] * 8, seeds)
    for prompt, seed, answer in zip(prompts, seeds, together, strict=True):
        assert CachedDecoder(model).answer([prompt], [Sampling(12)], [seed])[0].ids == answer.ids
    other = CachedDecoder(model).answer(prompts, [Sampling(12)] * 8, [(10, number) for number in range(8)])
    assert [a.ids for a in other] != [a.ids for a in together]


def test_seeds_count_the_answers_of_an_episode() -> None:
    seeds = Seeds(7)
    torch.manual_seed(0)
    first, second = seeds.of([0, 1, 1]), seeds.of([1])
    assert len({*first, *second}) == 4 and {seed[-1] for seed in first} == {7}
    again = Seeds(7)
    torch.manual_seed(0)
    assert again.of([1]) == [first[1]] and again.of([1]) == [first[2]] and again.of([1]) == second
    seeds.restart()
    assert not set(seeds.of([0, 1])) & set(first)


def test_the_longest_common_prefix_is_found() -> None:
    rows = Rows()
    rows.resize(np.zeros(0, np.int64), 3, 256)
    texts = [list(range(100)), [*range(80), 7], list(range(5))]
    for row, text in enumerate(texts):
        rows.take(row, text)
    assert rows.best_match([*range(100), 1]) == (0, 100)
    assert rows.best_match(list(range(100))) == (0, 99), "at least one token must be read"
    assert rows.best_match([*range(80), 7, 8]) == (1, 81)
    assert rows.best_match([9, 9]) == (-1, 0)
    rows.busy[:] = False
    assert rows.best_match([*range(5), 200]) == (2, 5), "the row that can be continued comes first"
    assert rows.idle() == 0, "the one that was not used for the longest time"
