"""No body that a client sends to a dialect is an error of the server."""

import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.http.dialects.agentgym.server import agentgym_routes
from agentgym_envs.http.dialects.nemo import nemo_routes
from agentgym_envs.http.dialects.openenv import openenv_routes
from agentgym_envs.http.run import background_server
from tests.http.test_server import JSON, TEXT
from tests.trying import examples

TEXTCRAFT = "AgentGym/TextCraft-v0"
PATHS = [
    *(f"/agentgym/textcraft/{name}" for name in ("create", "reset", "step", "close")),
    *(f"/nemo/{name}" for name in ("reset", "step", "close", "aggregate_metrics")),
    *(f"/openenv/{TEXTCRAFT}/{name}" for name in ("reset", "step", "mcp")),
    *(f"/openenv/{TEXTCRAFT}/{TEXTCRAFT}/{name}" for name in ("tasks", "num_tasks", "task", "task_range")),
]
NAMES = st.sampled_from(
    ["id", "action", "data_idx", "goal", "message", "episode_id", "split", "group", "index", "start"]
)
ROW_NAMES = st.sampled_from(["agentgym", "env", "task", "seed", "options", "response", "output", "content", "stop"])
OBJECTS = st.dictionaries(
    NAMES | ROW_NAMES | TEXT, JSON | st.sampled_from([TEXTCRAFT, "textcraft/3", "train", "message"])
)
NESTED = st.dictionaries(ROW_NAMES, OBJECTS | st.lists(OBJECTS, max_size=2), max_size=3)
ROW = {"env": TEXTCRAFT, "task": "textcraft/3", "seed": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    mounts = [agentgym_routes, nemo_routes, openenv_routes]
    with background_server([TEXTCRAFT], mounts=mounts) as url, httpx.Client(base_url=url, trust_env=False) as made:
        yield made


@pytest.mark.slow
@examples(40)
@given(path=st.sampled_from(PATHS), body=OBJECTS | NESTED | JSON)
@example(path="/nemo/reset", body={"agentgym": {**ROW, "\ud800": 1}})
@example(path="/nemo/reset", body={"agentgym": {**ROW, "options": {"\ud800": 1}}})
@example(path=f"/openenv/{TEXTCRAFT}/reset", body={"\ud800": 1})
@example(path="/agentgym/textcraft/step", body={"id": 0, "action": "\ud800", "\ud800": 1})
def test_no_body_is_an_error_of_the_server(client, path, body):
    reply = client.post(path, content=json.dumps(body))
    assert reply.status_code < 500, reply.text
