"""verifiers 0.4: our taskset, env and harness, run by verifiers itself, with its evaluation and training clients."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import httpx
import pytest
import verifiers.v1 as vf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import agentgym_verifiers
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Generation, Limits, Sampling, play, run_sync
from agentgym_verifiers import harness
from tests.doors.peers.oracle import Plans, json_server, oracle_server, plans
from tests.doors.peers.toys import TOY

TEXTCRAFT = "AgentGym/TextCraft-v0"
TEAMS = ("AgentGym/PlannerActor-v0", "AgentGym/TextCraftCoop-v0")
ROLES = ["<|system|>", "<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def run(
    client: Any, *, count: int = 2, env: dict[str, Any] | None = None, env_id: str = TEXTCRAFT, **taskset: Any
) -> list[vf.Episode]:
    """The episodes of a taskset, one after another."""

    async def body() -> list[vf.Episode]:
        options = {"id": "agentgym_verifiers", "env_id": env_id, "count": count, **taskset}
        loaded = vf.load_environment(vf.resolve_env_config({"taskset": options, **(env or {})}))
        context = vf.ModelContext(model="oracle", client=client, sampling=vf.SamplingConfig())
        async with loaded.serving():
            return [await loaded.run_episode(task, context) for task in loaded.taskset]

    return asyncio.run(body())


def by_text(url: str) -> vf.EvalClientConfig:
    return vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY")


@pytest.mark.parametrize("env_id", [TEXTCRAFT, "AgentGym/BabyAI-v0", *TEAMS])
def test_the_oracle_scores_through_verifiers(env_id: str) -> None:
    with oracle_server(plans(env_id, 2)) as url:
        episodes = run(by_text(url), env_id=env_id)
    for episode in episodes:
        assert episode.ok and not episode.errors
        for trace in episode.traces:
            about = trace.info["agentgym"]
            assert trace.reward == pytest.approx(sum(about["rewards"])) and trace.reward > 0.5
            assert (trace.stop_condition, trace.metrics["success"], len(trace.branches)) == ("success", 1.0, 1)
            assert trace.num_turns == len(about["rewards"])
    agents = {trace.info.get("agent") for trace in episodes[0].traces}
    assert len(agents) == (2 if env_id in TEAMS else 1)


def test_a_partner_plays_its_agents_and_is_not_trained() -> None:
    with oracle_server(plans(TEAMS[0], 1)) as url:
        (episode,) = run(by_text(url), env_id=TEAMS[0], count=1, env={"partner_plays": ["planner"]})
    seats = {trace.info["agent"]: (trace.agent.name, trace.agent.trainable) for trace in episode.traces}
    assert seats == {"planner": ("partner", False), "actor": ("player", True)}


def test_a_task_is_an_episode_with_a_stable_key() -> None:
    options = {"id": "agentgym_verifiers", "split": "test", "groups": ["depth-2"], "count": 3, "seed": 7}
    taskset = vf.load_environment(vf.resolve_env_config({"taskset": options})).taskset
    tasks = list(taskset.load())
    assert len({task.key for task in tasks}) == 3
    assert {task.data.group for task in tasks} == {"depth-2"}
    assert all(task.key == f"{TEXTCRAFT}/{task.data.task_id}#7" for task in tasks)
    assert [task.key for task in taskset.load()] == [task.key for task in tasks]


def test_a_failure_of_the_environment_fails_the_episode() -> None:
    with oracle_server(ToyPlans("fail")) as url:
        (episode,) = run(by_text(url), env_id=TOY, split="test", count=1)
    assert not episode.ok and "fire" in episode.errors[0].message
    assert episode.errors[0].type == "EnvError"
    assert not any(trace.rewards for trace in episode.traces)


def test_a_limit_of_verifiers_keeps_the_score_so_far() -> None:
    with oracle_server(ToyPlans("go")) as url:
        (episode,) = run(by_text(url), env_id=TOY, split="test", count=1, env={"player": {"max_turns": 2}})
    (trace,) = episode.traces
    assert (trace.reward, trace.stop_condition, trace.num_turns) == (0.5, "max_turns", 2)
    assert trace.info["agentgym"]["rewards"] == [0.25, 0.25]


def test_one_client_serves_all_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[httpx.AsyncClient] = []

    class Counted(httpx.AsyncClient):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(harness, "httpx", SimpleNamespace(**{**vars(httpx), "AsyncClient": Counted}))
    with oracle_server(plans(TEXTCRAFT, 2)) as url:
        run(by_text(url))
    assert len(made) == 1 and made[0].is_closed


def test_what_text_cannot_play_is_refused() -> None:
    with pytest.raises(UsageError, match="native tools"):
        run(None, env_args={"grammar": "tools"})


def test_the_plugins_are_those_that_verifiers_looks_for() -> None:
    kinds = {"AgentGymTaskset": vf.Taskset, "EpisodeEnv": vf.Env, "AgentGymHarness": vf.Harness}
    assert set(agentgym_verifiers.__all__) == set(kinds)
    assert all(issubclass(getattr(agentgym_verifiers, name), kind) for name, kind in kinds.items())


def test_vf_eval_finds_the_taskset(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("vf-eval")), "agentgym_verifiers", "--env.taskset.count", "2"]
    command += ["-m", "oracle", "--client.api-key-var", "NO_KEY", "--no-push", "-o", str(tmp_path)]
    with oracle_server(plans(TEXTCRAFT, 2)) as url:
        command += ["--client.base-url", url]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (path,) = tmp_path.rglob("traces.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [trace["rewards"]["score"]["score"] for row in rows for trace in row["traces"]] == [1.0, 1.0], rows


class ToyPlans(dict[tuple[str, str], list[str]]):
    """The same answer to everything."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self._answer = answer

    def get(self, key: Any, default: Any = None) -> Any:
        """Return many of it."""
        return [self._answer] * 100


def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of bytes with one token per role."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bare = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(alphabet)}, merges=[]))
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bare.decoder = decoders.ByteLevel()
    bare.add_special_tokens(["<|pad|>", "<|end|>", *ROLES])
    made = PreTrainedTokenizerFast(tokenizer_object=bare, eos_token="<|end|>", pad_token="<|pad|>")
    made.chat_template = TEMPLATE
    return made


class ScriptedEngine:
    """Our engine with the oracle's answers."""

    def __init__(self, codec: ChatCodec, answers: Sequence[str]) -> None:
        self._codec, self._answers = codec, iter(answers)

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """Return the next answer."""
        ids = self._codec.encode_answer(next(self._answers))
        return Generation(ids, "stop", [-0.5] * len(ids))


@contextmanager
def token_server(codec: ChatCodec, table: Plans) -> Iterator[str]:
    """Serve vLLM's token endpoint with the oracle's answers; yields the base URL."""

    def answer(body: Mapping[str, Any]) -> dict[str, Any]:
        text = codec.tokenizer.decode(body["token_ids"])
        plan = next(plan for (_, first), plan in table.items() if f"{first}<|end|>" in text)
        ids = codec.encode_answer(plan[text.count("<|assistant|>") - 1])
        content = [{"token": f"token_id:{each}", "logprob": -0.5} for each in ids]
        choice = {"index": 0, "token_ids": ids, "finish_reason": "stop", "logprobs": {"content": content}}
        return {"request_id": "r", "choices": [choice]}

    with json_server(answer) as url:
        yield url


def test_token_ids_masks_and_logprobs_are_ours(tmp_path: Path) -> None:
    tokens = tokenizer()
    tokens.save_pretrained(tmp_path)
    codec, table = ChatCodec(tokens), plans(TEXTCRAFT, 2)
    with token_server(codec, table) as url:
        client = vf.TrainClientConfig(
            base_url=url, api_key_var="NO_KEY", renderer={"name": "default"}, renderer_model_name=str(tmp_path)
        )
        episodes = run(client)
    assert [episode.ok for episode in episodes] == [True, True], [episode.errors for episode in episodes]
    env = gym.make(TEXTCRAFT)
    for episode, answers in zip(episodes, table.values(), strict=True):
        task = episode.task.data.task_id
        limits = Limits(max_tokens=100_000)
        ours = run_sync(play(env, ScriptedEngine(codec, answers), codec, EpisodeSpec(task, 0), limits=limits))
        (branch,) = episode.traces[0].branches
        assert branch.token_ids == [*ours.prompt_ids, *ours.ids]
        sampled = [0] * len(ours.prompt_ids) + [int(each) for each in ours.assistant_mask]
        assert [int(each) for each in branch.sampled_mask] == sampled
        assert ours.logprobs is not None
        kept = [value for value, mask in zip(branch.logprobs, branch.sampled_mask, strict=True) if mask]
        assert kept == [value for value, mask in zip(ours.logprobs, ours.assistant_mask, strict=True) if mask]
