"""The data set and configuration of a NeMo-Gym run on the tasks of an environment.

NeMo-Gym's `gymnasium_agent` plays the rows against `agentgym serve ENV --dialect nemo`. A row names the environment,
the task and the seed under `agentgym`, which the dialect reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.trajectory import Trajectory

KEY = "agentgym"
"""The key of a row under which the dialect finds environment, task and seed."""
AGENT, SERVER = "agentgym_gymnasium_agent", "agentgym"
_Json = dict[str, Any]


class NemoTask(NamedTuple):
    """A task of a data set: what a row says, and the instructions and tools of its environment."""

    env: str
    task: str
    seed: int
    options: Mapping[str, Any]
    instructions: str
    tools: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, trajectory: Trajectory) -> NemoTask:
        """The task of a recorded episode."""
        tools = trajectory.meta.get("tools") or ()
        options = dict(trajectory.env_kwargs)
        return cls(
            trajectory.env_id, trajectory.task.id, trajectory.seed, options, trajectory.instructions, tuple(tools)
        )

    def row(self) -> _Json:
        """The row of the data set."""
        parameters: _Json = {"input": []}
        if self.instructions:
            parameters["input"].append({"role": "system", "content": self.instructions})
        if self.tools:
            parameters["tools"] = [_flat(tool) for tool in self.tools]
            parameters["parallel_tool_calls"] = False
        chosen: _Json = {"env": self.env, "task": self.task, "seed": self.seed}
        if self.options:
            chosen["options"] = dict(self.options)
        reference = {"type": "responses_api_agents", "name": AGENT}
        return {"responses_create_params": parameters, KEY: chosen, "agent_ref": reference}


def distinct(tasks: Iterable[NemoTask]) -> Iterator[NemoTask]:
    """The tasks, each environment, task and seed once."""
    seen = set[str]()
    for task in tasks:
        key = json.dumps([task.env, task.task, task.seed, dict(task.options)], sort_keys=True, default=str)
        if key not in seen:
            seen.add(key)
            yield task


def config(rows_file: str, host: str, port: int, max_turns: int) -> str:
    """The YAML of a run: our server, NeMo-Gym's agent for it, and the data set. It leaves the model to another file."""
    # A server without an entrypoint is unknown to the check of references, so ours has one, which waits.
    return f"""\
# agentgym serve ENV --dialect nemo --host {host} --port {port}
# gym env start --config {SERVER}.yaml --config MODEL.yaml, in this folder
{SERVER}:
  resources_servers:
    {SERVER}:
      entrypoint: app.py
      domain: games
      host: {json.dumps(host)}
      port: {port}
{AGENT}:
  responses_api_agents:
    gymnasium_agent:
      entrypoint: app.py
      resources_server:
        type: resources_servers
        name: {SERVER}
      model_server:
        type: responses_api_models
        name: policy_model
      max_steps: {max_turns}
      datasets:
      - name: train
        type: example
        jsonl_fpath: {json.dumps(rows_file)}
{AGENT}_environment_server:
  environment_servers:
    legacy_agent:
      entrypoint: app.py
      agent_server:
        type: responses_api_agents
        name: {AGENT}
"""


WAITING_APP = f'''\
"""Stands for the server that `agentgym serve --dialect nemo` runs: NeMo-Gym starts this file, and calls that server."""

import signal
import sys

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("the environments of {SERVER}.yaml are served by agentgym serve --dialect nemo")
signal.pause()
'''
WAITING_REQUIREMENTS = "# The entry point needs no packages.\n"


def _flat(tool: Mapping[str, Any]) -> _Json:
    """A tool in the form of the Responses API, which has no inner `function`."""
    function = tool["function"]
    return {
        "type": "function",
        "strict": False,
        **{name: function[name] for name in ("name", "description", "parameters")},
    }
