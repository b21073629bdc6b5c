"""The harness: one request to the model per turn, in this process."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

import httpx
import verifiers.v1 as vf
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.errors import MODEL_TRANSPORT_ERROR_EXIT_CODE

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
"""One client per event loop: making one per turn takes longer than the turn."""


class AgentGymHarness(vf.Harness[vf.HarnessConfig]):
    """The chat loop without a subprocess, an installation or a sandbox.

    verifiers' own harnesses present the model as a coding agent, or install a program over the network.
    """

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Send the conversation to the interception server, which records the answer in the trace."""
        system, prompt = self.resolve_prompt(data)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or ()]
        try:
            reply = await _client().post(
                f"{endpoint.rstrip('/')}/chat/completions",
                headers={"Authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": messages},
            )
        except httpx.TransportError as error:
            return vf.ProgramResult(exit_code=MODEL_TRANSPORT_ERROR_EXIT_CODE, stdout="", stderr=repr(error))
        refused = reply.status_code >= 400
        return vf.ProgramResult(exit_code=int(refused), stdout="", stderr=reply.text if refused else "")


async def close_client() -> None:
    """Close the client of the running event loop."""
    client = _clients.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()


def _client() -> httpx.AsyncClient:
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
        _clients[loop] = httpx.AsyncClient(timeout=None, limits=limits)
    return _clients[loop]
