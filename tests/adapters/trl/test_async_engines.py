"""The engines of asynchronous training: a second process, also when it dies or hangs, and a vLLM server."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_envs.errors import EngineError
from agentgym_envs.rollout import Generation, Sampling, run_sync
from agentgym_trl.asynchronous.engine import AnswerRequest
from agentgym_trl.asynchronous.process import ProcessEngine
from agentgym_trl.asynchronous.weights import SharedWeights
from agentgym_trl.asynchronous.worker import WorkerSetup
from agentgym_trl.generation.decoder import CachedDecoder
from tests.adapters.trl.completion_server import CompletionServer
from tests.adapters.trl.small import make_small_model, make_trainer, played
from tests.adapters.trl.test_server_engine import server, server_mode, trl_client  # noqa: F401  (fixtures)

pytestmark = [pytest.mark.slow, pytest.mark.train]

PROMPTS = [[5, 6], [5, 6, 7, 8], [9]]
Use = Callable[[ProcessEngine], Awaitable[Any]]


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    torch.set_num_threads(1)
    return make_small_model(tokenizer).eval()


def setup_of(model: Any) -> WorkerSetup:
    weights = SharedWeights(model.state_dict())
    return WorkerSetup(type(model), model.config, None, weights, torch.float32, "cpu", 1, 1.0)


def with_engine(model: Any, use: Use, *, setup: WorkerSetup | None = None) -> Any:
    engine = ProcessEngine(setup or setup_of(model), model.state_dict, Sampling(1), lockstep=False)

    async def go() -> Any:
        try:
            return await use(engine)
        finally:
            await engine.aclose()

    found = run_sync(go())
    assert not multiprocessing.active_children()
    return found


async def ask(engine: ProcessEngine, prompts: Sequence[Sequence[int]] = PROMPTS, tokens: int = 8) -> list[Generation]:
    requests = [
        AnswerRequest(prompt, Sampling(tokens), (1, number, 0), (number, 0), lambda *_: None)
        for number, prompt in enumerate(prompts)
    ]
    return list(await asyncio.gather(*map(engine.answer, requests)))


def expected(model: Any, tokens: int = 8) -> list[list[int]]:
    seeds = [(1, number, 0) for number in range(len(PROMPTS))]
    answers = CachedDecoder(model).answer(PROMPTS, [Sampling(tokens)] * len(PROMPTS), seeds)
    return [answer.ids for answer in answers]


def test_weights_change_between_answers(tokenizer: Any, model: Any) -> None:
    """Answers follow the weights and the random numbers, whether they come alone or join others."""
    changing, first = make_small_model(tokenizer).eval(), expected(model)
    other = make_small_model(tokenizer, seed=1).eval()

    async def use(engine: ProcessEngine) -> None:
        await engine.swap(3)
        together = await ask(engine)
        alone = [await ask(engine, [[]] * number + [prompt]) for number, prompt in enumerate(PROMPTS) if number == 0]
        assert [answer.ids for answer in together] == first and {answer.version for answer in together} == {3}
        assert alone[0][0].ids == first[0]
        late = asyncio.ensure_future(ask(engine, tokens=60))
        await asyncio.sleep(0.05)
        changing.load_state_dict(other.state_dict())
        await engine.swap(4)
        assert {answer.version for answer in await late} <= {3, 4}
        after = await ask(engine)
        assert [answer.ids for answer in after] == expected(other) and {answer.version for answer in after} == {4}

    with_engine(changing, use)


def stop(process: Any) -> None:
    os.kill(process.pid, signal.SIGSTOP)


def kill(process: Any) -> None:
    os.kill(process.pid, signal.SIGKILL)


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("harm", [kill, stop])
def test_a_dead_or_hanging_process_is_replaced(harm: Callable[[Any], None], model: Any) -> None:
    """The open requests get the answers that they would have had."""

    async def use(engine: ProcessEngine) -> list[Generation]:
        await engine.swap(2)
        await ask(engine)
        [child] = multiprocessing.active_children()
        harm(child)
        engine.hang_seconds = 0.5
        asking = asyncio.ensure_future(ask(engine))
        while child.is_alive():
            await asyncio.sleep(0.01)
        engine.hang_seconds = 600.0
        return await asking

    found = with_engine(model, use)
    assert [answer.ids for answer in found] == expected(model) and {answer.version for answer in found} == {2}


@pytest.mark.rotating(turns=(0,), of=2)
def test_a_process_that_cannot_work_ends_the_run(model: Any) -> None:
    async def use(engine: ProcessEngine) -> None:
        await engine.swap(0)
        await ask(engine)

    broken = replace(setup_of(model), logprob_temperature=None)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match=r"process that samples.*TypeError.*2 times in a row.*--resume"):
        with_engine(model, use, setup=broken)


# The vLLM server of TRL. Only the transfer of weights is replaced, as in test_server_engine.py.


def asynchronous(url: str, **more: Any) -> dict[str, Any]:
    return {"asynchronous": True, "max_staleness": 1, "max_steps": 4, "temperature": 0.7, **server_mode(url), **more}


@pytest.fixture
def loads(server: CompletionServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:  # noqa: F811
    """The number of requests in flight at every load of weights."""
    seen: list[int] = []
    load = server.load

    def counting(weights: Any) -> None:
        seen.append(server.in_flight)
        load(weights)

    monkeypatch.setattr(server, "load", counting)
    yield seen


def test_training_with_a_server_is_corrected_for_staleness(
    server: CompletionServer,  # noqa: F811
    trl_client: None,  # noqa: F811
    loads: list[int],
    tmp_path: Path,
    tokenizer: Any,
) -> None:
    """Requests pause while weights are sent, and log-probabilities of the current version equal the trainer's."""
    trainer = make_trainer(tmp_path, tokenizer, learning_rate=1e-2, **asynchronous(server.url))
    send = trainer.vllm_generation.sync_weights
    trainer.train()
    assert trainer.vllm_generation.sync_weights == send
    assert loads and set(loads) == {0}
    rows = [row for row in trainer.state.log_history if "async/staleness" in row]
    assert len(rows) == 4 and rows[0]["sampling/sampling_logp_difference/max"] < 1e-3
    assert rows[0]["async/max_staleness"] == 0
    assert max(row["async/max_staleness"] for row in rows) == 1
    assert rows[-1]["effective_sample_size"] < 1
    tasks = [(t.task.id, t.seed) for step in range(4) for t in played(tmp_path, step)]
    assert len(tasks) == 4 * 8 and len(set(tasks)) == 4 * 2


@pytest.mark.rotating(turns=(1,), of=2)
def test_a_server_that_dies_during_a_swap_ends_the_run(
    server: CompletionServer,  # noqa: F811
    trl_client: None,  # noqa: F811
    tmp_path: Path,
    tokenizer: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run ends with one error, and continues from its checkpoint."""
    options = asynchronous(server.url, save_strategy="steps", save_steps=1)
    trainer = make_trainer(tmp_path, tokenizer, **options)
    load, count = server.load, iter(range(100))

    def dying(weights: Any) -> None:
        if next(count) == 2:
            load(islice(weights, 3))
            raise ConnectionError("the server is gone")
        load(weights)

    monkeypatch.setattr(server, "load", dying)
    with pytest.raises(EngineError, match=r"did not take the new weights.*server is gone.*--resume"):
        trainer.train()
    trainer.rollout.close()
    monkeypatch.setattr(server, "load", load)
    again = make_trainer(tmp_path, tokenizer, **options)
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 4
    tasks = [(t.task.id, t.seed) for step in range(4) for t in played(tmp_path, step)]
    assert len(set(tasks)) == 4 * 2
