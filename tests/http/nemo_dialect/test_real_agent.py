"""NeMo-Gym's own `gymnasium_agent`, if an environment of AGENTGYM_PEERS has it. Its model plays our plans."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest

import tests.toy_envs  # noqa: F401 (registers the toys)
from agentgym_envs.core import text_env
from agentgym_envs.export.nemo import NemoTask
from agentgym_envs.http.dialects.nemo import nemo_routes
from agentgym_envs.http.run import background_server
from tests.http.tools import TRICKY
from tests.peers import run_with

TEXTCRAFT = "AgentGym/TextCraft-v0"
AGENT = "responses_api_agents.gymnasium_agent.app"
SCRIPT = """
import asyncio, json, os, socket, sys, threading
os.environ["NEMO_GYM_CONFIG_DICT"] = "{}"
import uvicorn
from fastapi import FastAPI, Request
from omegaconf import OmegaConf
from nemo_gym.server_utils import BaseServerConfig, ServerClient
from responses_api_agents.gymnasium_agent.app import GymnasiumAgent, GymnasiumAgentConfig, GymnasiumAgentRunRequest

about, *rows = map(json.loads, sys.stdin)
model = FastAPI()

@model.post("/v1/responses")
async def responses(request: Request):
    messages = (await request.json())["input"]
    plan = about["plans"][next(m["content"] for m in messages if m["role"] == "user")]
    text = plan[sum(m["role"] == "assistant" for m in messages)]
    content = [{"type": "output_text", "text": text, "annotations": []}]
    output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}]
    return {"id": "r", "object": "response", "created_at": 0, "model": "m", "output": output, "tools": [],
            "parallel_tool_calls": False, "tool_choice": "auto"}

listener = socket.create_server(("127.0.0.1", 0))
serving = uvicorn.Server(uvicorn.Config(model, log_level="error"))
threading.Thread(target=serving.run, kwargs={"sockets": [listener]}, daemon=True).start()

def server(kind, name, port, **more):
    return {kind: {name: {"entrypoint": "app.py", "host": "127.0.0.1", "port": port, **more}}}

references = {"resources_server": {"type": "resources_servers", "name": "agentgym"},
              "model_server": {"type": "responses_api_models", "name": "model"}}
config = OmegaConf.create({
    "agentgym": server("resources_servers", "agentgym", about["port"], domain="games"),
    "model": server("responses_api_models", "fake", listener.getsockname()[1]),
})
client = ServerClient(head_server_config=BaseServerConfig(host="127.0.0.1", port=1), global_config_dict=config)
own = {"name": "agent", "entrypoint": "app.py", "host": "127.0.0.1", "port": 1, "max_steps": 30, **references}
agent = GymnasiumAgent(config=GymnasiumAgentConfig(**own), server_client=client)

class Caller:
    cookies = {}

async def main():
    for row in rows:
        try:
            done = await agent.run(Caller(), GymnasiumAgentRunRequest.model_validate(row))
            print(json.dumps([done.reward, done.terminated, done.truncated, done.info["turn"]]))
        except Exception as error:
            print(json.dumps(getattr(error, "status", repr(error))))

asyncio.run(main())
"""


@pytest.mark.slow
def test_the_real_agent_plays_our_plans_and_fails_with_the_environment() -> None:
    env, toy = text_env(gym.make(TEXTCRAFT)), text_env(gym.make(TRICKY))
    rows, plans, wanted = [], {}, list[object]()
    for task in env.tasks.sample(3, split="train", seed=1):
        observation, _ = env.reset(seed=3, options={"task": task.id})
        plan = plans[observation] = [*env.oracle()]
        rows.append(NemoTask(TEXTCRAFT, task.id, 3, {}, env.instructions).row())
        wanted.append([1.0, True, False, len(plan)])
    observation, _ = toy.reset(seed=0, options={"task": "count/3"})
    plans[observation] = ["up", "raise"]
    rows.append(NemoTask(TRICKY, "count/3", 0, {}, toy.instructions).row())
    wanted.append(500)
    with background_server([TEXTCRAFT, TRICKY], mounts=[nemo_routes]) as url:
        about = {"port": int(url.rpartition(":")[2]), "plans": plans}
        lines = run_with(AGENT, SCRIPT, map(json.dumps, [about, *rows]))
    assert [json.loads(line) for line in lines if line.startswith(("[", "5"))] == wanted
