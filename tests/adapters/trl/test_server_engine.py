"""`ServerEngine` and TRL's server mode, against our own server over real sockets; optionally against a real vLLM.

For the latter, start vLLM as docs/training-one-machine.md says. Set AGENTGYM_VLLM_URL to its address (without /v1) and
AGENTGYM_VLLM_MODEL to the directory of its model, which must be small: the tests also run it here, to compare.
"""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.generation import vllm_client, vllm_generation

from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, Sampling, TokenTrajectory, play_many, run_sync
from agentgym_trl.server_engine import ServerEngine, request_settings, served_model, server_engine_for
from tests.adapters.trl.completion_server import CompletionServer, settings
from tests.adapters.trl.small import ScoredCraft, make_small_model, make_trainer
from tests.ports import free_port

pytestmark = pytest.mark.slow  # a server with a model

MASTER = {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
ASKED = Sampling(8, stop_ids=(3,))
URL, MODEL = os.environ.get("AGENTGYM_VLLM_URL"), os.environ.get("AGENTGYM_VLLM_MODEL")
real = pytest.mark.skipif(not (URL and MODEL), reason="AGENTGYM_VLLM_URL and AGENTGYM_VLLM_MODEL name no vLLM server")


def engine_for(url: str, max_requests: int = 256, **more: Any) -> ServerEngine:
    return ServerEngine(
        url, served_model(url)["id"], request_settings(settings(url, **more)), max_requests=max_requests
    )


def play(
    engine: ServerEngine,
    tokenizer: Any,
    episodes: int,
    *,
    max_turns: int = 3,
    on_done: Callable[[TokenTrajectory], None] | None = None,
) -> list[TokenTrajectory]:
    specs = [EpisodeSpec(seed=seed) for seed in range(episodes)]
    limits = Limits(max_turns=max_turns, max_turn_tokens=8)

    async def go() -> list[TokenTrajectory]:
        try:
            return await play_many(specs, ScoredCraft, engine, ChatCodec(tokenizer), limits=limits, on_done=on_done)
        finally:
            await engine.finish()

    return run_sync(go())


def ask(engine: ServerEngine, prompts: Sequence[Sequence[int]] = ([5, 6],), sampling: Sampling = ASKED) -> list[Any]:
    async def go() -> list[Any]:
        try:
            return await asyncio.gather(*(engine.generate(prompt, sampling) for prompt in prompts))
        finally:
            await engine.finish()

    return run_sync(go())


@torch.no_grad()
def logprobs(model: Any, episode: TokenTrajectory, temperature: float = 1.0) -> torch.Tensor:
    """(sampled tokens,) the model's log-probabilities, in one pass over the whole trajectory."""
    logits = model(torch.tensor([episode.prompt_ids + episode.ids])).logits[0, len(episode.prompt_ids) - 1 : -1]
    scores = (logits / temperature).log_softmax(-1).gather(1, torch.tensor(episode.ids)[:, None])[:, 0]
    return scores[torch.tensor(episode.assistant_mask, dtype=torch.bool)]


def recorded(episode: TokenTrajectory) -> torch.Tensor:
    assert episode.logprobs is not None
    return torch.tensor([x for x, m in zip(episode.logprobs, episode.assistant_mask, strict=True) if m])


_SERVERS: dict[str, CompletionServer] = {}


@pytest.fixture
def server(tokenizer: Any) -> Iterator[CompletionServer]:
    with CompletionServer(make_small_model(tokenizer)) as server:
        _SERVERS[server.url] = server
        yield server
    del _SERVERS[server.url]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_recorded_tokens_are_the_sampled_ones(server: CompletionServer, tokenizer: Any, temperature: float) -> None:
    engine = engine_for(server.url, temperature=temperature)
    episodes = play(engine, tokenizer, 6)
    prompts = {tuple(body["prompt"]) for body in server.requests}
    for episode in episodes:
        torch.testing.assert_close(recorded(episode), logprobs(server.model, episode, temperature), atol=1e-4, rtol=0)
        ids, mask = episode.prompt_ids + episode.ids, [0] * len(episode.prompt_ids) + episode.assistant_mask
        begins = [index for index in range(len(ids)) if mask[index] and not mask[index - 1]]
        assert len(begins) == 3 and all(tuple(ids[:index]) in prompts for index in begins)
    assert len(server.requests) == 18 and server.most_in_flight > 1
    assert engine.tokens == sum(sum(episode.assistant_mask) for episode in episodes)


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("limit", [1, 30])
def test_an_answer_ends_at_a_stop_id_an_end_token_or_the_limit(server: CompletionServer, limit: int) -> None:
    """At one of our stop ids, at the model's own end token, or at the limit."""
    stop_ids = tuple(range(0, 500, 2))
    ends = {*stop_ids, server.model.config.eos_token_id}
    answers = ask(engine_for(server.url), [[5, 6]] * 24, Sampling(limit, stop_ids=stop_ids))
    for answer in answers:
        assert answer.finish == ("stop" if answer.ids[-1] in ends else "length")
        assert not ends & set(answer.ids[:-1]) and 1 <= len(answer.ids) <= limit
    assert {answer.finish for answer in answers} == ({"stop"} if limit == 30 else {"stop", "length"})


def test_a_slow_answer_delays_no_other_episode(tokenizer: Any) -> None:
    """The first answer waits until all other episodes are over; lock-step would deadlock."""
    others, first = threading.Event(), threading.Lock()

    def hold(body: dict[str, Any]) -> None:
        if first.acquire(blocking=False):
            assert others.wait(60)

    done: list[TokenTrajectory] = []

    def on_done(episode: TokenTrajectory) -> None:
        done.append(episode)
        if len(done) == 5:
            others.set()

    with CompletionServer(make_small_model(tokenizer), hold=hold) as server:
        episodes = play(engine_for(server.url), tokenizer, 6, on_done=on_done)
    assert len(done) == 6 and [len(e.trajectory.turns) for e in episodes] == [3] * 6


@pytest.mark.rotating
def test_requests_in_flight_are_bounded_and_connections_reused(tokenizer: Any) -> None:
    with CompletionServer(make_small_model(tokenizer), hold=lambda body: time.sleep(0.01)) as server:
        play(engine_for(server.url, max_requests=3), tokenizer, 20)
        assert server.most_in_flight == 3
        assert len(server.requests) == 60 and server.connections < 30


def test_only_time_with_requests_in_flight_counts(tokenizer: Any) -> None:
    async def go(engine: ServerEngine) -> float:
        began = time.perf_counter()
        for _ in range(2):
            await asyncio.gather(*(engine.generate([5, 6], ASKED) for _ in range(4)))
            await asyncio.sleep(0.3)
        await engine.finish()
        return time.perf_counter() - began

    gate = threading.Barrier(4)  # all four are in flight at once

    def hold(body: dict[str, Any]) -> None:
        gate.wait(60)
        time.sleep(0.1)

    with CompletionServer(make_small_model(tokenizer), hold=hold) as server:
        engine = engine_for(server.url)
        wall = run_sync(go(engine))
    assert 0.2 <= engine.seconds <= wall - 0.6


SETTINGS: dict[str, dict[str, Any]] = {
    "neutral": {},
    "all": {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.01, "repetition_penalty": 1.1},
    "more": {"generation_kwargs": {"frequency_penalty": 0.5, "top_k": 3}, "structured_outputs_regex": "[a-z]+"},
}


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("chosen", SETTINGS.values(), ids=SETTINGS)
def test_a_request_equals_that_of_trl(
    chosen: dict[str, Any], server: CompletionServer, trl_client: None, tmp_path: Path, tokenizer: Any
) -> None:
    """Every field equals the request of TRL's own `VLLMGeneration` for the same trainer, and none is missing."""
    trainer = make_trainer(tmp_path, tokenizer, **server_mode(server.url))
    for name, value in chosen.items():
        setattr(trainer.vllm_generation, name, value)
    ids, scores = trainer._generate_single_turn([[5, 6]], None, {}, num_generations=1)
    ask(server_engine_for(trainer))
    theirs, ours = server.requests
    different = {"prompt", "max_tokens", "n", "return_tokens_as_token_ids"}
    assert {key: ours[key] for key in theirs.keys() - different} == {
        key: value for key, value in theirs.items() if key not in different
    }
    assert ours["prompt"] == [5, 6] and theirs["prompt"] == [[5, 6]] and ours["stop_token_ids"] == [3]
    assert set(ours) >= {
        "frequency_penalty",
        "presence_penalty",
        *server.defaults,
    }  # else a server fills them
    assert len(ids[0]) == len(scores[0])


def test_the_servers_defaults_are_overridden(tokenizer: Any) -> None:
    with CompletionServer(make_small_model(tokenizer), defaults={"repetition_penalty": 2.0, "top_k": 1}) as server:
        episodes = play(engine_for(server.url), tokenizer, 2)
        for episode in episodes:
            torch.testing.assert_close(recorded(episode), logprobs(server.model, episode), atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", ["n", "max_tokens", "logprobs", "stop_token_ids", "seed"])
def test_settings_that_episodes_do_not_support_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"generation_kwargs: .*{name}.*leave it out"):
        request_settings(settings("", generation_kwargs={name: 1, "min_tokens": 2}))


def without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def edit(answer: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{k: v for k, v in choice.items() if k not in names} for choice in answer["choices"]]}

    return edit


@pytest.mark.parametrize(
    ("field", "words"), [("token_ids", "returned no token ids"), ("logprobs", "no log-probabilities.*vLLM server")]
)
def test_incomplete_answers_are_refused(field: str, words: str, tokenizer: Any) -> None:
    edited = CompletionServer(make_small_model(tokenizer), edit=without(field))
    with edited as server, pytest.raises(EngineError, match=words):
        ask(engine_for(server.url))


def test_an_unknown_log_probability_is_nan(tokenizer: Any) -> None:
    def edit(answer: dict[str, Any]) -> dict[str, Any]:
        answer["choices"][0]["logprobs"]["token_logprobs"][0] = None
        return answer

    with CompletionServer(make_small_model(tokenizer), edit=edit) as server:
        found = ask(engine_for(server.url))[0].logprobs
    assert math.isnan(found[0]) and not any(map(math.isnan, found[1:]))


def test_a_full_context_raises(tokenizer: Any) -> None:
    narrow = CompletionServer(make_small_model(tokenizer), context=9)
    with narrow as server, pytest.raises(EngineError, match="maximum context length is 9 tokens"):
        ask(engine_for(server.url))


def test_a_missing_server_raises(server: CompletionServer) -> None:
    with pytest.raises(EngineError, match=r":1/v1/models lists no model.*can this machine reach"):
        served_model("http://127.0.0.1:1")
    with pytest.raises(EngineError, match="/other/v1/models lists no model"):
        served_model(f"{server.url}/other")


# TRL's whole server mode. Only the transfer of weights is replaced: vLLM uses NCCL, which needs GPUs.


class Client(vllm_client.VLLMClient):  # type: ignore[misc]
    """TRL's client, with weights that go to our server; a real server keeps its initial weights."""

    def init_communicator(self, device: Any = 0) -> None:
        """Do nothing: there is no communicator."""

    def update_named_params(self, metadata: Any, named_params: Iterable[tuple[str, torch.Tensor]]) -> None:
        if self.base_url in _SERVERS:
            _SERVERS[self.base_url].load(named_params)


@pytest.fixture
def trl_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: list[Client] = []

    def make(**how: Any) -> Client:
        made.append(Client(**how))
        return made[-1]

    monkeypatch.setattr(vllm_client, "is_vllm_available", lambda: True)
    monkeypatch.setattr(vllm_generation, "is_vllm_available", lambda: True)
    monkeypatch.setattr(vllm_generation, "VLLMClient", make)
    yield
    for client in made:
        client.session.close()


def server_mode(url: str) -> dict[str, Any]:
    return {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": url}


@pytest.mark.train
def test_trl_trains_on_the_tokens_of_the_server(
    server: CompletionServer, trl_client: None, tmp_path: Path, tokenizer: Any
) -> None:
    """At every step the server has the weights of that step, and its log-probabilities equal the trainer's."""
    torch.nn.init.normal_(server.model.get_input_embeddings().weight)  # until the first sync, other weights
    trainer = make_trainer(
        tmp_path, tokenizer, temperature=0.7, max_steps=3, learning_rate=1e-2, **server_mode(server.url)
    )
    before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    trainer.train()
    assert not trainer.generated  # TRL's own collective generation was not used
    assert server.most_in_flight > 1 and len(server.requests) >= 3 * 8
    assert any((trainer.model.state_dict()[name] - weight).abs().max() > 1e-3 for name, weight in before.items())
    logs = [log for log in trainer.state.log_history if "sampling/sampling_logp_difference/max" in log]
    assert len(logs) == 3
    for log in logs:
        assert log["sampling/sampling_logp_difference/max"] < 1e-3
        assert log["sampling/importance_sampling_ratio/mean"] == pytest.approx(1, abs=1e-3)
        assert log["rollout/tokens"] > 0 and log["time/generate"] > 0
        assert log["effective_sample_size"] == pytest.approx(1, abs=1e-3) and log["sampler_kl"] < 1e-4
    for output in trainer.outputs:
        weights = output["importance_sampling_ratio"]
        assert weights.isfinite().all() and weights.shape == output["completion_ids"].shape  # one per token


def test_the_context_must_hold_a_trajectory(
    server: CompletionServer, trl_client: None, tmp_path: Path, tokenizer: Any
) -> None:
    server.context = 200
    trainer = make_trainer(tmp_path, tokenizer, **server_mode(server.url))
    with pytest.raises(UsageError, match=r"context of 200 tokens and max_completion_length is 200.*--max-model-len"):
        server_engine_for(trainer)


@pytest.mark.slow
@pytest.mark.rotating
def test_ranks_wait_for_weights_but_not_for_answers(server: CompletionServer, model_path: Path) -> None:
    """Two processes with unequal numbers of episodes; lock-step over ranks would deadlock."""
    port = str(free_port())
    counts = (1, 4)
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.adapters.trl.server_rank", server.url, str(model_path), str(count)],
            env={
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                **MASTER,
                "MASTER_PORT": port,
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, count in enumerate(counts)
    ]
    printed = [rank.communicate(timeout=180)[0].splitlines()[-1] for rank in ranks]
    assert printed == [str([2] * count) for count in counts]
    assert server.paths.index("/reset_prefix_cache") < server.paths.index("/v1/completions")


# Against a real vLLM.


@dataclass
class Real:
    url: str
    tokenizer: Any
    model: Any


@pytest.fixture(scope="session")
def vllm_server() -> Real:
    assert URL and MODEL
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    return Real(URL.rstrip("/"), AutoTokenizer.from_pretrained(MODEL), model)


@real
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_vllms_samples_are_recorded(vllm_server: Real, temperature: float) -> None:
    """Start vLLM with `--dtype float32 --logprobs-mode processed_logprobs`."""
    engine = engine_for(vllm_server.url, temperature=temperature)
    episodes = play(engine, vllm_server.tokenizer, 24)
    for episode in episodes:
        expected = logprobs(vllm_server.model, episode, temperature)
        torch.testing.assert_close(recorded(episode), expected, atol=1e-3, rtol=0)
    assert engine.tokens == sum(sum(episode.assistant_mask) for episode in episodes)


@real
def test_vllm_continues_from_the_recorded_ids(vllm_server: Real) -> None:
    """Greedy answers equal those of the model itself, given the recorded ids."""
    engine = engine_for(vllm_server.url, temperature=0.0)
    for episode in play(engine, vllm_server.tokenizer, 4):
        expected = model_argmax(vllm_server.model, episode)
        assert [i for i, m in zip(episode.ids, episode.assistant_mask, strict=True) if m] == expected


@real
def test_vllm_stops_at_our_ids(vllm_server: Real) -> None:
    config = vllm_server.model.config
    stop_ids = tuple(range(0, config.vocab_size, 2))
    answers = ask(engine_for(vllm_server.url), [[5, 6]] * 8, Sampling(30, stop_ids=stop_ids))
    ends = {*stop_ids, config.eos_token_id}
    assert all(a.finish == "stop" and a.ids[-1] in ends and len(a.logprobs) == len(a.ids) for a in answers)


@real
@pytest.mark.train
@pytest.mark.parametrize("options", [{}, {"asynchronous": True, "max_staleness": 2}], ids=["synchronous", "async"])
def test_trls_importance_weights_of_vllm_are_one(
    options: dict[str, Any], vllm_server: Real, trl_client: None, tmp_path: Path
) -> None:
    """The first step of TRL's server mode, whose weights vLLM has already. Needs VLLM_SERVER_DEV_MODE=1."""
    trainer = make_trainer(
        tmp_path,
        vllm_server.tokenizer,
        model=AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32),
        temperature=0.7,
        max_steps=1,
        **server_mode(vllm_server.url),
        **options,
    )
    trainer.train()
    assert not trainer.generated
    assert trainer.state.log_history[0]["sampling/sampling_logp_difference/max"] < 1e-3


@torch.no_grad()
def model_argmax(model: Any, episode: TokenTrajectory) -> list[int]:
    logits = model(torch.tensor([episode.prompt_ids + episode.ids])).logits[0, len(episode.prompt_ids) - 1 : -1]
    return logits.argmax(-1)[torch.tensor(episode.assistant_mask, dtype=torch.bool)].tolist()
