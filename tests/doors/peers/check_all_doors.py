"""One episode through every door: the same task, seed and actions give the same observations and score."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import httpx
import pytest
import verifiers.v1 as vf
import websockets.sync.client as websockets
from inspect_ai import eval as inspect_eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from mcp import Client

from agentgym_envs.core import text_env
from agentgym_envs.export.nemo import NemoTask
from agentgym_envs.http.dialects.nemo import nemo_routes
from agentgym_envs.http.dialects.openenv import openenv_routes
from agentgym_envs.http.run import background_server
from agentgym_envs.inspect_tasks import make_task
from agentgym_envs.mcp import mcp_routes
from agentgym_envs.task import Split
from tests.doors.peers.oracle import Plans, next_action, oracle_server
from tests.http.nemo_dialect import agent as nemo_agent
from tests.plugins.rotation import part

SEED = 3
SEEDS = [SEED, SEED]
BROWSER = "AgentGym/WebArena-v0"
ENVS = {
    "AgentGym/TextCraft-v0": "textcraft/28",
    "AgentGym/BabyAI-v0": "babyai/GoToSeq/20007",
    "AgentGym/SciWorld-v0": None,
    "AgentGym/Search-v0": None,
    "AgentGym/SearchRetry-v0": None,
    "AgentGym/SearchPages-v0": None,
    BROWSER: None,
    "AgentGym/PlannerActor-v0": "textcraft/28",
    "AgentGym/TextCraftCoop-v0": "textcraft-coop/2/28",
}
ALWAYS = ("AgentGym/TextCraft-v0", "AgentGym/TextCraftCoop-v0")
"""Of the others, each run plays one."""
TEAMS = ("AgentGym/PlannerActor-v0", "AgentGym/TextCraftCoop-v0")


class Script(NamedTuple):
    """An episode: the task and its split, the actions, and the system prompt and first observation."""

    env_id: str
    task: str
    split: Split
    actions: tuple[str, ...]
    instructions: str
    first: str

    @property
    def table(self) -> Plans:
        """The actions as answers of a model."""
        return {(self.instructions, self.first): list(self.actions)}


class Seen(NamedTuple):
    """A hash of all observations but the last, which some peers do not show to a model, and the score."""

    observations: str
    score: float


def seen(observations: Sequence[str], score: float) -> Seen:
    return Seen(hashlib.sha256(json.dumps(observations[:-1]).encode()).hexdigest(), score)


@cache
def script(env_id: str) -> Script:
    """A wrong action, and then the oracle's plan."""
    env = gym.make(env_id)
    base = text_env(env)
    task = ENVS[env_id] or base.tasks.sample(1, split="train", seed=SEED)[0].id
    first, _ = env.reset(seed=SEED, options={"task": task})
    wrong = "do something else"
    env.step(wrong)
    actions = (wrong, *map(base.grammar.format, base.oracle()))
    return Script(env_id, task, base.tasks.get(task).split, actions, base.instructions, first)


def through_gymnasium(one: Script, **options: Any) -> Seen:
    env = gym.make(one.env_id, **options)
    observation, info = env.reset(seed=SEED, options={"task": one.task})
    texts = [observation]
    for action in one.actions:
        observation, _, _, _, info = env.step(action)
        texts.append(observation)
    env.close()
    return seen(texts, info["score"])


def through_vector(one: Script) -> Seen:
    envs = gym.make_vec(one.env_id, num_envs=2)
    observations, infos = envs.reset(seed=SEEDS, options={"task": one.task})  # type: ignore[arg-type]
    texts = [observations[1]]
    for action in one.actions:
        observations, _, _, _, infos = envs.step([action, action])
        texts.append(observations[1])
    envs.close()
    return seen(texts, infos["score"][1])


def through_openenv(one: Script, url: str) -> Seen:
    address = f"{url.replace('http', 'ws', 1)}/openenv/{one.env_id}/ws"
    with websockets.connect(address, max_size=None) as socket:

        def ask(kind: str, **data: Any) -> dict[str, Any]:
            socket.send(json.dumps({"type": kind, "data": data}))
            reply: dict[str, Any] = json.loads(socket.recv())["data"]
            return reply

        replies = [ask("reset", task=one.task, seed=SEED), *(ask("step", message=action) for action in one.actions)]
    texts = [reply["observation"]["text"] for reply in replies]
    return seen(texts, sum(reply["reward"] or 0 for reply in replies))


def through_nemo(one: Script, url: str) -> Seen:
    row = NemoTask(one.env_id, one.task, SEED, {}, one.instructions).row()
    actions = iter(one.actions)
    with httpx.Client(base_url=url, timeout=60) as http:
        rollout = nemo_agent.run(http, row, lambda _: nemo_agent.says(next(actions)), max_steps=200, base="/nemo")
    texts = [message["content"] for message in rollout.conversation if message.get("role") == "user"]
    return seen([*texts, "the end, which the agent does not show"], rollout.reward)


def through_mcp(one: Script, url: str) -> Seen:
    async def body() -> list[dict[str, Any]]:
        async with Client(f"{url}/mcp/{one.env_id}") as client:
            replies = [(await client.call_tool("reset", {"task": one.task, "seed": SEED})).structured_content]
            for action in one.actions:
                arguments = {"action": action, "episode": replies[0]["episode"]}
                replies.append((await client.call_tool("step", arguments)).structured_content)
        return replies

    replies = asyncio.run(body())
    return seen([reply["observation"] for reply in replies], replies[-1]["score"])


def through_inspect(one: Script, folder: str) -> Seen:
    def answer(messages: Any, *_: Any) -> ModelOutput:
        said = next_action(one.table, [(each.role, each.text) for each in messages])
        made = ModelOutput.from_content("mockllm", said)
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    task = make_task(one.env_id, split=one.split, count=1, seed=SEED)
    task.dataset[0].id = one.task
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = inspect_eval(task, model=model, display="none", log_dir=folder)
    assert log.status == "success" and log.samples is not None, log.error
    (sample,) = log.samples
    texts = [message.text for message in sample.messages if message.role == "user"]
    return seen(texts, sample.scores["episode_score"].value["score"])


def through_verifiers(one: Script) -> Seen:
    async def body(url: str) -> vf.Episode:
        options = {"id": "agentgym_verifiers", "env_id": one.env_id, "split": one.split, "count": 1, "seed": SEED}
        env = vf.load_environment(vf.resolve_env_config({"taskset": options}))
        client = vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY")
        (task,) = env.taskset.load()
        task = type(task)(task.data.model_copy(update={"task_id": one.task}), task.config)
        async with env.serving():
            context = vf.ModelContext(model="oracle", client=client, sampling=vf.SamplingConfig())
            return await env.run_episode(task, context)

    with oracle_server(one.table) as url:
        episode = asyncio.run(body(url))
    assert episode.ok, episode.errors
    (trace,) = episode.traces
    texts = [node.message.content for node in trace.nodes if node.message.role == "user"]
    return seen([*texts, "the end, which is not sent"], trace.reward)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    def mounts(server: Any) -> Any:
        return [*mcp_routes(server, show_reward=True), *openenv_routes(server), *nemo_routes(server)]

    with background_server([*ENVS], mounts=[mounts]) as address:
        yield address


@pytest.mark.parametrize("env_id", [*ALWAYS, *part([name for name in ENVS if name not in ALWAYS], "envs of all doors")])
def test_every_door_shows_the_same_episode(env_id: str, url: str, tmp_path: Any) -> None:
    if env_id == BROWSER:
        pytest.importorskip("playwright")
    one = script(env_id)
    doors: dict[str, Callable[[], Seen]] = {
        "vector": lambda: through_vector(one),
        "http": lambda: through_gymnasium(one, base_url=url),
        "openenv": lambda: through_openenv(one, url),
        "nemo": lambda: through_nemo(one, url),
        "mcp": lambda: through_mcp(one, url),
        "inspect": lambda: through_inspect(one, str(tmp_path)),
        "verifiers": lambda: through_verifiers(one),
    }
    if env_id in TEAMS:  # each agent has a conversation of its own; check_verifiers.py plays them
        del doors["verifiers"]
    expected = through_gymnasium(one)
    assert expected.score > 0.5
    assert {name: door() for name, door in doors.items()} == dict.fromkeys(doors, expected)
