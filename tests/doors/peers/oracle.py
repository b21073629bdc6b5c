"""The oracle in the place of a model: behind an OpenAI-compatible server, or as a function of the conversation.

It knows the plan for each beginning of a conversation; its n-th answer is the n-th action.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import gymnasium as gym

import agentgym_envs  # noqa: F401 (registers the environments)
from agentgym_envs.core import text_env
from agentgym_envs.grammar import find_call
from agentgym_envs.multiagent.joint import JointEnv

Plans = dict[tuple[str, str], list[str]]
"""The answers of a conversation, by its system prompt and first observation."""


def plans(env_id: str, count: int, *, split: str = "train", seed: int = 0, **env_args: Any) -> Plans:
    """The oracle's answers for `count` tasks, of each agent if the environment is a team."""
    env = gym.make(env_id, split=split, **env_args)
    base, found = text_env(env), Plans()
    for task in base.tasks.sample(count, split=split, seed=seed):
        observation, _ = env.reset(seed=seed, options={"task": task.id})
        commands = list(base.oracle())
        if isinstance(base, JointEnv):
            found |= _team_plans(base, observation, commands)
        else:
            found[base.instructions, observation] = [base.grammar.format(command) for command in commands]
    env.close()
    return found


def _team_plans(env: JointEnv, observation: str, commands: Sequence[str]) -> Plans:
    """The texts of each agent while the team carries out the joint commands."""
    first, texts = dict[str, str](), dict[str, list[str]]()
    for command in commands:
        seen = json.loads(observation)
        for agent, text in json.loads(command).items():
            first.setdefault(agent, seen[agent])
            texts.setdefault(agent, []).append(text)
        observation, *_ = env.step(command)
    return {(env.instructions_for(agent), first[agent]): texts[agent] for agent in texts}


def next_action(table: Plans, messages: Sequence[tuple[str, str]]) -> str:
    """The next answer of a conversation of roles and texts; "look" where there is no plan."""
    system = "".join(text for role, text in messages if role == "system")
    first = next(text for role, text in messages if role == "user")
    plan = table.get((system, first), [])
    number = sum(role == "assistant" for role, _ in messages)
    return plan[number] if number < len(plan) else "look"


@contextmanager
def oracle_server(table: Plans) -> Iterator[str]:
    """Serve OpenAI's chat completions; yields the base URL. Tool calls are sent as such if the request has tools."""

    def answer(body: Mapping[str, Any]) -> dict[str, Any]:
        message = _message(table, body)
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        about = {"id": "x", "object": "chat.completion", "created": 0, "model": body["model"]}
        return {**about, "choices": [choice], "usage": usage}

    with json_server(answer) as url:
        yield url


@contextmanager
def json_server(answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Iterator[str]:
    """Serve the answer to each POST, and a list of one model to each GET; yields the base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "oracle", "object": "model", "max_model_len": 65536}]})

        def do_POST(self) -> None:
            self._send(answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def _send(self, value: Mapping[str, Any]) -> None:
            raw = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _message(table: Plans, body: Mapping[str, Any]) -> dict[str, Any]:
    said = next_action(table, [(each["role"], _text(each.get("content"))) for each in body["messages"]])
    call = find_call(said) if body.get("tools") else None
    if call is None:
        return {"role": "assistant", "content": said}
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
