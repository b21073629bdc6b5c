"""Inspect AI: our tasks, evaluated by Inspect itself, in process and by its command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ChatMessage, ChatMessageAssistant, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolCall as InspectToolCall

from agentgym_envs import inspect_tasks
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.grammar import find_call
from agentgym_envs.inspect_tasks import make_task
from tests.doors.peers.oracle import next_action, plans
from tests.doors.peers.toys import LONG, TOY

TEXTCRAFT = "AgentGym/TextCraft-v0"
make_textcraft: Callable[..., Any] = vars(inspect_tasks)["textcraft"]
Say = Callable[[Sequence[ChatMessage]], str]


def model(say: Say) -> Model:
    """A model of Inspect that writes what `say` returns; a call in the format of Hermes becomes a tool call."""

    def output(messages: Sequence[ChatMessage], tools: Any, *_: Any) -> ModelOutput:
        said = say(messages)
        call = find_call(said) if tools else None
        made = ModelOutput.from_content("mockllm", said)
        if call is not None:
            made = ModelOutput.for_tool_call("mockllm", call.name, call.arguments)
        made.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)  # else a table is downloaded
        return made

    return get_model("mockllm/model", custom_outputs=output, memoize=False)


def oracle(count: int, **env_args: Any) -> Model:
    table = plans(TEXTCRAFT, count, split="test", **env_args)
    return model(lambda messages: next_action(table, [(each.role, each.text) for each in messages]))


def evaluate(task: Any, player: Model, folder: Path, **options: Any) -> EvalLog:
    (log,) = inspect_eval(task, model=player, display="none", log_dir=str(folder), **options)
    assert log.status == "success", log.error
    return log


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.results is not None
    return {f"{each.name}/{key}": value.value for each in log.results.scores for key, value in each.metrics.items()}


def values(log: EvalLog) -> list[dict[str, Any]]:
    """Score, success, and the metadata of each sample."""
    assert log.samples is not None
    scores = [sample.scores["episode_score"] for sample in log.samples if sample.scores]
    return [{"value": score.value, "reason": score.reason, **(score.metadata or {})} for score in scores]


@pytest.mark.parametrize("grammar", ["bare", "react", "tools", "command_tools"])
def test_the_oracle_scores_by_text_and_by_tools(grammar: str, tmp_path: Path) -> None:
    task = make_textcraft(count=3, grammar=grammar)
    log = evaluate(task, oracle(3, grammar=grammar), tmp_path, epochs=2)
    assert log.samples is not None and len(log.samples) == 6
    found = metrics(log)
    assert found["score/mean"] == found["success/mean"] == 1.0
    assert {f"score/grouped_{sample.metadata['group']}" for sample in log.samples} <= set(found)
    roles = [message.role for message in log.samples[0].messages]
    reply = "tool" if "tools" in grammar else "user"
    assert roles[:2] == ["system", "user"] and set(roles[3::2]) == {reply}


def test_the_log_names_the_tasks_and_the_arguments(tmp_path: Path) -> None:
    task = make_textcraft(count=1, max_distractors=0, groups="depth-1")
    log = read_eval_log(evaluate(task, oracle(1), tmp_path).location)
    tasks = text_env(gym.make(TEXTCRAFT)).tasks
    assert log.eval.metadata is not None
    assert log.eval.metadata["tasks_sha256"] == tasks.digest
    assert log.eval.metadata["env_args"] == {"max_distractors": 0}
    assert (log.eval.task_version, log.eval.task) == (tasks.version, "agentgym_envs/textcraft")
    assert log.samples is not None and log.samples[0].metadata["group"] == "depth-1"


def test_a_failure_of_the_environment_is_unscored(tmp_path: Path) -> None:
    table = iter(["fail", "go", "go", "go", "go"] * 2)
    log = evaluate(make_task(TOY, count=2), model(lambda _: next(table)), tmp_path, max_samples=1)
    failed, solved = values(log)
    assert (failed["reason"], failed["stop_reason"]) == ("env_error", "env_error") and "fire" in failed["error"]
    assert solved["value"] == {"score": 1.0, "success": 1.0} and solved["rewards"] == [0.25] * 4
    assert metrics(log)["score/mean"] == 1.0
    assert log.results is not None
    assert {(each.scored_samples, each.unscored_samples) for each in log.results.scores} == {(1, 1)}


@pytest.mark.parametrize(
    ("limit", "stop", "score"),
    [
        ({"turn_limit": 2}, "turn_limit", 0.5),
        ({"message_limit": 6}, "turn_limit", 0.5),
        ({"token_limit": 40}, "token_limit", 0.5),
        ({}, "turn_limit", 0.75),
    ],
)
def test_limits_keep_the_score_so_far(limit: dict[str, int], stop: str, score: float, tmp_path: Path) -> None:
    log = evaluate(make_task(TOY, count=1, max_turns=3), model(lambda _: "go"), tmp_path, **limit)
    (sample,) = values(log)
    assert (sample["stop_reason"], sample["value"]["score"]) == (stop, score)


def test_a_long_observation_reaches_the_model_whole(tmp_path: Path) -> None:
    call = '<tool_call>{"name": "act", "arguments": {"action": "long"}}</tool_call>'
    seen: list[str] = []

    def say(messages: Sequence[ChatMessage]) -> str:
        seen.append(messages[-1].text)
        return call

    evaluate(make_task(TOY, count=1, max_turns=2, grammar="tools"), model(say), tmp_path)
    assert seen[1] == LONG  # Inspect truncates the results of tools that it calls itself


def test_only_the_first_of_several_calls_is_carried_out(tmp_path: Path) -> None:
    def output(messages: Any, tools: Any, *_: Any) -> ModelOutput:
        calls = [InspectToolCall(id=str(n), function="act", arguments={"action": "go"}) for n in range(2)]
        made = ModelOutput.from_content("mockllm", "")
        made.choices[0].message = ChatMessageAssistant(content="", tool_calls=calls)
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    player = get_model("mockllm/model", custom_outputs=output, memoize=False)
    log = evaluate(make_task(TOY, count=1, max_turns=1, grammar="tools"), player, tmp_path)
    assert values(log)[0]["value"]["score"] == 0.25
    assert log.samples is not None
    replies = [message for message in log.samples[0].messages if message.role == "tool"]
    assert [reply.tool_call_id for reply in replies] == ["0", "1"] and "first call" in replies[1].text


def test_every_environment_has_a_task() -> None:
    names = {"textcraft", "babyai", "sciworld", "search", "webarena", "miniwob", "textcraftcoop", "planneractor", "env"}
    assert names <= set(vars(inspect_tasks))


def test_mistakes_of_the_caller_are_errors() -> None:
    with pytest.raises(UsageError, match="no_such_argument"):
        make_task(TEXTCRAFT, no_such_argument=1)
    with pytest.raises(UsageError, match="cannot make"):
        make_task("AgentGym/NoSuch-v0")


def test_the_command_finds_the_task(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.doors.peers.inspect_command", "eval", "agentgym_envs/textcraft"]
    command += ["-T", "count=2", "-T", "grammar=command_tools", "--model", "oracle/command_tools"]
    command += ["--display", "plain", "--log-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("*.eval")
    log = read_eval_log(str(path))
    assert log.status == "success", log.error
    assert metrics(log)["score/mean"] == 1.0
