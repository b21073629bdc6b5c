"""The contract of every engine, with a base model: its own end token is not the one that ends a turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

from agentgym_envs.rollout import ChatCodec, CompletionEngine, Generation, Limits, Sampling, play_many, run_sync
from agentgym_trl.engines import HFEngine, TrainerEngine, why_generate
from agentgym_trl.generation.cached_model import evaluating
from agentgym_trl.server_engine import server_engine_for
from agentgym_trl.tiny import make_tokenizer
from agentgym_trl.trainer import AgentTrainer
from agentgym_trl.trl_format import spec_of
from tests.adapters.trl.completion_server import CompletionServer, settings
from tests.adapters.trl.random_models import full_logprobs, greedy
from tests.adapters.trl.small import ScoredCraft, config, corpus, dataset, make_small_model, make_trainer

pytestmark = pytest.mark.train

HOT = 1.5
"""The temperature of engines that sample with a trainer's settings."""


@pytest.fixture(scope="module")
def base() -> Any:
    """A tokenizer whose end token is not the template's, and a model that ends its turns as the template does."""
    tokenizer = make_tokenizer(corpus())
    tokenizer.add_special_tokens({"eos_token": "<|endoftext|>"})
    codec = ChatCodec(tokenizer)
    model = make_small_model(tokenizer).eval()
    assert codec.turn_end_id != tokenizer.eos_token_id == model.config.eos_token_id
    bias = torch.zeros(len(tokenizer))
    bias[codec.turn_end_id] = 6.0
    model.lm_head.bias = torch.nn.Parameter(bias)
    return SimpleNamespace(tokenizer=tokenizer, codec=codec, model=model)


class Colocated:
    """TRL's `VLLMGeneration` in colocate mode, with transformers in the place of vLLM."""

    def __init__(self, model: Any, trainer: Any) -> None:
        self.model, self.trainer = model, trainer
        self.max_completion_length = 16
        self.generation_kwargs: dict[str, Any] = {}
        self.mode = "colocate"

    def sync_weights(self) -> None:
        """Do nothing: it is the same model."""

    def generate(self, prompts: Sequence[list[int]], images: Any, num_generations: int, profiler: Any) -> Any:
        ends = [self.trainer.processing_class.eos_token_id, *self.generation_kwargs.get("stop_token_ids", [])]
        way = {"temperature": self.trainer.temperature, "top_k": self.trainer.top_k, "top_p": 1.0}
        answers = []
        for prompt in prompts:
            out = self.model.generate(
                torch.tensor([prompt]),
                attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                max_new_tokens=self.max_completion_length,
                do_sample=True,
                eos_token_id=ends,
                pad_token_id=self.model.config.pad_token_id,
                **way,
            )
            answers.append(out[0, len(prompt) :].tolist())
        scores = [
            full_logprobs(self.model, p, a, way["temperature"])[:, None] for p, a in zip(prompts, answers, strict=True)
        ]
        return None, answers, [score.tolist() for score in scores], None


class Case:
    """An engine, the temperature of its log-probabilities, and whether it samples with a trainer's settings."""

    def __init__(self, name: str, base: Any, out: Path, stack: ExitStack, top_k: int) -> None:
        self.base, self.model = base, base.model
        self.in_training = name.startswith("trainer") or name == "server"
        self.temperature = HOT if self.in_training else 1.0
        self.has_logprobs = name != "trainer-generate"
        self.make = self._maker(name, base, out, stack, top_k)

    def _maker(self, name: str, base: Any, out: Path, stack: ExitStack, top_k: int) -> Callable[[], Any]:
        if name.startswith("hf"):
            return lambda: HFEngine(base.model, base.tokenizer, logprobs=True, reuse_kv_cache=name == "hf")
        if name == "completions":
            server = stack.enter_context(CompletionServer(base.model, processed=False))
            return lambda: CompletionEngine(f"{server.url}/v1", server.name)
        self.trainer = trainer = self._trainer(base, out, top_k, reuse=name == "trainer")
        if name == "server":
            server = stack.enter_context(CompletionServer(base.model))
            trainer.use_vllm = True
            trainer.vllm_generation = settings(server.url, temperature=HOT, top_k=top_k)
            return lambda: server_engine_for(trainer)
        if name == "trainer-colocate":
            trainer.use_vllm, trainer._last_loaded_step = True, 0
            trainer.vllm_generation = Colocated(base.model, trainer)
        return lambda: TrainerEngine(trainer)

    def _trainer(self, base: Any, out: Path, top_k: int, reuse: bool) -> Any:
        args = config(out, temperature=HOT, top_k=top_k, reuse_kv_cache=reuse)
        return GRPOTrainer(
            base.model,
            lambda prompts, **_: [0.0] * len(prompts),
            args=args,
            processing_class=base.tokenizer,
            train_dataset=dataset(),
        )

    def ask(self, prompts: Sequence[list[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        async def one(engine: Any) -> list[Generation]:
            if hasattr(engine, "generate_batch"):
                return list(engine.generate_batch(prompts, samplings))
            return await asyncio.gather(*(engine.generate(p, s) for p, s in zip(prompts, samplings, strict=True)))

        return self.use(one)

    def use(self, ask: Callable[[Any], Awaitable[Any]]) -> Any:
        """The result of `ask` with an engine, which is closed."""

        async def go() -> Any:
            engine = self.make()
            try:
                return await ask(engine)
            finally:
                if hasattr(engine, "aclose"):
                    await engine.aclose()

        return run_sync(go())


ENGINES = ["hf", "hf-generate", "trainer", "trainer-generate", "trainer-colocate", "completions", "server"]


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(name: str, base: Any, tmp_path: Path) -> Iterator[Any]:
    torch.manual_seed(0)
    with ExitStack() as stack:
        yield lambda top_k=0: Case(name, base, tmp_path, stack, top_k)


def sampling_for(case: Case, limit: int, **more: Any) -> Sampling:
    return Sampling(limit, stop_ids=tuple(sorted(case.base.codec.stop_ids)), **more)


def prompts_of(base: Any, count: int) -> list[list[int]]:
    return [
        base.codec.encode_prompt([{"role": "user", "content": f"Craft {k} planks." * (1 + k % 3)}])
        for k in range(count)
    ]


def test_answers_end_where_a_turn_ends_or_at_their_own_limit(make: Any, base: Any) -> None:
    case, prompts = make(), prompts_of(base, 24)
    samplings = [sampling_for(case, 1 + k) for k in range(24)]
    answers = case.ask(prompts, samplings)
    for sampling, answer in zip(samplings, answers, strict=True):
        assert 1 <= len(answer.ids) <= sampling.max_tokens
        assert not set(answer.ids[:-1]) & base.codec.stop_ids
        assert answer.finish == ("stop" if answer.ids[-1] in base.codec.stop_ids else "length")
        assert answer.finish == "stop" or len(answer.ids) == sampling.max_tokens
    ends = Counter(answer.ids[-1] for answer in answers if answer.finish == "stop")
    assert ends[base.codec.turn_end_id] > 3, "the model ends its turns with the template's token"


def test_log_probabilities_are_those_of_a_full_pass(make: Any, base: Any) -> None:
    case, prompts = make(), prompts_of(base, 4)
    for prompt, answer in zip(prompts, case.ask(prompts, [sampling_for(case, 8)] * 4), strict=True):
        if not case.has_logprobs:
            assert answer.logprobs is None
            continue
        expected = full_logprobs(case.model, prompt, answer.ids, case.temperature)
        torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-4, rtol=0)


def test_the_sampling_settings_are_used(make: Any, base: Any) -> None:
    """With top-k 1 an answer is greedy; with top-k 3 the first token is one of the three most likely."""
    case, (prompt,) = make(top_k=1), prompts_of(base, 1)
    answer = case.ask([prompt], [sampling_for(case, 10, top_k=1)])[0]
    assert answer.ids == greedy(case.model, prompt, 10, base.codec.stop_ids)
    case = make(top_k=3)
    with torch.no_grad():
        likely = set(case.model(torch.tensor([prompt])).logits[0, -1].topk(3).indices.tolist())
    first = {a.ids[0] for a in case.ask([prompt] * 40, [sampling_for(case, 1, top_k=3, temperature=2.0)] * 40)}
    assert len(first) > 1 and first <= likely


def test_equal_prompts_get_different_answers(make: Any, base: Any) -> None:
    case, (prompt,) = make(), prompts_of(base, 1)
    answers = case.ask([prompt] * 12, [sampling_for(case, 6)] * 12)
    assert len({tuple(answer.ids) for answer in answers}) > 3


def test_an_episode_has_no_token_after_the_end_of_a_turn(make: Any, base: Any) -> None:
    case = make()
    specs = [spec_of(row["prompt"], {}) for row in dataset(6)]
    limits = Limits(max_turns=3, max_turn_tokens=12)
    for episode in case.use(lambda engine: play_many(specs, ScoredCraft, engine, base.codec, limits=limits)):
        for begin, end in episode.turn_spans:
            assert not set(episode.ids[begin : end - 1]) & base.codec.stop_ids


@pytest.mark.parametrize("way", ["plain", "checkpointing", "lora"])
def test_every_answer_of_a_run_is_sampled_with_the_weights_of_its_step(
    way: str, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys and values of earlier weights are not used."""
    whole, steps = TrainerEngine.generate_batch, Counter[int]()

    def checked(self: TrainerEngine, prompts: Any, samplings: Any) -> Any:
        answers = whole(self, prompts, samplings)
        with evaluating(self._cached_model):
            for prompt, answer in zip(prompts, answers, strict=True):
                expected = full_logprobs(self._cached_model, list(prompt), answer.ids)
                torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-4, rtol=0)
        assert self._trainer.model.training
        steps[self._trainer.state.global_step] += 1
        return answers

    monkeypatch.setattr(TrainerEngine, "generate_batch", checked)
    peft = LoraConfig(init_lora_weights=False, lora_dropout=0.5, task_type="CAUSAL_LM") if way == "lora" else None
    more: Any = {"gradient_checkpointing": way == "checkpointing", "max_steps": 3, "learning_rate": 1e-2}
    make_trainer(tmp_path, tokenizer, extra={"peft_config": peft}, trainer=AgentTrainer, **more).train()
    assert steps == {0: 2, 1: 2, 2: 2}


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"is_fsdp_enabled": True}, "sharded"),
        ({"zero_stage": 3}, "sharded"),
        ({"zero_stage": 2}, ""),
        ({"min_p": 0.1}, "min_p"),
        ({"repetition_penalty": 1.2}, "repetition_penalty"),
        ({}, ""),
    ],
)
def test_the_runs_whose_keys_and_values_are_not_kept(change: dict[str, Any], reason: str) -> None:
    fields = {"is_fsdp_enabled": False, "min_p": None, "repetition_penalty": 1.0, **change}
    plugin = SimpleNamespace(zero_stage=fields.pop("zero_stage", 0))
    accelerator = SimpleNamespace(num_processes=1, state=SimpleNamespace(deepspeed_plugin=plugin))
    args = SimpleNamespace(generation_kwargs=None, cache_implementation=None)
    found = why_generate(SimpleNamespace(accelerator=accelerator, args=args, **fields))
    assert bool(found) == bool(reason) and reason in found


def test_trl_counts_answers_that_end_a_turn_as_complete(base: Any, tmp_path: Path) -> None:
    trainer = Case("trainer", base, tmp_path, ExitStack(), 0)
    (prompt,) = prompts_of(base, 1)
    trainer.ask([prompt], [sampling_for(trainer, 4)])
    inner = trainer.trainer
    assert base.codec.stop_ids <= set(inner.eos_token_ids) == set(inner.generation_config.eos_token_id)
    assert isinstance(inner.args, GRPOConfig)
