"""verl's own agent-loop worker without Ray: only the generating servers and the queue of results are replaced.

Import it in fixtures only (`stub`), since it imports verl.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import torch
from omegaconf import OmegaConf, open_dict
from verl.experimental.agent_loop import AgentLoopWorker
from verl.experimental.agent_loop.agent_loop import DictConfigWrap
from verl.trainer.ppo.v1 import agent_loop_tq
from verl.utils import tensordict_utils
from verl.utils.dataset.rl_dataset import collate_fn
from verl.workers.rollout.replica import TokenOutput

from agentgym_verl import plugin
from agentgym_verl.episode_runner import EpisodeRunner, runner_of
from agentgym_verl.loop import GymAgentLoop
from agentgym_verl.rows import TaskRow
from tests import toy_envs  # noqa: F401  (registers the ids)

__all__ = [
    "GymAgentLoop",
    "Queue",
    "StubServer",
    "TokenOutput",
    "Worker",
    "configured",
    "count",
    "logprob",
    "plugin",
    "runner_of",
]

Answer = Sequence[int] | Exception


@dataclass(frozen=True)
class ServerRequest:
    """A request to a server."""

    name: str
    prompt_ids: list[int]
    sampling: dict[str, Any]

    @property
    def end(self) -> int:
        """The max length of the sequence."""
        return len(self.prompt_ids) + int(self.sampling["max_tokens"])


class StubServer:
    """Returns scripted answers, like verl's `LLMServerClient`.

    `scripts` has the answers of one episode after the other, in the order of their first requests; the last script is
    used for all further episodes. The order of several episodes in one group depends on their environments' threads:
    `answer_in_order` fixes it.
    """

    def __init__(self, *scripts: Sequence[Answer], seconds: float = 0.0, logprobs: bool = True) -> None:
        self._scripts = chain(scripts, repeat(scripts[-1]))
        self._seconds, self._logprobs = seconds, logprobs
        self._open: dict[str, list[Answer]] = {}
        self.requests: list[ServerRequest] = []
        self.version = 0
        """The version of the weights."""
        self.in_flight = self.most_in_flight = 0
        self.extra: dict[str, Any] = {}
        self.preempted: int | None = None

    def name(self, *request_ids: str) -> None:
        """Give the next scripts to these requests, whichever comes first."""
        self._open |= {name: list(next(self._scripts)) for name in request_ids}

    async def generate(
        self,
        request_id: str,
        *,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        image_data: list[Any] | None = None,
        video_data: list[Any] | None = None,
        audio_data: list[Any] | None = None,
        mm_processor_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> TokenOutput:
        self.requests.append(ServerRequest(request_id, list(prompt_ids), dict(sampling_params)))
        script = self._open.setdefault(request_id, list(next(self._scripts)) if request_id not in self._open else [])
        answer = script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self._seconds)
        self.in_flight -= 1
        return self._output(list(answer)[: sampling_params["max_tokens"]], len(prompt_ids))

    def _output(self, ids: list[int], index: int) -> TokenOutput:
        versions = dict.fromkeys(("global_steps", "min_global_steps", "max_global_steps"), self.version)
        return TokenOutput(
            token_ids=ids,
            log_probs=[logprob(index + number) for number in range(len(ids))] if self._logprobs else None,
            stop_reason="completed",
            num_preempted=self.preempted,
            extra_fields={**versions, **self.extra},
        )


def logprob(index: int) -> float:
    """The log-probability of `StubServer` for the token at an index of the whole sequence, unique per index."""
    return -(index + 1) / 4096


@dataclass
class Queue:
    """Receives what verl's worker puts into the TransferQueue."""

    status: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    tags: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def async_kv_put(self, key: str, partition_id: str, tag: Mapping[str, Any]) -> None:
        self.status.setdefault(key, []).append(tag["status"])

    async def async_kv_batch_put(self, keys: list[str], fields: Any, tags: list[Any], partition_id: str) -> None:
        for number, key in enumerate(keys):
            row = {name: fields[name][number] for name in fields.keys()}  # noqa: SIM118 (a TensorDict iterates over rows)
            self.rows[key] = {name: getattr(value, "data", value) if not torch.is_tensor(value) else value
                              for name, value in row.items()}  # fmt: skip
            self.tags[key] = {**tags[number], "partition": partition_id}

    def metrics(self, key: str) -> dict[str, float]:
        found: dict[str, float] = self.rows[key]["extra_fields"]["reward_extra_info"]
        return found


_Remote: Any = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class


class Worker(_Remote):  # type: ignore[misc]
    """verl's worker with a `StubServer`; call it with rows to play their groups."""

    def __init__(self, config: Any, server: StubServer) -> None:
        AgentLoopWorker.__init__(self, config, server)  # without the start of the TransferQueue, which needs Ray
        self.background_tasks: set[asyncio.Task[None]] = set()
        self.server = server

    def like(self, config: Any, server: StubServer) -> Worker:
        """A worker for another configuration of the same model, made faster."""
        other = copy(self)
        other.config, other.background_tasks = config, set()
        other.server = other.llm_client = server
        return other

    def play(self, rows: Iterable[TaskRow], step: int = 1, *, validate: bool = False) -> Queue:
        """Play every row's group, as in training step `step`; the groups are named 0, 1, ..."""
        queue, before = Queue(), agent_loop_tq.tq
        agent_loop_tq.tq = queue
        try:
            asyncio.run(self._play(_batch(rows, step, validate)))
        finally:
            agent_loop_tq.tq = before
        return queue

    async def run(self, row: TaskRow, step: int | None = 1, **more: Any) -> Any:
        """Run the agent loop of one episode, and raise its errors. `more` are further columns."""
        columns = {**row.as_columns(0), "uid": "0", **({} if step is None else {"global_steps": step}), **more}
        arguments = {name: DictConfigWrap(c) for name, c in _configs(self.config).items()}
        loop = GymAgentLoop(
            server_manager=self.server,
            tokenizer=self.tokenizer,
            processor=None,
            dataset_cls=self.dataset_cls,
            hf_model_type=self.hf_model_type,
            **arguments,
        )
        return await loop.run({"temperature": 1.0, "logprobs": True}, **columns)

    @property
    def runner(self) -> EpisodeRunner:
        return runner_of(self.config, self.tokenizer)

    async def _play(self, batch: Any) -> None:
        await self.generate_sequences(batch)
        await asyncio.gather(*self.background_tasks)


def _configs(config: Any) -> dict[str, Any]:
    return {"trainer_config": config, "data_config": config.data}


def _batch(rows: Iterable[TaskRow], step: int, validate: bool) -> Any:
    """The batch that the trainer makes of the dataset's rows."""
    samples = [{**row.as_columns(number), "uid": str(number), "index": number} for number, row in enumerate(rows)]
    for sample in samples:
        sample["raw_prompt"] = sample.pop("prompt")
    batch = tensordict_utils.get_tensordict(collate_fn(samples))
    tensordict_utils.assign_non_tensor_data(batch, "global_steps", step)
    if validate:
        tensordict_utils.assign_non_tensor_data(batch, "validate", True)
    return batch


def configured(base: Any, model: Any, agentgym: Mapping[str, Any] | None = None, **rollout: Any) -> Any:
    """verl's configuration for the model in a directory, with a block `agentgym` and settings of the rollout."""
    config = deepcopy(base)
    with open_dict(config):
        if agentgym is not None:
            config.agentgym = dict(agentgym)
        config.actor_rollout_ref.model.path = str(model)
        settings = {"name": "vllm", "n": 1, "calculate_log_probs": True, "prompt_length": 512, "response_length": 512}
        config.actor_rollout_ref.rollout = OmegaConf.merge(config.actor_rollout_ref.rollout, {**settings, **rollout})
    return config


def count(task: str = "count/3", env: str = "Toy/Count-v0", **more: Any) -> TaskRow:
    """A row of a toy environment."""
    return TaskRow(env, task, **{"seed": 5, "group": "small", **more})
