"""The HTTP interface: responses to the page, and rejected requests."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentgym_envs import Turn
from agentgym_envs.viewer import api, panels
from agentgym_envs.viewer.api import Viewer, to_json
from agentgym_envs.viewer.server import is_own_name, make_app

from .records import logged, record, save, save_log

Get = Callable[..., httpx.Response]
ROW = {
    "id": 0,
    "source": "t.jsonl",
    "env": "A-v0",
    "group": "easy",
    "split": "test",
    "task": "t/1",
    "goal": "solve t/1",
    "seed": 0,
    "score": 0.5,
    "success": False,
    "reward": 0.0,
    "turns": 2,
    "invalid": 0,
    "stop": "turn_limit",
    "step": 5,
    "training": True,
    "max_turns": 2,
    "policy": "hf:me",
    "agent": "plan",
    "has_tokens": False,
    "tokens": None,
    "seconds": None,
    "cost": None,
    "tags": [],
    "noted": False,
}
META = {"step": 4, "training": True, "max_turns": 2, "policy": "hf:me", "agent": {"name": "plan"}}


def asker(viewer: Viewer, **options: Any) -> Get:
    """A client that calls the application without a network."""
    transport = httpx.ASGITransport(make_app(viewer, **options), raise_app_exceptions=False)

    def get(path: str, *, method: str = "GET", host: str = "127.0.0.1:8000", **headers: str) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                return await client.request(method, path, headers={"host": host, **headers})

        return asyncio.run(ask())

    return get


@pytest.fixture
def get(tmp_path: Path) -> Get:
    first = record("t/1", "look", "go", score=0.5, stop_reason="turn_limit", meta=META, env_kwargs={"max": 1})
    save(
        tmp_path / "t.jsonl",
        first,
        record("t/1", "x", seed=1),
        record("t/2", env_id="B-v0", group="hard", success=True),
    )
    return asker(Viewer([tmp_path]))


def test_summary_lists_sources_and_filter_values(get: Get) -> None:
    assert get("/api/summary").json() == {
        "version": 1,
        "count": 3,
        "sources": [{"name": "t.jsonl", "kind": "trajectories", "count": 3}],
        "envs": ["A-v0", "B-v0"],
        "groups": {"A-v0": ["easy"], "B-v0": ["hard"]},
        "stops": ["failure", "turn_limit"],
        "policies": ["hf:me"],
        "steps": [5],
        "tags": [],
        "noted": False,
        "figures": [],
        "has_training": False,
        "problems": [],
    }


def test_episode_list_has_rows(get: Get) -> None:
    found = get("/api/episodes?limit=1&sort=score&desc=1").json()
    means = {"episodes": 2, "success": 0.0, "score": 0.25, "turns": 1.5}
    assert found == {"version": 1, "total": 3, "rows": [ROW], "note": None, "means": means}
    assert get("/api/episodes?q=X&env=A-v0").json()["total"] == 1
    assert get("/api/episodes?offset=99").json()["rows"] == []


def test_episode_lists_its_turns(get: Get) -> None:
    found = get("/api/episodes/0").json()
    assert [row["id"] for row in found.pop("siblings")] == [1]
    assert get(f"/api/find/0/{found.pop('mark')}").json() == {"id": 0}
    turn: dict[str, Any] = {"reward": 0.0, "score": 0.0, "invalid": None, "truncated": False, "info": {}, "thought": ""}
    assert found == {
        "row": ROW,
        "instructions": "Be brief.",
        "turns": [
            {"observation": "Begin.", "action": "look", "command": "look", **turn},
            {"observation": "kool", "action": "go", "command": "go", **turn},
        ],
        "final_observation": "og",
        "error": None,
        "seconds": None,
        "meta": META,
        "env_kwargs": {"max": 1},
        "task_data": {"key": [1]},
        "attempts": [],
        "team": None,
        "labels": None,
        "note": {"text": "", "tags": [], "version": 0},
    }


def test_turns_have_thought_reward_truncation_and_error(tmp_path: Path) -> None:
    turns = (
        Turn("a", "Thought: hm\nAction: go", 0.25, {"state_key": "k"}),
        Turn("b", "Thought: hm", 0.5, {"invalid_action": "No action found.", "finish": "length"}),
        Turn("c", "Action: stop", 0.25, {"score": 0.9, "finish": "stop"}),
    )
    episode = record("t", "x", "y", "z", env_kwargs={"grammar": "react"})
    object.__setattr__(episode, "turns", turns)
    save(tmp_path / "t.jsonl", episode)
    shown = Viewer([tmp_path]).episode(0)["turns"]
    parts = ("thought", "command", "score", "invalid", "truncated", "info")
    assert [tuple(turn[name] for name in parts) for turn in shown] == [
        ("hm", "go", 0.25, None, False, {"state_key": "k"}),
        ("", None, 0.75, "No action found.", True, {}),
        ("", "stop", 0.9, None, False, {}),
    ]


def test_environments_own_grammar_is_used(tmp_path: Path) -> None:
    action = "Let me see.\n```click [12]```"  # the fences of WebArena's own format
    episode = record("t", action, env_id="AgentGym/WebArena-v0", env_kwargs={"grammar": "fenced"})
    unknown = record("t", "go", env_id="Other-v0", env_kwargs={"grammar": "morse"})
    save(tmp_path / "t.jsonl", episode, unknown)
    viewer = Viewer([tmp_path])
    assert [viewer.episode(number)["turns"][0]["command"] for number in (0, 1)] == ["click [12]", "go"]


def test_earlier_attempts_are_included(tmp_path: Path) -> None:
    turn = {"observation": "see", "action": "go", "reward": 0.5, "info": {"finish": "length"}}
    attempts = [
        {"turns": [turn, "odd"], "score": 0.5, "success": False, "stop_reason": "turn_limit", "lesson": "Be quick."},
        {},
        "odd",
    ]
    save(tmp_path / "t.jsonl", record("t", "go", meta={"attempts": attempts, "step": True}))
    found = Viewer([tmp_path]).episode(0)
    assert found["meta"] == {"step": True}
    first, second = found["attempts"]
    assert {name: first[name] for name in ("score", "success", "stop", "lesson")} == {
        "score": 0.5,
        "success": False,
        "stop": "turn_limit",
        "lesson": "Be quick.",
    }
    assert [(turn["command"], turn["score"], turn["truncated"]) for turn in first["turns"]] == [
        ("go", 0.5, True),
        ("", 0.5, False),
    ]
    assert second == {"turns": [], "score": None, "success": False, "stop": "", "lesson": ""}


def test_siblings_are_the_nearest_episodes(tmp_path: Path) -> None:
    save(tmp_path / "t.jsonl", *(record("t/1", seed=seed) for seed in range(200)))
    siblings = [row["id"] for row in Viewer([tmp_path]).episode(100)["siblings"]]
    assert siblings == [*range(75, 100), *range(101, 126)]


def test_agentgym_rl_log_opens(tmp_path: Path) -> None:
    save_log(tmp_path / "step3" / "0.json", logged(5, 1.0, "Goal: craft stick.", "Thought:\nhm\n\nAction:\nget 1 log"))
    viewer = Viewer([tmp_path])
    found = viewer.episode(0)
    assert found["turns"][0]["thought"] == "hm"
    assert found["turns"][0]["command"] == "get 1 log"
    assert found["meta"] == {"logged_reward": 1.0, "step": 3, "training": True}
    assert viewer.summary()["has_training"] is True
    assert viewer.tokens(0)["segments"] == []


def test_panels_have_one_state_more_than_turns(tmp_path: Path) -> None:
    observation = "Crafting commands:\ncraft 4 oak planks using 1 oak log\n\nGoal: craft oak planks."
    save_log(tmp_path / "step1" / "0.json", logged(5, 1.0, observation, "Action: get 1 oak log", "Got 1 oak log", "x"))
    found = asker(Viewer([tmp_path]))("/api/episodes/0/panels").json()
    assert found["kind"] == "textcraft"
    assert len(found["states"]) == 3


def test_failed_or_slow_panel_is_reported_as_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "t.jsonl", record("a"), record("b"))
    go_on, made = threading.Event(), list[str]()

    def panels_of(episode: Any) -> dict[str, Any]:
        made.append(episode.task.id)
        if episode.task.id == "a":
            raise RuntimeError("no\nJava")
        go_on.wait(60)
        return {"kind": "x", "note": None, "states": [1]}

    monkeypatch.setattr(panels, "panels_of", panels_of)
    viewer = Viewer([tmp_path], panel_seconds=0.05)
    failed: dict[str, Any] = {"kind": None, "note": "The state is not available: no Java", "states": []}
    assert [viewer.panels(0), viewer.panels(0)] == [failed, failed]
    slow = viewer.panels(1)
    assert (slow["kind"], slow["states"]) == (None, [])
    assert "not ready" in slow["note"]
    go_on.set()
    viewer._panel_seconds = 60.0
    assert viewer.panels(1) == {"kind": "x", "note": None, "states": [1]}
    assert made == ["a", "b"]  # each panel is made once


def test_first_request_can_be_an_episode(get: Get) -> None:
    assert get("/api/episodes/2").json()["row"]["task"] == "t/2"


def test_episode_of_replaced_file_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "REFRESH_SECONDS", 3_600.0)
    path = save(tmp_path / "t.jsonl", record("a"), record("b"))
    get = asker(Viewer([tmp_path]))
    assert get("/api/episodes/1").status_code == 200
    path.write_text("short")
    assert get("/api/episodes/1").status_code == 404
    path.unlink()
    for part in ("", "/panels"):
        answer = get(f"/api/episodes/1{part}")
        assert answer.status_code == 404
        assert "episode 1" in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/episodes?limit=many", 400),
        ("/api/episodes?colour=red", 400),
        ("/api/episodes/3", 404),
        ("/api/episodes/-1", 404),
        ("/api/episodes/٣", 404),
        ("/api/episodes/" + "9" * 400, 404),
        ("/api/episodes/0/secrets", 404),
        ("/api/nothing", 404),
        ("/static/", 404),
        ("/static/../server.py", 404),
        ("/static/..%2fserver.py", 404),
        ("/static/%2e%2e/server.py", 404),
        ("/static/..%5cserver.py", 404),
        ("/static//etc/passwd", 404),
        ("/static/%2fetc%2fpasswd", 404),
        ("/static/index.html%00.js", 404),
        ("/static/__init__.py", 404),
        ("/t.jsonl", 404),
    ],
)
def test_errors_are_json(get: Get, path: str, status: int) -> None:
    answer = get(path)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    "path", ["/", "/static/app.js", "/static/base.css", "/api/summary", "/nothing", "/api/episodes?x=1"]
)
def test_every_response_has_security_headers(get: Get, path: str) -> None:
    headers = get(path).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert not [name for name in headers if name.startswith("access-control")]


def test_unknown_host_header_is_rejected(get: Get) -> None:
    assert get("/api/summary", host="localhost").status_code == 200
    for host in (
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "192.168.0.7:8000",
        "",
        "localhost.evil",
    ):
        answer = get("/api/summary", host=host)
        assert answer.status_code == 421
        assert "count" not in answer.json()
        assert "content-security-policy" in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_get_and_head_are_allowed(get: Get, method: str) -> None:
    assert get("/api/episodes/0", method=method).status_code == 405


@pytest.mark.parametrize(
    ("header", "names", "own"),
    [
        ("localhost:80", {"localhost"}, True),
        ("LOCALHOST", {"localhost"}, True),
        ("[::1]:80", {"localhost"}, True),
        ("[::1]", {"localhost"}, True),
        ("127.8.8.8", {"localhost"}, True),
        ("10.0.0.1:80", {"localhost"}, False),
        ("10.0.0.1:80", {"box", "*"}, True),
        ("[fe80::1]:80", {"box", "*"}, True),
        ("box:80", {"box", "*"}, True),
        ("evil", {"box", "*"}, False),
        ("*", {"box", "*"}, False),
        (":80", {"box", "*"}, False),
    ],
)
def test_is_own_name_accepts_known_hosts_only(header: str, names: set[str], own: bool) -> None:
    assert is_own_name(header, names) is own


def test_internal_error_hides_its_message(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "means_of", lambda entries: 1 / 0)
    answer = get("/api/episodes")
    assert answer.status_code == 500
    assert answer.json() == {"error": "the viewer failed: ZeroDivisionError; see its log"}


def test_large_responses_are_compressed(get: Get) -> None:
    answer = get("/static/app.js", **{"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"].startswith("text/javascript")


def test_json_has_no_nan_and_no_lone_surrogates() -> None:
    text = to_json({"a": [float("nan"), float("inf"), 1.5], "b": "\ud800é\u2028", "c": {"d": (float("-inf"),)}})
    assert text.isascii()
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name)) == {
        "a": [None, None, 1.5],
        "b": "\ud800é\u2028",
        "c": {"d": [None]},
    }
