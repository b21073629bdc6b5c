"""`--policy openai:MODEL`: addresses, keys, rate limits, usage and cost, and recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.cli.evaluating.model_server import OPENAI_URL, Price, open_server, read_price, server_url
from agentgym_envs.cli.evaluating.usage import usage_note, usage_row
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.policies import ChatPolicy
from agentgym_envs.trajectory import read_trajectories

from .chat_server import KEY, ChatServer, chat_server
from .conftest import Run

WORDS: tuple[object, ...] = ("eval", "textcraft", "--policy", "openai:gpt-x", "--max-turns", 3, "--tasks", 4)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with chat_server() as found:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", found.url)
        yield found


def files(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def episodes(folder: str) -> set[tuple[Any, ...]]:
    """The episodes without their times."""
    found = read_trajectories(Path(folder) / "trajectories.jsonl")
    return {(e.task.id, e.seed, json.dumps([[t.action, dict(t.info)] for t in e.turns])) for e in found}


def test_the_address_is_that_of_the_option_the_variable_or_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert server_url(None) == OPENAI_URL
    monkeypatch.setenv("OPENAI_BASE_URL", "http://there/v1")
    assert server_url(None) == "http://there/v1"
    assert server_url("https://here/v1") == "https://here/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "there:8000")
    with pytest.raises(UsageError, match=r"\$OPENAI_BASE_URL must begin with http"):
        server_url(None)


def test_openai_needs_a_key_and_no_other_server_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    with pytest.raises(UsageError, match="set OPENAI_API_KEY, or give the address of another"):
        open_server("m", OPENAI_URL, "OPENAI_API_KEY", None, False, None)
    assert open_server("m", "http://127.0.0.1:1/v1", "OPENAI_API_KEY", None, False, None).key is None
    monkeypatch.setenv("MINE", "abc")
    assert open_server("m", OPENAI_URL, "MINE", tmp_path / "new.jsonl", False, None).key == "abc"
    assert not (tmp_path / "new.jsonl").exists()


def test_newer_models_of_openai_get_their_own_name_of_the_limit() -> None:
    assert ChatPolicy("m", OPENAI_URL)._server._limit == "max_completion_tokens"
    assert ChatPolicy("m", "http://127.0.0.1:8000/v1")._server._limit == "max_tokens"


def test_usage_and_cost_are_shown_and_recorded(run: Run, server: ChatServer) -> None:
    outcome = run(*WORDS, "--price", "2,10", "--out", "out")
    assert outcome.code == 0
    usage = json.loads(Path("out/eval.json").read_text())["usage"]
    read = sum(len(message["content"]) for body in server.requests for message in body["messages"])
    wrote = sum(len(turn.action) for episode in read_trajectories("out/trajectories.jsonl") for turn in episode.turns)
    assert (usage["requests"], usage["prompt_tokens"], usage["answer_tokens"]) == (len(server.requests), read, wrote)
    assert usage["dollars"] == pytest.approx((2 * read + 10 * wrote) / 1e6)
    assert f"it read {read:,} tokens and wrote {wrote:,}: $" in outcome.out
    assert usage_note(usage) in Path("out/report.md").read_text()
    assert "$2 and $10 per million" in " ".join(run("report", "out").out.split())
    assert run(*WORDS, "--out", "out", "--resume").code == 0  # without a price: it is not part of the settings
    usage = json.loads(Path("out/eval.json").read_text())["usage"]
    assert "dollars" not in usage and "give --price" in usage_note(usage)


@pytest.mark.parametrize("agent", [(), ("--agent", "react")])
def test_uncounted_tokens_have_no_cost(run: Run, server: ChatServer, agent: tuple[object, ...]) -> None:
    server.counts_tokens = False
    outcome = run(*WORDS, *agent, "--price", "2,10", "--json")
    assert outcome.json["usage"]["requests"] == len(server.requests)
    assert outcome.json["usage"]["dollars"] is None and outcome.json["usage"]["prompt_tokens"] is None
    assert "did not count" in usage_note(outcome.json["usage"])


def test_prices_are_two_numbers_or_a_row_of_a_file(tmp_path: Path) -> None:
    table = tmp_path / "prices.json"
    table.write_text('{"gpt-x": {"input": 1, "output": 4}, "bad": {"input": -1, "output": 2}, "half": {"input": 1}}')
    assert read_price(None, "gpt-x") is None
    assert read_price("2.5,10", "gpt-x") == Price(2.5, 10)
    assert read_price(str(table), "gpt-x") == Price(1, 4)
    assert Price(2.5, 10).cost(1_000_000, 100) == 2.501
    for text, model, words in (
        ("2.5", "gpt-x", "neither"),
        ("a,b", "gpt-x", "as in 2.5,10"),
        ("nan,1", "gpt-x", "as in 2.5,10"),
        (str(table), "gpt-y", "no price of 'gpt-y'"),
        (str(table), "half", "no price of 'half'"),
        (str(table), "bad", "as in 2.5,10"),
    ):
        with pytest.raises(UsageError, match=words):
            read_price(text, model)


@pytest.mark.slow
def test_rate_limits_are_waited_out_and_reported(run: Run, server: ChatServer) -> None:
    server.failures = [(429, {"retry-after-ms": "20"}, "rate_limit_exceeded"), (429, {"Retry-After": "0.02"}, "slow")]
    outcome = run(*WORDS, "--concurrency", 2)
    assert outcome.code == 0
    sent = len(server.requests) + 2
    assert f"{sent} requests were sent; 2 were repetitions, 2 of them because of the server's rate" in outcome.err


def test_a_used_up_quota_and_a_wrong_key_end_the_run(run: Run, server: ChatServer) -> None:
    server.failures = [(429, {}, "insufficient_quota")] * 8
    outcome = run(*WORDS, "--concurrency", 1)
    assert outcome.code == 1 and "insufficient_quota" in outcome.err and len(server.failures) == 7
    server.failures = [(429, {"Retry-After": "4000"}, "daily")]
    assert "asks to wait 4000 s" in run(*WORDS, "--concurrency", 1).err
    outcome = run(*WORDS, "--api-key-env", "NO_SUCH_KEY", "--concurrency", 1)
    assert outcome.code == 1 and "HTTP 401" in outcome.err and KEY not in outcome.err


@pytest.mark.parametrize("agent", [(), ("--agent", "reflect", "--attempts", 2)])
def test_a_recorded_run_is_replayed_with_equal_bytes(
    run: Run, server: ChatServer, agent: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*WORDS, "--episodes-per-task", 2, "--price", "1,2", *agent, "--cassette", "tape.jsonl")
    assert run(*words, "--concurrency", 5, "--out", "recorded").code == 0
    tape, sent = Path("tape.jsonl").read_bytes(), len(server.requests)
    assert KEY.encode() not in tape and tape.count(b"\n") == sent
    monkeypatch.delenv("OPENAI_API_KEY")
    for folder in ("one", "two"):
        assert run(*words, "--replay", "--out", folder).code == 0
    assert len(server.requests) == sent and Path("tape.jsonl").read_bytes() == tape
    assert files("one") == files("two")
    assert episodes("one") == episodes("recorded") and len(episodes("one")) == 8
    derived = {"eval.json", "report.md", "metrics.csv"}
    assert all(files("one")[name] == files("recorded")[name] for name in derived)


def test_a_cassette_continues_a_run_and_refuses_other_requests(run: Run, server: ChatServer, refuses: Run) -> None:
    words = (*WORDS, "--cassette", "tape.jsonl", "--concurrency", 1)
    assert run(*words, "--tasks", 2, "--out", "out").code == 0
    first = len(server.requests)
    assert run(*words, "--tasks", 2).code == 0
    assert len(server.requests) == first  # recorded requests are not sent again
    outcome = run(*words, "--replay", "--temperature", 0.5)
    assert outcome.code == 2 and "holds no reply to this request of the episode 'textcraft/" in outcome.err
    assert "give the file with --cassette" in refuses(*WORDS, "--replay").err
    assert "no cassette none.jsonl" in refuses(*WORDS, "--replay", "--cassette", "none.jsonl").err
    Path("bad.jsonl").write_text('{"episode": 3, "request": "x", "reply": {}}\n')
    assert "bad.jsonl:1: this is not a recorded chat" in refuses(*WORDS, "--cassette", "bad.jsonl").err
    policy = ("eval", "textcraft", "--policy", "oracle")
    assert "--cassette is an option of --policy openai:MODEL" in refuses(*policy, "--cassette", "x").err


def test_a_team_counts_the_answers_of_its_members(run: Run, server: ChatServer) -> None:
    words = ("eval", "textcraftcoop", "--policy", "openai:gpt-x", "--max-turns", 2, "--tasks", 2, "--out", "team")
    pytest.importorskip("pettingzoo")
    assert run(*words).code == 0
    row = usage_row(read_trajectories("team/trajectories.jsonl"), Price(0, 1))
    assert row["requests"] == len(server.requests)
    assert row["answer_tokens"] > 0 and row["dollars"] == row["answer_tokens"] / 1e6
