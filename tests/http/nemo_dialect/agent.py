"""The loop of NeMo-Gym's `gymnasium_agent`, written from its description: reset, model and step in turns, close.

It sends whole rows, keeps cookies, numbers its steps if the reset allows it, appends outputs of tools and observations
to the conversation, sums rewards, and raises for every status of an error, which fails the rollout.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx

Output = list[dict[str, Any]]
Model = Callable[[list[dict[str, Any]]], Output]


class Rollout(NamedTuple):
    """A finished rollout, with the conversation after the row's input."""

    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    conversation: list[dict[str, Any]]


def says(text: str) -> Output:
    """A model's output with one message."""
    return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]


def calls(name: str, arguments: str, *, call_id: str = "c1") -> dict[str, Any]:
    """A tool call of a model's output."""
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}


def run(http: httpx.Client, row: dict[str, Any], model: Model, *, max_steps: int = 30, base: str = "") -> Rollout:
    """Play a row. Raises httpx.HTTPStatusError if the rollout fails."""
    cookies: dict[str, str] = {}

    def post(path: str, body: dict[str, Any]) -> Any:
        http.cookies.clear()
        reply = http.post(f"{base}/{path}", json=body, headers={"Cookie": _header(cookies)} if cookies else {})
        reply.raise_for_status()
        cookies.update(reply.cookies)
        return reply.json()

    began = post("reset", row)
    conversation = list(row["responses_create_params"]["input"])
    start, total = len(conversation), 0.0
    if began["observation"]:
        conversation.append({"role": "user", "content": began["observation"]})
    state: dict[str, Any] = {"terminated": False, "truncated": True, "info": {}}
    try:
        for _ in range(max_steps):
            output = model(conversation)
            conversation += output
            body = {**row, "response": {"output": output}}
            if began["info"].get("supports_step_idempotency"):
                body["_ng_step_request_id"] = secrets.token_hex(16)
            state = post("step", body)
            total += state["reward"]
            if state["terminated"] or state["truncated"]:
                break
            conversation += [{"type": "function_call_output", **each} for each in state["info"].get("tool_outputs", [])]
            if state["observation"]:
                conversation.append({"role": "user", "content": state["observation"]})
        else:
            state = {**state, "truncated": True}
    finally:
        if began["info"].get("supports_explicit_close"):
            post("close", {})
    return Rollout(total, state["terminated"], state["truncated"], state["info"], conversation[start:])


def _header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())
