"""The agent loop in verl's own worker: its requests to the servers, and its output in the queue."""

from __future__ import annotations

import asyncio
import inspect
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import EngineError, EnvError, UsageError
from agentgym_envs.grammar import ToolCall
from agentgym_envs.trajectory import read_trajectories
from tests.rollout.families import FAMILIES, UP

pytestmark = pytest.mark.slow

END = 259
UPS = [[UP, END]] * 9
NOISE = [33] * 99
"""An answer without an end."""


def ids(row: dict[str, Any], *names: str) -> list[int]:
    found = [token for name in names or ("responses",) for token in row[name].tolist()]
    return found


def spans(row: dict[str, Any]) -> list[tuple[int, int]]:
    """Begin and end of every answer."""
    mask = [0, *row["response_mask"].tolist(), 0]
    edges = [index for index, (before, after) in enumerate(pairwise(mask)) if before != after]
    return list(zip(edges[::2], edges[1::2], strict=True))


def test_the_stub_has_verls_signatures(stub: Any) -> None:
    from verl.workers.rollout.llm_server import LLMServerClient

    theirs = inspect.signature(inspect.unwrap(LLMServerClient.generate)).parameters
    ours = inspect.signature(stub.StubServer.generate).parameters
    assert [(p.name, p.kind) for p in ours.values()] == [(p.name, p.kind) for p in theirs.values()]


def test_an_episode_equals_the_hand_computed_row(make_worker: Any, stub: Any) -> None:
    """Every number that verl trains on."""
    worker = make_worker(UPS, agentgym={"max_turns": 2})
    queue = worker.play([stub.count()], step=4)
    assert queue.status == {"0": ["running", "finished"]}
    row, tag = queue.rows["0_0_0"], queue.tags["0_0_0"]
    between = worker.runner.codec.encode_observation("1")
    prompt, gap = ids(row, "prompts"), [0] * len(between)
    assert ids(row) == [UP, END, *between, UP, END]
    assert row["response_mask"].tolist() == row["loss_mask"].tolist() == [1, 1, *gap, 1, 1]
    assert row["rm_scores"].tolist() == pytest.approx([0, 1 / 3, *gap, 0, 1 / 3])
    after = [stub.logprob(len(prompt) + index) for index in range(len(between) + 4)]
    assert row["rollout_log_probs"].tolist() == [*after[:2], *map(float, gap), *after[-2:]]
    assert ids(row, "input_ids") == ids(row, "prompts", "responses")
    assert row["position_ids"].tolist() == list(range(len(prompt) + len(after)))
    assert row["num_turns"] == 4 and row["extra_fields"]["turn_scores"] == pytest.approx([1 / 3, 1 / 3])
    assert (tag["partition"], tag["status"], tag["global_steps"]) == ("train", "success", 4)
    assert (tag["prompt_len"], tag["response_len"]) == (len(prompt), len(after))
    assert queue.metrics("0_0_0") == pytest.approx(
        {
            "success": 0.0,
            "score": 2 / 3,
            "turns": 2.0,
            "max_turns": 2.0,
            "invalid_actions": 0.0,
            "truncated_answers": 0.0,
            "success/small": 0.0,
            "score/small": 2 / 3,
        }
    )


def test_results_of_native_tools_are_masked(make_worker: Any, stub: Any) -> None:
    call = str(ToolCall("", "act", {"action": "up"}))
    answer = [*FAMILIES["qwen2.5"].tokenizer().encode(call), END]
    worker = make_worker([answer] * 9, agentgym={"max_turns": 2}, response_length=400)
    queue = worker.play([stub.count(env_kwargs={"grammar": "tools"})], step=1)
    row, decode = queue.rows["0_0_0"], worker.runner.codec.tokenizer.decode
    shown = decode([token for token, mask in zip(ids(row), row["response_mask"].tolist(), strict=True) if not mask])
    assert shown == "\n<|im_start|>user\n<tool_response>\n1\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    assert ids(row)[: len(answer)] == ids(row)[-len(answer) :] == answer
    assert '"name": "act"' in decode(ids(row, "prompts")) and queue.metrics("0_0_0")["invalid_actions"] == 0


def test_requests_append_ids_and_use_the_sampling_of_verl(make_worker: Any, stub: Any) -> None:
    """Ids are only appended, an episode has one request id, and sampling is verl's with our limits."""
    worker = make_worker(UPS, n=2, temperature=0.7, top_p=0.9, top_k=5, response_length=80)
    queue = worker.play([stub.count(), stub.count(seed=6)])
    by_name: dict[str, list[Any]] = {}
    for request in worker.server.requests:
        by_name.setdefault(request.name, []).append(request)
        assert request.sampling == {
            "temperature": 0.7,
            "top_p": 0.9,
            "top_k": 5,
            "repetition_penalty": 1.0,
            "logprobs": True,
            "max_tokens": request.sampling["max_tokens"],
            "stop_token_ids": sorted(worker.runner.codec.stop_ids),
        }
    whole = sorted(ids(row, "input_ids") for row in queue.rows.values())
    assert len(by_name) == len(whole) == 4 and whole[0] == whole[1] != whole[2] == whole[3]
    for requests_of_one in by_name.values():
        assert [len(requests_of_one)] == [3]
        full = next(w for w in whole if w[: len(requests_of_one[0].prompt_ids)] == requests_of_one[0].prompt_ids)
        assert all(request.prompt_ids == full[: len(request.prompt_ids)] for request in requests_of_one)


def tiny() -> Any:
    from agentgym_trl.tiny import make_tokenizer  # takes seconds

    return make_tokenizer(["Count to 3. Lucky number: 12", "up Unknown command"] * 20)


@pytest.mark.parametrize("family", ["qwen2.5", "qwen3-training", "llama-3-training", "smollm2", "tiny"])
def test_the_ids_are_those_of_the_rendered_conversation(
    family: str, make_worker: Any, stub: Any, tmp_path: Path
) -> None:
    tokenizer = tiny() if family == "tiny" else FAMILIES[family].tokenizer()
    thought = "" if family == "tiny" else FAMILIES[family].thought
    worker = make_worker([[0]], agentgym={"trajectories": str(tmp_path), "max_turns": 4})
    worker.hf_model_type = None  # verl has a class per family, which reads its special tokens
    worker.tokenizer, codec = tokenizer, stub.runner_of(worker.config, tokenizer).codec
    script = [codec.encode_answer(thought + text) for text in ("up", "down the hill", "é", "up")]
    worker.server = worker.llm_client = stub.StubServer(script)
    (row,) = worker.play([stub.count()]).rows.values()
    (path,) = tmp_path.glob("step-0*.jsonl")
    (trajectory,) = read_trajectories(path)
    assert [ids(row)[begin:end] for begin, end in spans(row)] == script
    rendered = tokenizer.apply_chat_template(trajectory.messages(), tokenize=False)
    full = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert full[: len(row["input_ids"])] == ids(row, "input_ids")
    assert tokenizer.decode(full[len(row["input_ids"]) :]).strip() == ""  # the template continues to the next message


@pytest.mark.parametrize("reward", ["per_turn", "final"])
def test_rewards_are_on_the_last_token_of_an_answer(reward: str, make_worker: Any, stub: Any) -> None:
    import torch

    worker = make_worker([[UP, END], [33, END], [UP, END], [UP, END]], agentgym={"reward": reward})
    (row,) = worker.play([stub.count()]).rows.values()
    ends = [end - 1 for _, end in spans(row)]
    values = [1 / 3, 0, 1 / 3, 1 / 3] if reward == "per_turn" else [0, 0, 0, 1.0]
    expected = torch.zeros(len(row["responses"]))
    expected[ends] = torch.tensor(values)
    torch.testing.assert_close(row["rm_scores"], expected)
    assert row["response_mask"][-1] == 1 and row["rm_scores"].sum() == pytest.approx(1.0)


def test_a_truncated_answer_gets_its_end_token_outside_the_mask(make_worker: Any, stub: Any) -> None:
    worker = make_worker([[UP, END], NOISE, [UP, 257], [UP, END]], agentgym={"max_turn_tokens": 3})
    queue = worker.play([stub.count()])
    (row,) = queue.rows.values()
    (_, first), (begin, end), (_, odd), _ = spans(row)
    assert ids(row)[begin:end] == [33, 33, 33] and ids(row)[end] == END
    assert row["response_mask"][end] == 0 and ids(row)[first] != END
    assert ids(row)[odd - 1 : odd + 1] == [257, END]  # a token other than the template's ended it
    assert queue.metrics("0_0_0")["truncated_answers"] == pytest.approx(2 / 4)
    assert queue.metrics("0_0_0")["invalid_actions"] == pytest.approx(1 / 4)


@pytest.mark.parametrize("response_length", [1, 2, 21, 22, 23, 60])
def test_no_limit_is_exceeded(response_length: int, make_worker: Any, stub: Any) -> None:
    """Neither by requests, which a server may reject."""
    prompt = len(ids(make_worker(UPS).play([stub.count()]).rows["0_0_0"], "prompts"))
    for context in (prompt - 1, prompt, prompt + 1, prompt + 23, prompt + 40, 400):
        settings = {"max_model_len": context, "response_length": response_length}
        worker = make_worker([[UP, END], NOISE, [UP, END], NOISE], agentgym={"max_turn_tokens": 4}, **settings)
        queue = worker.play([stub.count()])
        for request in worker.server.requests:
            assert request.end <= min(context, prompt + response_length)
            assert 1 <= request.sampling["max_tokens"] <= 4
        if context <= prompt:
            assert not worker.server.requests and queue.status["0"][-1] == "failure"
        else:
            (row,) = queue.rows.values()
            assert len(row["responses"]) <= min(response_length, context - prompt)
            assert row["response_mask"][-1] == 1
        room = min(response_length, context - prompt)
        assert (
            len(worker.server.requests) == (0 if room < 1 else 1 if room < 24 else 2 if room < 60 else 3) or room > 40
        )


@pytest.mark.parametrize("name, spare", [("vllm", 0), ("sglang", 1)])
def test_the_whole_context_of_the_server_is_used(name: str, spare: int, make_worker: Any, stub: Any) -> None:
    """verl reserves one token of the context for SGLang, which returns nothing for a request of the last one."""
    worker = make_worker([NOISE], name=name, max_model_len=140, agentgym={"max_turns": 1})
    worker.play([stub.count()])
    assert worker.server.requests[0].end == 140 - spare
    for longer in (None, 99):  # the trainer may not have space for a sequence longer than both
        settings = {"prompt_length": 9, "response_length": 8, "max_model_len": longer}
        assert make_worker(UPS, name=name, **settings).runner.limits.max_context == 17 - spare


def turns(queue: Any, index: int = 0) -> float:
    found: float = queue.metrics(f"{index}_0_0")["turns"]
    assert queue.metrics(f"{index}_0_0")["max_turns"] == found
    return found


def test_max_turns_follow_verls_steps_which_count_from_1(make_worker: Any, stub: Any) -> None:
    settings = {"max_turns": "2,3,5", "every": 3, "eval_max_turns": 7}
    worker, row = make_worker(UPS, agentgym=settings), stub.count("count/9")
    assert [turns(worker.play([row], step)) for step in (1, 2, 3, 4, 6, 7, 99)] == [2, 2, 2, 3, 3, 5, 5]
    assert turns(make_worker(UPS, agentgym=settings).play([row], 4)) == 3  # a run resumed there
    evaluation = stub.count("count/9", evaluation=True)
    queues = [worker.play([evaluation], step, validate=True) for step in (0, 1, 4)]
    assert [turns(queue) for queue in queues] == [7, 7, 7]
    assert queues[0].tags["0_0_0"]["partition"] == "val"
    del settings["eval_max_turns"]
    worker = make_worker(UPS, agentgym=settings)
    assert [turns(worker.play([evaluation], step, validate=True)) for step in (0, 3, 4)] == [2, 2, 3]


def test_every_environment_has_its_own_schedule(make_worker: Any, stub: Any) -> None:
    worker = make_worker(UPS, agentgym={"max_turns": "Count=1;Toy/Tricky-v0=2,4", "every": 1})
    queue = worker.play([stub.count(), stub.count("count/9", env="Toy/Tricky-v0")], step=2)
    assert [turns(queue, 0), turns(queue, 1)] == [1, 4]
    assert [queue.rows[f"{index}_0_0"]["data_source"] for index in (0, 1)] == ["Count", "Tricky"]


def test_a_missing_step_is_refused(make_worker: Any, stub: Any) -> None:
    """verl's old trainer does not pass it, and every episode would have the first number of turns."""
    with pytest.raises(UsageError, match="V1"):
        asyncio.run(make_worker(UPS).run(stub.count(), step=None))


def test_caller_errors_propagate(make_worker: Any, stub: Any) -> None:
    with pytest.raises(UsageError, match=r"agentgym verl data.*env_id"):
        asyncio.run(make_worker(UPS).run(stub.count(), extra_info={"index": 0}))
    with pytest.raises(UsageError, match=r"no setting agentgym\.round;"):
        asyncio.run(make_worker(UPS, agentgym={"round": 2}).run(stub.count()))
    with pytest.raises(UsageError, match="name them all"):
        asyncio.run(make_worker(UPS, agentgym={"max_turns": "BabyAI=2"}).run(stub.count()))
    with pytest.raises(UsageError, match="count/77"):
        asyncio.run(make_worker(UPS).run(stub.count("count/77")))


def test_a_failing_server_is_an_engine_error(make_worker: Any, stub: Any) -> None:
    broken: Any = RuntimeError("no GPU left")
    with pytest.raises(RuntimeError, match="no GPU left"):
        asyncio.run(make_worker([[UP, END], broken]).run(stub.count()))
    with pytest.raises(EngineError, match=r"no token.*completed"):
        asyncio.run(make_worker([[]]).run(stub.count()))
    worker = make_worker(UPS, [broken], n=2)
    queue = worker.play([stub.count()])
    assert queue.status["0"][-1] == "failure" and len(worker.server.requests) == 4


def crash(worker: Any) -> list[list[int]]:
    return [[UP, END], worker.runner.codec.encode_answer("crash")]


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_a_failed_episode_is_replayed(retries: int, make_worker: Any, stub: Any) -> None:
    worker = make_worker(UPS, agentgym={"env_retries": retries})
    worker.server = worker.llm_client = stub.StubServer(*[crash(worker)] * retries, UPS)
    queue = worker.play([stub.count()])
    assert queue.status["0"][-1] == "finished" and queue.metrics("0_0_0")["score"] == pytest.approx(1)
    assert len(worker.server.requests) == 2 * retries + 3
    worker.server = worker.llm_client = stub.StubServer(*[crash(worker)] * (retries + 1), UPS)
    queue = worker.play([stub.count()])
    assert queue.status["0"][-1] == "failure" and not queue.rows
    assert len(worker.server.requests) == 2 * (retries + 1)


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_group_continues_with_its_surviving_episodes(lost: int, make_worker: Any, stub: Any) -> None:
    """verl pads missing episodes, which then enter no mean; it must drop a group without a survivor."""
    worker = make_worker(UPS, n=3, agentgym={"env_retries": 0})
    for now in (lost, 1) if lost == 3 else (lost,):  # a failed group is forgotten
        worker.server = worker.llm_client = stub.StubServer(*[crash(worker)] * now, UPS)
        queue = worker.play([stub.count()])
        assert len(queue.rows) == 3 - now
        assert queue.status["0"][-1] == ("finished" if now < 3 else "failure")


def test_an_episode_without_output_raises_nothing(make_worker: Any, stub: Any) -> None:
    worker = make_worker(UPS, n=2, agentgym={"env_retries": 0})
    assert asyncio.run(worker.run(stub.count("count/0"), uid="a")) == []
    with pytest.raises(EnvError, match="no episode of count/0"):
        asyncio.run(worker.run(stub.count("count/0"), uid="a"))
    assert asyncio.run(worker.run(stub.count("count/0"), uid="b")) == []
    assert not worker.server.requests


def test_a_validation_group_has_its_own_size(make_worker: Any, stub: Any) -> None:
    worker = make_worker(UPS, n=4, agentgym={"env_retries": 0})
    queue = worker.play([stub.count("count/0", evaluation=True)], validate=True)
    assert queue.status["0"][-1] == "failure" and not queue.rows


def test_verl_keeps_the_versions_of_the_weights(make_worker: Any, stub: Any, tmp_path: Path) -> None:
    """Of the first and the last answer: verl drops episodes that span too many. The record has them as well."""

    class Moving(stub.StubServer):  # type: ignore[misc]
        async def generate(self, *args: Any, **kwargs: Any) -> Any:
            self.version += 3
            self.preempted = self.version
            self.extra = {"spec_num_draft_tokens": self.version, "num_cached_tokens": None}
            return await super().generate(*args, **kwargs)

    worker = make_worker(server=Moving(UPS), agentgym={"trajectories": str(tmp_path)})
    queue = worker.play([stub.count()])
    worker.runner.close()
    (recorded,) = [record for path in tmp_path.glob("*.jsonl") for record in read_trajectories(path)]
    assert (recorded.meta["uid"], recorded.meta["versions"]) == ("0_0", [3, 9])
    assert (queue.tags["0_0_0"]["min_global_steps"], queue.tags["0_0_0"]["max_global_steps"]) == (3, 9)
    fields = queue.rows["0_0_0"]["extra_fields"]
    assert fields["spec_num_draft_tokens"] == 3 + 6 + 9 and "num_cached_tokens" not in fields
    assert queue.rows["0_0_0"]["metrics"]["num_preempted"] == 3 + 6 + 9


def test_log_probs_are_left_out_if_not_requested(make_worker: Any, stub: Any) -> None:
    worker = make_worker(server=stub.StubServer(UPS, logprobs=False), calculate_log_probs=False)
    (row,) = worker.play([stub.count()]).rows.values()
    assert "rollout_log_probs" not in row and worker.server.requests[0].sampling["logprobs"] is False
    assert "num_preempted" not in row["metrics"]


def test_times_of_server_and_environment_are_separate(make_worker: Any, stub: Any) -> None:
    worker = make_worker(server=stub.StubServer(UPS, seconds=0.3), agentgym={"env_concurrency": 1})
    queue = worker.play([stub.count(), stub.count(seed=1)])
    for row in queue.rows.values():
        assert row["metrics"]["generate_sequences"] >= 0.9
        assert 0 < row["metrics"]["tool_calls"] < 0.9  # waiting for a slot is not the environment's time


def test_verls_validation_metrics_are_per_environment_and_group(make_worker: Any, stub: Any) -> None:
    from verl.trainer.ppo.metric_utils import process_validation_metrics

    worker = make_worker(UPS, agentgym={"max_turns": 3})
    rows = [
        stub.count("count/2"),
        stub.count("count/9", group="large"),
        stub.count("count/10", group="large"),
        stub.count("count/3", env="Toy/Tricky-v0"),
    ]
    queue = worker.play([stub.count(r.task, r.env_id, group=r.group, evaluation=True) for r in rows], validate=True)
    metrics = [queue.metrics(f"{index}_0_0") for index in range(4)]
    infos = {name: [one.get(name) for one in metrics] for name in {name for one in metrics for name in one}}
    sources = [queue.rows[f"{index}_0_0"]["data_source"] for index in range(4)]
    found = process_validation_metrics(sources, list("0123"), infos)
    means = {(env, name): value["mean@1"] for env, of in found.items() for name, value in of.items() if value}
    assert means[("Count", "success")] == pytest.approx(1 / 3)
    assert means[("Count", "success/small")] == 1 and means[("Count", "success/large")] == 0
    assert means[("Count", "score/large")] == pytest.approx((3 / 9 + 3 / 10) / 2)
    assert means[("Tricky", "success/small")] == 1 and ("Tricky", "success/large") not in means
    assert means[("Tricky", "turns")] == 3 and means[("Count", "turns")] == pytest.approx(8 / 3)


def test_making_the_loop_is_cheap(make_worker: Any, stub: Any) -> None:
    """verl makes one per episode, each with a token builder that we do not need."""
    import time

    from verl.experimental.agent_loop.agent_loop import DictConfigWrap

    worker = make_worker(UPS)

    async def make() -> float:
        began = time.process_time()
        for _ in range(50):
            stub.GymAgentLoop(
                trainer_config=DictConfigWrap(worker.config),
                server_manager=worker.server,
                tokenizer=worker.tokenizer,
                processor=None,
                dataset_cls=worker.dataset_cls,
                data_config=DictConfigWrap(worker.config.data),
                hf_model_type="qwen2",
            )
        return (time.process_time() - began) / 50

    assert asyncio.run(make()) < 0.002


def test_routed_experts_are_passed_with_the_tokens(make_worker: Any, stub: Any) -> None:
    import torch

    class Routing(stub.StubServer):  # type: ignore[misc]
        async def generate(self, request_id: str, **kwargs: Any) -> Any:
            output = await super().generate(request_id, **kwargs)
            seen = len(kwargs["prompt_ids"]) + len(output.token_ids) - 1
            output.routed_experts = torch.full((seen, 2, 1), len(self.requests)).numpy()
            return output

    (row,) = make_worker(server=Routing(UPS)).play([stub.count()]).rows.values()
    assert row["routed_experts"].shape == (len(row["input_ids"]), 2, 1)
    assert row["routed_experts"][0, 0, 0] == 3 and row["routed_experts"][-1, 0, 0] == 0


def test_verl_finds_the_loop(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.plugin.check_registered()
    monkeypatch.setenv("VERL_USE_EXTERNAL_PLUGINS", "mine, other")
    with pytest.raises(UsageError, match="mine, other stops verl from loading"):
        stub.plugin.check_registered()
    monkeypatch.setenv("VERL_USE_EXTERNAL_PLUGINS", "mine, agentgym")
    stub.plugin.check_registered()
    monkeypatch.setitem(stub.plugin._agent_loop_registry, "agentgym", {"_target_": "theirs.Loop"})
    with pytest.raises(UsageError, match=r"'theirs\.Loop' as the agent loop 'agentgym', not agentgym_verl"):
        stub.plugin.check_registered()
