"""Evaluate the oracle on TextCraft with verifiers. It needs no model and no network.

    pip install 'agentgym-envs[verifiers]'
    python examples/verifiers_eval.py

A real model is one option of verifiers' command: vf-eval agentgym_verifiers -m MODEL --client.base-url URL --no-push
"""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import gymnasium as gym
import verifiers.v1 as vf

import agentgym_envs
from agentgym_envs.core import text_env

ENV, COUNT = "AgentGym/TextCraft-v0", 3


def make_plans() -> dict[str, list[str]]:
    """The oracle's actions by first observation."""
    env = gym.make(ENV)
    base, plans = text_env(env), dict[str, list[str]]()
    for task in base.tasks.sample(COUNT, split="train"):
        observation, _ = env.reset(seed=0, options={"task": task.id})
        plans[observation] = list(base.oracle())
    return plans


class Oracle(BaseHTTPRequestHandler):
    """A server of chat completions whose n-th answer is the n-th action of the plan."""

    plans = make_plans()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        """Answer with the next action."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [message["content"] for message in body["messages"] if message["role"] == "user"]
        message = {"role": "assistant", "content": self.plans[texts[0]][len(texts) - 1]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        about = {"id": "x", "object": "chat.completion", "created": 0, "model": "oracle"}
        raw = json.dumps({**about, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


async def evaluate(url: str) -> None:
    """Play each task once and print its reward."""
    env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "agentgym_verifiers", "count": COUNT}}))
    client = vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY")
    context = vf.ModelContext(model="oracle", client=client, sampling=vf.SamplingConfig())
    async with env.serving():
        for task in env.taskset:
            episode = await env.run_episode(task, context)
            (trace,) = episode.traces
            print(task.key, "reward", trace.reward, "turns", trace.num_turns, "stop", trace.stop_condition)


if __name__ == "__main__":
    print("agentgym-envs", agentgym_envs.__version__)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Oracle)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(evaluate(f"http://127.0.0.1:{server.server_address[1]}/v1"))
