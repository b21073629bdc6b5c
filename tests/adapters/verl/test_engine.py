"""verl's servers as an engine of the suite."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgym_envs.errors import EngineError
from agentgym_envs.rollout import Sampling
from agentgym_verl.engine import VerlEngine

pytestmark = pytest.mark.slow

ASK = Sampling(7, stop_ids=(9, 8))


class Server:
    """Returns the given outputs, in order."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs, self.requests = list(outputs), list[dict[str, Any]]()

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        self.requests.append({"name": request_id, "ids": prompt_ids, **sampling_params})
        await asyncio.sleep(0.02)
        return self.outputs.pop(0)


def ask(engine: VerlEngine, *prompts: list[int]) -> list[Any]:
    async def all_of_them() -> list[Any]:
        return [await engine.generate(prompt, ASK) for prompt in prompts]

    return asyncio.run(all_of_them())


def test_answers_equal_the_sampled_tokens(stub: Any) -> None:
    server = Server(
        stub.TokenOutput(token_ids=[1, 8], log_probs=[-1.0, -2.0]),
        stub.TokenOutput(token_ids=[9, 1], log_probs=[-3.0]),
        stub.TokenOutput(token_ids=[5], stop_reason="aborted", log_probs=[]),
    )
    sampling = {"temperature": 0.5, "max_tokens": 99}
    engine = VerlEngine(server, sampling)
    found = ask(engine, [1, 2], [3], [4])
    assert [(g.ids, g.finish, g.logprobs) for g in found] == [
        ([1, 8], "stop", [-1.0, -2.0]),
        ([9, 1], "length", None),
        ([5], "length", None),
    ]
    assert len({request["name"] for request in server.requests}) == 1
    assert [request["ids"] for request in server.requests] == [[1, 2], [3], [4]]
    assert all(request["max_tokens"] == 7 and request["stop_token_ids"] == [9, 8] for request in server.requests)
    assert all(request["temperature"] == 0.5 for request in server.requests) and sampling["max_tokens"] == 99
    assert VerlEngine(server, {})._request_id != engine._request_id
    assert 0.05 < engine.seconds < 5 and engine.preempted is None and engine.routed_experts is None
    assert 0 <= engine.other_seconds < 5


def test_fields_for_the_trainer_are_filled(stub: Any) -> None:
    def output(least: int | None, most: int | None, preempted: int | None, **more: Any) -> Any:
        fields = {"min_global_steps": least, "max_global_steps": most, **more}
        return stub.TokenOutput(
            token_ids=[1], extra_fields=fields, num_preempted=preempted, routed_experts=more.get("spec_num_x")
        )

    engine = VerlEngine(
        Server(output(None, None, None), output(2, 3, 1, spec_num_x=4), output(5, 6, 2, spec_num_x=5)), {}
    )
    assert engine.versions is None
    ask(engine, [1], [1], [1])
    assert engine.versions == [2, 6]
    assert engine.fields == {"min_global_steps": 2, "max_global_steps": 6, "spec_num_x": 9}
    assert engine.preempted == 3
    assert engine.routed_experts == 5  # those of all tokens are in the last answer


def test_an_answer_without_tokens_is_an_engine_error(stub: Any) -> None:
    engine = VerlEngine(Server(stub.TokenOutput(token_ids=[], stop_reason="aborted")), {})
    with pytest.raises(EngineError, match=r"no token.*'aborted'"):
        ask(engine, [1])
