"""The shared parts of one agent-loop worker: environments, files, slots and backends."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs import register
from agentgym_envs.errors import EnvError, TemplateError
from agentgym_envs.http.run import background_server
from agentgym_envs.rollout.token_file import TokenFile
from agentgym_envs.trajectory import line_mark, read_trajectories
from agentgym_verl.episode_runner import EpisodeRunner, runner_of
from tests.rollout.families import FAMILIES, UP
from tests.toy import CountEnv
from tests.toy_envs import HERE, RELEASE, TrickyEnv

pytestmark = pytest.mark.slow

END = 259
UPS = [[UP, END]] * 9
SAMPLING = {"temperature": 1.0, "logprobs": True}


@pytest.fixture
def make_runner(stub: Any, base_config: Any, model_path: Path, tokenizer: Any) -> Any:
    def make(rollout: Any = None, tokenizer: Any = tokenizer, **agentgym: Any) -> EpisodeRunner:
        return runner_of(stub.configured(base_config, model_path, agentgym, **(rollout or {})), tokenizer)

    return make


@pytest.fixture
def released() -> Iterator[None]:
    """Release hanging environments at the end of the test, whatever an earlier test of this process left behind."""
    RELEASE.clear()
    yield
    RELEASE.set()


def columns(row: Any, step: int = 1, uid: str = "a") -> dict[str, Any]:
    return {**row.as_columns(0), "global_steps": step, "uid": uid}


async def play_all(episode_runner: EpisodeRunner, server: Any, rows: list[dict[str, Any]]) -> list[Any]:
    return [played[2] for played in await asyncio.gather(*(episode_runner.play(server, SAMPLING, row) for row in rows))]


def play(episode_runner: EpisodeRunner, server: Any, *rows: dict[str, Any]) -> list[Any]:
    return asyncio.run(play_all(episode_runner, server, list(rows)))


def idle(episode_runner: EpisodeRunner) -> list[Any]:
    return [runner.env.unwrapped for _, runner in episode_runner._pool._idle]


def test_a_run_has_one_runner_per_process(stub: Any, base_config: Any, model_path: Path, tokenizer: Any) -> None:
    one, other = (stub.configured(base_config, model_path) for _ in range(2))
    assert runner_of(one, tokenizer) is runner_of(one, tokenizer) is not runner_of(other, tokenizer)


def test_template_and_template_arguments_come_from_verl(
    stub: Any, base_config: Any, model_path: Path, tokenizer: Any
) -> None:
    config = stub.configured(base_config, model_path)
    config.data.apply_chat_template_kwargs = {"add_vision_id": False}
    assert EpisodeRunner(config, tokenizer).codec._kwargs == {"add_vision_id": False}
    tokenizer = FAMILIES["qwen2.5"].tokenizer()
    tokenizer.chat_template = "{% for m in messages[-2:] %}{{ m.content }}<|im_end|>{% endfor %}"
    with pytest.raises(TemplateError):
        runner_of(config, tokenizer)


@pytest.mark.rotating
def test_a_thousand_episodes_run_concurrently(make_runner: Any, stub: Any) -> None:
    """In one process, without more time per episode."""
    count, episode_runner, server = 1000, make_runner(env_concurrency=1000), stub.StubServer(UPS, seconds=0.5)
    rows = [columns(stub.count(seed=number), uid=str(number)) for number in range(count)]
    play(episode_runner, stub.StubServer(UPS), *rows[:1])
    began = time.process_time()
    episodes = play(episode_runner, server, *rows)
    spent = (time.process_time() - began) / count
    assert server.most_in_flight == count
    assert all(episode.trajectory.success for episode in episodes)
    assert len({tuple(episode.prompt_ids) for episode in episodes}) > count * 0.99  # each its own seed
    assert spent < 0.02, f"{spent * 1e3:.1f} ms of CPU for an episode of 3 turns"


def test_concurrent_episodes_are_bounded(make_runner: Any, stub: Any) -> None:
    episode_runner, server = make_runner(env_concurrency=3), stub.StubServer(UPS, seconds=0.01)
    play(episode_runner, server, *(columns(stub.count(seed=number)) for number in range(12)))
    assert server.most_in_flight == 3


def test_environments_are_reused_and_closed(make_runner: Any, stub: Any) -> None:
    episode_runner, before = make_runner(env_concurrency=4), next(TrickyEnv.made)
    rows = [columns(stub.count(env="Toy/Tricky-v0", seed=number)) for number in range(20)]
    for many in (rows, rows[:4]):
        assert all(episode.trajectory.success for episode in play(episode_runner, stub.StubServer(UPS), *many))
    assert next(TrickyEnv.made) == before + 5
    envs = idle(episode_runner)
    assert len(envs) == 4 and not any(env.closed for env in envs)
    episode_runner.close()
    assert all(env.closed == 1 for env in envs)


def test_a_garbage_collected_runner_closes_its_environments(
    stub: Any, base_config: Any, model_path: Path, tokenizer: Any
) -> None:
    episode_runner = EpisodeRunner(stub.configured(base_config, model_path), tokenizer)
    play(episode_runner, stub.StubServer(UPS), columns(stub.count()))
    (env,) = idle(episode_runner)
    del episode_runner
    gc.collect()
    assert env.closed == 1


def test_an_environment_that_hangs_ends_its_episode(make_runner: Any, stub: Any, released: None) -> None:
    episode_runner = make_runner(env_seconds=1.5, env_retries=1)
    hang = [[UP, END], episode_runner.codec.encode_answer("hang")]
    row = columns(stub.count(env="Toy/Slow-v0"))
    (episode,) = play(episode_runner, stub.StubServer(hang, UPS), row)
    assert episode.trajectory.success
    began = time.monotonic()
    with pytest.raises(EnvError, match="count/3"):
        play(episode_runner, stub.StubServer(hang), row)
    assert time.monotonic() - began < 55  # not the 60 s of a hang


class ShyEnv(CountEnv):
    """Fails to be made `refusals` times."""

    refusals = 0

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if ShyEnv.refusals:
            ShyEnv.refusals -= 1
            raise EnvError("no server for me")


register("Toy/Shy-v0", f"{__name__}:ShyEnv")


@pytest.mark.parametrize("refusals", [0, 1, 2])
def test_making_an_environment_is_retried(refusals: int, make_runner: Any, stub: Any) -> None:
    episode_runner, server = make_runner(env_retries=1), stub.StubServer(UPS)
    ShyEnv.refusals = refusals
    if refusals < 2:
        (episode,) = play(episode_runner, server, columns(stub.count(env="Toy/Shy-v0")))
        assert episode.trajectory.success
    else:
        with pytest.raises(EnvError, match="count/3"):
            play(episode_runner, server, columns(stub.count(env="Toy/Shy-v0")))
        assert not server.requests and ShyEnv.refusals == 0


def test_a_cancelled_episode_frees_its_slot(make_runner: Any, stub: Any) -> None:
    """verl cancels episodes that it no longer needs."""
    episode_runner, row = make_runner(env_concurrency=1), columns(stub.count())

    async def cancel() -> Any:
        task = asyncio.create_task(episode_runner.play(stub.StubServer(UPS, seconds=60), SAMPLING, row))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return await asyncio.wait_for(episode_runner.play(stub.StubServer(UPS), SAMPLING, row), 30)

    assert asyncio.run(cancel())[2].trajectory.success


def play_step(episode_runner: EpisodeRunner, stub: Any, step: int, crash: bool = False) -> list[Any]:
    script = [[UP, END], episode_runner.codec.encode_answer("crash")]
    server = stub.StubServer(*[script] * crash, UPS)
    return play(episode_runner, server, *(columns(stub.count(seed=number), step) for number in range(3)))


def test_all_episodes_are_recorded(make_runner: Any, stub: Any, tmp_path: Path) -> None:
    """Failed ones as well, by the number of finished steps; a resumed run sets aside the steps that it repeats."""
    episode_runner = make_runner(trajectories=str(tmp_path), record_tokens=True)
    episodes = play_step(episode_runner, stub, 1, crash=True) + play_step(episode_runner, stub, 2)
    evaluation = stub.count("count/4", evaluation=True, split="validation")
    play(episode_runner, stub.StubServer(UPS), columns(evaluation, 2))
    names = sorted(path.name for path in tmp_path.glob("*.jsonl") if ".tokens" not in path.name)
    assert [name.partition(".")[0] for name in names] == ["eval-2", "step-0", "step-1"]
    found = list(read_trajectories(tmp_path / names[1]))
    assert Counter(one.stop_reason for one in found) == {"success": 3, "env_error": 1}
    assert all(one.meta["step"] == 0 and one.meta["training"] and one.meta["env"] == "Toy/Count-v0" for one in found)
    tokens = TokenFile(tmp_path / names[1])
    for line, trajectory in zip((tmp_path / names[1]).read_bytes().splitlines(), found, strict=True):
        (record,) = tokens.read(line_mark(line)) or []
        match = [e for e in episodes[:3] if e.prompt_ids == record.prompt_ids]
        assert len(match) == 1 and "".join(record.prompt_pieces).count("Lucky number") == 1
        if trajectory.usable:
            assert (record.ids, record.mask) == (match[0].ids, match[0].assistant_mask)
            assert record.rewards == pytest.approx(match[0].rewards)
    resumed = make_runner(trajectories=str(tmp_path), record_tokens=True)
    play_step(resumed, stub, 2)
    play_step(resumed, stub, 3)
    left = sorted(path.name for path in tmp_path.glob("step-1*.jsonl"))
    assert len(left) == 4 and sum("replaced-1" in name for name in left) == 2
    assert all(len(list(read_trajectories(tmp_path / name))) == 3 for name in left if ".tokens" not in name)


def test_all_backends_play_equal_episodes(make_runner: Any, stub: Any) -> None:
    def ids(episode_runner: EpisodeRunner, **kwargs: Any) -> list[Any]:
        rows = [stub.count(env=f"{HERE}Toy/Count-v0", seed=number, env_kwargs=kwargs) for number in range(3)]
        script = [[UP, END], episode_runner.codec.encode_answer("down"), [UP, END], [UP, END]]
        episodes = play(episode_runner, stub.StubServer(script), *(columns(row) for row in rows))
        return [(e.prompt_ids, e.ids, e.assistant_mask, e.rewards, e.logprobs) for e in episodes]

    local = ids(make_runner(backend="local"))
    assert len({tuple(prompt) for prompt, *_ in local}) == 3
    assert ids(make_runner(backend="process", workers=2)) == local
    with background_server(["Toy/Count-v0"]) as url:
        episode_runner = make_runner()
        assert ids(episode_runner, base_url=url) == local
        episode_runner.close()
