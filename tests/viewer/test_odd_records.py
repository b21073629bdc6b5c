"""Malformed and hostile records do no harm to the viewer."""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentgym_envs.viewer import api, panels
from agentgym_envs.viewer.api import UnknownEpisode, Viewer
from agentgym_envs.viewer.export import export_html
from agentgym_envs.viewer.server import make_app

from .records import record, save
from .test_api import asker
from .test_export import Page


@pytest.mark.parametrize("env_id", ["leaves_a_mark:X-v0", "leaves_a_mark:AgentGym/WebArena-v0", "leaves_a_mark:babyai"])
def test_files_cannot_import_modules(env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaves_a_mark.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(tmp_path)
    save(tmp_path / "t.jsonl", record("t", "go", env_id=env_id, env_kwargs={"grammar": "react"}))
    viewer = Viewer([tmp_path])
    assert viewer.episode(0)["turns"][0]["action"] == "go"
    viewer.panels(0)
    export_html(viewer, viewer.index.snapshot.entries)
    assert not (tmp_path / "mark").exists() and "leaves_a_mark" not in sys.modules


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


ODD: dict[str, dict[str, Any]] = {
    "task data": {"task": {"id": "t", "split": "test", "group": "g", "goal": "x", "data": [1, 2]}},
    "env_kwargs": {"env_kwargs": "abc"},
    "grammar": {"env_kwargs": {"grammar": {"a": 1}}},
    "turns of an attempt": {"meta": {"attempts": [{"turns": 5, "score": "high", "lesson": [1]}]}},
    "attempts": {"meta": {"attempts": {"a": 5}}},
    "instructions": {"instructions": 5},
    "last observation": {"final_observation": [1]},
    "turn": {"turns": [{"observation": 5, "action": None, "reward": 0.0, "info": {}}]},
    "numbers": {"meta": {"max_turns": 10**400, "step": 10**30}},
}
DEEP = [(field, depth) for field in ("info", "data", "meta", "attempts") for depth in (100, 300, 500, 600, 900)]


def line_of(case: str | tuple[str, int]) -> str:
    row = json.loads(record("t", "go", meta={"attempts": [{"turns": []}]}).to_json())
    if isinstance(case, str):
        return json.dumps({**row, **ODD[case]})
    field, depth = case
    row["turns"][0]["info"] = {"a": "info"}
    row["task"]["data"] = {"a": "data"}
    row["meta"] = {"a": "meta", "attempts": [{"turns": [{"info": {"a": "attempts"}}]}]}
    return json.dumps(row).replace(f'"{field}"}}', f"{nested(depth)}}}").replace('"meta",', f"{nested(depth)},")


@pytest.mark.slow
@pytest.mark.parametrize("case", [*ODD, *DEEP], ids=str)
def test_malformed_record_is_shown_or_rejected(case: str | tuple[str, int], tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f"{line_of(case)}\n{record('other').to_json()}\n")
    viewer = Viewer([path])
    get = asker(viewer)
    for number in [entry.id for entry in viewer.index.refresh().entries]:
        for part in ("", "/panels", "/tokens"):
            answer = get(f"/api/episodes/{number}{part}")
            assert answer.status_code in (200, 404), answer.text
            assert answer.status_code == 200 or answer.json()["error"]
    assert get("/api/training").status_code == 200
    data = Page(export_html(viewer, viewer.index.snapshot.entries)).data
    assert "other" in [row["task"] for row in data["rows"]]


def test_too_deeply_nested_values_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(line_of(("info", 300)) + "\n")
    text = json.dumps(Viewer([tmp_path]).episode(0)["turns"])
    assert "[[[[" in text and "nested too deeply" in text


def test_row_and_turns_belong_to_one_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "REFRESH_SECONDS", 3_600.0)
    path = save(tmp_path / "t.jsonl", record("a", "go"))
    viewer = Viewer([path])
    assert viewer.episode(0)["row"]["task"] == "a"
    path.write_text(record("b", "no").to_json() + "\n")  # of the same length
    os.utime(path, (1, 1))
    with pytest.raises(UnknownEpisode, match="replaced"):
        viewer.episode(0)
    (row,) = (row for row in [viewer.episode(1)["row"]])
    assert row["task"] == "b"


@pytest.mark.slow
def test_slow_panels_do_not_block_other_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of threads is small, and each panel in progress occupies one."""
    save(tmp_path / "t.jsonl", *(record(str(number)) for number in range(60)))
    go_on = threading.Event()

    def panels_of(_: Any) -> dict[str, Any]:
        go_on.wait(60)
        return {"kind": None, "note": None, "states": []}

    monkeypatch.setattr(panels, "panels_of", panels_of)
    viewer = Viewer([tmp_path], panel_seconds=60)
    viewer.summary()

    async def ask() -> int:
        transport = httpx.ASGITransport(make_app(viewer))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=None) as client:
            waiting = [asyncio.create_task(client.get(f"/api/episodes/{number}/panels")) for number in range(60)]
            await asyncio.sleep(0.2)  # until all are in progress
            try:
                return (await asyncio.wait_for(client.get("/api/summary"), 30)).status_code
            finally:
                go_on.set()
                await asyncio.gather(*waiting)

    assert asyncio.run(ask()) == 200
